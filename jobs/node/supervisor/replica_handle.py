"""The agent's handle of one replica: the content of its files, and a pidfd of its wrapper."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jobs.faults import fault
from jobs.node import processes
from jobs.node.files import Folder
from jobs.node.processes import Identity
from jobs.node.supervisor import layout, restart_lines
from jobs.node.supervisor.decision import Ended
from jobs.node.supervisor.plan import Plan, PlannedReplica
from jobs.node.wrapper import preparation_lock, replica_cleanup
from jobs.node.wrapper.launch_arguments import LaunchArguments, list_companions
from jobs.node.wrapper.log_times import LogTimes
from jobs.node.wrapper.log_writer import LogWriter, open_log
from jobs.node.wrapper.outcome import KILLED, Cause, Exit, now
from jobs.node.wrapper.wrapper import settle
from jobs.states import ReplicaState

if TYPE_CHECKING:  # which looks at what is handles
    from jobs.node.supervisor.port_monitor import Served


_RESTARTABLE: Final = frozenset({Cause.COMMAND, Cause.MEMORY})
"""Ends after which the command may be started again: it ran, and its wrapper saw how it ended."""


class ReplicaHandle:
    """`started`, `exit` and `step` are what the files say; `hold` is a pidfd of the wrapper while it lives.

    `run` counts the starts of its command from 1.  It is `held` once it has failed and waits for an order
    whether it is started again.  `step` is what is done before the start; `sanity` is the result of the check
    that its command begins with, None where there is none.
    """

    def __init__(self, plan: Plan, place: PlannedReplica, replicas: Folder) -> None:
        self.plan = plan
        self.place = place
        self.started: dict[str, Any] | None = None
        self.exit: Exit | None = None
        self.step: dict[str, Any] | None = None
        self.hold: int | None = None
        self.tries = 0
        self.served: tuple[Served, ...] = ()
        self.sanity: dict[str, Any] | None = None
        self.run = 1
        self.first_started: dict[str, Any] | None = None
        self._is_final = not plan.restarts_replicas
        self._replicas = replicas
        while replicas.exists(layout.earlier_run(place.name, self.run)):
            self._leave_run()
        self._identity: Identity | None = None
        self._launch: LaunchArguments | None = None

    @property
    def running(self) -> bool:
        """Tell whether its command was started and has not ended; one that never will be was not."""
        return self.started is not None and layout.NEVER not in self.started and self.exit is None

    @property
    def held(self) -> bool:
        """Tell whether it has failed and waits for an order whether it is started again."""
        if self._is_final or self.exit is None or self.exit.cause not in _RESTARTABLE:
            return False
        return Ended(self.place, self.exit).judge()[0] is ReplicaState.FAILED

    def find_end(self) -> Ended | None:
        """Its end, if it has come for good."""
        return Ended(self.place, self.exit) if self.exit and not self.held else None

    def make_final(self) -> None:
        """Let it be started no more once its command has ended."""
        self._is_final = True

    def began_at(self) -> float | None:
        """When its command was first started, in seconds since this boot; None when not in this boot."""
        first = self.first_started or self.started
        began = first and "mono" in first and first["boot"] == processes.boot_id()
        return first["mono"] if first and began else None

    def look(self) -> None:
        """Read what its files say now."""
        if self.started is None:
            self.started = self._replicas.read(f"{self.place.name}/{layout.STARTED}")
        found = self._replicas.read(f"{self.place.name}/{layout.EXIT}")
        self.exit = Exit.load(found) if found else None

    def has_news(self) -> bool:
        """Read its files; tell whether they report a new step, or the start of its command."""
        if self.started is not None:
            return False
        before = self.step
        self.look()
        self.step = self._replicas.read(f"{self.place.name}/{layout.STEP}")
        return self.step != before or self.started is not None

    def adopt(self) -> bool:
        """Take hold of the wrapper that started the command, or is about to; False when none is alive."""
        self._let_go()
        for found in self._candidates():
            self._identity = Identity.load({name: found[name] for name in ("pid", "start", "boot")})
            self.hold = self._identity.hold()
            if self.hold is not None:
                return True
        return False

    def _candidates(self) -> Iterator[dict[str, Any]]:
        """Yield the possible wrappers: of two that met, first the one that holds the preparation lock."""
        if self.started is not None:
            if layout.NEVER not in self.started:
                yield self.started
            return
        names = (f"{self.place.name}/{name}" for name in (layout.TURN, layout.WRAPPER))
        yield from filter(None, map(self._replicas.read, names))

    def take(self, pid: int, launch: LaunchArguments) -> None:
        """Hold a wrapper that was just sent out, and the end from which it reads the replica's output."""
        self._close_output()
        os.close(launch.output.writer)
        self._launch = launch
        self.tries += 1
        self._identity = Identity.of(pid)
        self.hold = self._identity.hold() if self._identity else None

    @staticmethod
    def drop(launch: LaunchArguments) -> None:
        """Close the pipe of a wrapper that was not sent out."""
        for fd in launch.output:
            os.close(fd)

    def close(self) -> None:
        """Close what is open; the wrapper goes on."""
        self._let_go()
        self._close_output()

    def poke(self) -> None:
        """Have the wrapper look at its orders; also thaws it."""
        if self.hold is not None:
            processes.send(self.hold, processes.POKE)

    def thaw(self) -> None:
        """Wake the wrapper if somebody froze it."""
        if self._identity is not None and self._identity.state() == processes.STOPPED:
            self.poke()

    def kill(self) -> None:
        """Kill the wrapper, and with it the replica."""
        if self.hold is not None:
            processes.send(self.hold, processes.KILL)

    def settle(self, cause: Cause, *, detail: str = "") -> bool:
        """End it without ever starting it; False when a wrapper was faster."""
        with self._replicas.sub(self.place.name) as folder:
            done = settle(folder, cause, detail=detail)
        self.look()
        return done

    def bury(self, *, ending: bool) -> None:
        """The wrapper is gone: end what it left, and write how the replica ended if it did not.

        `ending` says that it had been decided that the attempt ends.
        """
        self._let_go()
        self.look()
        if self.exit is None and self.started is not None:
            replica_cleanup.kill_all(self.plan, self.place)
            self._keep_output()
            with self._replicas.sub(self.place.name) as folder:
                folder.write(layout.EXIT, self._exit_of_lost(self.started, ending=ending).dump())
            self.look()
        self._close_output()
        beside = (f"{layout.ENV}.{name}" for name in list_companions(self.plan, self.place))
        for name in (layout.ENV, layout.LOGIN, *beside):
            self._replicas.remove(f"{self.place.name}/{name}")
        replica_cleanup.remove_groups(self.plan, self.place)

    def begin_next_run(self, log: Path) -> None:
        """Put the files of its failed run away at one instant, so that a wrapper starts its command anew.

        The log goes on, with a line that says so; its other folders are made anew.
        """
        replica_cleanup.kill_all(self.plan, self.place)
        replica_cleanup.remove_groups(self.plan, self.place)
        restart_lines.append(log, self.run + 1)
        fault("agent.before_restart")
        self._replicas.rename(self.place.name, layout.earlier_run(self.place.name, self.run))
        fault("agent.after_restart")
        self._leave_run()

    def _leave_run(self) -> None:
        """Count a run that failed, whose files have been put away."""
        if self.first_started is None:
            earlier = f"{layout.earlier_run(self.place.name, self.run)}/{layout.STARTED}"
            self.first_started = self._replicas.read(earlier)
        self.run += 1
        self.started, self.exit, self.step, self.tries = None, None, None, 0

    def clear_leftovers(self) -> None:
        """End what a wrapper left that was killed while it prepared something; nothing while one does."""
        with self._replicas.sub(self.place.name) as folder:
            if folder.exists(layout.STEP) and preparation_lock.is_free(folder):
                replica_cleanup.kill_all(self.plan, self.place)
                self._keep_output()
                replica_cleanup.remove_groups(self.plan, self.place)

    def clear_away(self) -> None:
        """Wait for the end of a killed wrapper, and end what it left."""
        if self.hold is not None:
            processes.wait(self.hold)
        replica_cleanup.kill_all(self.plan, self.place)
        replica_cleanup.remove_groups(self.plan, self.place)

    def _exit_of_lost(self, started: dict[str, Any], *, ending: bool) -> Exit:
        if layout.NEVER in started:
            return now(Cause.NOT_STARTED)
        cause = Cause.TOLD if ending else Cause.LOST
        if not ending and started["boot"] != processes.boot_id():
            cause = Cause.RESTART
        code = None if cause is Cause.RESTART else KILLED
        return now(cause, started_at=started["at"], code=code)

    def _keep_output(self) -> None:
        """Add to the log what the replica wrote and its wrapper, which is dead, has not moved there."""
        if self._launch is not None:
            file, times = open_log(self._launch.log), LogTimes(self._launch.log)
            LogWriter(file, self._launch.log_limits, self._launch.output, times).finish()
            os.close(file)
            times.close()

    def _close_output(self) -> None:
        if self._launch is not None:
            os.close(self._launch.output.reader)
            self._launch = None

    def _let_go(self) -> None:
        if self.hold is not None:
            os.close(self.hold)
            self.hold = None
