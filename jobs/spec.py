"""JobSpec: a job in one form for all dialects and backends.

Every dialect reads into this form and every backend runs from it alone.  Units are canonical: milli-CPU, MiB
(the vendors' GB, Gi, MB and M all mean powers of 1024), seconds, whole GPUs.  The models are frozen, strict
and refuse unknown keys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, model_validator

ENV_NAME: Final = r"^[A-Za-z_][A-Za-z0-9_]*$"
"""Names that a POSIX shell can expand; a dialect's extras keep others, with a note."""

MODULE_NAME: Final = r"^[A-Za-z0-9_][A-Za-z0-9_.+/:=\-]*$"
"""One name for `module load` (Lmod, Environment Modules) that no shell interprets."""

PositiveInt = Annotated[int, Field(ge=1)]
NaturalInt = Annotated[int, Field(ge=0)]


_UNSAFE_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_.-]")
_LONGEST_NAME: Final = 63
"""Of a container."""


class Model(BaseModel):
    """Base of all parts of a JobSpec."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class Framework(StrEnum):
    """The training frameworks of the DLC page; `None` on a JobSpec means plain processes."""

    TENSORFLOW = "tensorflow"
    PYTORCH = "pytorch"
    ELASTIC_BATCH = "elasticbatch"
    XGBOOST = "xgboost"
    ONEFLOW = "oneflow"
    MPI = "mpi"
    SLURM = "slurm"
    RAY = "ray"
    DATA_JUICER = "datajuicer"


class Resources(Model):
    """The resources of one replica.

    `gpu_type` empty means any type.  `instance_type` names a ready-made size of the target instead
    (DLC's EcsSpec); the amounts then say what that size was known to hold, if it was.
    """

    cpu_milli: PositiveInt = 1000
    memory_mib: PositiveInt = 1024
    shm_mib: NaturalInt = 64
    disk_mib: NaturalInt = 0
    gpus: NaturalInt = 0
    gpu_type: str = ""
    instance_type: str = ""
    rdma: bool = False


class Port(Model):
    """`count` consecutive or separate ports under one label; `begin_at` 0 lets the backend choose."""

    label: Annotated[str, Field(min_length=1)]
    begin_at: Annotated[int, Field(ge=0, le=65535)] = 0
    count: PositiveInt = 1


class CompletionPolicy(Model):
    """When this role decides the whole job (SCM page, `taskRole.min…TaskCount`).

    The job fails once `min_failed` replicas of the role failed (None: never because of this role), and
    succeeds once `min_succeeded` succeeded (None: only when every replica of the job has ended).
    """

    min_failed: PositiveInt | None = 1
    min_succeeded: PositiveInt | None = None


class RetryPolicy(Model):
    """Automatic new attempts (OpenPAI launcher's RetryPolicy).

    `limit` None retries without end; `on_success` starts a service again even when it ended well.
    Transient platform failures are retried without being counted, unless `fancy` is off.
    """

    limit: NaturalInt | None = 0
    on_success: bool = False
    fancy: bool = True


class RestartCondition(StrEnum):
    """Ends of a role's replicas that count among the job's retries (Kubeflow's restartPolicy).

    EXIT_CODE retries a signal and an exit code of 128 and above, not the codes 1 to 127.
    """

    FAILURE = "failure"
    EXIT_CODE = "exit_code"
    NEVER = "never"


class RestartPolicy(Model):
    """Restarts because of the replicas of one role.

    `condition` says which of their ends the job's retries are for.  `limit` is how often a replica is started
    again in the same attempt (OpenPAI's taskRetryCount): here, its processes by torchrun (Kubeflow's
    maxRestarts); None is torchrun's own default.
    """

    condition: RestartCondition = RestartCondition.FAILURE
    limit: NaturalInt | None = None


class EndSignal(Model):
    """A warning before the end: `signal` is sent `seconds_before` the job is made to end."""

    signal: Annotated[str, Field(pattern=r"^(USR1|USR2|INT|HUP|TERM)$")] = "USR1"
    seconds_before: NaturalInt = 300


class MountPurpose(StrEnum):
    """Purpose of a mount."""

    DATA = "data"
    OUTPUT = "output"
    CODE = "code"


class Mount(Model):
    """A location outside the job, by `uri` or by the `id` of a dataset that the target system knows.

    Without `path` it is only told to the job (OpenPAI's PAI_*_DIR), or mounted where the dataset says.
    `options` are the target's own mount options.
    """

    purpose: MountPurpose = MountPurpose.DATA
    id: str = ""
    uri: str = ""
    path: str = ""
    read_only: bool = False
    options: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _names_a_place(self) -> Mount:
        if not (self.id or self.uri):
            raise ValueError("a mount has an id or a uri")
        return self


class CodeSource(Model):
    """Code to fetch before the command: a registered source by `id`, or a repository by `uri`."""

    id: str = ""
    uri: str = ""
    branch: str = ""
    commit: str = ""
    path: str = ""
    submodules: bool = False

    @model_validator(mode="after")
    def _names_a_source(self) -> CodeSource:
        if not (self.id or self.uri):
            raise ValueError("a code source has an id or a uri")
        return self


class Requirements(Model):
    """Python packages to install before the command (DLC page, third-party libraries)."""

    packages: tuple[str, ...] = ()
    directory: str = ""


class Bid(Model):
    """Preemptible resources at a price of our choosing (DLC page, maximum bid).

    Either `discount_percent` of the market price (10…90) or `price_micro` an hour, in millionths.
    """

    discount_percent: Annotated[int, Field(ge=10, le=90)] | None = None
    price_micro: PositiveInt | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Bid:
        if self.discount_percent is not None and self.price_micro is not None:
            raise ValueError("a bid is by discount or by price")
        return self


class NodeChoice(Model):
    """Nodes to run on or to keep away from, by name, and what they must be (label or feature → value)."""

    only: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    labels: dict[str, str] = Field(default_factory=dict)


class Network(Model):
    """The virtual network of the job (DLC page, VPC)."""

    vpc: str = ""
    switch: str = ""
    security_group: str = ""
    cidrs: tuple[str, ...] = ()
    gateway: str = ""


class Check(Model):
    """An option of the target with arguments of its own: fault tolerance, sanity check."""

    enabled: bool = False
    arguments: str = ""


class RestartScope(StrEnum):
    """The part of a job that is started again after a fault: all of it, or the replica that failed."""

    JOB = "job"
    REPLICA = "replica"


class FaultTolerance(Check):
    """Automatic fault tolerance, with `patterns`: regular expressions of lines that are faults of the job."""

    patterns: tuple[str, ...] = ()
    restart_scope: RestartScope = RestartScope.JOB


class Reservation(Model):
    """How long an ended job keeps its resources (DLC page, retention)."""

    seconds: PositiveInt
    when: Annotated[str, Field(pattern=r"^(always|failed|succeeded)$")] = "always"


class AlertMetric(StrEnum):
    """Metric of a running job: percent of what it requested, or minutes."""

    GPU = "gpu"
    CPU = "cpu"
    MEMORY = "memory"
    RUNNING = "running"


class AlertComparison(StrEnum):
    """Side of the value on which an alert is told."""

    BELOW = "below"
    ABOVE = "above"


class Alert(Model):
    """Tell the owner once `metric` has been on that side of `value` for so many `minutes`."""

    metric: AlertMetric
    comparison: AlertComparison = AlertComparison.BELOW
    value: Annotated[int, Field(ge=0, le=1_000_000)] = 10
    minutes: Annotated[int, Field(ge=0, le=100_000)] = 10


class TensorBoard(Model):
    """A TensorBoard beside the job, over `log_path`."""

    enabled: bool = True
    log_path: str = ""


class Idle(StrEnum):
    """Use of resources that other quotas leave idle (DLC's OversoldType)."""

    FORBID = "forbid"
    ACCEPT = "accept"
    FORCE = "force"


class Visibility(StrEnum):
    """DLC's Accessibility."""

    PRIVATE = "private"
    PUBLIC = "public"


class SecretRef(Model):
    """The name of a secret kept by the console; the value is never part of a JobSpec."""

    name: Annotated[str, Field(min_length=1, max_length=200)]


class RegistryAuth(Model):
    """Login for an image registry: either given here or in a file that the engine can read."""

    registry: str = ""
    username: str = ""
    password: SecretRef | None = None
    file_uri: str = ""


class When(StrEnum):
    """Condition on a job that another one waits for."""

    SUCCEEDED = "succeeded"
    ENDED = "ended"
    FAILED = "failed"


class After(Model):
    """A job to wait for: its id, an id as one of the vendors' APIs shows it, or the name of one's own."""

    job: Annotated[str, Field(min_length=1, max_length=300)]
    when: When = When.SUCCEEDED


class AfterNever(StrEnum):
    """Action for a job whose dependency can't be met any more."""

    STOP = "stop"
    HOLD = "hold"


class Software(Model):
    """Software that every replica loads before its command: environment modules, then an environment.

    `conda` and `venv` are folders where the job runs; a job has one of the two.  `bccl` is Baidu's library
    for collective communication, in place of NCCL (AIHC page, enableBccl).
    """

    modules: tuple[Annotated[str, Field(pattern=MODULE_NAME)], ...] = ()
    conda: str = ""
    venv: str = ""
    bccl: bool = False

    @model_validator(mode="after")
    def _one_environment(self) -> Software:
        if self.conda and self.venv:
            raise ValueError("an environment is of conda or a venv")
        return self


class PodContainer(Model):
    """A container of a replica besides its main one (DLC's ContainerSpec).

    Without an image it has the role's, without a command what the image runs.  A value in `env` may be the
    placeholder of a secret.
    """

    name: str = ""
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    env: dict[Annotated[str, Field(pattern=ENV_NAME)], str] = Field(default_factory=dict)


_ELASTIC: Final = frozenset({Framework.ELASTIC_BATCH, Framework.PYTORCH})


class RoleSpec(Model):
    """`replicas` equal processes or containers running `command` in a shell.

    In each, `init_containers` run before it, one after the other, and `sidecars` beside it; all of them
    share the folders `shared_paths`, which are empty at first.
    """

    name: Annotated[str, Field(min_length=1, max_length=255)]
    replicas: PositiveInt = 1
    command: Annotated[str, Field(min_length=1)]
    image: str = ""
    resources: Resources = Field(default_factory=Resources)
    ports: tuple[Port, ...] = ()
    completion: CompletionPolicy = Field(default_factory=CompletionPolicy)
    restart: RestartPolicy = Field(default_factory=RestartPolicy)
    env: dict[Annotated[str, Field(pattern=ENV_NAME)], str] = Field(default_factory=dict)
    bid: Bid | None = None
    nodes: NodeChoice = Field(default_factory=NodeChoice)
    init_containers: tuple[PodContainer, ...] = ()
    sidecars: tuple[PodContainer, ...] = ()
    shared_paths: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _labels_are_unique(self) -> RoleSpec:
        labels = [port.label for port in self.ports]
        if len(set(labels)) != len(labels):
            raise ValueError("port labels repeat")
        return self


def name_containers(role: RoleSpec) -> list[tuple[str, PodContainer]]:
    """Return a role's init containers and its sidecars, each under a name that no other one has.

    The names are safe in file names and stand before the containers' lines in the replica's log.
    """
    named: dict[str, PodContainer] = {}
    for kind, containers in (("init", role.init_containers), ("sidecar", role.sidecars)):
        for number, container in enumerate(containers, start=1):
            name = _UNSAFE_IN_NAMES.sub("_", container.name)[:_LONGEST_NAME] or f"{kind}-{number}"
            while name in named:
                name = f"{name}-{kind}-{number}"
            named[name] = container
    return list(named.items())


class JobSpec(Model):
    """One job: roles that start together and end as their completion policies say.

    `priority` is PAI's 1…9 (9 first).  `time_limit_s` None means no limit.  `keep_failed_s` keeps the
    folder and container of a failed replica for debugging (`jobEnvs.isDebug`).  `not_before` is an RFC 3339
    time; `after` names jobs that must have come to an end first, all of them.  `instance_role` is empty,
    `default`, or the role's ARN.  `framework_options` are DLC's advanced settings and their kin.
    """

    name: Annotated[str, Field(min_length=1, max_length=256)]
    description: str = ""
    tags: dict[str, str] = Field(default_factory=dict)
    framework: Framework | None = None
    roles: Annotated[tuple[RoleSpec, ...], Field(min_length=1)]
    env: dict[Annotated[str, Field(pattern=ENV_NAME)], str] = Field(default_factory=dict)
    secret_env: dict[Annotated[str, Field(pattern=ENV_NAME)], SecretRef] = Field(default_factory=dict)
    registry_auth: RegistryAuth | None = None
    mounts: tuple[Mount, ...] = ()
    code: CodeSource | None = None
    requirements: Requirements = Field(default_factory=Requirements)
    software: Software = Field(default_factory=Software)
    workspace: str = ""
    quota: str = ""
    priority: Annotated[int, Field(ge=1, le=9)] | None = None
    retry: RetryPolicy = Field(default_factory=RetryPolicy)
    time_limit_s: PositiveInt | None = None
    end_signal: EndSignal | None = None
    grace_s: Annotated[int, Field(ge=0, le=3600)] = 30
    keep_failed_s: NaturalInt = 0
    hold: bool = False
    not_before: str = ""
    after: tuple[After, ...] = ()
    after_never: AfterNever = AfterNever.STOP
    idle: Idle | None = None
    cpu_affinity: bool = False
    reserve_after: Reservation | None = None
    fault_tolerance: FaultTolerance = Field(default_factory=FaultTolerance)
    sanity_check: Check = Field(default_factory=Check)
    alert: Alert | None = None
    tensorboard: TensorBoard | None = None
    network: Network = Field(default_factory=Network)
    instance_role: str = ""
    visibility: Visibility = Visibility.PRIVATE
    framework_options: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _roles_are_unique(self) -> JobSpec:
        names = [role.name for role in self.roles]
        if len(set(names)) != len(names):
            raise ValueError("role names repeat")
        return self

    def role(self, name: str) -> RoleSpec:
        """Return the role called `name`.  Raises KeyError."""
        return {role.name: role for role in self.roles}[name]

    @property
    def replicas(self) -> int:
        """Return the number of replicas of the whole job."""
        return sum(role.replicas for role in self.roles)

    def least_replicas(self, role: RoleSpec) -> int | None:
        """Return with how many replicas of a role the job may start; None where all of them are needed.

        Only an elastic job goes on without some: one of ElasticBatch, or one of PyTorch of which replicas may
        fail (`jobs.node.frameworks.pytorch`).
        """
        tolerated = role.completion.min_failed
        if self.framework not in _ELASTIC or tolerated is None or tolerated == 1:
            return None
        return max(1, role.replicas - tolerated + 1)

    def with_counts(self, counts: Sequence[int]) -> JobSpec:
        """Return the job with so many replicas of each role, in their order, and the same minimum of them."""
        roles = (_with_count(role, count) for role, count in zip(self.roles, counts, strict=True))
        return self.model_copy(update={"roles": tuple(roles)})

    @property
    def restarts_replicas(self) -> bool:
        """Tell whether a failed replica may be started again alone.

        Not where all replicas begin with a common check, and not in a script that Slurm itself spreads.
        """
        tolerance = self.fault_tolerance
        is_asked = tolerance.enabled and tolerance.restart_scope is RestartScope.REPLICA
        return is_asked and not self.sanity_check.enabled and self.framework is not Framework.SLURM


def _with_count(role: RoleSpec, count: int) -> RoleSpec:
    fewer, completion = role.replicas - count, role.completion
    failed, succeeded = completion.min_failed, completion.min_succeeded
    changed = completion.model_copy(
        update={
            "min_failed": None if failed is None else max(1, failed - fewer),
            "min_succeeded": None if succeeded is None else min(succeeded, count),
        }
    )
    return role.model_copy(update={"replicas": count, "completion": changed})


@dataclass(frozen=True, slots=True)
class ResourceRequest:
    """The resource request of a role: replicas, and amounts of each.  `gpu_type` empty is any type."""

    role: str
    replicas: int
    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_type: str

    @property
    def by_type(self) -> Mapping[str, int]:
        """Return the GPUs of one replica by their type; empty without any."""
        return {self.gpu_type: self.gpus} if self.gpus else {}


def resource_requests(spec: JobSpec) -> tuple[ResourceRequest, ...]:
    """Return the resource request of each role, in their order.

    The ledger, the preview and every backend take the amounts from here: what is reserved is what is
    requested.
    """
    return tuple(
        ResourceRequest(
            role.name,
            role.replicas,
            role.resources.cpu_milli,
            role.resources.memory_mib,
            role.resources.gpus,
            role.resources.gpu_type,
        )
        for role in spec.roles
    )
