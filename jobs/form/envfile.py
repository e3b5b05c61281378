"""A `.env` file that was pasted, as environment variables.  Nothing in it is expanded.

The format is python-dotenv's, whose own reader takes the square of a line's blanks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from jobs.dialects.patterns import compile_pattern

MAX_CHARACTERS: Final = 64 * 1024
"""Characters of a file that is read."""

_BLANKS: Final = r"[^\S\r\n]*+"
_VARIABLE: Final = compile_pattern(
    rf"(?:export[^\S\r\n]++)?+(?:'(?P<quoted_name>[^']++)'|(?P<name>[^=#\s']++[^=#\s]*+)){_BLANKS}"
    rf"(?:={_BLANKS}(?:'(?P<single>(?:[^'\\]|\\.)*+)'|\"(?P<double>(?:[^\"\\]|\\.)*+)\""
    rf"|(?P<plain>[^'\"\r\n][^\r\n]*+))?+)?+(?P<rest>{_BLANKS}(?:#[^\r\n]*+)?+(?=[\r\n]|\Z))?+",
    re.DOTALL,
)
"""`rest` is missing where other text follows a value: that line is no variable."""

_SPACES: Final = re.compile(r"\s*+")
_LINE: Final = re.compile(r"[^\r\n]*+")
_COMMENT: Final = re.compile(r"(?<=\s)#")
_ESCAPED: Final = re.compile(r"\\([\\'\"abfnrtv])")
_ESCAPED_IN_SINGLE: Final = re.compile(r"\\([\\'])")
_CHARACTERS: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass(frozen=True, slots=True)
class EnvFile:
    """The variables of a file in its order, and the numbers of the lines that are none, from 1."""

    variables: dict[str, str]
    bad_lines: tuple[int, ...]


def read_env_file(text: str) -> EnvFile:
    """Read the file; a name without a value is an empty variable.

    The caller refuses a text of more than MAX_CHARACTERS.
    """
    variables: dict[str, str] = {}
    bad_lines: list[int] = []
    text = text.removeprefix("\ufeff")
    at = _end(_SPACES, text, 0)
    line, counted = 1, 0
    while at < len(text):
        line, counted = line + text.count("\n", counted, at), at
        found = _VARIABLE.match(text, at)
        if found and found["rest"] is not None:
            variables[found["quoted_name"] or found["name"]] = _value(found)
        elif text[at] != "#":
            bad_lines.append(line)
        at = _end(_LINE, text, found.end() if found else at)
        at = _end(_SPACES, text, at)
    return EnvFile(variables, tuple(bad_lines))


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    """Return where what `pattern` matches at `start` ends."""
    found = pattern.match(text, start)
    return found.end() if found else start


def _value(found: re.Match[str]) -> str:
    """Return the value of a line, without quotes, escapes and a comment."""
    if found["single"] is not None:
        return _ESCAPED_IN_SINGLE.sub(r"\1", found["single"])
    if found["double"] is not None:
        return _ESCAPED.sub(lambda each: _CHARACTERS.get(each[1], each[1]), found["double"])
    if found["plain"] is None:
        return ""
    start, end = found.span("plain")
    comment = _COMMENT.search(found.string, start, end)
    return found.string[start : comment.start() if comment else end].rstrip()
