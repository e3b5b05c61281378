"""The local backend: jobs as processes of this machine."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from jobs.backends import origins
from jobs.backends.base import (
    PROGRAMS,
    DryRunCheck,
    Gone,
    Handle,
    Inventory,
    LogSlice,
    LogState,
    NodeSeen,
    Observation,
    RenderedJob,
    ReplicaRef,
    Submission,
    Unknown,
    Unreachable,
)
from jobs.backends.local import (
    accept,
    allocations,
    connections,
    dry_run,
    gpus,
    kernel_log,
    launch,
    machine,
    observe,
    preview,
    session,
    usage,
)
from jobs.backends.local.config import LocalConfig
from jobs.backends.local.observe import AttemptView
from jobs.backends.measures import KernelLog, Use
from jobs.backends.origins import Origin
from jobs.backends.sessions import Barrier, NoEntry, Session, SessionRequest
from jobs.backends.staging import job_secrets
from jobs.backends.staging.mounts import MountPlanner
from jobs.faults import fault
from jobs.node import files, processes
from jobs.node.files import Folder
from jobs.node.sandbox.isolation import Isolation
from jobs.node.staging import upload_unpacker
from jobs.node.supervisor import checkpoints, layout
from jobs.node.supervisor.checkpoints import Checkpoint
from jobs.node.supervisor.layout import Layout, UnknownAttemptKey
from jobs.node.supervisor.plan import Plan, UnknownFormat


class LocalBackend:
    """Runs attempts as they are described in `layout`; keeps nothing in memory."""

    has_scheduler: Final = False
    can_shrink: Final = False

    def __init__(self, config: LocalConfig) -> None:
        self._config = config
        self._layout = Layout(config.root)

    def isolation(self) -> Isolation:
        """Return the isolation between jobs and everything else on this machine."""
        return self._config.isolation or machine.detect_isolation(self._config.python)

    def find(self, keys: Sequence[str]) -> Mapping[str, Sequence[Handle]]:
        """An attempt exists once its plan does; it is looked after from then on."""
        return {key: [Handle(key)] if seen else [] for key, seen in self._look(keys).items()}

    def submit(self, submission: Submission) -> Handle:
        """Plan the attempt under the lock, unless it is planned already, and tell the agent."""
        runtime = self._means(submission)
        attempt = self._layout.attempt(submission.key)
        if not (attempt / layout.PLAN).exists():
            layer = accept.refuse_impossible(submission, self._config, runtime)
            self._accept_once(submission, attempt, runtime, layer)
        with contextlib.suppress(OSError):  # accepted is accepted: whoever looks next tries again
            launch.tend(self._config.root, self._config.python, [submission.key])
        fault("local.launched")
        return Handle(submission.key)

    def render(self, submission: Submission) -> RenderedJob:
        """The plan as it would be made, with what is chosen at the start left open."""
        attempt = self._layout.attempt(submission.key)
        return preview.render(submission, self._config, self._means(submission), attempt)

    def dry_run(self, submission: Submission) -> Sequence[DryRunCheck]:
        """Run every check of a submission, and hold or start nothing."""
        return list(dry_run.run_checks(submission, self._config, self._means(submission), self._layout))

    def _means(self, submission: Submission) -> accept.JobRuntime:
        contained = any(role.image for role in submission.spec.roles)
        isolation, command = self.isolation(), self._config.find_engine().command if contained else ()
        self._config.check_network(isolation)
        return accept.JobRuntime(isolation, command, self._config.has_own_network(isolation, command))

    def _accept_once(
        self, submission: Submission, attempt: Path, runtime: accept.JobRuntime, layer: MountPlanner
    ) -> None:
        fault("local.before_lock")
        try:
            with allocations.hold_lock(self._layout):
                fault("local.locked")
                self._accept(submission, attempt, runtime, layer)
        except allocations.Busy as error:
            raise Unknown("another submitter does not finish") from error
        except OSError as error:
            raise Unknown(str(error)) from error

    def _accept(
        self, submission: Submission, attempt: Path, runtime: accept.JobRuntime, layer: MountPlanner
    ) -> None:
        key = submission.key
        if (attempt / layout.PLAN).exists() or allocations.is_forgotten(self._layout, key):
            return
        accept.check_disk(self._config)
        allocations.remove_released(self._layout)
        held = allocations.sum_held(self._layout, besides=key)
        made = accept.plan(submission, self._config, runtime, layer, held)
        secrets = job_secrets.secrets_of(submission, self._config.code(), layer)
        job_secrets.add_key(secrets, submission.spec)
        attempt.mkdir(mode=0o700, parents=True, exist_ok=True)
        with Folder.open(attempt) as folder:
            folder.write(layout.SECRETS, secrets)
            folder.write(origins.FILE, origins.render(submission))
            if used := {code.tree for code in made.codes if code.tree}:
                upload_unpacker.write_notes(attempt, {tree: submission.uploads[tree] for tree in used})
            allocations.hold(self._layout, key, accept.allocation_of(made))
            fault("local.claimed")
            folder.write(layout.LIMITS, made.limits())
            folder.publish(layout.PLAN, made.dump())
        fault("local.accepted")

    def observe(self, handles: Sequence[Handle]) -> Mapping[Handle, Observation | Gone]:
        """Return what the agent wrote last.

        Raises Unreachable when that can't be read, or when there is no agent and none can be started.
        """
        try:
            seen = self._look(handles)
            return {handle: seen[handle] or Gone.GONE for handle in handles}
        except (OSError, UnknownFormat) as error:
            raise Unreachable(repr(error)) from error

    def _look(self, keys: Sequence[str]) -> Mapping[str, Observation | None]:
        """Look at attempts, and see that the agent looks after those that live."""
        views = {key: self._view(key) for key in keys}
        live = {key: view.writer for key, view in views.items() if view is not None and not view.over}
        if live:
            root, python = self._config.root, self._config.python
            agent = launch.ensure_agent(root, python)
            launch.tend(root, python, [key for key, writer in live.items() if writer != agent])
        return {key: view.observation if view is not None else None for key, view in views.items()}

    def _view(self, key: str) -> AttemptView | None:
        try:
            return observe.look(self._layout.attempt(key))
        except UnknownAttemptKey:
            return None

    def stop(self, handle: Handle, *, grace_s: int, signal: str) -> None:
        """Record the request and tell the agent; the earlier of two deadlines stays."""
        attempt = self._layout.attempt(handle)
        if not (attempt / layout.PLAN).exists() or (attempt / layout.END).exists():
            return
        now = time.monotonic()
        wish = {"signal": signal, "grace_s": grace_s, "at": now, "boot": processes.boot_id()}
        before = files.read(attempt / layout.STOP)
        if (
            before is None
            or before["boot"] != wish["boot"]
            or before["at"] + before["grace_s"] > now + grace_s
        ):
            with Folder.open(attempt) as folder:
                folder.write(layout.STOP, wish)
        fault("local.stop_written")
        with contextlib.suppress(OSError):  # it is written: whoever looks next tries again
            launch.tend(self._config.root, self._config.python, [handle])

    def extend(self, handle: Handle, limit_s: int) -> None:
        """Write the new limit down and tell the agent, which counts by it from then on."""
        attempt = self._layout.attempt(handle)
        if not (attempt / layout.PLAN).exists() or (attempt / layout.END).exists():
            return
        try:
            with Folder.open(attempt) as folder:
                folder.write(layout.EXTENSION, {"limit_s": limit_s})
            launch.tend(self._config.root, self._config.python, [handle])
        except OSError as error:
            raise Unreachable(str(error)) from error

    def order_restart(self, handle: Handle, replica: ReplicaRef, failed_run: int, *, restarts: bool) -> None:
        """Write the order down, unless there is one, and tell the agent."""
        attempt = self._layout.attempt(handle)
        plan = Plan.read(attempt)
        place = plan.replica(replica.role, replica.index) if plan else None
        if place is None or (attempt / layout.END).exists():
            return
        try:
            with Folder.open(attempt) as folder:
                folder.publish(layout.restart_order(place.name, failed_run), {"restarts": restarts})
            launch.tend(self._config.root, self._config.python, [handle])
        except OSError as error:
            raise Unreachable(str(error)) from error

    def find_checkpoint(self, handle: Handle) -> Checkpoint | None:
        """Return the newest complete one in the job's folder for checkpoints."""
        return checkpoints.find_newest(checkpoints.folder_of(self._layout.attempt(handle)))

    def read_log(self, handle: Handle, replica: ReplicaRef, cursor: str, limit: int) -> LogSlice:
        """From the file in which the job's own output lies; there is only the first run."""
        if replica.run != 1:
            return LogSlice(b"", cursor, LogState.GONE)
        return observe.read_log(self._layout.attempt(handle), replica.role, replica.index, cursor, limit)

    def inventory(self) -> Inventory:
        """This machine, less what live attempts hold.

        Raises Unreachable where it can't isolate jobs as its settings say.
        """
        self._config.check_network(self.isolation())
        total, held = self._config.total(), allocations.sum_held(self._layout)
        node = NodeSeen(
            name=self._config.node,
            cpu_milli=total.cpu_milli,
            memory_mib=total.memory_mib,
            gpus=total.gpus,
            free_cpu_milli=max(0, total.cpu_milli - held.cpu_milli),
            free_memory_mib=max(0, total.memory_mib - held.memory_mib),
            free_gpus=tuple(gpu.index for gpu in total.gpus if gpu.index not in held.gpus),
            programs=machine.find_programs(PROGRAMS, self._config.path, self.isolation(), self._config.hide),
        )
        return Inventory((node,), facilities=self._config.facilities(self._config.find_engine()))

    def list_live(self) -> Sequence[str]:
        """Those that hold something of this machine."""
        return allocations.list_live(self._layout)

    def read_origin(self, key: str) -> Origin | None:
        """From the attempt's folder; attempts of earlier releases have no record."""
        try:
            attempt = self._layout.attempt(key)
        except UnknownAttemptKey:
            return None
        record, secrets = files.read(attempt / origins.FILE), files.read(attempt / layout.SECRETS) or {}
        if record is None:
            return None
        variables = secrets.pop("env", {})
        return origins.parse(record, variables, tuple(_texts(secrets)))

    def forget(self, handle: Handle) -> None:
        """Remove the attempt's folder, and containers that were kept; Unreachable while it has not ended."""
        attempt = self._layout.attempt(handle)
        if (attempt / layout.PLAN).exists() and not (attempt / layout.END).exists():
            raise Unreachable(f"{handle} has not ended")
        allocations.record_removal(self._layout, handle)
        allocations.remove_containers(attempt)
        allocations.remove_attempt(attempt)

    async def exec(self, handle: Handle, replica: ReplicaRef, wanted: SessionRequest) -> Session:
        """Start a helper, which enters the replica."""
        return await session.begin(self._find_attempt(handle, replica), self._config.python, replica, wanted)

    async def connect(self, handle: Handle, replica: ReplicaRef, host: str, port: int) -> socket.socket:
        """In the replica's own network, or to a port of this machine on which the replica listens."""
        self._find_attempt(handle, replica)
        return await connections.connect(self._layout, handle, replica, host, port)

    def _find_attempt(self, handle: Handle, replica: ReplicaRef) -> Path:
        if replica.run != 1:  # there is only the first
            raise NoEntry(Barrier.NOT_RUNNING)
        return self._layout.attempt(handle)

    def measure(self, handles: Sequence[Handle]) -> Mapping[Handle, Sequence[Use]]:
        """By the replicas' processes and the driver of the GPUs."""
        paths = {self._layout.attempt(handle): handle for handle in handles}
        try:
            with gpus.open_reader() as reader:
                return {paths[path]: uses for path, uses in usage.uses(list(paths), reader)}
        except (OSError, UnknownFormat) as error:
            raise Unreachable(repr(error)) from error

    def read_kernel_log(self, node: str) -> KernelLog:
        """Of this machine, the only node."""
        return kernel_log.read()

    def bell(self) -> Path | None:
        """Touched by the agent, and by nobody else."""
        return self._config.bell


def _texts(value: object) -> Iterator[str]:
    """Yield every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


BACKEND: Final = LocalBackend
