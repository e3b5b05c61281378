"""A running replica: its wrapper and its processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jobs.node.files import Folder
from jobs.node.process_trees import ProcessTable
from jobs.node.processes import Identity
from jobs.node.sandbox import engine
from jobs.node.sandbox.isolation import Isolation
from jobs.node.supervisor import layout
from jobs.node.supervisor.plan import Plan, PlannedReplica
from jobs.node.wrapper import environment, replica_cleanup
from jobs.node.wrapper.launch_arguments import LaunchArguments, group_name, list_companions

ENDED: Final = (layout.OVER, layout.EXIT)
"""The command of a replica that has one of these files has ended."""


class ReplicaUnavailable(Exception):
    """The replica cannot be entered; `barrier` is one of `jobs.backends.sessions.Barrier`."""

    def __init__(self, barrier: str, detail: str = "") -> None:
        super().__init__(barrier, detail)
        self.barrier, self.detail = barrier, detail


@dataclass(frozen=True, slots=True)
class RunningReplica:
    """`wrapper` is who looks after it, `first` a process that it consists of, `limits` how it is limited."""

    launch: LaunchArguments
    wrapper: Identity
    first: int
    limits: str

    @property
    def alone(self) -> bool:
        """Tell whether it has a PID namespace of its own, and with it a file system."""
        return self.launch.contained or self.launch.mode is not Isolation.NONE

    def container(self) -> tuple[engine.Engine, str]:
        """The engine that has its container, and what that is called."""
        launch = self.launch
        return engine.Engine(launch.plan.house.engine), group_name(launch.plan, launch.place)

    def pids(self, table: ProcessTable) -> list[int]:
        """Every process in it, those of sessions too."""
        if self.launch.contained and list_companions(self.launch.plan, self.launch.place):
            return [*table.in_space_of(self.first), *table.list_below(self.wrapper.pid)]
        if self.alone:
            return table.in_space_of(self.first)
        return list(replica_cleanup.find_marked(environment.mark(self.launch.plan, self.launch.place)))


def find_running(path: Path, role: str, index: int) -> RunningReplica:
    """The replica of the attempt at `path`.  Raises Shut when it is not running, or OSError."""
    with Folder.open(path) as folder:
        found = folder.read(layout.PLAN)
        plan = Plan.load(found) if found else None
        place = plan.replica(role, index) if plan else None
        if plan is None or place is None:
            raise ReplicaUnavailable("not_running")
        started = _read_started(folder, place)
        secrets = folder.read(layout.SECRETS) or {}
        told = environment.split_by_size(environment.peers(plan))[0]
        launch = LaunchArguments(plan, place, path, folder, told, secrets, -1)
        return _replica(launch, started, ProcessTable())


def list_running(path: Path, plan: Plan, table: ProcessTable) -> Iterator[RunningReplica]:
    """Yield the running replicas of the attempt at `path`, to be looked at and not to be entered.

    Raises OSError.
    """
    with Folder.open(path) as folder:
        for place in plan.replicas():
            launch = LaunchArguments(plan, place, path, folder, {}, {}, -1)
            with suppress(ReplicaUnavailable):  # it has ended meanwhile, or does not run yet
                yield _replica(launch, _read_started(folder, place), table)


def _read_started(folder: Folder, place: PlannedReplica) -> Mapping[str, Any]:
    """Return what the wrapper wrote of a replica when it started.  Raises ReplicaUnavailable."""
    started = folder.read(f"replicas/{place.name}/{layout.STARTED}")
    ended = any(folder.exists(f"replicas/{place.name}/{name}") for name in ENDED)
    if started is None or ended or layout.NEVER in started:
        raise ReplicaUnavailable("not_running")
    return started


def _replica(launch: LaunchArguments, started: Mapping[str, Any], table: ProcessTable) -> RunningReplica:
    wrapper = Identity.load({name: started[name] for name in ("pid", "start", "boot")})
    first: int | None
    if launch.contained:
        first = engine.Engine(launch.plan.house.engine).first_process(group_name(launch.plan, launch.place))
    else:
        first = min(table.children_of(wrapper.pid), default=None)
    if not first or not wrapper.alive():
        raise ReplicaUnavailable("not_running")
    return RunningReplica(launch, wrapper, first, started["limits"])
