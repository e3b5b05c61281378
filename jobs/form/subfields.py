"""Subfields: parts of a field's value that are fields themselves.

A subfield is a member of a map, or an argument in a string `--name=value --name value --name`.  Everything
else in the value, arguments that are not known too, stays as it was written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol

from jobs.dialects import fault_arguments
from jobs.dialects.argument_text import parse_arguments, set_argument
from jobs.dialects.fault_arguments import ArgumentKind

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


FAULT_TOLERANCE: Final = tuple(
    KnownArgument(
        each.name,
        YES_NO if each.kind is ArgumentKind.FLAG else each.words,
        number=each.kind in {ArgumentKind.COUNT, ArgumentKind.SECONDS, ArgumentKind.MINUTES},
        usual=each.default,
    )
    for each in fault_arguments.WITH_FIELD
)
"""Of the vendors' automatic fault tolerance."""

SANITY_CHECK: Final = (
    KnownArgument("sanity-check-timing", ("AfterJobFaultTolerant",)),
    KnownArgument("sanity-check-timeout", number=True, usual="300"),
    KnownArgument("sanity-check-timeout-ops", ("MarkJobFail",)),
)
"""Of DLC's sanity check: no other values are published.  The time-out, in seconds, is the console's own."""


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
