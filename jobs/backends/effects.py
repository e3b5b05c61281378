"""Fields of a job that are set and have no effect on a backend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel

from jobs.backends.support import Fate, Support, find_row
from jobs.dialects.spans import escape
from jobs.spec import JobSpec


@dataclass(frozen=True, slots=True)
class UnusedField:
    """A field without effect: its pointer in the JobSpec, and the marked sentence that says why."""

    pointer: str
    why: str


def find_unused_fields(spec: JobSpec, table: Mapping[str, Support]) -> Iterator[UnusedField]:
    """Yield what a job sets and the backend with this table of support does not use.

    One is yielded for each row of the table, at the first field that it stands for, and for each member of a
    map.
    """
    seen: set[str] = set()
    for path, pointer, value in _list_fields(spec):
        row = find_row(table, path)
        if row is None or row in seen:
            continue
        if found := tuple(_find_unused(table[row], pointer, value)):
            seen.add(row)
            yield from found


def _find_unused(support: Support, pointer: str, value: object) -> Iterator[UnusedField]:
    if isinstance(value, Mapping) and support.fate in {Fate.KEPT, Fate.APPROXIMATED}:
        used = support.members or frozenset()
        is_partly_used = support.fate is Fate.APPROXIMATED
        if is_partly_used and support.members is None:
            return
        for name in sorted(value.keys() - used):
            yield UnusedField(f"{pointer}/{escape(name)}", support.reasons.get(name, support.why))
    elif support.fate is Fate.KEPT:
        yield UnusedField(pointer, support.why)


def _list_fields(model: BaseModel, path: str = "", pointer: str = "") -> Iterator[tuple[str, str, object]]:
    """Yield path, pointer and value of each innermost field that differs from its default."""
    for name, default in _defaults(type(model)).items():
        value = getattr(model, name)
        if value == default:
            continue
        if isinstance(value, BaseModel):
            yield from _list_fields(value, f"{path}{name}.", f"{pointer}/{name}")
        elif isinstance(value, tuple) and value and isinstance(value[0], BaseModel):
            for index, each in enumerate(value):
                yield from _list_fields(each, f"{path}{name}[].", f"{pointer}/{name}/{index}")
        else:
            yield f"{path}{name}", f"{pointer}/{name}", value


@cache
def _defaults(model: type[BaseModel]) -> Mapping[str, Any]:
    """Return the default of each field of a model; of a required one a value that equals no other."""
    return {
        name: field.get_default(call_default_factory=True, validated_data={})
        for name, field in model.model_fields.items()
    }
