"""`--array`: one script for many jobs, one for each index.

Read as Slurm 22.05 reads it, but for a limit that is no number, which Slurm takes for none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from jobs.dialects.base import MOST_JOBS, Array, Fix
from jobs.dialects.fields import CONSOLE
from jobs.dialects.findings import Findings
from jobs.dialects.record import short
from jobs.dialects.sbatch.header import pointer_of
from jobs.dialects.sbatch.options import SBATCH

NAME: Final = "array"
MOST_INDEX: Final = 4_000_000
"""Slurm's largest MaxArraySize is one more."""

EXAMPLE: Final = "0-9%2"
_LONGEST: Final = 4096
_PART: Final = re.compile(
    r"\[?[ \t]*+\+?(?P<first>\d{1,15})"
    r"(?:-[ \t]*+\+?(?P<last>\d{1,15})\]?(?P<stepped>:[ \t]*+\+?(?P<step>\d{1,15}))?)?\]?",
    re.ASCII,
)
_LIMIT: Final = re.compile(r"\d{0,9}", re.ASCII)
_PATTERN: Final = re.compile(r"%(?:%|(?P<width>\d{0,2})(?P<letter>[aA]))", re.ASCII)
_FILES: Final = ("output", "error", "input")
"""Options in whose values `%A` and `%a` stand for the array's number and the index."""


class _Wrong(Exception):
    """The value is no array; `fix` is the one that was surely meant."""

    def __init__(self, code: str, part: str = "", fix: str | None = None) -> None:
        super().__init__(code)
        self.code, self.part, self.fix = code, part, fix


def read(said: Sequence[Mapping[str, str]], findings: Findings) -> Array | None:
    """Return the array that the options of all components say; what is wrong with it goes to the findings."""
    found = [(component, options[NAME]) for component, options in enumerate(said) if options.get(NAME)]
    if not found:
        return None
    component, value = found[0]
    where = pointer_of(component, NAME)
    if len(said) > 1:
        findings.problem("array_of_components", where, SBATCH, key=NAME)
        return None
    try:
        indexes, at_once = _indexes(value)
    except _Wrong as wrong:
        fix = Fix(where, wrong.fix) if wrong.fix else None
        source = CONSOLE if wrong.code == "array_too_long" else SBATCH
        most = {"array_too_long": MOST_JOBS, "array_index": MOST_INDEX}.get(wrong.code)
        findings.problem(
            wrong.code,
            where,
            source,
            fix,
            key=NAME,
            value=short(value),
            part=short(wrong.part),
            most=most,
            example=EXAMPLE,
        )
        return None
    named = {pointer_of(0, name): said[0][name] for name in _FILES if _PATTERN.search(said[0].get(name, ""))}
    return Array(tuple(sorted(indexes)), at_once, _step(value), where, named)


def _indexes(value: str) -> tuple[set[int], int | None]:
    """Return the indexes, and the number at a time; the first limit counts, at any position."""
    if len(value) > _LONGEST:
        raise _Wrong("option_value")
    found: set[int] = set()
    limits: list[str] = []
    parts = value.split(",")
    for place, part in enumerate(parts):
        indexes, percent, limit = part.partition("%")
        if percent:
            limits.append(limit.partition("%")[0])
        try:
            found.update(_range(indexes) if part else ())
        except _Wrong as wrong:
            if wrong.fix:
                fixed = f"{wrong.fix}{percent}{limit}"
                wrong.fix = ",".join((*parts[:place], fixed, *parts[place + 1 :]))
            raise
        if len(found) > MOST_JOBS:
            raise _Wrong("array_too_long", part)
    if not found:
        raise _Wrong("option_value")
    if limits and not _LIMIT.fullmatch(limits[0]):
        raise _Wrong("array_limit", limits[0])
    return found, (int(limits[0] or 0) or None) if limits else None


def _range(part: str) -> range:
    """Return the indexes of `3`, `0-9` or `0-15:4`."""
    match = _PART.fullmatch(part)
    if not match:
        raise _Wrong("array_part", part)
    defaults = {"first": "0", "last": match["first"], "step": "1"}.items()
    first, last, step = (int(match[name] or default) for name, default in defaults)
    if max(first, last) > MOST_INDEX:
        raise _Wrong("array_index", part)
    if last < first:
        raise _Wrong("array_backwards", part, f"{last}-{first}{match['stepped'] or ''}")
    if not step:
        raise _Wrong("array_step", part, f"{first}-{last}")
    found = range(first, last + 1, step)
    if len(found) > MOST_JOBS:
        raise _Wrong("array_too_long", part)
    return found


def _step(value: str) -> int:
    """Return Slurm's step of an array: the first that is written."""
    match = re.search(r":[ \t]*\+?(\d{1,15})", value, re.ASCII)
    return int(match[1]) if match else 1


def to_text(array: Array, at_once: int) -> str:
    """Return the option's value, with as many at a time."""
    first, last, step = array.indexes[0], array.indexes[-1], array.step
    if len(array.indexes) == 1:
        said = str(first)
    elif array.indexes == tuple(range(first, last + 1, step)):
        said = f"{first}-{last}" + (f":{step}" if step > 1 else "")
    else:
        said = ",".join(map(str, array.indexes))
    return said if at_once >= len(array.indexes) else f"{said}%{at_once}"


def fill_pattern(pattern: str, number: int, index: int) -> str:
    """The name of a file with `%A` and `%a` filled in; with a backslash in it, Slurm fills in nothing."""
    values = {"A": number, "a": index}

    def one(match: re.Match[str]) -> str:
        if not match["letter"]:
            return match[0]
        return str(values[match["letter"]]).zfill(min(int(match["width"] or 0), 10))

    return pattern if "\\" in pattern else _PATTERN.sub(one, pattern)
