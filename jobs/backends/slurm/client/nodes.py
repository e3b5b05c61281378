"""The cluster's nodes as its controller tells them: what they have, what is free, what takes no jobs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from jobs.backends.base import Gpu, Inventory, NodeSeen, SetAside
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
"""States of a node in which it starts nothing."""

_GRES: Final = re.compile(r"(?:^|,)gpu(?::([^:,(]+))?:(\d+)(?:\(([^()]*)\))?")


_BY: Final = re.compile(r" \[[^\[\]@]+@[^\[\]]+\]$")
"""Who gave the reason, and when: scontrol adds it."""

_NOBODY: Final = ("", "(null)")


def read(nodes: Iterable[Mapping[str, str]], reservations: Iterable[Mapping[str, str]] = ()) -> Inventory:
    """Nodes and reservations as `Controller` tells them."""
    return Inventory(
        tuple(_node(told) for told in nodes),
        set_aside=tuple(_set_aside(told) for told in reservations if _listed(told.get("Nodes", ""))),
    )


def _set_aside(told: Mapping[str, str]) -> SetAside:
    return SetAside(
        name=told.get("ReservationName", ""),
        nodes=hosts.names(told["Nodes"]) or (),
        since=_whole(told.get("StartTime", "")),
        until=_whole(told.get("EndTime", "")) or None,
        whom=(*_listed(told.get("Users", "")), *_listed(told.get("Accounts", ""))),
        maintenance="MAINT" in _listed(told.get("Flags", "")),
    )


def _listed(words: str) -> tuple[str, ...]:
    return () if words in _NOBODY else tuple(word.strip() for word in words.split(",") if word.strip())


def _node(told: Mapping[str, str]) -> NodeSeen:
    name = told["NodeName"]
    states = set(told.get("State", "UNKNOWN").rstrip("*~#!%$@^-").split("+"))
    silent = "*" in told.get("State", "")
    cpus = _whole(told.get("CPUEfctv", "")) or _whole(told.get("CPUTot", ""))
    memory = _whole(told.get("RealMemory", ""))
    gpus = tuple(_gpus(told.get("Gres", "")))
    used = frozenset(_used(told.get("GresUsed", ""), gpus))
    return NodeSeen(
        name=name,
        cpu_milli=cpus * 1000,
        memory_mib=memory,
        gpus=gpus,
        free_cpu_milli=max(0, cpus - _whole(told.get("CPUAlloc", ""))) * 1000,
        free_memory_mib=max(0, memory - _whole(told.get("AllocMem", ""))),
        free_gpus=tuple(gpu.index for gpu in gpus if gpu.index not in used),
        schedulable=not (states & CLOSED or silent),
        why=_why(told, states, silent=silent),
        partitions=_listed(told.get("Partitions", "")),
    )


def _why(told: Mapping[str, str], states: set[str], *, silent: bool) -> str:
    """The admin's reason, else Slurm's word for the state."""
    closed = sorted(states & CLOSED)
    if not closed and not silent:
        return ""
    return _BY.sub("", told.get("Reason", "")).strip() or "+".join(closed) or "NOT_RESPONDING"


def _gpus(gres: str) -> Iterator[Gpu]:
    index = 0
    for kind, count, _rest in _GRES.findall(gres):
        for _ in range(int(count)):
            yield Gpu(index, kind or "gpu")
            index += 1


def _used(gres: str, gpus: tuple[Gpu, ...]) -> Iterator[int]:
    """Which GPUs are in use; where Slurm only counts them, the first."""
    for kind, count, rest in _GRES.findall(gres):
        mine = [gpu.index for gpu in gpus if gpu.type == (kind or "gpu")]
        listed = rest.removeprefix("IDX:") if rest.startswith("IDX:") else None
        if listed is None:
            yield from mine[: int(count)]
        elif listed != "N/A":
            for part in listed.split(","):
                first, _, last = part.partition("-")
                yield from range(int(first), int(last or first) + 1)


def _whole(value: str) -> int:
    return int(value) if value.isdigit() else 0
