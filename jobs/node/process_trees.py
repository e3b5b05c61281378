"""All processes of a replica, however deep, as the wrapper that looks after them sees them."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Protocol

from jobs.node import processes


class Tree(Protocol):
    """The processes of one replica, the wrapper itself not among them."""

    def pids(self) -> list[int]:
        """Those alive now."""

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to every one of them."""


class Namespace:
    """All processes of this PID namespace but its first one and this one."""

    def pids(self) -> list[int]:
        return [pid for pid in processes.numbers() if pid not in (1, os.getpid())]

    def signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, number)


class Descendants:
    """Everything below me, and below `others`.  I must be a subreaper, so that orphans stay below me."""

    def __init__(self, others: Callable[[], Iterable[int]] = tuple) -> None:
        self._others = others

    def pids(self) -> list[int]:
        return ProcessTable().list_below(os.getpid(), *self._others())

    def signal(self, number: signal.Signals) -> None:
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


class Contained:
    """All processes in a container, which are no children here.  `first` asks the engine for its first
    process; as long as there is none, it is the engine's own processes below me that are meant.
    """

    def __init__(self, first: Callable[[], int | None]) -> None:
        self._first = first

    def pids(self) -> list[int]:
        first = self._first()
        return ProcessTable().in_space_of(first) if first else []

    def signal(self, number: signal.Signals) -> None:
        pids = self.pids()
        if not pids:
            Descendants().signal(number)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


class ProcessTable:
    """All processes at one moment, read once for many replicas."""

    def __init__(self) -> None:
        self._pids = processes.parents()
        self._children: dict[int, list[int]] = {}
        for pid, parent in self._pids.items():
            self._children.setdefault(parent, []).append(pid)

    def children_of(self, pid: int) -> list[int]:
        """Return the children of a process."""
        return self._children.get(pid, [])

    def list_below(self, *roots: int) -> list[int]:
        """Return every process below these."""
        found = list(roots)
        for pid in found:  # which grows meanwhile
            found.extend(child for child in self.children_of(pid) if child not in roots)
        return found[len(roots) :]

    def in_space_of(self, first: int) -> list[int]:
        """Return every process in the PID namespace of `first`; none when it is not ours to look at."""
        space = _space(first)
        return self._spaces.get(space, []) if space else []

    @cached_property
    def _spaces(self) -> dict[int, list[int]]:
        spaces: dict[int, list[int]] = {}
        for pid in self._pids:
            if space := _space(pid):
                spaces.setdefault(space, []).append(pid)
        return spaces


def _space(pid: int) -> int | None:
    """The PID namespace of a process; None when it has ended or is not ours to look at."""
    try:
        return Path(f"/proc/{pid}/ns/pid").stat().st_ino
    except OSError:
        return None


def warn(tree: Tree, number: signal.Signals) -> None:
    """Send a signal to those that have a handler for it; it would end the others."""
    for pid in tree.pids():
        if processes.handles(pid, number):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
