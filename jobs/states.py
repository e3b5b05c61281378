"""The job's life: states, phases, reasons, and the tables that say what may follow what.

Pure data and pure functions, shared by the local supervisor, the reconciler and the pages, so that
all three come to the same verdict about the same replicas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias


class State(StrEnum):
    """State of a job.  Stored; names are also the native API's."""

    QUEUED = "QUEUED"
    SUBMITTING = "SUBMITTING"
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    STOPPED = "STOPPED"
    LOST = "LOST"


class ReplicaState(StrEnum):
    """State of one replica."""

    WAITING = "WAITING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    STOPPED = "STOPPED"


class Phase(StrEnum):
    """A refinement of the state for people and for the vendors' APIs."""

    CREATING = "Creating"
    QUEUING = "Queuing"
    BIDDING = "Bidding"
    ENV_PREPARING = "EnvPreparing"
    SANITY_CHECKING = "SanityChecking"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    STOPPING = "Stopping"
    SUCCEEDED_RESERVING = "SucceededReserving"
    FAILED_RESERVING = "FailedReserving"
    ENDED = "Ended"


TERMINAL: Final = frozenset({State.SUCCEEDED, State.FAILED, State.STOPPED, State.LOST})
FINAL: Final = TERMINAL - {State.LOST}
LIVE: Final = frozenset({State.SUBMITTING, State.PENDING, State.RUNNING})
REPLICA_TERMINAL: Final = frozenset({ReplicaState.SUCCEEDED, ReplicaState.FAILED, ReplicaState.STOPPED})

TRANSITIONS: Final[Mapping[State, frozenset[State]]] = MappingProxyType(
    {
        State.QUEUED: frozenset({State.SUBMITTING, State.STOPPED, State.FAILED}),
        State.SUBMITTING: frozenset(
            {State.PENDING, State.RUNNING, State.QUEUED, State.LOST} | FINAL,
        ),
        State.PENDING: frozenset({State.RUNNING, State.QUEUED} | TERMINAL),
        State.RUNNING: frozenset({State.PENDING, State.QUEUED} | TERMINAL),
        State.LOST: frozenset(FINAL | {State.RUNNING, State.PENDING}),
        State.SUCCEEDED: frozenset(),
        State.FAILED: frozenset(),
        State.STOPPED: frozenset(),
    }
)
"""The allowed transitions.  A fast job is first seen ended, so SUBMITTING reaches every end; RUNNING and
PENDING go back to QUEUED for an automatic new attempt; a LOST job that reappears is adopted or ended."""


class EndKind(StrEnum):
    """Reason to end an attempt (the intent, never the observed fact)."""

    USER_STOP = "user_stop"
    ADMIN_STOP = "admin_stop"
    TIME_LIMIT = "time_limit"
    PREEMPTION = "preemption"
    DRAIN = "drain"
    REQUEUE = "requeue"
    GROWTH = "growth"
    IDLE = "idle"
    EARLY_STOP = "early_stop"
    FAULT = "fault"
    COMPLETION = "completion"


class Retry(StrEnum):
    """Effect of an end on the retry limit (OpenPAI's fancyRetryPolicy)."""

    NEVER = "never"
    TRANSIENT = "transient"
    COUNTED = "counted"


class ReasonCode(StrEnum):
    """Reason of a job's state.  The sentence is made in `jobs.messages`."""

    # waiting
    NEW = "new"
    WAITING_TURN = "waiting_turn"
    WAITING_QUOTA = "waiting_quota"
    WAITING_QUOTA_TURN = "waiting_quota_turn"
    WAITING_PERSON = "waiting_person"
    WAITING_HOURS = "waiting_hours"
    WAITING_CAPACITY = "waiting_capacity"
    WAITING_COMING = "waiting_coming"
    WAITING_IDLE = "waiting_idle"
    OUTBID = "outbid"
    ENGINE_FULL = "engine_full"
    HELD = "held"
    WAITING_OTHERS = "waiting_others"
    NOT_YET = "not_yet"
    FROZEN = "frozen"
    MAINTENANCE = "maintenance"
    EXCEEDS_QUOTA = "exceeds_quota"
    EXCEEDS_CLUSTER = "exceeds_cluster"
    NO_SUCH_GPU = "no_such_gpu"
    NO_SUCH_NODE = "no_such_node"
    DISK_LOW = "disk_low"
    CLUSTER_AWAY = "cluster_away"
    NOT_SENT = "not_sent"
    RETRYING = "retrying"
    SENDING = "sending"
    UNCONFIRMED = "unconfirmed"
    STARTING = "starting"
    RUNNING = "running"
    ENGINE_QUEUE = "engine_queue"
    # ended
    COMPLETED = "completed"
    COMPLETED_WITH_FAILURES = "completed_with_failures"
    EXIT_CODE = "exit_code"
    SIGNALLED = "signalled"
    OUT_OF_MEMORY = "out_of_memory"
    TIME_LIMIT = "time_limit"
    USER_STOP = "user_stop"
    ADMIN_STOP = "admin_stop"
    PREEMPTED = "preempted"
    DRAINED = "drained"
    REQUEUED = "requeued"
    GROWTH = "growth"
    IDLE = "idle"
    EARLY_STOP = "early_stop"
    HANG = "hang"
    LOG_PATTERN = "log_pattern"
    AFTER_NEVER = "after_never"
    REFUSED = "refused"
    START_FAILED = "start_failed"
    IMAGE_FAILED = "image_failed"
    MOUNT_FAILED = "mount_failed"
    CODE_FAILED = "code_failed"
    REQUIREMENTS_FAILED = "requirements_failed"
    INIT_CONTAINER_FAILED = "init_container_failed"
    SANITY_CHECK_FAILED = "sanity_check_failed"
    PORT_CONFLICT = "port_conflict"
    TOO_MANY_PORTS = "too_many_ports"
    FOLDER_TOO_LARGE = "folder_too_large"
    WRAPPER_LOST = "wrapper_lost"
    MACHINE_RESTARTED = "machine_restarted"
    NODE_LOST = "node_lost"
    LOST = "lost"
    SETTLED_SUCCEEDED = "settled_succeeded"
    SETTLED_FAILED = "settled_failed"
    SETTLED_STOPPED = "settled_stopped"
    # replicas only
    JOB_ENDED = "job_ended"


Params: TypeAlias = Mapping[str, str | int | None]


class PortSource(StrEnum):
    """Origin of a replica's port: requested by the job file, announced by the job, or found to listen."""

    ASKED = "asked"
    ANNOUNCED = "announced"
    FOUND = "found"


class Unready(StrEnum):
    """Reason that a port is not ready.  OTHER_PORT and OTHER_ADDRESS say where the job listens."""

    WAITING = "waiting"
    ENDED = "ended"
    STARTING = "starting"
    SILENT = "silent"
    OTHER_PORT = "other_port"
    OTHER_ADDRESS = "other_address"
    TAKEN = "taken"
    NO_ANSWER = "no_answer"
    NO_HTTP = "no_http"
    STATUS = "status"


@dataclass(frozen=True, slots=True)
class Reason:
    """A code and the parameters of its sentence."""

    code: ReasonCode
    params: Params = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EndEffect:
    """Consequence of a reason: the job's final state, and its effect on retries."""

    state: State
    retry: Retry


ENDINGS: Final[Mapping[ReasonCode, EndEffect]] = MappingProxyType(
    {
        ReasonCode.COMPLETED: EndEffect(State.SUCCEEDED, Retry.NEVER),
        ReasonCode.COMPLETED_WITH_FAILURES: EndEffect(State.SUCCEEDED, Retry.NEVER),
        ReasonCode.EXIT_CODE: EndEffect(State.FAILED, Retry.COUNTED),
        ReasonCode.SIGNALLED: EndEffect(State.FAILED, Retry.COUNTED),
        ReasonCode.OUT_OF_MEMORY: EndEffect(State.FAILED, Retry.NEVER),
        ReasonCode.TIME_LIMIT: EndEffect(State.STOPPED, Retry.NEVER),
        ReasonCode.USER_STOP: EndEffect(State.STOPPED, Retry.NEVER),
        ReasonCode.ADMIN_STOP: EndEffect(State.STOPPED, Retry.NEVER),
        ReasonCode.PREEMPTED: EndEffect(State.STOPPED, Retry.TRANSIENT),
        ReasonCode.DRAINED: EndEffect(State.STOPPED, Retry.TRANSIENT),
        ReasonCode.REQUEUED: EndEffect(State.STOPPED, Retry.TRANSIENT),
        ReasonCode.GROWTH: EndEffect(State.STOPPED, Retry.TRANSIENT),
        ReasonCode.IDLE: EndEffect(State.STOPPED, Retry.NEVER),
        ReasonCode.EARLY_STOP: EndEffect(State.STOPPED, Retry.NEVER),
        ReasonCode.HANG: EndEffect(State.FAILED, Retry.COUNTED),
        ReasonCode.LOG_PATTERN: EndEffect(State.FAILED, Retry.COUNTED),
        ReasonCode.AFTER_NEVER: EndEffect(State.STOPPED, Retry.NEVER),
        ReasonCode.REFUSED: EndEffect(State.FAILED, Retry.NEVER),
        ReasonCode.START_FAILED: EndEffect(State.FAILED, Retry.COUNTED),
        ReasonCode.IMAGE_FAILED: EndEffect(State.FAILED, Retry.COUNTED),
        ReasonCode.MOUNT_FAILED: EndEffect(State.FAILED, Retry.NEVER),
        ReasonCode.CODE_FAILED: EndEffect(State.FAILED, Retry.COUNTED),
        ReasonCode.REQUIREMENTS_FAILED: EndEffect(State.FAILED, Retry.COUNTED),
        ReasonCode.INIT_CONTAINER_FAILED: EndEffect(State.FAILED, Retry.COUNTED),
        ReasonCode.SANITY_CHECK_FAILED: EndEffect(State.FAILED, Retry.COUNTED),
        ReasonCode.PORT_CONFLICT: EndEffect(State.FAILED, Retry.TRANSIENT),
        ReasonCode.TOO_MANY_PORTS: EndEffect(State.FAILED, Retry.NEVER),
        ReasonCode.FOLDER_TOO_LARGE: EndEffect(State.FAILED, Retry.NEVER),
        ReasonCode.WRAPPER_LOST: EndEffect(State.FAILED, Retry.COUNTED),
        ReasonCode.MACHINE_RESTARTED: EndEffect(State.FAILED, Retry.COUNTED),
        ReasonCode.NODE_LOST: EndEffect(State.FAILED, Retry.TRANSIENT),
        ReasonCode.LOST: EndEffect(State.LOST, Retry.NEVER),
        ReasonCode.SETTLED_SUCCEEDED: EndEffect(State.SUCCEEDED, Retry.NEVER),
        ReasonCode.SETTLED_FAILED: EndEffect(State.FAILED, Retry.NEVER),
        ReasonCode.SETTLED_STOPPED: EndEffect(State.STOPPED, Retry.NEVER),
    }
)
"""The one table that decides final status and retryability from the reason."""

SETTLED: Final[Mapping[State, ReasonCode]] = MappingProxyType(
    {
        State.SUCCEEDED: ReasonCode.SETTLED_SUCCEEDED,
        State.FAILED: ReasonCode.SETTLED_FAILED,
        State.STOPPED: ReasonCode.SETTLED_STOPPED,
    }
)
"""Reason of a LOST job's end that an admin settled by hand."""

END_REASON: Final[Mapping[EndKind, ReasonCode]] = MappingProxyType(
    {
        EndKind.USER_STOP: ReasonCode.USER_STOP,
        EndKind.ADMIN_STOP: ReasonCode.ADMIN_STOP,
        EndKind.TIME_LIMIT: ReasonCode.TIME_LIMIT,
        EndKind.PREEMPTION: ReasonCode.PREEMPTED,
        EndKind.DRAIN: ReasonCode.DRAINED,
        EndKind.REQUEUE: ReasonCode.REQUEUED,
        EndKind.GROWTH: ReasonCode.GROWTH,
        EndKind.IDLE: ReasonCode.IDLE,
        EndKind.EARLY_STOP: ReasonCode.EARLY_STOP,
        EndKind.FAULT: ReasonCode.HANG,
    }
)
"""Reason of an intended end once it is observed.  COMPLETION is absent: there the verdict decides.  A FAULT's
may be LOG_PATTERN too, which its attempt has stored."""


def sources_of(after: State) -> frozenset[State]:
    """Return every state from which `after` may be reached in one step."""
    return frozenset(before for before, followers in TRANSITIONS.items() if after in followers)


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica as the verdict sees it."""

    role: str
    index: int
    state: ReplicaState


class Completion(Protocol):
    """Condition under which a role decides the whole job; `jobs.spec.CompletionPolicy` is one."""

    @property
    def min_failed(self) -> int | None: ...

    @property
    def min_succeeded(self) -> int | None: ...


class CountedRole(Protocol):
    """The part of a role that the verdict needs.

    `jobs.spec.RoleSpec` is one, and so is the local supervisor's own record, which does without pydantic.
    """

    @property
    def name(self) -> str: ...

    @property
    def replicas(self) -> int: ...

    @property
    def completion(self) -> Completion: ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a job by its counts: `state` is None while they don't decide it.

    `trigger` is the role whose count decided (None when simply every replica ended); `failed` and
    `total` count the whole job's replicas.
    """

    state: State | None
    trigger: str | None
    failed: int
    total: int


def verdict(roles: Sequence[CountedRole], replicas: Iterable[Replica]) -> Verdict:
    """Apply the completion policies of `roles` to `replicas` (SCM page, section 4.2).

    A role's failures are looked at before any role's successes, so that two ends seen at once are told
    as a failure.  When every replica has ended and no count was reached the job has succeeded, even if
    replicas failed: that is what null and null mean on the SCM page.
    """
    counts = Counter((replica.role, replica.state) for replica in replicas)
    total = sum(role.replicas for role in roles)
    lost = sum(count for (_role, state), count in counts.items() if state is ReplicaState.FAILED)
    for role in roles:
        failures = role.completion.min_failed
        if failures is not None and counts[role.name, ReplicaState.FAILED] >= failures:
            return Verdict(State.FAILED, role.name, lost, total)
    for role in roles:
        successes = role.completion.min_succeeded
        if successes is not None and counts[role.name, ReplicaState.SUCCEEDED] >= successes:
            return Verdict(State.SUCCEEDED, role.name, lost, total)
    ended = sum(count for (_role, state), count in counts.items() if state in REPLICA_TERMINAL)
    return Verdict(State.SUCCEEDED if ended == total else None, None, lost, total)
