"""A request as it stands in a manual: head lines and a JSON body, or a curl command.  Nothing is sent."""

from __future__ import annotations

import re
from typing import Final

from jobs.dialects.pasted.layers import Layer, Segment, cut
from jobs.dialects.pasted.words import Word, words
from jobs.dialects.patterns import compile_pattern

_NUMBER: Final = r"(?:\d{1,6}[ \t]*)?"
_HEAD: Final = re.compile(
    rf"\s*{_NUMBER}(?:POST|PUT)[ \t]+\S+(?:[ \t]+HTTP/[\d.]+)?[ \t]*(?:\r?\n|\Z)", re.IGNORECASE
)
_FIELD: Final = re.compile(rf"{_NUMBER}[A-Za-z][A-Za-z0-9-]*[ \t]*:[^\r\n]*(?:\r?\n|\Z)|[ \t]*\r?\n")
_BODY: Final = re.compile(rf"[ \t]*{_NUMBER}\{{")
_BRACKETS: Final = compile_pattern(r'"(?:[^"\\\r\n]|\\[^\r\n])*+"?|[{}\[\]]')
_CURL: Final = re.compile(r"\s*(?:\$[ \t]+)?curl(?=\s)")
_DATA: Final = frozenset({"-d", "--data", "--data-raw", "--data-binary", "--data-ascii", "--json"})
_JOINED: Final = re.compile(r"(?P<option>--(?:data(?:-raw|-binary|-ascii)?|json)=|-d)(?=.)", re.DOTALL)


def of_http(text: str) -> Layer | None:
    """The body of a documented HTTP request."""
    head = _HEAD.match(text)
    if head is None:
        return None
    at = head.end()
    while (field := _FIELD.match(text, at)) and field.end() > at:
        at = field.end()
    if not _BODY.match(text, at):
        return None
    return cut("http", text, at, json_end(text, at))


def json_end(text: str, start: int) -> int:
    """Where the JSON value that begins behind `start` ends; the end of the text where it is not closed."""
    depth = 0
    for found in _BRACKETS.finditer(text, start):
        if found[0] in "{[":
            depth += 1
        elif found[0] in "}]":
            depth -= 1
            if depth <= 0:
                return found.end()
    return len(text)


def of_curl(text: str) -> Layer | None:
    """The body that a curl command would send."""
    found = _CURL.match(text)
    if found is None:
        return None
    body: Word | None = None
    option = False
    for word in words(text, found.end()) or ():
        joined = _JOINED.match(word.value)
        if option:
            body, option = word, False
        elif word.value in _DATA:
            option = True
        elif joined:
            body = word.without(joined.end())
    if body is None or not body.value.lstrip().startswith(("{", "[")):
        return None
    return Layer("curl", body.value, tuple(Segment(*place) for place in body.places))
