"""The launcher pool: has the wrappers of an attempt started, and follows them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

from jobs.faults import fault
from jobs.node.agent.launcher import Launcher
from jobs.node.agent.opened_network import OpenedNetwork
from jobs.node.files import Folder
from jobs.node.network.router_services import RouterServices
from jobs.node.supervisor.plan import Plan
from jobs.node.supervisor.replica_handle import ReplicaHandle
from jobs.node.wrapper import attempt_files
from jobs.node.wrapper.launch_arguments import LaunchArguments
from jobs.node.wrapper.log_writer import open_pipe
from jobs.node.wrapper.outcome import Cause

TRIES: Final = 3
"""How often a wrapper that dies before it starts its command is sent out anew."""

START_S: Final = 10.0
"""How long a start keeps others waiting, where it comes to no end."""

_AGAIN_S: Final = 0.1
"""The pause before an order is repeated that was lost with the fork server."""


class LauncherPool:
    """All replicas, by their places.  `changed` is called when one of them started or ended.

    The agent knows the attempt by `number`.  Once `ending` is set nothing is started any more, and what ends
    was told to.
    """

    def __init__(
        self,
        path: Path,
        folder: Folder,
        plan: Plan,
        launcher: Launcher,
        services: RouterServices,
        number: int,
        changed: Callable[[], None],
        *,
        ending: bool,
    ) -> None:
        self._path, self._folder, self._plan = path, folder, plan
        self._launcher, self._number, self._changed = launcher, number, changed
        self.ending = ending
        self._replicas = folder.sub("replicas")
        self.handles = [ReplicaHandle(plan, place, self._replicas) for place in plan.replicas()]
        self.network = OpenedNetwork(path, folder, plan, launcher, services)
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()
        self._followed: dict[int, ReplicaHandle] = {}
        self._gone: list[ReplicaHandle] = []
        self._starting: set[asyncio.Task[None]] = set()
        self._ordered: set[int] = set()
        self._begun: dict[int, asyncio.Event] = {}
        self._error: BaseException | None = None

    def over(self) -> bool:
        """Tell whether every replica has ended."""
        return all(one.find_end() is not None for one in self.handles) and not self._ordered

    async def recover(self) -> None:
        """Take over what an earlier agent left."""
        for one in self.handles:
            one.look()
            if one.exit is None and one.adopt():
                self._follow(one)
            elif one.exit is not None or one.started is not None:
                await self._bury(one)
        await self.network.adopt()

    async def start(self) -> None:
        """Have a wrapper sent out for every replica that has none and needs one."""
        waiting = [one for one in self.handles if self._waits(one)]
        if self.ending or not waiting:
            await self.give_up_waiting()
            return
        fault("agent.before_start")
        for one in waiting:
            await asyncio.to_thread(one.clear_leftovers)
        attempt_files.write(self._plan, self._path)
        for one in waiting:
            self._begin(one)

    async def wait(self, seconds: float) -> None:
        """Until a wrapper starts its command or ends, or somebody wakes us; and see to it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()
        self._event.clear()
        if self._error is not None:
            raise self._error
        gone, self._gone = self._gone, []
        for one in gone:
            await self._wrapper_ended(one)

    async def restart(self, one: ReplicaHandle) -> None:
        """Have the command of a replica that failed started again."""
        log = self._path / "logs" / f"{one.place.name}.output"
        await asyncio.to_thread(one.begin_next_run, log)
        self._changed()
        self._begin(one)

    def wake(self) -> None:
        """There is something to see to."""
        self._event.set()

    def fail(self, error: BaseException) -> None:
        """Have `wait` raise what went wrong elsewhere."""
        self._error = error
        self.wake()

    def hear(self, position: int) -> None:
        """Look at a replica that has news."""
        if self.handles[position].has_news():
            self._tell_begun(position)
            self._changed()
            self.wake()

    def look_around(self) -> None:
        """See what nobody tells: starts under an earlier agent's wrappers, frozen ones."""
        for one in self._followed.values():
            one.thaw()
            self.hear(one.place.position)
        self.network.restore()

    def poke(self) -> None:
        """Have every wrapper look at its orders."""
        for one in self.handles:
            one.poke()

    def kill(self) -> None:
        """Kill every wrapper, and with it its replica."""
        for one in self.handles:
            one.kill()

    async def disband(self) -> None:
        """Kill every wrapper, see to it that nothing of the replicas is left, and write nothing."""
        self._cancel_starts()
        self.kill()
        for one in self.handles:
            await asyncio.to_thread(one.clear_away)
        await self.network.remove()

    async def give_up_waiting(self) -> None:
        """End the replicas that have not even a wrapper, and will get none."""
        for one in self.handles:
            if self._waits(one) and one.place.position not in self._ordered:
                await self._give_up(one, Cause.NOT_STARTED)

    def close(self) -> None:
        """Let go of everything; wrappers go on."""
        self._cancel_starts()
        for fd in self._followed:
            self._loop.remove_reader(fd)
        for one in self.handles:
            one.close()
        self.network.close()
        self._replicas.close()

    # --- starting ---------------------------------------------------------------------------------------

    @staticmethod
    def _waits(one: ReplicaHandle) -> bool:
        return one.started is None and one.exit is None and one.hold is None

    def _begin(self, one: ReplicaHandle) -> None:
        task = self._loop.create_task(self._start(one))
        self._starting.add(task)
        task.add_done_callback(self._start_ended)

    def _start_ended(self, task: asyncio.Task[None]) -> None:
        self._starting.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(error)

    def _cancel_starts(self) -> None:
        for task in self._starting:
            task.cancel()

    async def _start(self, one: ReplicaHandle) -> None:
        """Send a wrapper out once it is the replica's turn, and let the next one have it after the start.

        Nothing is done where one is on its way: a start that was ordered while the agent took the attempt
        over is one too.
        """
        async with self._launcher.starts:
            if self.ending or not self._waits(one) or one.place.position in self._ordered:
                return
            begun = self._begun[one.place.position] = asyncio.Event()
            self._ordered.add(one.place.position)
            try:
                await self._send_out(one)
            finally:
                self._ordered.discard(one.place.position)
                self.wake()
            fault("agent.after_start")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(START_S):
                    await begun.wait()

    async def _send_out(self, one: ReplicaHandle) -> None:
        """Send out a wrapper and take hold of it, or end the replica when that fails for good."""
        while True:
            output = open_pipe((self._plan.uid, self._plan.gid))
            launch = LaunchArguments(self._plan, one.place, self._path, self._folder, {}, {}, -1, 0, output)
            try:
                network = await self.network.open()
                pid = await self._launcher.start(
                    self._path, self._number, one.place.position, output, network
                )
            except ConnectionError:
                one.drop(launch)
                await asyncio.sleep(_AGAIN_S)
            except OSError as error:
                one.drop(launch)
                await self._give_up(one, Cause.START, detail=str(error))
                return
            except asyncio.CancelledError:
                one.drop(launch)
                raise
            else:
                one.take(pid, launch)
                self._follow(one)
                return

    def _follow(self, one: ReplicaHandle) -> None:
        if one.hold is None:
            self._gone.append(one)
            self.wake()
            return
        self._followed[one.hold] = one
        self._loop.add_reader(one.hold, self._notice_end, one.hold)

    def _notice_end(self, hold: int) -> None:
        self._loop.remove_reader(hold)
        self._gone.append(self._followed.pop(hold))
        self.wake()

    async def _wrapper_ended(self, one: ReplicaHandle) -> None:
        fault("agent.exit_seen")
        self._tell_begun(one.place.position)
        self._changed()
        one.look()
        if one.exit is None and one.adopt():
            self._follow(one)
        elif one.exit is not None or one.started is not None:
            await self._bury(one)
        elif self.ending or one.tries >= TRIES:
            await self._give_up(one, Cause.NOT_STARTED if self.ending else Cause.START)
        else:
            await asyncio.to_thread(one.clear_leftovers)
            self._begin(one)

    async def _give_up(self, one: ReplicaHandle, cause: Cause, detail: str = "") -> None:
        """End a replica that was never started, unless an earlier wrapper starts it at this moment."""
        self._changed()
        self._tell_begun(one.place.position)
        if one.settle(cause, detail=detail) or one.exit is not None:
            return
        if one.adopt():
            self._follow(one)
        else:
            await self._bury(one)

    async def _bury(self, one: ReplicaHandle) -> None:
        await asyncio.to_thread(one.bury, ending=self.ending)

    def _tell_begun(self, position: int) -> None:
        if (begun := self._begun.pop(position, None)) is not None:
            begun.set()
