"""Values of options that Slurm, or this console, could do nothing with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from jobs.dialects import amounts as vendors
from jobs.dialects.base import Fix
from jobs.dialects.fields import CONSOLE, Quantity
from jobs.dialects.findings import Findings
from jobs.dialects.record import short
from jobs.dialects.sbatch import amounts, sizes, times, values
from jobs.dialects.sbatch.lines import pointer_of
from jobs.dialects.sbatch.options import SBATCH

_DIGITS: Final = re.compile(r"-?\d{16,}", re.ASCII)
_WHOLE: Final = re.compile(r"(\d{1,9})\.0+", re.ASCII)
_HOURS: Final = re.compile(r"(\d{1,5})\s*([dhm])[a-z]*", re.ASCII | re.IGNORECASE)
_UNITS: Final = {"d": 86_400, "h": 3_600, "m": 60}
_TIME: Final = "1-00:00:00"
_SIGNAL: Final = "USR1@300"


def check(component: int, options: Mapping[str, str], findings: Findings) -> None:
    """Tell what is wrong with the values of one component's options."""
    for name, value in options.items():
        if name in sizes.OPTIONS:
            _size(component, name, value, findings)
        elif name == "time" and times.seconds(value) is None:
            _unreadable(component, name, value, _TIME, findings, _length(value))
        elif name == "signal" and not values.is_signal(value):
            _unreadable(component, name, value, _SIGNAL, findings, None)
        elif name == "dependency" and values.ANY_OF in value:
            where = pointer_of(component, name)
            findings.problem("any_dependency", where, CONSOLE, key=name, value=short(value))


def _size(component: int, name: str, value: str, findings: Findings) -> None:
    """A count, an amount of memory, or GPUs."""
    taken = _taken(name, value)
    if taken is None:
        _unreadable(component, name, value, sizes.EXAMPLES[name], findings, _mended(name, value))
        return
    most = sizes.MOST.get(name, sizes.MOST_DEVICES)
    if taken > most:
        where = pointer_of(component, name)
        findings.problem("too_great", where, CONSOLE, key=name, value=short(value), most=most)


def _taken(name: str, value: str) -> int | None:
    """The number that a value says."""
    if name == "nodes":
        found = amounts.nodes(value)
        return found[0] if found else None
    if name in sizes.COUNTS:
        return amounts.count(value)
    if name in sizes.MEMORIES:
        return amounts.memory(value)
    if name == "gres":
        generic = amounts.gres(value)
        return generic[0].count if generic else None
    devices = amounts.devices(value)
    return devices.count if devices else None


def _mended(name: str, value: str) -> str | None:
    """What was surely meant."""
    if name in sizes.MEMORIES:
        exact = vendors.in_prose(value, Quantity.MEMORY, "Mi")
        return amounts.written_memory(vendors.whole(exact)) if exact else None
    match = _WHOLE.fullmatch(value)
    if match or name not in (*sizes.COUNTS, "nodes"):
        return match[1] if match else None
    number = vendors.in_prose(value, Quantity.COUNT)
    return vendors.decimal(number) if number is not None and number == int(number) else None


def _length(value: str) -> str | None:
    """`24h` in Slurm's words."""
    match = _HOURS.fullmatch(value)
    return times.length(int(match[1]) * _UNITS[match[2].lower()]) if match else None


def _unreadable(
    component: int, name: str, value: str, example: str, findings: Findings, mended: str | None
) -> None:
    where = pointer_of(component, name)
    if number := _DIGITS.search(value):
        digits = len(number[0].lstrip("-"))
        findings.problem("number_too_big", where, SBATCH, key=name, digits=digits)
        return
    fix = Fix(where, mended) if mended else None
    findings.problem("option_value", where, SBATCH, fix, key=name, value=short(value), example=example)
