"""Subfields: parts of a field's value that are fields themselves.

A subfield is a member of a map, or an argument in a string `--name=value --name value --name`.  Everything
else in the value, arguments that are not known too, stays as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

_WORD: Final = re.compile(r"""(?:[^\s"']|"[^"]*"|'[^']*'|["'])+""")
_NAME: Final = re.compile(r"--([A-Za-z][A-Za-z0-9_-]*)")
_PLAIN: Final = re.compile(r"""[^\s"']+""")
YES_NO: Final = ("True", "False")


@dataclass(frozen=True, slots=True)
class KnownArgument:
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
    KnownArgument("job-execution-mode", ("Sync", "Async"), usual="Sync"),
    KnownArgument("enable-job-restart", YES_NO, usual="False"),
    KnownArgument("max-num-of-job-restart", number=True, usual="3"),
    KnownArgument("job-restart-timeout", number=True, usual="1800"),
    KnownArgument("enable-job-hang-detection", YES_NO),
    KnownArgument("job-hang-interval", number=True, usual="1800"),
    KnownArgument("enable-c4d-hang-detection", YES_NO),
    KnownArgument("enable-log-hang-detection", YES_NO),
    KnownArgument("enable-local-detection", YES_NO),
    KnownArgument("enable-perftracker", YES_NO),
    KnownArgument("fault-tolerant-policy", ("OnFailure", "ExitCodeAndErrorMsg")),
)
"""Of DLC's automatic fault tolerance; older names (`execution-mode` …) stay as they are written."""

SANITY_CHECK: Final = (
    KnownArgument("sanity-check-timing"),
    KnownArgument("sanity-check-timeout-ops"),
)
"""Of DLC's sanity check: the possible values of neither are published."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """One argument in the text: its range and its value."""

    name: str
    begin: int
    end: int
    value: str


def parse_arguments(text: str) -> Mapping[str, str]:
    """Every argument with its value; of one that is repeated, the last.  One without a value is "True"."""
    return {piece.name: piece.value for piece in _pieces(text)}


def set_argument(text: str, name: str, value: str) -> str:
    """`text` with that value of the argument; "" takes it out.  Everything else stays as it was."""
    pieces = [piece for piece in _pieces(text) if piece.name == name]
    if pieces and pieces[-1].value == value and (value or len(pieces) == 1):
        return text
    argument = f"--{name}={_quote(value)}" if value else ""
    if not pieces:
        return f"{text}{' ' if text.strip() and argument else ''}{argument}" if text.strip() else argument
    for piece in reversed(pieces):
        replacement = argument if piece is pieces[-1] else ""
        begin, end = piece.begin, piece.end
        if not replacement:  # with the blanks before it, or behind it where it was the first
            while begin and text[begin - 1].isspace():
                begin -= 1
            while not begin and end < len(text) and text[end].isspace():
                end += 1
        text = text[:begin] + replacement + text[end:]
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
            value = _unquote(rest[1:])
        elif rest:
            continue
        elif at < len(words) and not words[at][0].startswith("--"):
            value, end = _unquote(words[at][0]), words[at].end()
            at += 1
        else:
            value = "True"
        yield _Piece(named[1], word.start(), end, value)


def _unquote(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" and text[0] not in text[1:-1]:
        return text[1:-1]
    return text


def _quote(value: str) -> str:
    if _PLAIN.fullmatch(value):
        return value
    return f'"{value}"' if '"' not in value else "'" + value.replace("'", "") + "'"


class Subfield(Protocol):
    """How a part is found in the whole, and put back; everything else in the whole stays as it was."""

    @property
    def name(self) -> str:
        """The name of the subfield."""

    def show(self, whole: Any) -> str:
        """The part's text; "" where it is not there."""

    def replace(self, whole: Any, text: str) -> Any:
        """The whole with another text for the part; "" takes it out."""


@dataclass(frozen=True, slots=True)
class MapMember:
    """A member of a map."""

    name: str

    def show(self, whole: Any) -> str:
        """See `Within`."""
        return str(whole.get(self.name, ""))

    def replace(self, whole: Any, text: str) -> Any:
        """See `Within`."""
        if text:
            return {**whole, self.name: text}
        return {name: value for name, value in whole.items() if name != self.name}


@dataclass(frozen=True, slots=True)
class TextArgument:
    """An argument in a string of them."""

    name: str

    def show(self, whole: Any) -> str:
        """See `Within`."""
        return parse_arguments(whole).get(self.name, "")

    def replace(self, whole: Any, text: str) -> Any:
        """See `Within`."""
        return set_argument(whole, self.name, text)


@dataclass(frozen=True, slots=True)
class SubfieldEdit:
    """A new text for a subfield; the rest of the value stays as it is."""

    subfield: Subfield
    text: str
