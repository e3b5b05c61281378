"""The interface of every backend, and the values that it takes and returns.

A backend is cheap to make and keeps nothing in memory: its state lies with its engine or on its disk.  Every
call has a time limit and none retries inside.  No answer is an exception (`Unreachable`), never a state.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any, Final, NewType, Protocol, runtime_checkable

from jobs.facilities import Facilities, StorageMapping
from jobs.node.supervisor.checkpoints import Checkpoint
from jobs.spec import JobSpec
from jobs.states import Params, Phase, PortSource, Reason, ReasonCode, ReplicaState, State, Unready
from jobs.trees import Supplied

PROGRAMS: Final = (
    "code-server",
    "jupyter-lab",
    "jupyter-notebook",
    "openvscode-server",
    "tensorboard",
)
"""Programs whose presence on a node is shown to people."""

Handle = NewType("Handle", str)
"""The engine's own name for an attempt that it accepted; opaque to all other code."""


class Refused(Exception):
    """The engine refuses this job for good, for `reason`."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.code)
        self.reason = reason

    @classmethod
    def by_engine(cls, detail: str, **params: str) -> Refused:
        """Return the exception for a job that the engine itself refused, with its message."""
        return cls(Reason(ReasonCode.REFUSED, {"detail": detail, **params}))


class NotSubmitted(Exception):
    """Nothing was started, which is certain; the job goes back to the queue."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.code)
        self.reason = reason

    @classmethod
    def not_sent(cls, detail: object) -> NotSubmitted:
        """Return the exception for a job that could not be sent to the engine."""
        return cls(Reason(ReasonCode.NOT_SENT, {"detail": str(detail)}))


class Unknown(Exception):
    """The job may or may not have been started; only `find` can tell."""


class Unreachable(Exception):
    """The engine did not answer.  Says nothing about any job."""


class Gone(Enum):
    """The engine answered, and does not know the handle."""

    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Unseen:
    """The engine answered, but not about the handle's state: says nothing about the job."""

    why: str


@dataclass(frozen=True, slots=True)
class Person:
    """The person for whom a job runs: login name, the console's number (> 0, never used twice), UNIX name."""

    name: str
    number: int
    unix_name: str = ""


@dataclass(frozen=True, slots=True)
class Reserved:
    """A reservation for an attempt on one node: GPUs by type, in the engine's words, and their indexes.

    A backend gives those; where one of them is not free, another of its type.
    """

    node: str
    gpus: Mapping[str, int] = field(default_factory=dict)
    indexes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Submission:
    """All that a backend needs to start one attempt.

    `key` is `<installation>-<public id>-<attempt>`, a DNS label that the engine carries in its name
    field.  `workspace` is its workspace's slug.  `secrets` maps SecretRef names to values; they reach the
    job by a 0600 file, never by argv.  `endpoint_token` reaches it the same way, as
    JOB_CONSOLE_ENDPOINT_TOKEN: a notebook asks for it, and the console's link carries it.  `uploads` are
    the trees that the job's places name (`jobs.trees.find_trees`), by their ids.  `storage` are the site's
    storage mappings on the cluster, by the id or address that job files call them.  `options` are what an
    sbatch script says that a JobSpec has no word for, by its pointers; a cluster's settings allow it or not.
    `reserved` is what admission decided, by node; empty where the engine schedules.

    `is_check` tells that the job only finds out whether its data can be had: it is looked at, not brought.
    `egress` is where its replicas may connect to, where the backend can tell (`supervisor.plan.NetworkPlan`).
    `role_provider` is the cloud of the job's role, "" where it has none that the console can assume, and
    `role_token` what its programs show for credentials of it.  `tracking_token` is what they show at the
    console's web address to log runs (MLflow), where they have no address of their own for that.
    """

    key: str
    job_id: str
    attempt: int
    spec: JobSpec
    person: Person
    virtual_cluster: str = "default"
    workspace: str = ""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    endpoint_token: str = field(default="", repr=False)
    uploads: Mapping[str, Supplied] = field(default_factory=dict, repr=False)
    storage: Mapping[str, StorageMapping] = field(default_factory=dict, repr=False)
    options: Mapping[str, str] = field(default_factory=dict)
    reserved: tuple[Reserved, ...] = ()
    is_check: bool = False
    egress: tuple[str, ...] = ("internet",)
    role_provider: str = ""
    role_token: str = field(default="", repr=False)
    tracking_token: str = field(default="", repr=False)

    @property
    def is_restricted(self) -> bool:
        """Whether its replicas may not connect to everywhere."""
        return self.egress != ("internet",)

    def secret_variables(self) -> dict[str, str]:
        """Return the environment variables that every replica is given by a file."""
        found = {name: self.secrets[secret.name] for name, secret in self.spec.secret_env.items()}
        if self.endpoint_token:
            found["JOB_CONSOLE_ENDPOINT_TOKEN"] = self.endpoint_token
        return found


@dataclass(frozen=True, slots=True)
class ReplicaRef:
    """One replica of one run of an attempt; runs count from 1, indexes from 0."""

    role: str
    index: int
    run: int = 1


@dataclass(frozen=True, slots=True)
class EndpointSeen:
    """A labelled port of a replica, reachable from the worker side at host:port.

    `path` is where its job says to begin, `token` under which name in the query it wants its token; `why`
    and `params` say what keeps it from being ready, where that is known.
    """

    label: str
    host: str
    port: int
    ready: bool
    source: PortSource = PortSource.ASKED
    path: str = ""
    token: str = ""
    why: Unready | None = None
    params: Params = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FailedRun:
    """The failed run of a replica that waits for an order whether it is started again (`RestartingReplicas`).

    `run` counts the starts of the replica's command in the attempt from 1.
    """

    run: int
    reason: Reason
    exit_code: int | None = None
    signal: int | None = None
    ended_at: float | None = None


@dataclass(frozen=True, slots=True)
class ReplicaSeen:
    """One replica as the engine reports it.  Times are seconds since the epoch by the engine's clock,
    bounded by what the console saw; `log_path` is where its output lies when this machine can read it there;
    `commit` is what git fetched of the job's code.  `gpus` are the indexes of the GPUs that it has on its
    node, None where the engine does not tell.  `sanity` is the result of its sanity check
    (`supervisor.sanity_file`), None where there is none.  One with a `failed_run` waits.
    """

    role: str
    index: int
    state: ReplicaState
    reason: Reason | None = None
    exit_code: int | None = None
    signal: int | None = None
    node: str = ""
    started_at: float | None = None
    ended_at: float | None = None
    log_path: str = ""
    image_used: bool | None = None
    commit: str = ""
    limits: str = ""
    gpus: tuple[int, ...] | None = None
    endpoints: tuple[EndpointSeen, ...] = ()
    sanity: Mapping[str, Any] | None = None
    failed_run: FailedRun | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """One attempt as the engine reports it now.

    `state` is PENDING, RUNNING or an end; `version` changes whenever anything here does, so that an
    unchanged observation costs a comparison; `run` counts the engine's own restarts from 1.  `held`: it waits
    to be released (`Holding`).  `resumed` is the checkpoint from which its replicas resume.
    """

    state: State
    reason: Reason
    phase: Phase
    replicas: tuple[ReplicaSeen, ...] = ()
    run: int = 1
    version: str = ""
    started_at: float | None = None
    ended_at: float | None = None
    held: bool = False
    resumed: Checkpoint | None = None

    def with_version(self) -> Observation:
        """Return it with a version that changes whenever anything else does."""
        return replace(self, version=hashlib.blake2b(repr(self).encode(), digest_size=12).hexdigest())


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU: its index on the node and the type's name as people write it."""

    index: int
    type: str
    memory_mib: int = 0


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """A node: its resources, and how much of them is free.

    `programs` are those of PROGRAMS that its jobs find without an image, None where that is not known.
    """

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: tuple[Gpu, ...] = ()
    free_cpu_milli: int = 0
    free_memory_mib: int = 0
    free_gpus: tuple[int, ...] = ()
    schedulable: bool = True
    why: str = ""
    programs: tuple[str, ...] | None = None
    partitions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeReservation:
    """Nodes that the engine keeps for some people, or for maintenance (Slurm: a reservation).

    `whom` are users and accounts in the engine's words, none for everybody who names it.  Times are seconds
    since the epoch; without `until` it has no end.
    """

    name: str
    nodes: tuple[str, ...]
    since: float
    until: float | None
    whom: tuple[str, ...] = ()
    maintenance: bool = False


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A job that waits or runs on the cluster, whoever submitted it; `number` and `reason` are the engine's
    words, `user` a UNIX name, `nodes` where it runs, `output` the file that it says it writes to.  `handle`
    is what it would have for one if it were the console's.  Times are seconds since the epoch.
    """

    number: str
    name: str
    user: str
    running: bool
    handle: Handle | None = None
    partition: str = ""
    reason: str = ""
    cpu_milli: int = 0
    memory_mib: int = 0
    gpus: Mapping[str, int] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()
    submitted_at: float | None = None
    started_at: float | None = None
    ends_at: float | None = None
    output: str = ""


@dataclass(frozen=True, slots=True)
class Inventory:
    """Every node of a cluster.  `jobs` are all that wait or run there, ours among them; None where the engine
    can't tell.  `facilities` None: not known.
    """

    nodes: tuple[NodeSeen, ...]
    jobs: tuple[QueuedJob, ...] | None = None
    set_aside: tuple[NodeReservation, ...] = ()
    facilities: Facilities | None = None


class LogState(StrEnum):
    """The state of a log after a slice of it."""

    OPEN = "open"
    COMPLETE = "complete"
    GONE = "gone"
    TRUNCATED = "truncated"


@dataclass(frozen=True, slots=True)
class LogSlice:
    """Bytes from a cursor on, and the cursor after them; never a gap, never a repeat."""

    data: bytes
    cursor: str
    state: LogState


MASK: Final = "***"
"""Shown in place of a secret's value."""


@dataclass(frozen=True, slots=True)
class RenderedRole:
    """One role as it will be submitted: what each of its replicas is given, finds and runs.

    `env` has the variables with their values, None where one is only known at the start or differs between
    replicas; a secret's value is MASK.  `mounts` are (place in the job, what is there, read-only), `ports`
    (label, first port or 0 for any, how many).  `script` is what a replica runs.
    """

    role: str
    replicas: int
    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_type: str
    shm_mib: int
    image: str
    contained: bool
    env: Mapping[str, str | None]
    mounts: tuple[tuple[str, str, bool], ...]
    ports: tuple[tuple[str, int, int], ...]
    script: str


@dataclass(frozen=True, slots=True)
class RenderedJob:
    """A job as it will be submitted, without secrets."""

    roles: tuple[RenderedRole, ...]
    time_limit_s: int | None = None
    grace_s: int = 0


@dataclass(frozen=True, slots=True)
class DryRunCheck:
    """One check of a dry run: `what` is a code of `jobs.messages.dry_runs`, about `detail`.

    `ok` is whether it would do; None is that it may, or only later, as `reason` says.  `pointer` is the
    place in the JobSpec that it is about, where that is known.
    """

    what: str
    ok: bool | None
    detail: str = ""
    reason: Reason | None = None
    pointer: str = ""


class Backend(Protocol):
    """A backend: the methods that all of them have.

    What only some can do is a protocol of its own (`Several`, `Holding`, `Watching`, …, `measures.Measuring`,
    `sessions.Enterable`, `accounts.Accounting`): a backend can do it if it has the methods, and is asked by
    isinstance.
    """

    @property
    def has_scheduler(self) -> bool:
        """Whether its engine schedules jobs itself, also those of others."""

    @property
    def can_shrink(self) -> bool:
        """Whether the resources of an ended replica are free while the others run."""

    def find(self, keys: Sequence[str]) -> Mapping[str, Sequence[Handle]]:
        """Return every handle the engine knows for each key (none: an empty sequence), in one call."""

    def submit(self, submission: Submission) -> Handle:
        """Start the attempt once; the same key again gives the same handle.

        Raises Refused (final), NotSent (certainly nothing started) or Unknown (only `find` can tell).
        """

    def observe(self, handles: Sequence[Handle]) -> Mapping[Handle, Observation | Gone | Unseen]:
        """Return an entry for each handle, in one call to the engine.  Raises Unreachable."""

    def stop(self, handle: Handle, *, grace_s: int, signal: str) -> None:
        """Ask for the end and return: `signal` now, KILL of the whole tree after `grace_s` seconds.
        An absent job is success; asking twice keeps the earlier deadline.
        """

    def read_log(self, handle: Handle, replica: ReplicaRef, cursor: str, limit: int) -> LogSlice:
        """Return at most `limit` bytes from `cursor` ('' is the beginning)."""

    def inventory(self) -> Inventory:
        """Return nodes, free resources and the jobs of others; also the connection test."""

    def forget(self, handle: Handle) -> None:
        """Remove what is left of an ended attempt (folders, containers).  Absent is success."""


@runtime_checkable
class ConcurrentSubmission(Protocol):
    """A backend whose `submit` may be called by several threads at the same time."""

    @property
    def at_once(self) -> int:
        """The number of threads that does not overload its engine."""


@runtime_checkable
class HeldSubmission(Protocol):
    """A backend whose jobs wait, once submitted, until they are released.

    A job whose submitter died before it recorded the handle so never runs.
    """

    def release(self, handles: Sequence[Handle]) -> None:
        """Release these, in one call.  Absent ones and those that run are fine; raises Unreachable."""


@runtime_checkable
class Watching(Protocol):
    """A backend that hints at changes."""

    def bell(self) -> Path | None:
        """Return a file whose time changes whenever a job changes, or None.  A hint only; polling goes on."""


@runtime_checkable
class Following(Protocol):
    """A backend whose engine hands out logs, and tells of changes, only to whoever is connected to it."""

    def follow(self, ended: threading.Event, changed: Callable[[], None]) -> None:
        """Copy the output of replicas to their `log_path` as it comes, until `ended`.

        Calls `changed` whenever a job may have changed: a hint only, polling goes on.  Where several
        processes follow, each log is written by one of them.  It can be killed, and goes on when it is
        called again.
        """


@runtime_checkable
class Rendering(Protocol):
    """A backend that can show what it would submit."""

    def render(self, submission: Submission) -> RenderedJob:
        """Return what `submit` would hand over, without asking the engine; raises Refused like it.

        The submission's secrets have MASK for a value.
        """


@runtime_checkable
class Extending(Protocol):
    """A backend that can move the end of what runs."""

    def extend(self, handle: Handle, limit_s: int) -> None:
        """Let the attempt run for `limit_s` seconds in all; nothing for one that is unknown or ending.

        Repeating is harmless; raises Unreachable without an answer.
        """


@runtime_checkable
class RestartingReplicas(Protocol):
    """A backend that can start the command of a failed replica again in the same attempt."""

    def order_restart(self, handle: Handle, replica: ReplicaRef, failed_run: int, *, restarts: bool) -> None:
        """Order whether a replica whose run failed is started again; the first order for a run counts.

        Without a restart its end counts.  Nothing for an attempt that is unknown; raises Unreachable.
        """


@runtime_checkable
class CredentialFiles(Protocol):
    """A backend whose jobs get the credentials of their role by a file that the console renews."""

    def credentials_age_s(self, handle: Handle) -> float | None:
        """Return the seconds since credentials were put there; None where there are none."""

    def put_credentials(self, handle: Handle, text: str) -> None:
        """Replace the credentials, the answer for SDKs as JSON; remove them with an empty text."""


@runtime_checkable
class Checkpointing(Protocol):
    """A backend whose jobs save checkpoints where the console sees them."""

    def find_checkpoint(self, handle: Handle) -> Checkpoint | None:
        """Return the checkpoint from which the job would resume now; None where there is none."""


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The nodes that were tried, and what an admin has to repair, as sentences.

    `remarks` are what is missing although jobs run without it.
    """

    nodes: tuple[str, ...]
    lacking: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


@runtime_checkable
class Checking(Protocol):
    """A backend that can check whether all prerequisites of jobs are there."""

    def check(self) -> CheckReport:
        """Check, on nodes that are free.  Raises Unreachable where even that can't be done."""

    def try_as(self, person: Person) -> str:
        """Run a small job of the person's, and return as whom it ran.

        Raises Refused where it was refused or failed, and Unreachable where it could not be tried.
        """


@runtime_checkable
class Trying(Protocol):
    """A backend that can say beforehand whether it would take a job."""

    def dry_run(self, submission: Submission) -> Sequence[DryRunCheck]:
        """Return the checks whether the job would be taken as it is; nothing is started or kept."""
