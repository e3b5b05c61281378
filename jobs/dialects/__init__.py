"""The dialects by name, detecting which one a text is written in, and converting between them.

All of it works in any Python program, without Django and without settings.  A dialect is one of
`NAMES`; its module is imported when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from jobs.dialects.base import Fix, Note, Parsed, Refused, Rendered
from jobs.dialects.document import Document
from jobs.dialects.losses import losses
from jobs.dialects.registry import CLEAR, NAMES, Detected, fields, get
from jobs.spec import JobSpec

__all__ = [
    "CLEAR",
    "NAMES",
    "OURS",
    "SOURCE_LOSSES",
    "Converted",
    "Detected",
    "Document",
    "convert",
    "fields",
    "get",
    "parse",
    "remove_ours",
]


def parse(text: str, dialect: str | None = None) -> tuple[str, Parsed]:
    """Return the dialect's name, worked out unless it is given, and what was understood.

    Raises Refused with every problem.
    """
    document = Document(text, dialect)
    return document.dialect, document.parsed


@dataclass(frozen=True, slots=True)
class Converted:
    """A job file in another dialect.

    `document` has placeholders for secrets, whose values are in `source.parsed.secrets`.  `losses` are all
    that was not carried over or is still to be filled in; the lines of TOLD_OF_SOURCE are those of `source`,
    the lines of the others those of `document`.
    """

    source: Document
    document: Document
    losses: tuple[Note, ...]


SOURCE_LOSSES: Final = frozenset({"lost", "approximated", "not_carried", "kept_for_console"})
"""Losses of something that the source says; the others are about the text that was written."""


def convert(document: Document, to: str) -> Converted:
    """Return the document in the dialect `to`, by way of the JobSpec.

    Raises Refused, and KeyError for an unknown `to`.
    """
    parsed, same = document.parsed, document.dialect == to
    rendered = document.sealed.render(parsed.spec) if same else get(to).render(parsed.spec, {})
    told = list(rendered.notes)
    if not same:
        told += (*_kept_for_console(parsed.spec, rendered), *_not_carried(parsed, to))
    there = rendered.document.with_parsed(parsed)
    of_source = document.places.all_placed(note for note in told if note.code in SOURCE_LOSSES)
    of_target = there.places.all_placed(note for note in told if note.code not in SOURCE_LOSSES)
    return Converted(document, rendered.document, (*of_source, *of_target))


OURS: Final[Mapping[str, str]] = MappingProxyType(
    {"openpai-v1": "/extras/jobConsole", "openpai-v2": "/extras/jobConsole", "dlc": "/JobConsole"}
)
"""Where our own object stands in a dialect's text: its system ignores what is said there."""


def remove_ours(document: Document) -> Document:
    """Return the document without what stands in it for this console alone."""
    name = document.dialect
    return document.apply_fixes([Fix(OURS[name])]) if name in OURS else document


def _kept_for_console(wanted: JobSpec, rendered: Rendered) -> Iterator[Note]:
    """Note what the text says to this console alone: the target's own system reads something else there."""
    to = rendered.document.dialect
    if to not in OURS:
        return
    told = {note.pointer for note in rendered.notes}
    try:
        said = remove_ours(rendered.document).parsed.spec
    except Refused:
        return
    for note in losses(wanted, said, to):
        if note.pointer not in told:
            yield replace(note, code="kept_for_console")


def _not_carried(parsed: Parsed, to: str) -> Iterator[Note]:
    """Note what the source says beside the JobSpec; markers of the reader's own have no pointer."""
    for pointer in parsed.extras:
        if pointer.startswith("/"):
            yield Note("not_carried", pointer, {"path": pointer, "dialect": to})
