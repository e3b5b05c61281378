"""What live attempts hold of the machine, and the lock under which that changes.

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
from jobs.node.supervisor import layout
from jobs.node.supervisor.layout import Layout, NotOurs

PATIENCE_S: Final = 3.0
_PAUSE_S: Final = 0.005


class Busy(Exception):
    """Somebody holds the lock, and does not let go: another submitter, perhaps a frozen one."""


@dataclass(frozen=True, slots=True)
class Holding:
    """What one attempt holds."""

    cpu_milli: int
    memory_mib: int
    gpus: tuple[int, ...]
    ports: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Held:
    """What all of them hold together."""

    cpu_milli: int
    memory_mib: int
    gpus: frozenset[int]
    ports: frozenset[int]


@contextlib.contextmanager
def locked(layout_: Layout) -> Iterator[None]:
    """Nobody else gives anything out meanwhile; raises Busy after some seconds.

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


def held(layout_: Layout, *, besides: str = "") -> Held:
    """What is held by everybody but the attempt of the key `besides`; under the lock or as a glance."""
    live = [holding for key, holding in _live(layout_) if key != besides]
    return Held(
        sum(one.cpu_milli for one in live),
        sum(one.memory_mib for one in live),
        frozenset(gpu for one in live for gpu in one.gpus),
        frozenset(port for one in live for port in one.ports),
    )


def hold(layout_: Layout, key: str, holding: Holding) -> None:
    """Write down what an attempt holds; under the lock."""
    with Folder.open(layout_.live) as live:
        live.write(key, asdict(holding))


def tidy(layout_: Layout) -> None:
    """Remove what nobody holds any more; under the lock."""
    for path in _files(layout_):
        if not _is_live(layout_, path.name):
            path.unlink(missing_ok=True)


def _live(layout_: Layout) -> Iterator[tuple[str, Holding]]:
    for path in _files(layout_):
        value = files.read(path) if _is_live(layout_, path.name) else None
        if value is not None:
            gpus, ports = tuple(value["gpus"]), tuple(value["ports"])
            yield path.name, Holding(value["cpu_milli"], value["memory_mib"], gpus, ports)


def _files(layout_: Layout) -> list[Path]:
    return (
        [path for path in layout_.live.iterdir() if not path.name.startswith(".")]
        if layout_.live.exists()
        else []
    )


def _is_live(layout_: Layout, key: str) -> bool:
    try:
        attempt = layout_.attempt(key)
    except NotOurs:
        return False
    return (attempt / layout.PLAN).exists() and not (attempt / layout.END).exists()
