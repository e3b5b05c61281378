"""Texts made to hurt: for every reader alike, and for one dialect by spoiling a good file of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from jobs.dialects.base import MAX_BYTES

MOST: Final = MAX_BYTES - 100
LONG: Final = "1" + "0" * 399
"""An integer of 400 digits."""

_NUMBER: Final = re.compile(r"(?<=[:=])( ?\"?)\d+\b(?=[\"]?,?$)", re.MULTILINE)
_MEMBER: Final = re.compile(r"^[ \t]*\"?[A-Za-z_]+\"?[ ]?[:=][ ]?\"?[A-Za-z][^\n{\[]*\n", re.MULTILINE)
_KEY: Final = re.compile(r"(?<![A-Za-z])[A-Za-z_]{3,}(?=\"?[ ]?[:=])")


def _filled(piece: str) -> str:
    return piece * (MOST // len(piece.encode()))


def _laughs(levels: int) -> str:
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n".join(lines)


ALIKE: Final[Mapping[str, str]] = {
    "over 1 MiB": "x" * (MAX_BYTES + 1),
    "over 1 MiB in wide characters": "数" * (MAX_BYTES // 3 + 1),
    "lists in lists": "[" * 10_000 + "]" * 10_000,
    "objects in objects": '{"a":' * 10_000 + "1" + "}" * 10_000,
    "open brackets only": _filled("["),
    "YAML lists in lists": "- " * 10_000 + "a",
    "YAML maps in maps": "\n".join(" " * n + "a:" for n in range(1000)),
    "YAML aliases that explode": _laughs(12),
    "YAML merges that explode": "a: &a {b: 1}\n" + "\n".join(f"c{n}: {{<<: [*a, *a]}}" for n in range(9000)),
    "a YAML alias of itself": "a: &a [*a]",
    "quotes": _filled('"'),
    "backslashes in a string": '{"a": "' + "\\" * (MOST - 10),
    "a string without an end": '{"a": "' + "x" * (MOST - 10),
    "comments": _filled("//\n"),
    "comments without an end": _filled("/*"),
    "slashes": _filled("/ "),
    "commas": "[" + ",".join(["1"] * (MOST // 2 - 10)) + "]",
    "trailing commas": _filled("[1,],"),
    "odd spaces": _filled("\u200b"),
    "blanks": " " * MOST,
    "lines": "\n" * MOST,
    "carriage returns": "{" + "\r" * (MOST - 1),
    "a number without an end": "9" * MOST,
    "a listing of nothing": "\n".join(map(str, range(1, 150_000))),
    "keys that repeat": '{"jobName":1,"taskRoles":[],' + '"a":1,' * 14_000 + '"a":1}',
    "keys that look alike": '{"jobName":1,"taskRoles":[],"jobSpec":{},"command":1,'
    + ",".join(f'"taskRole{n}":1' for n in range(14_000))
    + "}",
    "equals signs": _filled("="),
    "parameters": "\n".join(f"workers{n}={n}" for n in range(60_000)),
    "parameters that repeat": "command=x\n" + "workers=1\n" * 90_000,
    "directives": "#!/bin/sh\n" + _filled("#SBATCH --nodes=1\n")[: MOST - 100],
    "documents": _filled("---\n"),
    "null characters": _filled("\0"),
    "half characters": '{"a": "\\ud800"}',
    "templates": _filled("<% $parameters.x %>"),
    "passwords": '{"a": "' + "://a:b" * 150_000 + '"}',
}
"""What no file should cost more than a moment, whatever dialect it is taken for."""


def spoilt(text: str) -> Iterator[tuple[str, str]]:
    """A good file with one thing wrong in it, by what that is."""
    yield from ((what, made) for what, make in _SPOIL.items() if (made := make(text)) != text)


_SPOIL: Final[Mapping[str, Callable[[str], str]]] = {
    "NaN": lambda text: _NUMBER.sub(lambda found: f"{found[1].rstrip(chr(34))}NaN", text, 1).replace(
        'NaN"', "NaN"
    ),
    "an integer of 400 digits": lambda text: _NUMBER.sub(lambda found: found[1] + LONG, text, 1),
    "a key that stands twice": lambda text: _MEMBER.sub(lambda found: found[0] * 2, text, 1),
    "a key with a character of no width": lambda text: _KEY.sub(
        lambda found: f"{found[0][:1]}\u200b{found[0][1:]}", text, 1
    ),
}
