"""Companions of a replica's command: processes beside it that end with it and decide nothing."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from jobs.node import command, processes
from jobs.node.command import CannotStart, Command, Streams


@dataclass(frozen=True, slots=True)
class Companion:
    """One of them: its name for people, its command, and what is called in the child first.

    `output` is where it writes; None discards that.  `end` ends what is no child here, as a container.
    Without a control group it is ended where it uses more than `memory_mib`; None for no such limit.
    """

    name: str
    command: Command
    inside: Callable[[], None]
    output: int | None = None
    end: Callable[[], None] = lambda: None
    memory_mib: int | None = None


class Companions:
    """The companions that run, by their process ids; each leads a session of its own."""

    def __init__(self) -> None:
        self._running: dict[int, Companion] = {}

    def start(self, companion: Companion, log: int) -> None:
        """Start one.  Without it the command goes on: why it can't be started is written into `log`."""
        null = os.open(os.devnull, os.O_WRONLY)
        streams = Streams.into(null if companion.output is None else companion.output)
        try:
            self._running[command.start(companion.command, streams, companion.inside)] = companion
        except CannotStart as error:
            os.write(log, f"{companion.name}: {error}\n".encode())
        os.close(null)

    def discard(self, pid: int) -> None:
        """Note that a process has ended: its number may be given to another."""
        self._running.pop(pid, None)

    def end(self) -> None:
        """Kill all of them."""
        for pid in list(self._running):
            self._end(pid)

    def separate(self, pids: Iterable[int]) -> list[int]:
        """Return those of these processes that are the command's; end companions that use too much memory."""
        sessions = {pid: _session(pid) for pid in pids}
        for leader, companion in list(self._running.items()):
            own = [pid for pid, session in sessions.items() if session == leader]
            if companion.memory_mib and processes.use_more_than(own, companion.memory_mib << 20):
                self._end(leader)
        return [pid for pid, session in sessions.items() if session not in self._running]

    def _end(self, pid: int) -> None:
        companion = self._running.pop(pid)
        companion.end()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return 0
