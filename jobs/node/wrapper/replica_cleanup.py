"""Cleanup after a replica whose wrapper has ended.

With a PID namespace the kernel has already seen to it; this is for the rest, and for the control groups.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Final

from jobs.node import processes
from jobs.node.sandbox.isolation import Isolation
from jobs.node.supervisor.plan import Plan, PlannedReplica
from jobs.node.wrapper import cgroups, environment
from jobs.node.wrapper.launch_arguments import group_name, list_companions, list_setup

_PAUSE_S: Final = 0.02
_PATIENCE_S: Final = 5.0


def kill_all(plan: Plan, place: PlannedReplica) -> None:
    """Kill every process of the replica.

    Gives up after 5 s on what can't be killed (a process that hangs inside the kernel).
    """
    if place.role.image and plan.house.engine:
        _remove_container(plan, place)
    until = time.monotonic() + _PATIENCE_S
    while (left := _processes(plan, place)) and time.monotonic() < until:
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_PAUSE_S)


def remove_groups(plan: Plan, place: PlannedReplica) -> None:
    """Remove the control groups of a replica that has ended."""
    places = cgroups.usable()
    if places is not None:
        for name in (group_name(plan, place), *list_companions(plan, place)):
            cgroups.remove(places, name)


def _remove_container(plan: Plan, place: PlannedReplica) -> None:
    """The engine's own command died with the wrapper, but what it had begun may still be coming."""
    from jobs.node.sandbox.engine import Engine  # noqa: PLC0415 only a replica in a container needs it

    box = Engine(plan.house.engine)
    until = time.monotonic() + _PATIENCE_S
    for name in (group_name(plan, place), *list_companions(plan, place), *list_setup(plan, place)):
        while box.exists(name) and time.monotonic() < until:
            box.remove(name)


def _processes(plan: Plan, place: PlannedReplica) -> set[int]:
    places = cgroups.usable()
    found: set[int] = set()
    for name in (group_name(plan, place), *list_companions(plan, place)):
        found |= cgroups.members(places, name) if places else set()
    if plan.house.isolation == Isolation.NONE:
        found |= find_marked(environment.mark(plan, place))
    return found


def find_marked(value: str) -> set[int]:
    """The living processes that carry the replica's mark in their environment."""
    mark = f"{environment.MARK}={value}".encode()
    return {pid for pid in processes.numbers() if mark in _environment(pid)}


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
