"""Every dialect by name, and which of them a text is written in.

A dialect is one entry of `_HOMES`; its module is imported when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Final

from jobs.dialects.base import Dialect, Problem, Refused
from jobs.dialects.field_map import Row
from jobs.dialects.source import check_size, read

_HOMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "openpai-v1": "jobs.dialects.openpai_v1",
        "dlc": "jobs.dialects.dlc",
        "dlc-params": "jobs.dialects.dlc_params",
        "aihc": "jobs.dialects.aihc",
    }
)
"""Name → module with a `DIALECT`, and its table of keys in `FIELDS`."""

NAMES: Final = tuple(_HOMES)

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
    dialect: Dialect = import_module(_HOMES[name]).DIALECT
    return dialect


@cache
def fields(name: str) -> tuple[Row, ...]:
    """Every key of the dialect called `name`; KeyError when there is none."""
    rows: tuple[Row, ...] = import_module(_HOMES[name]).FIELDS
    return rows


def detect(text: str) -> tuple[Detected, ...]:
    """The dialects that `text` may be written in, surest first.  Never raises."""
    guesses = ((name, get(name).sniff(text)) for name in NAMES)
    found = [Detected(name, guess.confidence, guess.why) for name, guess in guesses if guess]
    return tuple(sorted(found, key=lambda each: -each.confidence))


def name_of(text: str) -> str:
    """The one dialect of `text`; raises Refused when there is none, or two that both fit."""
    check_size(text)
    found = detect(text)
    if not found:
        if text.lstrip("\ufeff \t\r\n")[:1] in ("", "{", "["):
            read(text)  # what keeps it from being read says more than that it is unknown
        raise Refused((Problem("unknown_dialect", "", 1, 1, {"known": ", ".join(NAMES)}),))
    if len(found) > 1 and found[0].confidence - found[1].confidence < CLEAR:
        both = ", ".join(each.name for each in found if found[0].confidence - each.confidence < CLEAR)
        raise Refused((Problem("ambiguous_dialect", "", 1, 1, {"candidates": both}),))
    return found[0].name
