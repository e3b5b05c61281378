"""Companions of a replica's command: processes beside it that end with it and decide nothing.

Sidecars are the job's own: they share the replica's limits, have their lines in its log and some time to end.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from jobs.node import command, processes
from jobs.node.command import CannotStart, Command, Streams
from jobs.node.wrapper.named_output import NamedOutputs
from jobs.node.wrapper.outcome import code_of

MOST_GRACE_S: Final = 5.0
"""After the command's end sidecars have the job's grace period, but no longer than this."""


@dataclass(frozen=True, slots=True)
class Companion:
    """One of them: its name for people, its command, and what is called in the child first.

    `end` ends what is no child here, as a container.  What is no sidecar writes nowhere; without a control
    group it is ended where it uses more than `memory_mib` (None: no such limit).
    """

    name: str
    command: Command
    inside: Callable[[], None]
    end: Callable[[], None] = lambda: None
    memory_mib: int | None = None
    is_sidecar: bool = False


class Companions:
    """The companions that run, by their process ids; each leads a session of its own."""

    def __init__(self, outputs: NamedOutputs, grace_s: float = 0.0) -> None:
        self.outputs = outputs
        self.kill_at: float | None = None
        self._grace_s = min(grace_s, MOST_GRACE_S)
        self._running: dict[int, Companion] = {}

    def start(self, companion: Companion) -> None:
        """Start one.  Without it the command goes on: why it can't be started is written into the log."""
        name = companion.name
        output = self.outputs.open(name) if companion.is_sidecar else os.open(os.devnull, os.O_WRONLY)
        try:
            pid = command.start(companion.command, Streams.into(output), companion.inside)
            self._running[pid] = companion
        except CannotStart as error:
            self.outputs.say(name, f"can't be started: {error}")
        os.close(output)

    def note_end(self, pid: int, status: int) -> None:
        """Note that a process has ended: its number may be given to another."""
        companion = self._running.pop(pid, None)
        if companion is None:
            return
        companion.end()
        code, _signal = code_of(status)
        if companion.is_sidecar and self.kill_at is None:
            self.outputs.say(companion.name, f"ended with exit code {code}")

    def stop(self) -> None:
        """Ask sidecars to end, and kill the others: the command has ended."""
        self.kill_at = time.monotonic() + self._grace_s
        for pid, companion in list(self._running.items()):
            if companion.is_sidecar and self._grace_s:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGTERM)
            else:
                self._end(pid)

    def is_stopping(self) -> bool:
        """Tell whether a sidecar still has time to end."""
        return bool(self._running) and self.kill_at is not None and time.monotonic() < self.kill_at

    def end(self) -> None:
        """Kill all of them."""
        for pid in list(self._running):
            self._end(pid)

    def separate(self, pids: Iterable[int]) -> list[int]:
        """Return those of these processes that share the command's limits; end companions over their own."""
        sessions = {pid: _session(pid) for pid in pids}
        others = {leader: each for leader, each in self._running.items() if not each.is_sidecar}
        for leader, companion in others.items():
            own = [pid for pid, session in sessions.items() if session == leader]
            if companion.memory_mib and processes.use_more_than(own, companion.memory_mib << 20):
                self._end(leader)
        return [pid for pid, session in sessions.items() if session not in others]

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
