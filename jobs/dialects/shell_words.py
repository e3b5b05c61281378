"""Words of a shell's text, as `shlex.split` finds them, in time that grows with the length.

`shlex` copies a word for each of its characters, so one word of 1 MiB takes minutes.
"""

from __future__ import annotations

import re
import shlex
from typing import Final

from jobs.dialects.patterns import compile_pattern

_PIECE: Final = compile_pattern(
    r"(?P<blank>[ \t\r\n]++)"
    r"|'(?P<single>[^']*+)'"
    r'|"(?P<double>(?:[^"\\]|\\.)*+)"'
    r"|\\(?P<escaped>.)"
    r"|(?P<plain>[^ \t\r\n'\"\\]++)",
    re.DOTALL,
)
_ESCAPED: Final = re.compile(r'\\(["\\])')


def here_document_mark(text: str) -> str:
    """Return a word that ends a here document of `text`, since no line of it is that word."""
    lines, number, mark = set(text.split("\n")), 1, "END_OF_SCRIPT"
    while mark in lines:
        number += 1
        mark = f"END_OF_SCRIPT_{number}"
    return mark


def quote(value: str) -> str:
    """Return `value` as one word of a shell, without CR LF, which is read as a line end."""
    return shlex.quote(value).replace("\r\n", "\r''\n")


def split(text: str) -> list[str]:
    """Return the words of `text`; raises ValueError where a quotation or an escape does not end."""
    words: list[str] = []
    parts: list[str] | None = None
    at = 0
    while at < len(text):
        found = _PIECE.match(text, at)
        if found is None:
            raise ValueError("No closing quotation or escaped character")
        at = found.end()
        if found.lastgroup == "blank":
            words += [] if parts is None else ["".join(parts)]
            parts = None
        else:
            said = found[str(found.lastgroup)]
            piece = _ESCAPED.sub(r"\1", said) if found.lastgroup == "double" else said
            parts = parts or []
            parts.append(piece)
    return words if parts is None else [*words, "".join(parts)]
