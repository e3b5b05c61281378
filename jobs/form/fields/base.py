"""What a field of the form is, and a list of rows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from django.utils.functional import Promise

from jobs.form.measures import Choice, Measure, Text
from jobs.form.within import Within

Words = str | Promise

WORDS: Final = Text()


class Kind(StrEnum):
    """What the field looks like."""

    TEXT = "text"
    LONG = "long"
    COMMAND = "command"
    NUMBER = "number"
    CHOICE = "choice"
    FLAG = "flag"
    SECRET = "secret"  # noqa: S105 what a field looks like
    HIDDEN = "hidden"


@dataclass(frozen=True, slots=True)
class Field:
    """One field.  `key` is its form name with `*` for numbers: `roles-*-command`.

    `options` are the choices, with what each is called.  `within`: it is one part of the value at `path`.
    """

    key: str
    path: str
    kind: Kind
    label: Words
    measure: Measure = WORDS
    help: Words = ""
    unit: Words = ""
    source: str = ""
    options: tuple[tuple[str, Words], ...] = ()
    placeholder: Words = ""
    within: Within | None = None

    @property
    def slug(self) -> str:
        """How templates call it: without the role's number."""
        return self.key.rpartition("*-")[2].replace("-", "_")


@dataclass(frozen=True, slots=True)
class Rows:
    """A list whose elements are rows of fields; `key` with `*` for a role's number."""

    key: str
    path: str
    label: Words
    cells: tuple[Field, ...]
    help: Words = ""
    source: str = ""

    @property
    def slug(self) -> str:
        """How templates call it."""
        return self.key.rpartition("*-")[2].replace("-", "_")


SEED_ZH, SEED_JA, SEED_SCM = "seed 000", "seed 003", "seed 002"
BOTH: Final = f"{SEED_ZH}, {SEED_JA}"


def choice_of(known: type[StrEnum], none: bool = True) -> Choice:
    """One of these, by its value; with `none` also "", which is none of them."""
    return Choice({**({"": None} if none else {}), **{each.value: each for each in known}})


def cell(key: str, kind: Kind, label: Words, measure: Measure = WORDS, **more: Any) -> Field:
    """One cell of a row: it has no path of its own."""
    return Field(key, "", kind, label, measure, **more)


WAS: Final = cell("was", Kind.HIDDEN, "")
"""Which element of the file's list the row was, so that it keeps what the form does not show."""
