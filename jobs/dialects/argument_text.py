"""Arguments in one string, `--name=value --name value --name`, read and changed in place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

_WORD: Final = re.compile(r"""(?:[^\s"']|"[^"]*"|'[^']*'|["'])+""")
_NAME: Final = re.compile(r"--([A-Za-z][A-Za-z0-9_-]*)")
_PLAIN: Final = re.compile(r"""[^\s"']+""")
_BARE: Final = "True"
"""The value of an argument without one."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument in the text: its range and its value."""

    name: str
    begin: int
    end: int
    value: str


def find_arguments(text: str) -> Iterator[Argument]:
    """Yield every argument, in order; one without a value has the value "True"."""
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
            value = _BARE
        yield Argument(named[1], word.start(), end, value)


def parse_arguments(text: str) -> Mapping[str, str]:
    """Return every argument with its value; of one that is repeated, the last."""
    return {argument.name: argument.value for argument in find_arguments(text)}


def set_argument(text: str, name: str, value: str) -> str:
    """Return `text` with that value of the argument; "" removes it.  Everything else stays as it was."""
    found = [argument for argument in find_arguments(text) if argument.name == name]
    if found and found[-1].value == value and (value or len(found) == 1):
        return text
    written = f"--{name}={_quote(value)}" if value else ""
    if not found:
        return f"{text}{' ' if text.strip() and written else ''}{written}" if text.strip() else written
    for argument in reversed(found):
        replacement = written if argument is found[-1] else ""
        begin, end = argument.begin, argument.end
        if not replacement:  # with the blanks before it, or behind it where it was the first
            while begin and text[begin - 1].isspace():
                begin -= 1
            while not begin and end < len(text) and text[end].isspace():
                end += 1
        text = text[:begin] + replacement + text[end:]
    return text


def _unquote(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" and text[0] not in text[1:-1]:
        return text[1:-1]
    return text


def _quote(value: str) -> str:
    if _PLAIN.fullmatch(value):
        return value
    return f'"{value}"' if '"' not in value else "'" + value.replace("'", "") + "'"
