"""The node inventory: sizes, what is free, and which nodes start no jobs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from jobs.backends.base import Gpu, Inventory, NodeReservation, NodeSeen
from jobs.backends.slurm.client import values
from jobs.dialects.sbatch import hosts

CLOSED: Final = frozenset(
    {
        "DOWN",
        "DRAIN",
        "DRAINED",
        "DRAINING",
        "ERROR",
        "FAIL",
        "FAILING",
        "FUTURE",
        "INVAL",
        "INVALID_REG",
        "MAINT",
        "NOT_RESPONDING",
        "NO_RESPOND",
        "POWERING_DOWN",
        "REBOOT",
        "UNKNOWN",
    }
)
"""States of a node in which it starts no jobs."""

_GRES: Final = re.compile(r"(?:^|,)gpu(?::([^:,(]+))?:(\d+)(?:\(([^()]*)\))?")


_BY: Final = re.compile(r" \[[^\[\]@]+@[^\[\]]+\]$")
"""The reason's author and time, which scontrol adds."""

_NOBODY: Final = ("", "(null)")


def read_inventory(
    nodes: Iterable[Mapping[str, str]], reservations: Iterable[Mapping[str, str]] = ()
) -> Inventory:
    """Return the inventory of nodes and reservations as `Controller` returns them."""
    return Inventory(
        tuple(_node(row) for row in nodes),
        set_aside=tuple(_reservation(row) for row in reservations if _split_list(row.get("Nodes", ""))),
    )


def _reservation(row: Mapping[str, str]) -> NodeReservation:
    return NodeReservation(
        name=row.get("ReservationName", ""),
        nodes=hosts.expand(row["Nodes"]) or (),
        since=values.whole(row.get("StartTime", "")),
        until=values.whole(row.get("EndTime", "")) or None,
        whom=(*_split_list(row.get("Users", "")), *_split_list(row.get("Accounts", ""))),
        maintenance="MAINT" in _split_list(row.get("Flags", "")),
    )


def _split_list(words: str) -> tuple[str, ...]:
    return () if words in _NOBODY else tuple(word.strip() for word in words.split(",") if word.strip())


def _node(row: Mapping[str, str]) -> NodeSeen:
    name = row["NodeName"]
    states = set(row.get("State", "UNKNOWN").rstrip("*~#!%$@^-").split("+"))
    silent = "*" in row.get("State", "")
    cpus = values.whole(row.get("CPUEfctv", "")) or values.whole(row.get("CPUTot", ""))
    memory = values.whole(row.get("RealMemory", ""))
    gpus = tuple(_gpus(row.get("Gres", "")))
    used = frozenset(_used_gpus(row.get("GresUsed", ""), gpus))
    return NodeSeen(
        name=name,
        cpu_milli=cpus * 1000,
        memory_mib=memory,
        gpus=gpus,
        free_cpu_milli=max(0, cpus - values.whole(row.get("CPUAlloc", ""))) * 1000,
        free_memory_mib=max(0, memory - values.whole(row.get("AllocMem", ""))),
        free_gpus=tuple(gpu.index for gpu in gpus if gpu.index not in used),
        schedulable=not (states & CLOSED or silent),
        why=_closed_reason(row, states, silent=silent),
        partitions=_split_list(row.get("Partitions", "")),
    )


def _closed_reason(row: Mapping[str, str], states: set[str], *, silent: bool) -> str:
    """Return the admin's reason, else Slurm's word for the state."""
    closed = sorted(states & CLOSED)
    if not closed and not silent:
        return ""
    return _BY.sub("", row.get("Reason", "")).strip() or "+".join(closed) or "NOT_RESPONDING"


def _gpus(gres: str) -> Iterator[Gpu]:
    index = 0
    for kind, count, _rest in _GRES.findall(gres):
        for _ in range(int(count)):
            yield Gpu(index, kind or "gpu")
            index += 1


def _used_gpus(gres: str, gpus: tuple[Gpu, ...]) -> Iterator[int]:
    """Yield the GPUs in use; the first ones where Slurm only counts them."""
    for kind, count, rest in _GRES.findall(gres):
        mine = [gpu.index for gpu in gpus if gpu.type == (kind or "gpu")]
        listed = rest.removeprefix("IDX:") if rest.startswith("IDX:") else None
        if listed is None:
            yield from mine[: int(count)]
        elif listed != "N/A":
            for part in listed.split(","):
                first, _, last = part.partition("-")
                yield from range(int(first), int(last or first) + 1)
