"""The launcher pool: starts, follows and reaps the wrappers of an attempt."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from jobs.faults import fault
from jobs.node import processes
from jobs.node.files import Folder
from jobs.node.network.attempt_network import AttemptNetwork
from jobs.node.supervisor import layout
from jobs.node.supervisor.plan import Plan
from jobs.node.supervisor.replica_handle import ReplicaHandle
from jobs.node.wrapper import attempt_files, environment, wrapper
from jobs.node.wrapper.launch_arguments import NEWS, LaunchArguments
from jobs.node.wrapper.log_writer import open_pipe
from jobs.node.wrapper.outcome import Cause

TRIES: Final = 3
"""How often a wrapper that dies before it starts its command is sent out anew."""


class LauncherPool:
    """All replicas, by their places.  `changed` is called when one of them started or ended.

    Once `ending` is set nothing is started any more, and what ends was told to.
    """

    def __init__(
        self, path: Path, folder: Folder, plan: Plan, changed: Callable[[], None], *, ending: bool
    ) -> None:
        self._path, self._folder, self._plan, self._changed = path, folder, plan, changed
        self.ending = ending
        replicas = folder.sub("replicas")
        self.handles = [ReplicaHandle(plan, place, replicas) for place in plan.replicas()]
        self._holds: dict[int, ReplicaHandle] = {}
        self._network: AttemptNetwork | None = None
        self._poll = select.poll()
        self._bell, ringer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._news, self._messenger = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._poll.register(self._bell, select.POLLIN)
        self._poll.register(self._news, select.POLLIN)
        signal.set_wakeup_fd(ringer, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, processes.POKE):
            signal.signal(number, lambda *_: None)

    def over(self) -> bool:
        """Tell whether every replica has ended."""
        return all(one.exit is not None for one in self.handles)

    def recover(self) -> None:
        """Take over what an earlier supervisor left."""
        for one in self.handles:
            one.look()
            if one.exit is None and one.adopt():
                self._follow(one)
            elif one.exit is not None or one.started is not None:
                one.bury(ending=self.ending)
        if self._plan.network is not None:
            with contextlib.suppress(OSError):  # tried again by whoever needs it
                self._network = AttemptNetwork.adopt(self._folder, self._plan)

    def start(self) -> None:
        """Send out a wrapper for every replica that has none and needs one."""
        waiting = [
            one for one in self.handles if one.started is None and one.exit is None and one.hold is None
        ]
        if self.ending or not waiting:
            self.give_up_waiting()
            return
        fault("supervisor.before_start")
        for one in waiting:
            one.clear_leftovers()
        attempt_files.write(self._plan, self._path)
        sent = [one for one in waiting if self._send_out(one)]
        for one in sent:
            self._follow(one)
        fault("supervisor.after_start")

    def wait(self, seconds: float) -> None:
        """Until a wrapper starts its command or ends, or somebody pokes us; and see to it."""
        ready = [fd for fd, _ in self._poll.poll(seconds * 1000)]
        with contextlib.suppress(BlockingIOError):
            os.read(self._bell, 4096)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        self._hear_news()
        for fd in ready:
            one = self._holds.pop(fd, None)
            if one is not None:
                self._poll.unregister(fd)
                self._wrapper_ended(one)

    def look_around(self) -> None:
        """See what nobody tells: starts under an earlier supervisor's wrappers, frozen ones."""
        for one in self._holds.values():
            one.thaw()
            if one.has_news():
                self._changed()
        if self._network is not None:
            with contextlib.suppress(OSError):  # tried again in the next round
                self._network.restore()

    def poke(self) -> None:
        """Have every wrapper look at its orders."""
        for one in self.handles:
            one.poke()

    def kill(self) -> None:
        """Kill every wrapper, and with it its replica."""
        for one in self.handles:
            one.kill()

    def disband(self) -> None:
        """Kill every wrapper, see to it that nothing of the replicas is left, and write nothing."""
        self.kill()
        for one in self.handles:
            one.clear_away()
        if self._network is not None:
            self._network.remove()

    def give_up_waiting(self) -> None:
        """End the replicas that have not even a wrapper."""
        for one in self.handles:
            if one.started is None and one.hold is None and one.exit is None:
                self._give_up(one, Cause.NOT_STARTED)

    def _hear_news(self) -> None:
        with contextlib.suppress(BlockingIOError):
            for (position,) in NEWS.iter_unpack(os.read(self._news, NEWS.size * 4096)):
                if self.handles[position].has_news():
                    self._changed()

    def _send_out(self, one: ReplicaHandle) -> bool:
        """Send out a wrapper and take hold of it; False when that failed for good."""
        common = (self._path, self._folder, self._told, self._secrets, self._messenger)
        output = open_pipe((self._plan.uid, self._plan.gid))
        launch = LaunchArguments(self._plan, one.place, *common, output)
        try:
            pid = wrapper.spawn(replace(launch, router=self._open_network()))
        except OSError as error:
            os.close(output.reader)
            self._give_up(one, Cause.START, detail=str(error))
            return False
        finally:
            os.close(output.writer)
        one.take(pid, launch)
        return True

    def _follow(self, one: ReplicaHandle) -> None:
        if one.hold is None:
            self._wrapper_ended(one)
            return
        self._holds[one.hold] = one
        self._poll.register(one.hold, select.POLLIN)

    def _wrapper_ended(self, one: ReplicaHandle) -> None:
        fault("supervisor.exit_seen")
        self._changed()
        one.look()
        if one.exit is None and one.adopt():
            self._follow(one)
        elif one.exit is not None or one.started is not None:
            one.bury(ending=self.ending)
        elif self.ending or one.tries >= TRIES:
            self._give_up(one, Cause.NOT_STARTED if self.ending else Cause.START)
        else:
            one.clear_leftovers()
            if self._send_out(one):
                self._follow(one)

    def _give_up(self, one: ReplicaHandle, cause: Cause, detail: str = "") -> None:
        """End a replica that was never started, unless an earlier wrapper starts it at this moment."""
        self._changed()
        if one.settle(cause, detail=detail) or one.exit is not None:
            return
        if one.adopt():
            self._follow(one)
        else:
            one.bury(ending=self.ending)

    def _open_network(self) -> AttemptNetwork | None:
        """Open the attempt's own network, if it has one, once somebody needs it; OSError."""
        if self._network is None and self._plan.network is not None:
            self._network = AttemptNetwork.open(self._folder, self._plan)
        return self._network

    @cached_property
    def _told(self) -> dict[str, str]:
        return environment.split_by_size(environment.peers(self._plan))[0]

    @cached_property
    def _secrets(self) -> dict[str, Any]:
        return self._folder.read(layout.SECRETS) or {}
