"""Shares of the machine that live attempts hold, and the lock under which they change.

Each holder is a small file, made before its plan is and removed after its end; a file without a plan
is what a submitter left that was killed in between.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from jobs.node import files
from jobs.node.files import Folder
from jobs.node.folder_removal import remove_folder
from jobs.node.sandbox.engine import Engine
from jobs.node.supervisor import checkpoints, layout
from jobs.node.supervisor.layout import Layout, UnknownAttemptKey
from jobs.node.supervisor.plan import Plan
from jobs.node.wrapper.launch_arguments import group_name

PATIENCE_S: Final = 3.0
_PAUSE_S: Final = 0.005


class Busy(Exception):
    """The lock is held for too long, by another submitter, perhaps a frozen one."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """The share of one attempt."""

    cpu_milli: int
    memory_mib: int
    gpus: tuple[int, ...]
    ports: tuple[int, ...]
    uplink: str = ""
    cores: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class AllocatedTotal:
    """The shares of all attempts together; `cores` has a core as often as it is given out."""

    cpu_milli: int
    memory_mib: int
    gpus: frozenset[int]
    ports: frozenset[int]
    uplinks: frozenset[str] = frozenset()
    cores: tuple[int, ...] = ()


@contextlib.contextmanager
def hold_lock(layout_: Layout) -> Iterator[None]:
    """Hold the lock under which shares are given out; raises Busy after some seconds.

    The kernel takes the lock back from a process that ends.
    """
    layout_.live.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(layout_.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _seize(lock)
        yield
    finally:
        os.close(lock)


def _seize(lock: int) -> None:
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                raise Busy from None
            time.sleep(_PAUSE_S)


def sum_held(layout_: Layout, *, besides: str = "") -> AllocatedTotal:
    """Return the shares of all attempts but the one of the key `besides`; also without the lock."""
    live = [holding for key, holding in _live(layout_) if key != besides]
    return AllocatedTotal(
        sum(one.cpu_milli for one in live),
        sum(one.memory_mib for one in live),
        frozenset(gpu for one in live for gpu in one.gpus),
        frozenset(port for one in live for port in one.ports),
        frozenset(one.uplink for one in live if one.uplink),
        tuple(core for one in live for core in one.cores),
    )


def list_live(layout_: Layout) -> list[str]:
    """Return the keys of all attempts that hold something, in order."""
    return sorted(key for key, _holding in _live(layout_))


def hold(layout_: Layout, key: str, holding: Allocation) -> None:
    """Write down what an attempt holds; under the lock."""
    with Folder.open(layout_.live) as live:
        live.write(key, asdict(holding))


def remove_released(layout_: Layout) -> None:
    """Remove what nobody holds any more; under the lock."""
    for path in _files(layout_):
        if not _is_live(layout_, path.name):
            path.unlink(missing_ok=True)


def _live(layout_: Layout) -> Iterator[tuple[str, Allocation]]:
    for path in _files(layout_):
        value = files.read(path) if _is_live(layout_, path.name) else None
        if value is not None:
            gpus, ports = tuple(value["gpus"]), tuple(value["ports"])
            amounts = value["cpu_milli"], value["memory_mib"]
            uplink, cores = value.get("uplink", ""), tuple(value.get("cores", ()))
            yield path.name, Allocation(*amounts, gpus, ports, uplink, cores)


def _files(layout_: Layout) -> list[Path]:
    return (
        [path for path in layout_.live.iterdir() if not path.name.startswith(".")]
        if layout_.live.exists()
        else []
    )


def _is_live(layout_: Layout, key: str) -> bool:
    try:
        attempt = layout_.attempt(key)
    except UnknownAttemptKey:
        return False
    return (attempt / layout.PLAN).exists() and not (attempt / layout.END).exists()


MONTHS: Final = 2
"""A key stays known this many months after it was forgotten, in case a frozen submitter wakes up."""


def is_forgotten(layout_: Layout, key: str) -> bool:
    """Tell whether the key was run and forgotten, so that it must never run again."""
    return any(layout_.removal_record(key, months_ago=months).exists() for months in range(MONTHS + 1))


def record_removal(layout_: Layout, key: str) -> None:
    """Write down that the key was run; old such notes are removed."""
    note = layout_.removal_record(key)
    if not note.parent.exists():
        note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _forget_old_notes(layout_)
    note.touch(mode=0o600)


def remove_containers(attempt: Path) -> None:
    """Remove the containers that were kept because their replicas failed."""
    plan = Plan.read(attempt)
    if plan is None or not plan.keep_failed_s or not plan.house.engine:
        return
    names = [group_name(plan, place) for place in plan.replicas() if place.role.image]
    if names:
        Engine(plan.house.engine).remove(*names)


def remove_attempt(attempt: Path) -> None:
    """Remove the attempt's folder, and the job's with its checkpoints when it was the last."""
    saved = checkpoints.folder_of(attempt)
    if saved.exists() and {path.name for path in attempt.parent.iterdir()} <= {attempt.name, saved.name}:
        remove_folder(saved)
    remove_folder(attempt)
    if attempt.parent.exists() and not any(attempt.parent.iterdir()):
        attempt.parent.rmdir()


def _forget_old_notes(layout_: Layout) -> None:
    kept = {layout_.removal_record("", months_ago=months).name for months in range(MONTHS + 1)}
    for folder in layout_.removal_record("").parent.iterdir():
        if folder.name not in kept:
            remove_attempt(folder)
