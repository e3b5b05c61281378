"""Amounts and spans of time as people read them."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from jobs.language import gettext as _
from jobs.language import localtime, ngettext

_CPU: Final = frozenset({"cpu", "cpu_milli"})
_MEMORY: Final = frozenset({"memory", "memory_mib"})
_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR


def quantity(kind: object, number: object) -> str:
    """`number` of a resource: "8 GPUs", "1.5 cores", "16 GiB", "2 P100 GPUs".

    CPU is given in milli-cores and memory in MiB, as everywhere.  What is no number is shown as it is.
    """
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        return "" if number is None else str(number)
    if kind in _CPU:
        cores = number / 1000
        words = ngettext("%(number)s CPU core", "%(number)s CPU cores", 1 if cores == 1 else 2)
        return words % {"number": f"{cores:g}"}
    if kind in _MEMORY:
        return memory(number)
    if kind == "jobs":
        return ngettext("%(number)s job", "%(number)s jobs", int(number)) % {"number": int(number)}
    if kind in {"gpu", "gpus", "", None}:
        return ngettext("%(number)s GPU", "%(number)s GPUs", int(number)) % {"number": int(number)}
    words = ngettext("%(number)s %(type)s GPU", "%(number)s %(type)s GPUs", int(number))
    return words % {"number": int(number), "type": kind}


def memory(mib: float) -> str:
    """Return an amount of memory given in MiB."""
    if mib >= 1024:
        return f"{round(mib / 1024, 1):g} GiB"
    return f"{mib:g} MiB"


def money(micro: int) -> str:
    """Return an amount of money given in millionths, without its currency: a console has one."""
    return f"{micro / 1_000_000:.4f}".rstrip("0").rstrip(".")


def moment(text: str) -> str:
    """Return an RFC 3339 time in the reader's zone, in figures."""
    try:
        return f"{localtime(datetime.fromisoformat(text)):%Y-%m-%d %H:%M}"
    except ValueError:
        return text


def tasks(number: int) -> str:
    """Return a number of tasks."""
    return ngettext("%(number)s replica", "%(number)s replicas", number) % {"number": number}


def replicas(number: int) -> str:
    """Return a number of replicas."""
    return ngettext("%(number)s replica", "%(number)s replicas", number) % {"number": number}


def duration(seconds: int) -> str:
    """Return a span of time in its two largest units."""
    if seconds < _MINUTE:
        return _("%(seconds)s s") % {"seconds": seconds}
    if seconds < _HOUR:
        return _two(_("%(number)s min"), _("%(number)s s"), divmod(seconds, _MINUTE))
    if seconds < _DAY:
        return _two(_("%(number)s h"), _("%(number)s min"), divmod(seconds // _MINUTE, 60))
    return _two(_("%(number)s d"), _("%(number)s h"), divmod(seconds // _HOUR, 24))


def _two(large: str, small: str, numbers: tuple[int, int]) -> str:
    first = large % {"number": numbers[0]}
    return f"{first} {small % {'number': numbers[1]}}" if numbers[1] else first
