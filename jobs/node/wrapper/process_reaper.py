"""The process reaper: signals, memory limit and end of one process tree."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jobs.node import process_trees, processes
from jobs.node.process_trees import Tree
from jobs.node.supervisor.decision import Ending, signal_called
from jobs.node.wrapper.companions import Companions
from jobs.node.wrapper.log_writer import LogWriter
from jobs.node.wrapper.named_output import NamedOutputs

if TYPE_CHECKING:
    from jobs.node.wrapper import cgroups
    from jobs.node.wrapper.launch_arguments import LaunchArguments

_SWEEP_S: Final = 0.02
_ASK_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Finished:
    """How the main process ended (a wait status), whether it had been told to, used too much memory, or had
    enough of what it was granted.
    """

    status: int
    told: bool
    out_of_memory: bool
    had_enough: bool = False


class ProcessReaper:
    """Reaps the children of this process, of which the main one is the replica."""

    def __init__(self, tree: Tree, orders: LaunchArguments, log: LogWriter) -> None:
        self._tree, self._orders, self._log = tree, orders, log
        self._memory: cgroups.ControlGroup | None = None
        self._limit: int | None = None
        self._enough: Callable[[], bool] | None = None
        self._told_alone: int | None = None
        self._had_enough = False
        self._companions = self._none()
        self._poll = select.poll()
        self._bell, ringer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        os.set_blocking(ringer, False)
        signal.set_wakeup_fd(ringer, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGCONT):
            signal.signal(number, lambda *_: None)
        self._poll.register(self._bell, select.POLLIN)
        self._poll.register(log.fd, select.POLLIN)
        self._ending: Ending | None = None
        self._sent = 0
        self._warned = False
        self._told = False
        self._out_of_memory = False
        self._status: int | None = None
        self._none_left = False

    def read_ending(self) -> Ending | None:
        """The orders to end, if they have been given."""
        self._hear()
        return self._ending

    def see_through(
        self,
        main: int,
        memory: cgroups.ControlGroup | None = None,
        limit: int | None = None,
        enough: Callable[[], bool] | None = None,
        companions: Companions | None = None,
        *,
        is_main_told_alone: bool = False,
    ) -> Finished:
        """Wait for the end of `main` and of everything it started; `companions` end with it, sidecars within
        their grace period.

        Without `memory` the watchdog holds `limit` bytes; with neither nobody does.  `enough` is asked every
        second whether to end it now.  With `is_main_told_alone` the other processes get no SIGTERM.
        """
        self._told_alone = main if is_main_told_alone else None
        self._memory, self._limit, self._enough = memory, limit, enough
        self._companions = companions or self._none()
        for fd in self._companions.outputs.descriptors():
            self._poll.register(fd, select.POLLIN)
        if memory is not None:
            memory.register(self._poll)
        self._reset()
        while not self._over(main):
            self._wait()
            self._reap(main)
            self._hear()
            self._act()
        self._companions.end()
        self._sweep(main)
        self._log.drain()
        self._companions.outputs.finish(self._poll)
        if self._memory is not None:
            self._out_of_memory |= self._memory.out_of_memory()
        assert self._status is not None
        return Finished(self._status, self._told, self._out_of_memory, self._had_enough)

    def _none(self) -> Companions:
        return Companions(NamedOutputs(self._log, self._orders.owner))

    def _reset(self) -> None:
        self._had_enough = self._none_left = False
        self._status = None

    def _over(self, main: int) -> bool:
        """Once the main process has ended the rest is over, except that in an ordered end all may use
        the time that was given, and sidecars their grace period.
        """
        self._reap(main)
        if self._out_of_memory or self._had_enough:
            return True
        if self._status is None:
            return self._ending is not None and time.monotonic() >= self._ending.kill_at
        if self._none_left or (self._ending is not None and time.monotonic() >= self._ending.kill_at):
            return True
        return self._ending is None and not self._companions.is_stopping()

    def _wait(self) -> None:
        now = time.monotonic()
        due = self._ending.next_after(now) if self._ending else None
        pauses = [at - now for at in (due, self._companions.kill_at) if at is not None]
        if self._memory is None and self._limit is not None:
            pauses.append(processes.WATCH_S)
        if self._enough is not None:
            pauses.append(_ASK_S)
        self._carry(now + max(0, min(pauses)) if pauses else None)
        with contextlib.suppress(BlockingIOError):
            os.read(self._bell, 4096)

    def _carry(self, until: float | None) -> None:
        """Carry what the replica writes into its log, until then, or until something else happens."""
        while True:
            ends = [at for at in (until, self._log.due_at()) if at is not None]
            now = time.monotonic()
            ready = [fd for fd, _ in self._poll.poll(max(0, min(ends) - now) * 1000 if ends else None)]
            self._log.pump()
            written = (self._log.fd, *self._companions.outputs.descriptors())
            self._companions.outputs.pump(self._poll)
            over = until is not None and time.monotonic() >= until
            if over or any(fd not in written for fd in ready):
                return

    def _hear(self) -> None:
        warning = self._orders.read_warning()
        if warning is not None and not self._warned:
            self._warned = True
            process_trees.warn(self._tree, signal_called(warning))
        self._ending = self._orders.read_ending() or self._ending

    def _act(self) -> None:
        if self._memory is not None:
            self._out_of_memory |= self._memory.out_of_memory()
        elif self._limit is not None:
            own = self._companions.separate(self._tree.pids())
            self._out_of_memory |= processes.use_more_than(own, self._limit)
        if self._enough is not None and self._status is None:
            self._had_enough |= self._enough()
        due = self._ending.list_due_signals(time.monotonic()) if self._ending else []
        for number in due[self._sent :]:
            self._told = self._told or self._status is None
            if number == signal.SIGTERM and self._told_alone is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._told_alone, number)
            elif number in (signal.SIGTERM, signal.SIGKILL):
                self._tree.signal(number)
            else:
                process_trees.warn(self._tree, number)
        self._sent = max(self._sent, len(due))

    def _sweep(self, main: int) -> None:
        """Kill what is left, and wait until it is gone."""
        while True:
            self._told |= self._status is None and not (self._out_of_memory or self._had_enough)
            self._tree.signal(signal.SIGKILL)
            self._reap(main)
            if self._status is not None and (self._none_left or not self._tree.pids()):
                return
            self._log.pump()
            time.sleep(_SWEEP_S)

    def _reap(self, main: int) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                self._companions.note_end(pid, status)
                if pid == main:
                    self._status = status
                    self._companions.stop()
        self._none_left = True
