"""An attempt under the agent, until nothing of it is left.

Everything that is known of it lies in files, and each file says one thing for good, so the agent may be
killed at any instruction: the next one takes the lock, reads, adopts the wrappers that live, and goes on.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from jobs.faults import fault
from jobs.node import processes
from jobs.node.agent.launcher import Launcher
from jobs.node.agent.launcher_pool import LauncherPool
from jobs.node.files import Folder
from jobs.node.network.router_services import RouterServices
from jobs.node.processes import Identity
from jobs.node.supervisor import checkpoints, layout
from jobs.node.supervisor.decision import Decision, Ending, decide, plan_ending
from jobs.node.supervisor.periodic_checks import PeriodicChecks, Timers
from jobs.node.supervisor.plan import Plan
from jobs.node.supervisor.status import Status
from jobs.node.wrapper import log_writer
from jobs.states import Reason, ReasonCode, State

ROUND_S: Final = 2.0
"""How often everything is looked at that nobody tells about."""

MERCY_S: Final = 2.0
"""How long after its last second a wrapper may take to end its replica before it is killed itself."""

LONGEST_GRACE_S: Final = 10
"""What takes too much has no longer than this to end by itself."""


class Attended(Exception):
    """A supervisor of an earlier release looks after the attempt."""


class Attempt:
    """One attempt, whose lock the agent has from here on; the agent knows it by `number`."""

    def __init__(
        self, path: Path, launcher: Launcher, services: RouterServices, number: int, hurry: Callable[[], None]
    ) -> None:
        """Raises Attended when somebody else has the lock, and FileNotFoundError when there is no attempt.

        `hurry` is called when `due_at` may say an earlier time than before.
        """
        self._path, self._hurry = path, hurry
        self._folder = folder = Folder.open(path)
        self._lock = -1
        try:
            self._lock = _take_lock(folder)
            found = folder.read(layout.PLAN)
            if found is None:
                raise FileNotFoundError(path)
            self._plan = plan = Plan.load(found, folder.read(layout.LIMITS))
        except BaseException:
            self._close_files()
            raise
        for name in ("replicas", "logs", "work", "tmp"):
            folder.make(name)
        self._status = Status(plan, folder, Identity.mine())
        self._timers = Timers()
        self._ending = self._read_ending()
        self._pool = LauncherPool(
            path,
            folder,
            plan,
            launcher,
            services,
            number,
            self._something_happened,
            ending=self._ending is not None,
        )
        self._checks = PeriodicChecks(path, plan, self._pool.handles)
        self._undecided = True
        self._warned = False
        self._excess: Reason | None = None
        self._round_at = 0.0
        self._version = 0
        self._is_followed = False

    async def run(self) -> None:
        """Until the end; of the job too when somebody removes its folder, as nobody could ever ask for it."""
        try:
            await self._see_through()
        except OSError:
            if self._folder.exists(layout.PLAN):
                raise
            await self._pool.disband()
            self._release_logs()

    async def _see_through(self) -> None:
        fault("agent.begun")
        if not self._folder.exists(layout.END):
            self._choose_checkpoint()
            await self._pool.recover()
            self._is_followed = True
            await self._judge()
            self._show()
            await self._pool.start()
            while not self._pool.over():
                await self._do_what_is_due()
                await self._pool.wait(self._timers.pause())
                if not self._folder.exists(layout.PLAN):
                    raise FileNotFoundError(self._path)
                await self._judge()
        self._is_followed = False
        await self._finish()

    def _choose_checkpoint(self) -> None:
        """Write down which checkpoint the replicas resume from, once, before the first one starts."""
        folder = checkpoints.folder_of(self._path)
        source, path = os.path.realpath(folder), self._plan.env.get(checkpoints.VARIABLE)
        if path not in [bound.path for bound in self._plan.bounds if bound.source == source]:
            return
        if not self._folder.exists(layout.RESUMED):
            found = checkpoints.find_newest(folder)
            self._folder.publish(layout.RESUMED, found.dump() if found else {})

    def wake(self) -> None:
        """Look at orders, and at whether the attempt's folder is still there."""
        self._pool.wake()

    def hear(self, position: int) -> None:
        """Look at a replica that has news."""
        try:
            self._pool.hear(position)
        except Exception as error:  # noqa: BLE001 it is the attempt's own
            self._pool.fail(error)

    def look_around(self, now: float) -> None:
        """Look at what nobody tells, as far as it is time to, and wake when there is something."""
        if not self._is_followed:
            return
        try:
            if now >= self._round_at:
                self._round_at = now + ROUND_S
                self._pool.look_around()
                if (version := os.fstat(self._folder.fd).st_mtime_ns) != self._version:
                    self._version = version  # an order whose giver was killed, or the folder is removed
                    self.wake()
            if self._checks.look(now):
                self._status.mark_changed()
                self.wake()
            if (reason := self._checks.excess(now)) is not None:
                self._excess = reason
                self.wake()
        except Exception as error:  # noqa: BLE001 it is the attempt's own
            self._pool.fail(error)

    def due_at(self) -> float:
        """Return when `look_around` is to be called next, in seconds since the boot."""
        return min(self._round_at, self._checks.due_at()) if self._is_followed else float("inf")

    def close(self) -> None:
        """Let go of everything; the job goes on."""
        self._is_followed = False
        self._pool.close()
        self._checks.close()
        self._close_files()

    def _close_files(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
        self._folder.close()

    def _something_happened(self) -> None:
        """A replica has started or ended."""
        self._undecided = True
        self._status.mark_changed()
        self._checks.expect()
        self._hurry()

    # --- deciding ---------------------------------------------------------------------------------------

    async def _judge(self) -> None:
        """Let the counts decide, then whoever asked for the end."""
        if self._pool.over():
            return
        if self._plan.restarts_replicas:
            await self._obey_restarts()
        if self._undecided and self._ending is None:
            self._undecided = False
            decision = self._decision()
            if decision is not None:
                grace = self._plan.grace_s
                await self._end(
                    plan_ending(decision.state, decision.reason, now=time.monotonic(), grace_s=grace)
                )
        await self._obey_stop()

    def _decision(self) -> Decision | None:
        return decide(self._plan.roles, [ended for one in self._pool.handles if (ended := one.find_end())])

    async def _obey_restarts(self) -> None:
        """Start failed replicas again, or count their ends, as ordered; the others wait for an order."""
        for one in self._pool.handles:
            if not one.held:
                continue
            order = self._folder.read(layout.restart_order(one.place.name, one.run))
            if self._ending is not None or (order is not None and not order["restarts"]):
                one.make_final()
                self._something_happened()
            elif order is not None:
                await self._pool.restart(one)

    async def _obey_stop(self) -> None:
        asked = self._folder.read(layout.STOP)
        if asked is None:
            return
        stop = plan_ending(
            State.STOPPED,
            Reason(ReasonCode.USER_STOP),
            now=asked["at"] if asked["boot"] == processes.boot_id() else time.monotonic(),
            grace_s=asked["grace_s"],
            signal=asked["signal"],
        )
        await self._end(stop if self._ending is None else self._ending.no_later_than(stop))

    async def _end(self, decided: Ending) -> None:
        """Write the decision down, then have it carried out."""
        if decided == self._ending:
            return
        self._folder.write(layout.ENDING, decided.dump())
        self._ending = decided
        self._pool.ending = True
        for one in self._pool.handles:
            one.make_final()
        self._status.mark_changed()
        fault("agent.decided")
        self._pool.poke()
        await self._pool.give_up_waiting()
        fault("agent.ordered")

    def _read_ending(self) -> Ending | None:
        found = self._folder.read(layout.ENDING)
        return Ending.load(found) if found else None

    # --- in time ----------------------------------------------------------------------------------------

    async def _do_what_is_due(self) -> None:
        now = time.monotonic()
        await self._mind_the_limit(now)
        self._mind_the_deadline(now)
        if self._ending is None and self._excess is not None:
            grace = min(self._plan.grace_s, LONGEST_GRACE_S)
            await self._end(plan_ending(State.FAILED, self._excess, now=now, grace_s=grace))
        due = self._status.find_due_time()
        if due is not None and due <= now:
            self._show()
        self._timers.at("status", self._status.find_due_time())

    async def _mind_the_limit(self, now: float) -> None:
        """The longest running time counts from the first command's start; a warning may come before."""
        limit, warned = self._limit(), self._plan.warned
        if limit is None or self._ending is not None or (begun := self._first_start()) is None:
            return
        end_at = begun + limit
        if now >= end_at:
            reason = Reason(ReasonCode.TIME_LIMIT, {"limit_s": limit})
            await self._end(plan_ending(State.STOPPED, reason, now=now, grace_s=self._plan.grace_s))
            return
        self._timers.at("limit", end_at)
        if warned is None or self._warned:
            return
        if now < end_at - warned.seconds_before:
            self._timers.at("warning", end_at - warned.seconds_before)
            return
        self._warned = True
        self._timers.at("warning", None)
        self._folder.publish(layout.WARNING, {"signal": warned.signal})
        fault("agent.warned")
        self._pool.poke()

    def _limit(self) -> int | None:
        """As the plan says it, or as somebody has moved it since."""
        moved = self._folder.read(layout.EXTENSION)
        return int(moved["limit_s"]) if moved else self._plan.time_limit_s

    def _first_start(self) -> float | None:
        return min((at for one in self._pool.handles if (at := one.began_at()) is not None), default=None)

    def _mind_the_deadline(self, now: float) -> None:
        """Kill wrappers that did not end their replicas in time."""
        if self._ending is None:
            return
        for name in ("limit", "warning"):
            self._timers.at(name, None)
        last = self._ending.kill_at + MERCY_S
        self._timers.at("mercy", last if now < last else now + ROUND_S)
        if now >= last:
            self._pool.kill()

    # --- telling ----------------------------------------------------------------------------------------

    def _release_logs(self) -> None:
        for one in self._pool.handles:
            log_writer.unmark_append_only(self._path / "logs" / f"{one.place.name}.output")

    def _show(self) -> None:
        self._status.write(self._pool.handles, self._ending)

    async def _finish(self) -> None:
        """Nothing runs any more: say so, and give back what was held."""
        fault("agent.before_end")
        self._folder.publish(layout.END, self._final())
        fault("agent.ended")
        end = self._folder.read(layout.END)
        assert end is not None
        for one in self._pool.handles:
            one.look()
        self._checks.last_look()
        self._release_logs()
        await self._pool.network.remove()
        self._folder.remove(layout.ROUTER)
        self._folder.remove(layout.SECRETS)
        (layout.Layout(self._path.parent.parent).live / self._plan.key).unlink(missing_ok=True)
        fault("agent.given_back")
        reason = Reason(ReasonCode(end["code"]), end["params"])
        self._status.write_end(self._pool.handles, State(end["state"]), reason, end["at"])

    def _final(self) -> dict[str, Any]:
        """How the attempt ended, by the decision or else by the counts."""
        for one in self._pool.handles:
            one.look()
        final = self._ending or self._decision()
        assert final is not None
        reason = final.reason
        return {"state": final.state, "code": reason.code, "params": dict(reason.params), "at": time.time()}


def _take_lock(folder: Folder) -> int:
    """Take the attempt's lock; where somebody has it, he is woken, in case there is something new."""
    lock = os.open(layout.LOCK, os.O_RDWR | os.O_CREAT, 0o600, dir_fd=folder.fd)
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        if (found := folder.read(layout.SUPERVISOR)) is not None:
            Identity.load(found).poke()
        raise Attended(str(error)) from error
    except BaseException:
        os.close(lock)
        raise
    return lock
