"""Every dialect by name, which of them a text is written in, and from one into another.

All of it works in any Python program, without Django and without settings.  A dialect is one of
`NAMES`; its module is imported when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Final

from jobs import dialect_names
from jobs.dialects.base import Dialect, Fix, Note, Parsed, Problem, Refused, Rendered
from jobs.dialects.field_map import Row
from jobs.dialects.losses import losses
from jobs.dialects.once import once, reading_once
from jobs.dialects.pasted.commands import job_file, start_command
from jobs.dialects.places import Places
from jobs.dialects.source import check_size, read
from jobs.spec import JobSpec

NAMES: Final = dialect_names.NAMES

_HOMES: Final = MappingProxyType({name: f"jobs.dialects.{name.replace('-', '_')}" for name in NAMES})
"""Name → module with a `DIALECT`, and its table of keys in `FIELDS`."""

CLEAR: Final = 20
"""A guess counts as the answer when it is surer than the next by this much."""


@dataclass(frozen=True, slots=True)
class Detected:
    """A dialect that a text may be written in, how surely (1…100), and the code of why."""

    name: str
    confidence: int
    why: str


@cache
def get(name: str) -> Dialect:
    """The dialect called `name`; KeyError when there is none."""
    home, pasted = import_module(_HOMES[name]), import_module("jobs.dialects.pasted.dialect")
    dialect: Dialect = pasted.Pasted(home.DIALECT)
    return dialect


@cache
def fields(name: str) -> tuple[Row, ...]:
    """Every key of the dialect called `name`; KeyError when there is none."""
    rows: tuple[Row, ...] = import_module(_HOMES[name]).FIELDS
    return rows


@once
def detect(text: str) -> tuple[Detected, ...]:
    """The dialects that `text` may be written in, surest first.  Never raises."""
    with reading_once():
        guesses = [(name, get(name).sniff(text)) for name in NAMES]
    found = [Detected(name, guess.confidence, guess.why) for name, guess in guesses if guess]
    return tuple(sorted(found, key=lambda each: -each.confidence))


def name_of(text: str) -> str:
    """The one dialect of `text`; raises Refused when there is none, or two that both fit."""
    check_size(text)
    found = detect(text)
    if not found:
        command = start_command(text)
        if command is not None:
            raise Refused((Problem("is_a_command", "", 1, 1, fix=Fix("", job_file(command))),))
        if text.lstrip("\ufeff \t\r\n")[:1] in ("", "{", "["):
            read(text)  # what keeps it from being read says more than that it is unknown
        raise Refused((Problem("unknown_dialect", "", 1, 1, {"known": ", ".join(NAMES)}),))
    if len(found) > 1 and found[0].confidence - found[1].confidence < CLEAR:
        both = ", ".join(each.name for each in found if found[0].confidence - each.confidence < CLEAR)
        raise Refused((Problem("ambiguous_dialect", "", 1, 1, {"candidates": both}),))
    return found[0].name


def parse(text: str, dialect: str | None = None) -> tuple[str, Parsed]:
    """The dialect's name, worked out unless it is given, and what was understood.

    Raises Refused with every problem.
    """
    name = dialect or name_of(text)
    return name, get(name).parse(text)


@dataclass(frozen=True, slots=True)
class Converted:
    """A text in another dialect.

    `source` is the dialect that it came from and `parsed` what was understood of it.  `text` has
    placeholders for secrets, whose values are in `parsed.secrets`.  `losses` are all that was not carried
    over or is still to be filled in; the lines of TOLD_OF_SOURCE are those of the text that came, the
    lines of the others those of `text`.
    """

    source: str
    parsed: Parsed
    text: str
    losses: tuple[Note, ...]


TOLD_OF_SOURCE: Final = frozenset({"lost", "approximated", "not_carried", "kept_for_console"})
"""Losses of something that the source says; the others are about the text that was written."""


def convert(text: str, to: str, dialect: str | None = None) -> Converted:
    """`text` in the dialect `to`, by way of the JobSpec; raises Refused, and KeyError for an unknown `to`."""
    target = get(to)
    name, parsed = parse(text, dialect)
    same = name == to
    rendered = target.render(parsed.spec, parsed.extras if same else {}, base=parsed.text if same else None)
    left = () if same else _not_carried(parsed, to)
    told = [*rendered.notes, *([] if same else _kept_for_console(parsed.spec, rendered, to)), *left]
    here = Places(text, get(name), parsed.spec, fields(name))
    there = Places(rendered.text, target, parsed.spec, fields(to))
    of_source = here.all_placed(note for note in told if note.code in TOLD_OF_SOURCE)
    of_target = there.all_placed(note for note in told if note.code not in TOLD_OF_SOURCE)
    return Converted(name, parsed, rendered.text, (*of_source, *of_target))


OURS: Final[Mapping[str, str]] = MappingProxyType(
    {"openpai-v1": "/extras/jobConsole", "openpai-v2": "/extras/jobConsole", "dlc": "/JobConsole"}
)
"""Where our own object stands in a dialect's text: its system ignores what is said there."""


def without_ours(text: str, name: str) -> str:
    """`text` of the dialect called `name` without what stands in it for this console alone."""
    return get(name).apply_fixes(text, [Fix(OURS[name])]) if name in OURS else text


def _kept_for_console(wanted: JobSpec, rendered: Rendered, to: str) -> Iterator[Note]:
    """What the text says to this console alone: the target's own system reads something else there."""
    if to not in OURS:
        return
    told = {note.pointer for note in rendered.notes}
    try:
        said = get(to).parse(without_ours(rendered.text, to)).spec
    except Refused:
        return
    for note in losses(wanted, said, to):
        if note.pointer not in told:
            yield replace(note, code="kept_for_console")


def placed(notes: Iterable[Note], text: str, dialect: str) -> tuple[Note, ...]:
    """Notes on `text` with lines and columns, for somebody who looks at them."""
    with reading_once():
        return tuple(_placed_in(text, get(dialect), note) for note in notes)


def _placed_in(text: str, dialect: Dialect, note: Note) -> Note:
    place = dialect.locate(text, note.pointer) if note.line is None and note.pointer else None
    return replace(note, line=place[0], column=place[1]) if place else note


def _not_carried(parsed: Parsed, to: str) -> Iterator[Note]:
    """What the source says beside the JobSpec; markers of the reader's own have no pointer."""
    for pointer in parsed.extras:
        if pointer.startswith("/"):
            yield Note("not_carried", pointer, {"path": pointer, "dialect": to})
