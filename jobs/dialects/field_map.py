"""A dialect's table of keys as rows: which JobSpec path each fills, how it is spelled, and its bounds.

The documentation's field map and the tables of what survives a conversion are made from these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from jobs.dialects.fields import (
    Amount,
    AnyKey,
    Bag,
    Choice,
    Counts,
    Flag,
    Fraction,
    Group,
    Integer,
    Named,
    Quantity,
    Records,
    Text,
)

_WRITTEN_IN: Final = {
    Quantity.MEMORY: "Mi, Gi (or the like) in a string",
    Quantity.CPU: "cores in a string",
    Quantity.COUNT: "number in a string",
}


@dataclass(frozen=True, slots=True)
class FieldRow:
    """One key: `path` in a JobSpec ("" when it means nothing there), `spelling` as a pointer.

    `default` is what counts when it is left out; `limits` are bounds, each with its source.
    """

    path: str
    spelling: str
    unit: str = ""
    default: str = ""
    limits: tuple[str, ...] = ()
    source: str = ""
    aliases: tuple[str, ...] = ()


def rows(keys: Iterable[AnyKey], prefix: str = "") -> tuple[FieldRow, ...]:
    """Return a row for each innermost key, in the order of the table."""
    return tuple(_rows(keys, prefix))


def _rows(keys: Iterable[AnyKey], prefix: str) -> Iterator[FieldRow]:
    for key in keys:
        spelling = f"{prefix}/{key.key}"
        if isinstance(key, Group):
            yield from _rows(key.keys, spelling)
        elif isinstance(key, Records) or (isinstance(key, Named) and not isinstance(key, Counts)):
            if isinstance(key, Named) and key.names:
                yield FieldRow(key.names, f"{spelling}[]", limits=(f"[{key.allowed}]",), source=key.source)
            yield from _rows(key.keys, f"{spelling}[]")
        else:
            yield FieldRow(
                path=key.path,
                spelling=spelling,
                unit=_unit(key),
                default=_default(key),
                limits=tuple(_limits(key)),
                source=key.source,
                aliases=key.aliases,
            )
            if isinstance(key, Bag):
                yield from _rows(key.known, spelling)


def _unit(key: AnyKey) -> str:
    if isinstance(key, Amount):
        return _WRITTEN_IN[key.quantity]
    return key.unit if isinstance(key, Integer) else ""


def _default(key: AnyKey) -> str:
    if isinstance(key, (Flag, Text, Choice)):
        return str(key.default).lower() if isinstance(key, Flag) else key.default
    if isinstance(key, (Integer, Amount)):
        unit = f" {key.quantity}" if isinstance(key, Amount) else ""
        return "" if key.default is None else f"{key.default}{unit}".rstrip()
    return ""


def _limits(key: AnyKey) -> Iterator[str]:
    if isinstance(key, Text):
        if key.allowed:
            yield f"[{key.allowed}]"
        if key.longest:
            yield f"≤ {key.longest} characters"
    if isinstance(key, Choice):
        yield ", ".join(key.meanings)
    unit = f" {key.quantity}".rstrip() if isinstance(key, Amount) else ""
    for sign, value, source in _bounds(key):
        yield f"{sign} {value}{unit} ({source})"


def _bounds(key: AnyKey) -> Iterator[tuple[str, str | int, str]]:
    if isinstance(key, (Integer, Amount)):
        both = (("≥", key.least), ("≤", key.most))
        yield from ((sign, bound.value, bound.source) for sign, bound in both if bound)
    elif isinstance(key, Fraction):
        yield from ((sign, *limit) for sign, limit in (("≥", key.least), ("≤", key.most)) if limit)
