"""Why a text is not JSON, in terms of what would be right: the parser's offset turned into a cause.

The standard library says where it stopped and what it expected; this module looks at what stands there.
Codes only: the sentences are made in `jobs.messages`.
"""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass, field
from typing import Final

from jobs.dialects.base import Params
from jobs.dialects.patterns import compile_pattern

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
    """What is wrong with `text` where the JSON parser stopped with `error`."""
    found = _in_string(text, error)
    if found:
        return found
    start = _SPACE.match(text, error.pos)
    offset = start.end() if start else error.pos
    if offset >= len(text):
        return _at_end(text)
    mark = _wrong_mark(text, offset)
    if mark or error.msg.startswith("Extra data"):
        return mark or Cause("extra_text", offset)
    return (
        _wrong_word(text, offset, error.msg)
        or _expected(text, offset, error.msg)
        or Cause("unexpected_character", offset, {"character": name_of(text[offset])})
    )


def _in_string(text: str, error: json.JSONDecodeError) -> Cause | None:
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
    """Where the string literal that holds `offset` begins, on the same line."""
    line = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    start = offset
    for match in _BRACKETS.finditer(text, line, offset):
        if match[0].startswith('"'):
            start = match.start()
    return start


def _at_end(text: str) -> Cause:
    """The text ended too early: the innermost bracket that is still open says what is missing."""
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


def _wrong_mark(text: str, offset: int) -> Cause | None:
    """A mark that stands for the right one: other quotes, full-width punctuation, other comments."""
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


def _wrong_word(text: str, offset: int, message: str) -> Cause | None:
    """A bare word or an odd number where JSON wants something else."""
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


def _expected(text: str, offset: int, message: str) -> Cause | None:
    """What the parser waited for, when what stands there says nothing itself."""
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
    """A character as people can recognise it: itself, or its Unicode name when it can't be seen."""
    if character.isprintable() and not character.isspace():
        return character
    return f"U+{ord(character):04X} {unicodedata.name(character, '')}".strip()
