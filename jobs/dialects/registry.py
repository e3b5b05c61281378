"""The registry of dialects, and detecting the one that a document is written in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from jobs import dialect_names
from jobs.dialects.base import Dialect, Fix, refusal
from jobs.dialects.field_map import FieldRow
from jobs.dialects.pasted.commands import job_file, start_command
from jobs.dialects.source import check_size, read

if TYPE_CHECKING:
    from jobs.dialects.document import Document

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
    """Return the dialect called `name`; KeyError when there is none."""
    home, pasted = import_module(_HOMES[name]), import_module("jobs.dialects.pasted.dialect")
    dialect: Dialect = pasted.Pasted(home.DIALECT)
    return dialect


@cache
def fields(name: str) -> tuple[FieldRow, ...]:
    """Return every key of the dialect called `name`; KeyError when there is none."""
    rows: tuple[FieldRow, ...] = import_module(_HOMES[name]).FIELDS
    return rows


def detect(document: Document) -> tuple[Detected, ...]:
    """Return the dialects that the document may be written in, surest first.  Never raises."""
    guesses = [(name, get(name).sniff(document)) for name in NAMES]
    found = [Detected(name, guess.confidence, guess.why) for name, guess in guesses if guess]
    return tuple(sorted(found, key=lambda each: -each.confidence))


def name_of(document: Document) -> str:
    """Return the one dialect of the document; raises Refused when there is none, or two that both fit."""
    text = document.text
    check_size(text)
    found = document.candidates
    if not found:
        command = start_command(text)
        if command is not None:
            raise refusal("is_a_command", fix=Fix("", job_file(command)))
        if text.lstrip("\ufeff \t\r\n")[:1] in ("", "{", "["):
            read(document)  # what keeps it from being read says more than that it is unknown
        raise refusal("unknown_dialect", known=", ".join(NAMES))
    if len(found) > 1 and found[0].confidence - found[1].confidence < CLEAR:
        both = ", ".join(each.name for each in found if found[0].confidence - each.confidence < CLEAR)
        raise refusal("ambiguous_dialect", candidates=both)
    return found[0].name
