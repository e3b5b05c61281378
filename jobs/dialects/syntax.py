"""Faults of JSON texts: those that stop the parser, and those that it lets pass.

The parser's offset is turned into a cause, in terms of what would be right.  Repeated keys, impossible
numbers and text are looked for in a text in which something looked suspicious; all are found at once.

The standard library says where it stopped and what it expected; this module looks at what stands there.
Codes only: the sentences are made in `jobs.messages`.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from jobs.dialects.base import Params
from jobs.dialects.patterns import compile_pattern
from jobs.dialects.spans import Node, escape, walk

SOURCE: Final = "RFC 8259"

_BRACKETS: Final = compile_pattern(r'"(?:[^"\\\r\n]|\\[^\r\n])*+"?|[{}\[\]]')
_CLOSES: Final = {"{": "}", "[": "]"}
_LITERALS: Final = {
    "True": "true",
    "False": "false",
    "None": "null",
    "undefined": "null",
    "nil": "null",
    "NULL": "null",
}
_FULLWIDTH: Final = {
    "，": ",",
    "、": ",",
    "：": ":",
    "｛": "{",
    "｝": "}",
    "［": "[",
    "］": "]",
    "【": "[",
    "】": "]",
}
_QUOTES: Final = "“”„‟«»「」『』＂‘’‚‛′″"
_WORD: Final = re.compile(r"[\w$.+-]+")
_WORD_BEFORE: Final = re.compile(r"(?<![\w.+-])[\w.+-]+\Z")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f]")
_SPACE: Final = re.compile(r"\s*")
_WORD_SHOWN: Final = 40


@dataclass(frozen=True, slots=True)
class Cause:
    """A problem's code and parameters, and the offset at which to show it."""

    code: str
    offset: int
    params: Params = field(default_factory=dict)


def diagnose(text: str, error: json.JSONDecodeError) -> Cause:
    """Return the cause for which the JSON parser stopped in `text` with `error`."""
    found = _diagnose_string(text, error)
    if found:
        return found
    start = _SPACE.match(text, error.pos)
    offset = start.end() if start else error.pos
    if offset >= len(text):
        return _diagnose_end(text)
    mark = _diagnose_mark(text, offset)
    if mark or error.msg.startswith("Extra data"):
        return mark or Cause("extra_text", offset)
    return (
        _diagnose_word(text, offset, error.msg)
        or _diagnose_expected(text, offset, error.msg)
        or Cause("unexpected_character", offset, {"character": name_of(text[offset])})
    )


def _diagnose_string(text: str, error: json.JSONDecodeError) -> Cause | None:
    """Errors inside a string literal: no end, a raw control character, an unknown escape."""
    if error.msg.startswith("Unterminated string"):
        return Cause("unterminated_string", error.pos)
    if error.msg.startswith("Invalid control character"):
        found = _CONTROL.search(text, error.pos)  # tabs are tolerated
        offset = found.start() if found else error.pos
        if text[offset] in "\r\n":
            return Cause("unterminated_string", _string_start(text, offset))
        return Cause("control_character", offset, {"character": name_of(text[offset])})
    if error.msg.startswith("Invalid \\"):
        slash = text.rfind("\\", 0, error.pos + 2)
        return Cause("bad_escape", slash, {"escape": text[slash : slash + 2]})
    return None


def _string_start(text: str, offset: int) -> int:
    """Return the offset of the string literal that holds `offset`, on the same line."""
    line = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    start = offset
    for match in _BRACKETS.finditer(text, line, offset):
        if match[0].startswith('"'):
            start = match.start()
    return start


def _diagnose_end(text: str) -> Cause:
    """Return the text ended too early: the innermost bracket that is still open says what is missing."""
    if not text.strip():
        return Cause("empty_text", 0)
    opened: list[re.Match[str]] = []
    for match in _BRACKETS.finditer(text):
        if match[0] in _CLOSES:
            opened.append(match)
        elif match[0] in "]}" and opened:
            opened.pop()
    if not opened:
        return Cause("unexpected_end", len(text))
    last = opened[-1]
    line = len(re.findall(r"\r\n|\r|\n", text[: last.start()])) + 1
    params: Params = {"bracket": last[0], "closing": _CLOSES[last[0]], "opened_line": line}
    return Cause("unclosed_bracket", len(text.rstrip()), params)


def _diagnose_mark(text: str, offset: int) -> Cause | None:
    """Return a mark that stands for the right one: other quotes, full-width punctuation, other comments."""
    mark = text[offset]
    if mark == "'":
        return Cause("single_quotes", offset)
    if mark in _QUOTES:
        return Cause("typographic_quotes", offset, {"character": mark})
    if mark in _FULLWIDTH:
        return Cause("fullwidth_mark", offset, {"character": mark, "right": _FULLWIDTH[mark]})
    if text.startswith("/*", offset):
        return Cause("unclosed_comment", offset)
    if mark == "#":
        return Cause("hash_comment", offset)
    return None


def _diagnose_word(text: str, offset: int, message: str) -> Cause | None:
    """Return a bare word or an odd number where JSON wants something else."""
    match = _WORD.match(text, offset)
    if not match or "delimiter" in message:
        return None
    word = match[0][:_WORD_SHOWN]
    if message.startswith("Expecting property name"):
        return Cause("unquoted_key", offset, {"key": word})
    if word in _LITERALS:
        return Cause("wrong_literal", offset, {"word": word, "right": _LITERALS[word]})
    if word[0].isdigit() or word[0] in "+-.":
        return Cause("bad_number", offset, {"number": word})
    return Cause("unquoted_text", offset, {"text": word})


def _diagnose_expected(text: str, offset: int, message: str) -> Cause | None:
    """Return the cause by what the parser waited for, when what stands there says nothing itself."""
    mark = text[offset]
    if message.startswith("Expecting ':'"):
        return Cause("missing_colon", offset, {"character": name_of(mark)})
    if message.startswith("Expecting ','"):
        word = _WORD_BEFORE.search(text, 0, offset)
        if word and word[0][-1].isdigit() and (rest := _WORD.match(text, offset)):
            return Cause("bad_number", word.start(), {"number": (word[0] + rest[0])[:_WORD_SHOWN]})
        return Cause(
            "wrong_bracket" if mark in "]}" else "missing_comma", offset, {"character": name_of(mark)}
        )
    if mark == ",":
        return Cause("extra_comma", offset)
    if mark in "]}" or message.startswith("Expecting property name"):
        return Cause("missing_value" if mark in "]}" else "missing_key", offset, {"character": name_of(mark)})
    return None


def name_of(character: str) -> str:
    """Return a character as people can recognise it: itself, or its Unicode name when it can't be seen."""
    if character.isprintable() and not character.isspace():
        return character
    return f"U+{ord(character):04X} {unicodedata.name(character, '')}".strip()


INVISIBLE: Final = re.compile(r"[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
"""Characters of no width and those that turn the direction of reading: two names may look the same."""

MAX_INTEGER: Final = 2**53 - 1
"""What every JSON reader holds exactly (RFC 8259 section 6; Joi's `integer` in OpenPAI v0.14)."""

MAX_REPORTED: Final = 100
"""Nobody reads more problems than this."""

DUPLICATE: Final = "duplicate_key"

_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


def examine(top: Node, text: str, *, repeats: bool = False) -> Iterator[tuple[str, Cause]]:
    """Each fault of the tree `top` of strict JSON `text`, with its pointer; at most 100.

    With `repeats`, a key may be repeated where no text is replaced (see `repeated`).
    """
    allowed = set(find_repeated_keys(top, text)) if repeats else set()
    faults = (fault for fault in _faults(top, text) if fault[1].code != DUPLICATE or fault[0] not in allowed)
    for count, fault in enumerate(faults):
        if count == MAX_REPORTED:
            return
        yield fault


def find_repeated_keys(top: Node, text: str) -> Iterator[str]:
    """Yield pointers of repeated keys that replace nothing but numbers, booleans and null.

    Of repeated keys the last counts, as in JavaScript.  A text may be a secret, and stays a fault.
    """
    for pointer, node in walk(top):
        texts = {key for key, _offset, old in node.repeats if text[old.start] in '"{['}
        for key in dict.fromkeys(key for key, _offset, _old in node.repeats):
            if key not in texts:
                yield f"{pointer}/{escape(key)}"


def _faults(top: Node, text: str) -> Iterator[tuple[str, Cause]]:
    for pointer, node in walk(top):
        for key, offset, _old in node.repeats:
            yield f"{pointer}/{escape(key)}", Cause(DUPLICATE, offset, {"key": key})
        for key, child in (node.members or {}).items():
            cause = _key_fault(key, child.key_start)
            if cause:
                yield pointer, cause
        if node.members is None and node.items is None:
            cause = _scalar_fault(text[node.start : node.end], node.start)
            if cause:
                yield pointer, cause


def _key_fault(key: str, offset: int) -> Cause | None:
    """Return the fault of one key, if any; told of the object, since the key can't be shown."""
    if _SURROGATE.search(key):
        return Cause("lone_surrogate", offset)
    if "\0" in key:
        return Cause("null_character", offset)
    if found := INVISIBLE.search(key):
        params: Params = {"character": f"U+{ord(found[0]):04X}", "key": INVISIBLE.sub("", key)}
        return Cause("invisible_key", offset, params)
    return None


def _scalar_fault(literal: str, offset: int) -> Cause | None:
    """Return the fault of one scalar as it is written, if any."""
    if literal.startswith('"'):
        value = json.loads(literal, strict=False) if "\\" in literal else literal
        if _SURROGATE.search(value):
            return Cause("lone_surrogate", offset)
        return Cause("null_character", offset) if "\0" in value else None
    if literal in ("true", "false", "null"):
        return None
    if literal in ("NaN", "Infinity", "-Infinity"):
        return Cause("not_a_number", offset, {"word": literal})
    return None if _fits(literal) else Cause("number_too_big", offset, {"digits": len(literal.lstrip("-"))})


def _fits(number: str) -> bool:
    """Return whether every JSON reader can hold the number."""
    if number.lstrip("-").isdigit():
        return len(number) <= len(str(MAX_INTEGER)) + 1 and abs(int(number)) <= MAX_INTEGER
    return math.isfinite(float(number))
