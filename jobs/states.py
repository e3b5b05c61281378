"""The job's life: states, phases, reasons, and the tables that say what may follow what.

Pure data and pure functions, shared by the local supervisor, the reconciler and the pages, so that
all three come to the same verdict about the same replicas.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias


class State(StrEnum):
    """Where a job stands.  Stored; names are also the native API's."""

    QUEUED = "QUEUED"
    SUBMITTING = "SUBMITTING"
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    STOPPED = "STOPPED"
    LOST = "LOST"


class TaskState(StrEnum):
    """Where one replica stands."""

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
TASK_TERMINAL: Final = frozenset({TaskState.SUCCEEDED, TaskState.FAILED, TaskState.STOPPED})

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
"""What may follow what.  A fast job is first seen ended, so SUBMITTING reaches every end; RUNNING and
PENDING go back to QUEUED for an automatic new attempt; a LOST job that reappears is adopted or ended."""


class EndKind(StrEnum):
    """Why somebody wants an attempt to end (intent, never the observed fact)."""

    USER_STOP = "user_stop"
    ADMIN_STOP = "admin_stop"
    TIME_LIMIT = "time_limit"
    PREEMPTION = "preemption"
    DRAIN = "drain"
    IDLE = "idle"
    COMPLETION = "completion"


class Retry(StrEnum):
    """How an end counts against the retry limit (OpenPAI's fancyRetryPolicy)."""

    NEVER = "never"
    TRANSIENT = "transient"
    COUNTED = "counted"


class ReasonCode(StrEnum):
    """Why a job is in its state.  The sentence is made in `jobs.messages`."""

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
    IDLE = "idle"
    AFTER_NEVER = "after_never"
    REFUSED = "refused"
    START_FAILED = "start_failed"
    IMAGE_FAILED = "image_failed"
    MOUNT_FAILED = "mount_failed"
    CODE_FAILED = "code_failed"
    REQUIREMENTS_FAILED = "requirements_failed"
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
    """How a port of a replica came to be known: the job file asked for it, the job announced it, or it was
    found to listen.
    """

    ASKED = "asked"
    ANNOUNCED = "announced"
    FOUND = "found"


class Unready(StrEnum):
    """Why nothing can be had on a port.  OTHER_PORT and OTHER_ADDRESS say where the job does listen."""

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
    """A code and what fills its sentence."""

    code: ReasonCode
    params: Params = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ending:
    """What a reason means for the job: the final state, and whether it is worth another attempt."""

    state: State
    retry: Retry


ENDINGS: Final[Mapping[ReasonCode, Ending]] = MappingProxyType(
    {
        ReasonCode.COMPLETED: Ending(State.SUCCEEDED, Retry.NEVER),
        ReasonCode.COMPLETED_WITH_FAILURES: Ending(State.SUCCEEDED, Retry.NEVER),
        ReasonCode.EXIT_CODE: Ending(State.FAILED, Retry.COUNTED),
        ReasonCode.SIGNALLED: Ending(State.FAILED, Retry.COUNTED),
        ReasonCode.OUT_OF_MEMORY: Ending(State.FAILED, Retry.NEVER),
        ReasonCode.TIME_LIMIT: Ending(State.STOPPED, Retry.NEVER),
        ReasonCode.USER_STOP: Ending(State.STOPPED, Retry.NEVER),
        ReasonCode.ADMIN_STOP: Ending(State.STOPPED, Retry.NEVER),
        ReasonCode.PREEMPTED: Ending(State.STOPPED, Retry.TRANSIENT),
        ReasonCode.DRAINED: Ending(State.STOPPED, Retry.TRANSIENT),
        ReasonCode.IDLE: Ending(State.STOPPED, Retry.NEVER),
        ReasonCode.AFTER_NEVER: Ending(State.STOPPED, Retry.NEVER),
        ReasonCode.REFUSED: Ending(State.FAILED, Retry.NEVER),
        ReasonCode.START_FAILED: Ending(State.FAILED, Retry.COUNTED),
        ReasonCode.IMAGE_FAILED: Ending(State.FAILED, Retry.COUNTED),
        ReasonCode.MOUNT_FAILED: Ending(State.FAILED, Retry.NEVER),
        ReasonCode.CODE_FAILED: Ending(State.FAILED, Retry.COUNTED),
        ReasonCode.REQUIREMENTS_FAILED: Ending(State.FAILED, Retry.COUNTED),
        ReasonCode.PORT_CONFLICT: Ending(State.FAILED, Retry.TRANSIENT),
        ReasonCode.TOO_MANY_PORTS: Ending(State.FAILED, Retry.NEVER),
        ReasonCode.FOLDER_TOO_LARGE: Ending(State.FAILED, Retry.NEVER),
        ReasonCode.WRAPPER_LOST: Ending(State.FAILED, Retry.COUNTED),
        ReasonCode.MACHINE_RESTARTED: Ending(State.FAILED, Retry.COUNTED),
        ReasonCode.NODE_LOST: Ending(State.FAILED, Retry.TRANSIENT),
        ReasonCode.LOST: Ending(State.LOST, Retry.NEVER),
        ReasonCode.SETTLED_SUCCEEDED: Ending(State.SUCCEEDED, Retry.NEVER),
        ReasonCode.SETTLED_FAILED: Ending(State.FAILED, Retry.NEVER),
        ReasonCode.SETTLED_STOPPED: Ending(State.STOPPED, Retry.NEVER),
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
"""What a LOST job's end is called that an admin settled by hand."""

END_REASON: Final[Mapping[EndKind, ReasonCode]] = MappingProxyType(
    {
        EndKind.USER_STOP: ReasonCode.USER_STOP,
        EndKind.ADMIN_STOP: ReasonCode.ADMIN_STOP,
        EndKind.TIME_LIMIT: ReasonCode.TIME_LIMIT,
        EndKind.PREEMPTION: ReasonCode.PREEMPTED,
        EndKind.DRAIN: ReasonCode.DRAINED,
        EndKind.IDLE: ReasonCode.IDLE,
    }
)
"""What an intended end is called once it is observed.  COMPLETION is absent: there the verdict speaks."""


def sources_of(after: State) -> frozenset[State]:
    """Every state from which `after` may be reached in one step."""
    return frozenset(before for before, afters in TRANSITIONS.items() if after in afters)


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica as the verdict sees it."""

    role: str
    index: int
    state: TaskState


class Completion(Protocol):
    """When a role decides the whole job; `jobs.spec.CompletionPolicy` is one."""

    @property
    def min_failed(self) -> int | None: ...

    @property
    def min_succeeded(self) -> int | None: ...


class CountedRole(Protocol):
    """What the verdict needs of a role.

    `jobs.spec.TaskRole` is one, and so is the local supervisor's own record, which does without pydantic.
    """

    @property
    def name(self) -> str: ...

    @property
    def replicas(self) -> int: ...

    @property
    def completion(self) -> Completion: ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the job's counts decide it: `state` is None while they don't.

    `trigger` is the role whose count decided (None when simply every replica ended); `failed` and
    `total` count the whole job's replicas.
    """

    state: State | None
    trigger: str | None
    failed: int
    total: int


def verdict(roles: Sequence[CountedRole], replicas: Iterable[Replica]) -> Verdict:
    """What the completion policies of `roles` say about `replicas` (SCM page, section 4.2).

    A role's failures are looked at before any role's successes, so that two ends seen at once are told
    as a failure.  When every replica has ended and no count was reached the job has succeeded, even if
    replicas failed: that is what null and null mean on the SCM page.
    """
    seen = list(replicas)
    failed = {role.name: 0 for role in roles}
    succeeded = dict(failed)
    for replica in seen:
        if replica.state is TaskState.FAILED:
            failed[replica.role] += 1
        elif replica.state is TaskState.SUCCEEDED:
            succeeded[replica.role] += 1
    total = sum(role.replicas for role in roles)
    lost = sum(failed.values())
    for role in roles:
        if role.completion.min_failed is not None and failed[role.name] >= role.completion.min_failed:
            return Verdict(State.FAILED, role.name, lost, total)
    for role in roles:
        wanted = role.completion.min_succeeded
        if wanted is not None and succeeded[role.name] >= wanted:
            return Verdict(State.SUCCEEDED, role.name, lost, total)
    ended = sum(1 for replica in seen if replica.state in TASK_TERMINAL)
    if ended == total:
        return Verdict(State.SUCCEEDED, None, lost, total)
    return Verdict(None, None, lost, total)
