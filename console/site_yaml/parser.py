"""Reading site.yaml: the file, or everything that is wrong with it and where."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from django.utils.translation import gettext as _
from pydantic import ValidationError

from console.site_yaml.shape import Site
from jobs.dialects.base import Problem, Refused
from jobs.dialects.spans import escape
from jobs.dialects.yaml_text import source
from jobs.dialects.yaml_text.rules import JS_YAML
from jobs.messages.problems import problem_message


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong at a place of the file."""

    pointer: str
    text: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        where = f"{self.line}:{self.column}"
        return f"{where} {self.pointer or '/'}: {self.text}"


class Wrong(Exception):
    """The file can't be applied; `faults` says all that is wrong."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = sorted(faults, key=lambda fault: (fault.line, fault.column))
        super().__init__("\n".join(map(str, self.faults)))


Position: TypeAlias = Callable[..., tuple[int, int]]
"""Answers line and column of the value at a pointer (or, with `key`, of its key), or of what is around it."""


@dataclass(frozen=True, slots=True)
class Read:
    """A file of the right shape, and where everything stands in it."""

    site: Site
    position: Position

    def fault(self, pointer: str, text: str) -> Fault:
        """Return the problem at `pointer`."""
        return Fault(pointer, text, *self.position(pointer, key=True))


def read(text: str) -> Read:
    """The file.  Raises Wrong."""
    try:
        document = source.read(text, JS_YAML)
    except Refused as refused:
        raise unreadable(refused) from None
    return validate(document.value, document.position)


def validate(value: object, position: Position, faults: Sequence[Fault] = ()) -> Read:
    """The file that says `value`.  Raises Wrong, with the `faults` that were found before."""
    try:
        site = Site.model_validate(value)
    except ValidationError as error:
        raise Wrong([*faults, *_of_shape(error, position)]) from None
    if faults:
        raise Wrong(faults)
    return Read(site, position)


def unreadable(refused: Refused) -> Wrong:
    """Return the problem of a text that is no document."""
    return Wrong(map(_of_syntax, refused.problems))


def _of_syntax(problem: Problem) -> Fault:
    return Fault(problem.pointer, problem_message(problem), problem.line or 1, problem.column or 1)


_KEYS: Final = "[key]"
"""How pydantic marks that a key is meant, not its value."""


def _of_shape(error: ValidationError, position: Position) -> Iterable[Fault]:
    seen = set()
    for each in error.errors(include_url=False):
        pointer = "".join(f"/{escape(str(part))}" for part in each["loc"] if part != _KEYS)
        fault = Fault(pointer, _message(each), *position(pointer, key=each["type"] == "extra_forbidden"))
        if fault not in seen:
            seen.add(fault)
            yield fault


def _message(error: Mapping[str, Any]) -> str:
    context = error.get("ctx", {})
    match error["type"]:
        case "missing":
            return _("Required.")
        case "extra_forbidden":
            return _("Unknown key.")
        case "literal_error":
            return _("Must be one of: %(expected)s.") % {"expected": context["expected"]}
        case "greater_than_equal" | "greater_than":
            return _("Too small.")
        case "less_than_equal" | "less_than":
            return _("Too large.")
        case "string_pattern_mismatch":
            return _("Letters, digits, - and _ only, up to 63 characters.")
        case kind if kind.endswith("_type"):
            return _("Wrong type: %(kind)s expected.") % {"kind": kind.removesuffix("_type")}
        case _:
            return str(error["msg"])
