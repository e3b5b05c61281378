"""Fields that are one part of a value: a member of a map, an argument in a string of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from jobs.form import arguments


class Within(Protocol):
    """How a part is found in the whole, and put back; everything else in the whole stays as it was."""

    @property
    def name(self) -> str:
        """What the part is called there."""

    def show(self, whole: Any) -> str:
        """The part's text; "" where it is not there."""

    def put(self, whole: Any, text: str) -> Any:
        """The whole with another text for the part; "" takes it out."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a map."""

    name: str

    def show(self, whole: Any) -> str:
        """See `Within`."""
        return str(whole.get(self.name, ""))

    def put(self, whole: Any, text: str) -> Any:
        """See `Within`."""
        if text:
            return {**whole, self.name: text}
        return {name: value for name, value in whole.items() if name != self.name}


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument in a string of them."""

    name: str

    def show(self, whole: Any) -> str:
        """See `Within`."""
        return arguments.values(whole).get(self.name, "")

    def put(self, whole: Any, text: str) -> Any:
        """See `Within`."""
        return arguments.put(whole, self.name, text)


@dataclass(frozen=True, slots=True)
class Part:
    """What a part is to become; the whole is the job's as it is then."""

    within: Within
    text: str
