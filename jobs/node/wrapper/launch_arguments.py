"""Launch arguments of a wrapper."""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jobs.node import files
from jobs.node.files import Folder
from jobs.node.network.namespaces import Router
from jobs.node.processes import Identity
from jobs.node.sandbox.isolation import Isolation
from jobs.node.staging import mount_paths
from jobs.node.supervisor import checkpoints, layout
from jobs.node.supervisor.decision import Ending
from jobs.node.supervisor.plan import ContainerPlan, Plan, PlannedReplica, TensorBoardPlan
from jobs.node.wrapper import attempt_files, environment, tensorboard
from jobs.node.wrapper.environment import ReplicaPaths
from jobs.node.wrapper.log_writer import NO_PIPE, Limits, Pipe

NEWS: Final = struct.Struct("II")
"""What a wrapper writes to the agent when there is news of its replica: the attempt's number there, and the
replica's position.
"""


@dataclass(frozen=True, slots=True)
class LaunchArguments:
    """One replica of a plan.

    `told` is what is said of all replicas, the same for each; `secrets` is what `layout.SECRETS` holds;
    `news` is a pipe to the agent, which knows the attempt by the number `attempt`; `output` is what
    the replica writes into; `router` is the attempt's own network, which only wrappers have.
    """

    plan: Plan
    place: PlannedReplica
    path: Path
    folder: Folder
    told: Mapping[str, str]
    secrets: Mapping[str, Any]
    news: int
    attempt: int = 0
    output: Pipe = NO_PIPE
    router: Router | None = None

    @property
    def contained(self) -> bool:
        """Tell whether the replica runs in a container."""
        return is_contained(self.plan, self.place)

    @property
    def mode(self) -> Isolation:
        """The isolation that the wrapper itself sees to; a container has the engine's."""
        return Isolation.NONE if self.contained else Isolation(self.plan.house.isolation)

    @property
    def registry(self) -> Mapping[str, str]:
        """The login for the image registry; empty when none was given."""
        return self.secrets.get("registry") or {}

    @property
    def tensorboard(self) -> TensorBoardPlan | None:
        """The TensorBoard beside this replica, if it is the one that has it."""
        board = self.plan.tensorboard
        return board if board and board.position == self.place.position else None

    def room(self) -> ReplicaPaths:
        """Return the paths that the replica sees."""
        return room_of(self.plan, self.place, self.path)

    def environment(self, room: ReplicaPaths) -> dict[str, str]:
        """The replica's whole environment."""
        told = {**self.told, **self._resumed_variables()}
        return environment.build(self.plan, self.place, told, room, self.secrets.get("env", {}))

    def _resumed_variables(self) -> dict[str, str]:
        """Return the variable that names the checkpoint to resume from, if there is one."""
        found = self.folder.read(layout.RESUMED)
        folder = self.plan.env.get(checkpoints.VARIABLE)
        return {checkpoints.RESUME_VARIABLE: f"{folder}/{found['name']}"} if found else {}

    def container_environment(self, container: ContainerPlan, room: ReplicaPaths) -> dict[str, str]:
        """Return the replica's environment with that of a container besides it, which has no GPU."""
        own = {**container.env, **self._secrets_of(container)}
        own = {name: value for name, value in own.items() if name not in environment.FIXED}
        return {**self.environment(room), **own, **environment.companion_variables(container.name)}

    def _secrets_of(self, container: ContainerPlan) -> Mapping[str, str]:
        found = self.secrets.get("containers", {}).get(self.place.role.name, {}).get(container.name, {})
        return {str(name): str(value) for name, value in found.items()}

    def mark_variables(self) -> dict[str, str]:
        """Return the variable that marks the processes that prepare the replica."""
        return {environment.MARK: environment.mark(self.plan, self.place)}

    @property
    def owner(self) -> tuple[int, int]:
        """The user and group id of the job."""
        return self.plan.uid, self.plan.gid

    @property
    def log(self) -> Path:
        """The file of the replica's log."""
        return self.file("logs", ".output")

    @property
    def log_limits(self) -> Limits:
        """Return the limits of the replica's log."""
        house = self.plan.house
        return Limits(house.log_mib << 20, house.log_mib_s << 20, house.keep_free_mib << 20)

    def tell(self, doing: Mapping[str, str]) -> None:
        """Say what is being done for the replica before its command."""
        with self.folder.sub("replicas") as replicas, replicas.sub(self.place.name) as mine:
            mine.write(layout.STEP, dict(doing), durable=False)
        self.announce()

    def announce(self) -> None:
        """Have the agent look at the replica's files."""
        with contextlib.suppress(OSError):  # full, or the agent is away: it will look by itself
            os.write(self.news, NEWS.pack(self.attempt, self.place.position))

    def pin_to_cores(self) -> None:
        """Pin the calling child to the replica's cores, if it has some.

        Where they have been taken away from the machine since, it runs on any.
        """
        if self.place.slot.cores:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, self.place.slot.cores)

    def file(self, kind: str, suffix: str = "") -> Path:
        """The replica's own file or folder of a kind (`work`, `logs` …)."""
        return self.path / kind / f"{self.place.name}{suffix}"

    def sessions(self) -> list[int]:
        """The leaders of sessions beside a replica that has no namespace to find them by."""
        notes = (files.read(path) for path in (self.file("replicas") / layout.SESSIONS).glob("*"))
        leaders = (Identity.load(note) for note in notes if note)
        return [leader.pid for leader in leaders if leader.alive()]

    def read_warning(self) -> str | None:
        """The signal the supervisor has the replicas warned with."""
        found = self.folder.read(layout.WARNING)
        return str(found["signal"]) if found else None

    def read_ending(self) -> Ending | None:
        """How the supervisor has decided that the attempt ends."""
        found = self.folder.read(layout.ENDING)
        return Ending.load(found) if found else None


def is_contained(plan: Plan, place: PlannedReplica) -> bool:
    """Tell whether a replica runs in a container."""
    return bool(place.role.image and plan.house.engine)


def room_of(plan: Plan, place: PlannedReplica, path: Path) -> ReplicaPaths:
    """Return the paths that a replica of the attempt at `path` sees."""
    peers, contained = path / layout.PEERS, is_contained(plan, place)
    if not contained and Isolation(plan.house.isolation) is Isolation.NONE:
        told = str(peers) if peers.exists() else ""
        work, tmp = (str(path / kind / place.name) for kind in ("work", "tmp"))
        return ReplicaPaths(work, tmp, told, str(path / layout.BIN))
    told = f"{mount_paths.CONSOLE_FOLDER}/{layout.PEERS}" if peers.exists() else ""
    if contained:
        return ReplicaPaths(mount_paths.WORK, "", told)
    return ReplicaPaths(mount_paths.WORK, mount_paths.TMP, told, attempt_files.FOLDER)


def group_name(plan: Plan, place: PlannedReplica) -> str:
    """Return the name of a replica's control groups, and of its container."""
    return f"{plan.key}.{place.name}"


def companion_name(plan: Plan, place: PlannedReplica, companion: str) -> str:
    """Return the name of a companion's control groups, and of its container."""
    return f"{group_name(plan, place)}.{companion}"


def list_companions(plan: Plan, place: PlannedReplica) -> list[str]:
    """Return those names of everything that runs beside the replica's command."""
    board = plan.tensorboard
    names = [tensorboard.NAME] if board and board.position == place.position else []
    names += [sidecar.name for sidecar in place.role.sidecars]
    return [companion_name(plan, place, name) for name in names]


def setup_name(plan: Plan, place: PlannedReplica) -> str:
    """Return the name of the container that installs packages before the replica's own."""
    return f"{group_name(plan, place)}.setup"


def list_setup(plan: Plan, place: PlannedReplica) -> list[str]:
    """Return the names of all containers for steps before the replica's own."""
    names = [companion_name(plan, place, each.name) for each in place.role.init_containers]
    return [setup_name(plan, place), *names] if plan.packages is not None else names
