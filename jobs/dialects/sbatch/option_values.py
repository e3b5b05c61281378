"""The meaning of a script's options for a job, their checks, and writing them.

An option that says something only Slurm understands (`--begin=teatime`) has no meaning here: it is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from jobs.dialects import amounts as vendors
from jobs.dialects.base import Fix
from jobs.dialects.fields import CONSOLE, Quantity
from jobs.dialects.findings import Findings
from jobs.dialects.record import short
from jobs.dialects.sbatch import amounts, hosts, sizes, times, values
from jobs.dialects.sbatch.header import pointer_of
from jobs.dialects.sbatch.options import SBATCH

DEFAULT_NAME: Final = "sbatch"
"""What Slurm calls a script that it reads from a pipe."""


def _text(value: str) -> str | None:
    return value or None


READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "job-name": _text,
    "comment": _text,
    "partition": _text,
    "time": times.seconds,
    "signal": values.signal,
    "begin": times.moment,
    "dependency": values.dependency,
    "hold": lambda _value: True,
    "no-requeue": lambda _value: True,
    "requeue": lambda value: None if value else True,
    "export": values.export,
    "exclude": hosts.expand,
    "nodelist": hosts.expand,
    "constraint": values.features,
    "container-image": _text,
    "container-mounts": values.mounts,
    **dict.fromkeys(sizes.OPTIONS, lambda _value: True),
}
"""Option → what a value of it means; None for one that means nothing here."""

OF_THE_JOB: Final = frozenset(
    {
        "job-name",
        "comment",
        "partition",
        "time",
        "signal",
        "begin",
        "dependency",
        "hold",
        "no-requeue",
        "requeue",
        "export",
        "exclude",
        "container-mounts",
    }
)
"""Options that say something of the whole job: read in the first component only."""


def has_meaning(component: int, name: str, value: str) -> bool:
    """Return whether an option means something in a JobSpec."""
    if component and name in OF_THE_JOB:
        return False
    reader = READERS.get(name)
    return reader is not None and reader(value) is not None


def read_option(said: Mapping[str, str], name: str) -> Any:
    """Return the value of the option `name`; None when it is not there or means nothing."""
    return READERS[name](said[name]) if name in said else None


def value_or_stored(said: Mapping[str, str], name: str, wanted: object, written: str) -> dict[str, str]:
    """Return the option as it was while it still means `wanted`; else as `written`, unless that is ""."""
    if name in said and read_option(said, name) == wanted:
        return {name: said[name]}
    return {name: written} if written else {}


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
            _check_size(component, name, value, findings)
        elif name == "time" and times.seconds(value) is None:
            _unreadable(component, name, value, _TIME, findings, _propose_length(value))
        elif name == "signal" and not values.is_signal(value):
            _unreadable(component, name, value, _SIGNAL, findings, None)
        elif name == "dependency" and values.ANY_OF in value:
            where = pointer_of(component, name)
            findings.problem("any_dependency", where, CONSOLE, key=name, value=short(value))


def _check_size(component: int, name: str, value: str, findings: Findings) -> None:
    """A count, an amount of memory, or GPUs."""
    taken = _read_number(name, value)
    if taken is None:
        _unreadable(component, name, value, sizes.EXAMPLES[name], findings, _propose(name, value))
        return
    most = sizes.MOST.get(name, sizes.MOST_DEVICES)
    if taken > most:
        where = pointer_of(component, name)
        findings.problem("too_great", where, CONSOLE, key=name, value=short(value), most=most)


def _read_number(name: str, value: str) -> int | None:
    """Return the number that a value says."""
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


def _propose(name: str, value: str) -> str | None:
    """Return the value that was surely meant."""
    if name in sizes.MEMORIES:
        exact = vendors.parse_prose(value, Quantity.MEMORY, "Mi")
        return amounts.memory_to_text(vendors.whole(exact)) if exact else None
    match = _WHOLE.fullmatch(value)
    if match or name not in (*sizes.COUNTS, "nodes"):
        return match[1] if match else None
    number = vendors.parse_prose(value, Quantity.COUNT)
    return vendors.decimal(number) if number is not None and number == int(number) else None


def _propose_length(value: str) -> str | None:
    """`24h` in Slurm's words."""
    match = _HOURS.fullmatch(value)
    return times.length(int(match[1]) * _UNITS[match[2].lower()]) if match else None


def _unreadable(
    component: int, name: str, value: str, example: str, findings: Findings, fixed: str | None
) -> None:
    where = pointer_of(component, name)
    if number := _DIGITS.search(value):
        digits = len(number[0].lstrip("-"))
        findings.problem("number_too_big", where, SBATCH, key=name, digits=digits)
        return
    fix = Fix(where, fixed) if fixed else None
    findings.problem("option_value", where, SBATCH, fix, key=name, value=short(value), example=example)
