"""Arguments in one string, `--name=value --name value --name`, as fields: each can be changed by itself.

Whatever else stands there, arguments that nobody knows too, stays as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

_WORD: Final = re.compile(r"""(?:[^\s"']|"[^"]*"|'[^']*'|["'])+""")
_NAME: Final = re.compile(r"--([A-Za-z][A-Za-z0-9_-]*)")
_PLAIN: Final = re.compile(r"""[^\s"']+""")
YES_NO: Final = ("True", "False")


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument that has a field: one of `options`, a whole number, or any text.

    `usual` is what counts where it is not given, as far as that is published.
    """

    name: str
    options: tuple[str, ...] = ()
    number: bool = False
    usual: str = ""

    @property
    def slug(self) -> str:
        """Its name in a form."""
        return self.name.replace("-", "_")


AIMASTER: Final = (
    Argument("job-execution-mode", ("Sync", "Async"), usual="Sync"),
    Argument("enable-job-restart", YES_NO, usual="False"),
    Argument("max-num-of-job-restart", number=True, usual="3"),
    Argument("job-restart-timeout", number=True, usual="1800"),
    Argument("enable-job-hang-detection", YES_NO),
    Argument("job-hang-interval", number=True, usual="1800"),
    Argument("enable-c4d-hang-detection", YES_NO),
    Argument("enable-log-hang-detection", YES_NO),
    Argument("enable-local-detection", YES_NO),
    Argument("enable-perftracker", YES_NO),
    Argument("fault-tolerant-policy", ("OnFailure", "ExitCodeAndErrorMsg")),
)
"""Of DLC's automatic fault tolerance; older names (`execution-mode` …) stay as they are written."""

SANITY_CHECK: Final = (
    Argument("sanity-check-timing"),
    Argument("sanity-check-timeout-ops"),
)
"""Of DLC's sanity check: which values there are is published for neither."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """One argument as it stands in the text: from where to where, and its value."""

    name: str
    begin: int
    end: int
    value: str


def values(text: str) -> Mapping[str, str]:
    """Every argument with its value; of one that is repeated, the last.  One without a value is "True"."""
    return {piece.name: piece.value for piece in _pieces(text)}


def others(text: str, known: tuple[Argument, ...]) -> tuple[str, ...]:
    """What the text says beyond the known arguments, in its own words."""
    names = {argument.name for argument in known}
    covered = [piece for piece in _pieces(text) if piece.name in names]
    left = "".join(
        " " if any(piece.begin <= at < piece.end for piece in covered) else character
        for at, character in enumerate(text)
    )
    return tuple(match[0] for match in _WORD.finditer(left))


def put(text: str, name: str, value: str) -> str:
    """`text` with that value of the argument; "" takes it out.  Everything else stays as it was."""
    pieces = [piece for piece in _pieces(text) if piece.name == name]
    if pieces and pieces[-1].value == value and (value or len(pieces) == 1):
        return text
    said = f"--{name}={_quoted(value)}" if value else ""
    if not pieces:
        return f"{text}{' ' if text.strip() and said else ''}{said}" if text.strip() else said
    for piece in reversed(pieces):
        here = said if piece is pieces[-1] else ""
        begin, end = piece.begin, piece.end
        if not here:  # with the blanks before it, or behind it where it was the first
            while begin and text[begin - 1].isspace():
                begin -= 1
            while not begin and end < len(text) and text[end].isspace():
                end += 1
        text = text[:begin] + here + text[end:]
    return text


def _pieces(text: str) -> Iterator[_Piece]:
    words = list(_WORD.finditer(text))
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        named = _NAME.match(word[0])
        if named is None:
            continue
        rest, end = word[0][named.end() :], word.end()
        if rest.startswith("="):
            value = _unquoted(rest[1:])
        elif rest:
            continue
        elif at < len(words) and not words[at][0].startswith("--"):
            value, end = _unquoted(words[at][0]), words[at].end()
            at += 1
        else:
            value = "True"
        yield _Piece(named[1], word.start(), end, value)


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" and text[0] not in text[1:-1]:
        return text[1:-1]
    return text


def _quoted(value: str) -> str:
    if _PLAIN.fullmatch(value):
        return value
    return f'"{value}"' if '"' not in value else "'" + value.replace("'", "") + "'"
