"""Fields of the form, and lists of rows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from django.utils.functional import Promise

from jobs.form.measures import Choice, Measure, PlainText
from jobs.form.subfields import Subfield

Words = str | Promise

WORDS: Final = PlainText()


class FieldKind(StrEnum):
    """The kind of a field's input."""

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

    `options` are the choices, with what each is called.  `subfield`: it is one part of the value at `path`.
    """

    key: str
    path: str
    kind: FieldKind
    label: Words
    measure: Measure = WORDS
    help: Words = ""
    unit: Words = ""
    source: str = ""
    options: tuple[tuple[str, Words], ...] = ()
    placeholder: Words = ""
    subfield: Subfield | None = None

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


PAGE_ZH, PAGE_JA, SCM_MANUAL = "PAI-DLC page (zh)", "PAI-DLC page (ja)", "SCM manual"
BOTH: Final = f"{PAGE_ZH}, {PAGE_JA}"


def choice_of(known: type[StrEnum], none: bool = True) -> Choice:
    """One of these, by its value; with `none` also "", which is none of them."""
    return Choice({**({"": None} if none else {}), **{each.value: each for each in known}})


def cell(key: str, kind: FieldKind, label: Words, measure: Measure = WORDS, **more: Any) -> Field:
    """One cell of a row: it has no path of its own."""
    return Field(key, "", kind, label, measure, **more)


WAS: Final = cell("was", FieldKind.HIDDEN, "")
"""The index of the row in the file's list, so that the row keeps what the form does not show."""
