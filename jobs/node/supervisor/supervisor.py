"""The supervisor of one attempt, until nothing of it is left.

Everything it knows lies in files, and each file says one thing for good, so it may be killed at any
instruction: the next one takes the lock, reads, adopts the wrappers that live, and goes on.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import time
from pathlib import Path
from typing import Any, Final

from jobs.faults import fault
from jobs.node import kernel, processes
from jobs.node.files import Folder
from jobs.node.network import attempt_network
from jobs.node.processes import Identity
from jobs.node.supervisor import layout
from jobs.node.supervisor.decision import Decision, Ending, decide, plan_ending
from jobs.node.supervisor.launcher_pool import LauncherPool
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


def main(path: Path) -> None:
    """Be the supervisor of the attempt at `path`, unless it has one."""
    _settle_in()
    with Folder.open(path) as folder:
        lock = os.open(layout.LOCK, os.O_RDWR | os.O_CREAT, 0o600, dir_fd=folder.fd)
        with contextlib.suppress(BlockingIOError):
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found = folder.read(layout.PLAN)
            if found is not None:
                Supervisor(path, folder, Plan.load(found, folder.read(layout.LIMITS))).run()


def _settle_in() -> None:
    kernel.set_name("jc-supervisor")
    kernel.become_subreaper()
    os.umask(0o077)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Supervisor:
    """One attempt's supervisor, once it has the lock."""

    def __init__(self, path: Path, folder: Folder, plan: Plan) -> None:
        self._path, self._folder, self._plan = path, folder, plan
        for name in ("replicas", "logs", "work", "tmp"):
            folder.make(name)
        self._status = Status(plan, folder, Identity.mine())
        self._timers = Timers()
        self._ending = self._read_ending()
        self._pool = LauncherPool(
            path, folder, plan, self._something_happened, ending=self._ending is not None
        )
        self._checks = PeriodicChecks(path, plan, folder, self._pool.handles, self._timers)
        self._undecided = True
        self._warned = False

    def run(self) -> None:
        """Until the end; of the job too when somebody removes its folder, as nobody could ever ask for it."""
        try:
            self._see_through()
        except OSError:
            if self._folder.exists(layout.PLAN):
                raise
            self._pool.disband()
            self._release_logs()

    def _see_through(self) -> None:
        self._folder.write(layout.SUPERVISOR, Identity.mine().dump(), durable=False)
        fault("supervisor.begun")
        if not self._folder.exists(layout.END):
            self._pool.recover()
            self._judge()
            self._show()
            self._pool.start()
            while not self._pool.over():
                self._do_what_is_due()
                self._pool.wait(self._timers.pause())
                if not self._folder.exists(layout.PLAN):
                    raise FileNotFoundError(self._path)
                self._judge()
        self._finish()

    def _something_happened(self) -> None:
        """A replica has started or ended."""
        self._undecided = True
        self._status.mark_changed()
        self._checks.expect()

    # --- deciding ---------------------------------------------------------------------------------------

    def _judge(self) -> None:
        """Let the counts decide, then whoever asked for the end."""
        if self._pool.over():
            return
        if self._undecided and self._ending is None:
            self._undecided = False
            decision = self._decision()
            if decision is not None:
                grace = self._plan.grace_s
                self._end(plan_ending(decision.state, decision.reason, now=time.monotonic(), grace_s=grace))
        self._obey_stop()

    def _decision(self) -> Decision | None:
        return decide(self._plan.roles, [ended for one in self._pool.handles if (ended := one.find_end())])

    def _obey_stop(self) -> None:
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
        self._end(stop if self._ending is None else self._ending.no_later_than(stop))

    def _end(self, decided: Ending) -> None:
        """Write the decision down, then have it carried out."""
        if decided == self._ending:
            return
        self._folder.write(layout.ENDING, decided.dump())
        self._ending = decided
        self._pool.ending = True
        self._status.mark_changed()
        fault("supervisor.decided")
        self._pool.poke()
        self._pool.give_up_waiting()
        fault("supervisor.ordered")

    def _read_ending(self) -> Ending | None:
        found = self._folder.read(layout.ENDING)
        return Ending.load(found) if found else None

    # --- in time ----------------------------------------------------------------------------------------

    def _do_what_is_due(self) -> None:
        now = time.monotonic()
        if self._timers.is_due("round", now):
            self._timers.at("round", now + ROUND_S)
            self._pool.look_around()
        self._mind_the_limit(now)
        self._mind_the_deadline(now)
        if self._checks.look(now):
            self._status.mark_changed()
        if self._ending is None and (reason := self._checks.excess(now)) is not None:
            grace = min(self._plan.grace_s, LONGEST_GRACE_S)
            self._end(plan_ending(State.FAILED, reason, now=now, grace_s=grace))
        due = self._status.find_due_time()
        if due is not None and due <= now:
            self._show()
        self._timers.at("status", self._status.find_due_time())

    def _mind_the_limit(self, now: float) -> None:
        """The longest running time counts from the first command's start; a warning may come before."""
        limit, warned = self._limit(), self._plan.warned
        if limit is None or self._ending is not None or (begun := self._first_start()) is None:
            return
        end_at = begun + limit
        if now >= end_at:
            reason = Reason(ReasonCode.TIME_LIMIT, {"limit_s": limit})
            self._end(plan_ending(State.STOPPED, reason, now=now, grace_s=self._plan.grace_s))
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
        fault("supervisor.warned")
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
        self._timers.at("limit", None)
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

    def _finish(self) -> None:
        """Nothing runs any more: say so, and give back what was held."""
        fault("supervisor.before_end")
        self._folder.publish(layout.END, self._final())
        fault("supervisor.ended")
        end = self._folder.read(layout.END)
        assert end is not None
        for one in self._pool.handles:
            one.look()
        self._checks.last_look()
        self._release_logs()
        attempt_network.remove(self._folder, self._plan)
        self._folder.remove(layout.SECRETS)
        (layout.Layout(self._path.parent.parent).live / self._plan.key).unlink(missing_ok=True)
        fault("supervisor.given_back")
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
