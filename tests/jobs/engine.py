"""An engine in memory that keeps the backend contract, and can be made to misbehave on demand.

Real engines are tested by the contract suite; this one stands in where the test is about the console:
a reply that gets lost, an engine that is away, a job that disappears and comes back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from jobs.backends import origins
from jobs.backends.base import (
    FailedRun,
    Gone,
    Handle,
    Inventory,
    LogSlice,
    LogState,
    NodeSeen,
    NotSubmitted,
    Observation,
    QueuedJob,
    Refused,
    ReplicaRef,
    ReplicaSeen,
    Submission,
    Unknown,
    Unreachable,
    Unseen,
)
from jobs.backends.measures import Use
from jobs.backends.origins import Origin
from jobs.states import Phase, Reason, ReasonCode, ReplicaState, State

NODE = NodeSeen("memory-1", 64_000, 256 * 1024, free_cpu_milli=64_000, free_memory_mib=256 * 1024)


@dataclass
class MemoryEngine:
    """`starts` counts how often each key was really started: the judge of "once"."""

    starts: dict[str, int] = field(default_factory=dict)
    jobs: dict[Handle, Observation] = field(default_factory=dict)
    submissions: dict[str, Submission] = field(default_factory=dict)
    stopped: list[Handle] = field(default_factory=list)
    orders: list[tuple[Handle, str, int]] = field(default_factory=list)
    restart_orders: list[tuple[str, int, int, bool]] = field(default_factory=list)
    forgotten: list[Handle] = field(default_factory=list)
    refusal: Reason | None = None
    full: bool = False
    lose_reply: bool = False
    lose_request: bool = False
    away: bool = False
    silent_of: dict[Handle, str] = field(default_factory=dict)
    listings: int = 0
    node: NodeSeen = NODE
    queue: tuple[QueuedJob, ...] | None = None
    uses: dict[Handle, tuple[Use, ...]] = field(default_factory=dict)
    has_scheduler: bool = False
    can_shrink: bool = False

    def find(self, keys: Sequence[str]) -> Mapping[str, Sequence[Handle]]:
        self._answer()
        return {key: [Handle(f"h-{key}")] if f"h-{key}" in self.jobs else [] for key in keys}

    def submit(self, submission: Submission) -> Handle:
        if self.refusal is not None:
            raise Refused(self.refusal)
        if self.full:
            raise NotSubmitted(Reason(ReasonCode.WAITING_CAPACITY))
        if self.lose_request:
            raise Unknown
        handle = Handle(f"h-{submission.key}")
        if handle not in self.jobs:
            self.starts[submission.key] = self.starts.get(submission.key, 0) + 1
            self.jobs[handle] = self._pending(submission)
            self.submissions[submission.key] = submission
        if self.lose_reply:
            raise Unknown
        return handle

    def _pending(self, submission: Submission) -> Observation:
        replicas = tuple(
            ReplicaSeen(role.name, index, ReplicaState.WAITING)
            for role in submission.spec.roles
            for index in range(role.replicas)
        )
        return Observation(
            State.PENDING, Reason(ReasonCode.STARTING), Phase.ENV_PREPARING, replicas, version="1"
        )

    def observe(self, handles: Sequence[Handle]) -> Mapping[Handle, Observation | Gone | Unseen]:
        self._answer()
        self.listings += 1
        untold = {handle: Unseen(why) for handle, why in self.silent_of.items()}
        known: dict[Handle, Observation | Gone | Unseen] = {**self.jobs, **untold}
        return {handle: known.get(handle, Gone.GONE) for handle in handles}

    def stop(self, handle: Handle, *, grace_s: int, signal: str) -> None:
        self._answer()
        self.stopped.append(handle)
        self.orders.append((handle, signal, grace_s))

    def order_restart(self, handle: Handle, replica: ReplicaRef, failed_run: int, *, restarts: bool) -> None:
        self._answer()
        self.restart_orders.append((replica.role, replica.index, failed_run, restarts))

    def read_log(self, handle: Handle, replica: ReplicaRef, cursor: str, limit: int) -> LogSlice:
        return LogSlice(b"", cursor, LogState.OPEN)

    def inventory(self) -> Inventory:
        self._answer()
        return Inventory((self.node,), jobs=self.queue)

    def forget(self, handle: Handle) -> None:
        self._answer()
        self.forgotten.append(handle)

    def list_live(self) -> Sequence[str]:
        self._answer()
        return [handle.removeprefix("h-") for handle in self.jobs]

    def read_origin(self, key: str) -> Origin | None:
        submission = self.submissions.get(key)
        if submission is None:
            return None
        return origins.parse(origins.render(submission), submission.secret_variables())

    def measure(self, handles: Sequence[Handle]) -> Mapping[Handle, Sequence[Use]]:
        self._answer()
        return {handle: self.uses[handle] for handle in handles if handle in self.uses}

    def _answer(self) -> None:
        if self.away:
            raise Unreachable("the engine does not answer")

    # --- what happens at the engine ---

    def run(self, handle: Handle, *, run: int = 1) -> None:
        """Every replica runs."""
        self._become(handle, State.RUNNING, ReasonCode.RUNNING, ReplicaState.RUNNING, run=run)

    def requeue(self, handle: Handle, run: int) -> None:
        """The engine puts it back into its own queue and counts a new run."""
        self._become(handle, State.PENDING, ReasonCode.ENGINE_QUEUE, ReplicaState.WAITING, run=run)

    def succeed(self, handle: Handle) -> None:
        """Every replica ends with 0."""
        self._become(handle, State.SUCCEEDED, ReasonCode.COMPLETED, ReplicaState.SUCCEEDED, exit_code=0)

    def fail(self, handle: Handle, code: ReasonCode = ReasonCode.EXIT_CODE, *, exit_code: int = 1) -> None:
        """Every replica ends with that exit code."""
        self._become(handle, State.FAILED, code, ReplicaState.FAILED, exit_code=exit_code)

    def fail_replica(self, handle: Handle, index: int, run: int, code: ReasonCode) -> None:
        """One replica fails for the `run`-th time, and waits for an order."""
        self.run(handle)
        old = self.jobs[handle]
        failed = FailedRun(run, Reason(code, {}))
        replicas = [
            replace(each, state=ReplicaState.WAITING, failed_run=failed)
            if each.index == index
            else replace(each, failed_run=None)
            for each in old.replicas
        ]
        self.jobs[handle] = replace(old, replicas=tuple(replicas))

    def end_stopped(self, handle: Handle) -> None:
        """The stop took effect."""
        self._become(handle, State.STOPPED, ReasonCode.USER_STOP, ReplicaState.STOPPED)

    def _become(
        self,
        handle: Handle,
        state: State,
        code: ReasonCode,
        replica_state: ReplicaState,
        *,
        exit_code: int | None = None,
        run: int | None = None,
    ) -> None:
        old = self.jobs[handle]
        self.jobs[handle] = replace(
            old,
            state=state,
            reason=Reason(code, {"exit_code": exit_code} if code is ReasonCode.EXIT_CODE else {}),
            phase=Phase.RUNNING,
            replicas=tuple(
                replace(r, state=replica_state, exit_code=exit_code, node="memory-1") for r in old.replicas
            ),
            run=run or old.run,
            version=str(int(old.version) + 1),
            started_at=old.started_at or 1_700_000_000.0,
        )


running = MemoryEngine()


def current(_config: object) -> MemoryEngine:
    """Return the engine of the running test, as the registry makes a backend."""
    return running
