"""Kubeflow's kinds of jobs: their roles, what is theirs by default, and when one has succeeded.

What is said of each follows its controller and its webhook (training-operator v1.9, mpi-operator v0.6).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from jobs.spec import CompletionPolicy, Framework, JobSpec, RestartCondition

OPERATOR: Final = "training-operator v1.9"
MPI_OPERATOR: Final = "mpi-operator v0.6"
V1: Final = "kubeflow.org/v1"
V2BETA1: Final = "kubeflow.org/v2beta1"

ALL_WORKERS: Final = "AllWorkers"
ALWAYS: Final = "Always"
NEVER: Final = "Never"
ON_FAILURE: Final = "OnFailure"
EXIT_CODE: Final = "ExitCode"


@dataclass(frozen=True, slots=True)
class JobKind:
    """One kind.

    `specs` is the key of its roles, `container` the name of a pod's main container, `single` the roles of
    which there is one, `deciders` those whose success is the job's, `needed` the role it can't do without,
    `restart` the restart policy of a role that names none.
    """

    name: str
    framework: Framework
    specs: str
    container: str
    roles: tuple[str, ...]
    single: frozenset[str]
    deciders: tuple[str, ...]
    needed: str = ""
    restart: str = NEVER

    def role(self, name: str) -> str | None:
        """The role that `name` means, in the kind's own spelling."""
        return next((role for role in self.roles if role.lower() == name.lower()), None)


KINDS: Final = (
    JobKind(
        "PyTorchJob",
        Framework.PYTORCH,
        "pytorchReplicaSpecs",
        "pytorch",
        ("Master", "Worker"),
        frozenset({"Master"}),
        ("Master",),
        restart=ON_FAILURE,
    ),
    JobKind(
        "TFJob",
        Framework.TENSORFLOW,
        "tfReplicaSpecs",
        "tensorflow",
        ("Worker", "Chief", "Master", "PS", "Evaluator"),
        frozenset({"Chief", "Master"}),
        ("Chief", "Master"),
    ),
    JobKind(
        "MPIJob",
        Framework.MPI,
        "mpiReplicaSpecs",
        "mpi",
        ("Launcher", "Worker"),
        frozenset({"Launcher"}),
        ("Launcher",),
        needed="Launcher",
    ),
    JobKind(
        "XGBoostJob",
        Framework.XGBOOST,
        "xgbReplicaSpecs",
        "xgboost",
        ("Master", "Worker"),
        frozenset({"Master"}),
        ("Master",),
        needed="Master",
    ),
)
BY_NAME: Final = {kind.name: kind for kind in KINDS}

WORKER_COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    V1: ("sleep", "365d"),
    V2BETA1: ("/usr/sbin/sshd", "-De"),
}
"""What the workers of an MPIJob run when they name no command."""

_OTHER_NAMES: Final = {
    "main": "Worker",
    "task": "Worker",
    "node": "Worker",
    "ps_server": "PS",
    "parameter_server": "PS",
    "parameterserver": "PS",
    "head": "Master",
}


def kind_for(spec: JobSpec) -> JobKind:
    """The kind that `spec` is written as: its framework's, else the one whose roles fit."""
    named = next((kind for kind in KINDS if kind.framework is spec.framework), None)
    if named is not None:
        return named
    tensorflow, pytorch = BY_NAME["TFJob"], BY_NAME["PyTorchJob"]
    names = [role.name for role in spec.roles]
    of_tensorflow = all(map(tensorflow.role, names)) and not all(map(pytorch.role, names))
    return tensorflow if of_tensorflow or len(names) > len(pytorch.roles) else pytorch


def types(kind: JobKind, roles: Sequence[tuple[str, int]]) -> list[str]:
    """A role of the kind for each (name, replicas): its own name, a known one, or the first that is free.

    "" for those that are too many.
    """
    taken: dict[int, str] = {}
    for index, (name, replicas) in enumerate(roles):
        meant = kind.role(name) or kind.role(_OTHER_NAMES.get(name.lower(), ""))
        if meant and meant not in taken.values() and (replicas == 1 or meant not in kind.single):
            taken[index] = meant
    for index, (_name, replicas) in enumerate(roles):
        if index not in taken:
            free = [role for role in kind.roles if role not in taken.values()]
            fits = [role for role in free if (role in kind.single) == (replicas == 1)]
            able = [role for role in free if replicas == 1 or role not in kind.single]
            needed = [kind.needed] if kind.needed in able else []
            chosen = next(iter((*needed, *fits, *able)), "")
            taken[index] = chosen or f"#{index}"
    return ["" if taken[index].startswith("#") else taken[index] for index in range(len(roles))]


def completions(
    kind: JobKind, counts: Mapping[str, int], policy: str, *, dynamic: bool
) -> dict[str, CompletionPolicy]:
    """The completion policy of each role, by its replicas; `policy` is TFJob's successPolicy.

    The master, chief or launcher decides; without one all workers of a PyTorchJob, and the first worker of
    a TFJob, which is said as one of them.  `dynamic` workers of a TFJob may fail.
    """
    decider = next((role for role in kind.deciders if role in counts), None)
    needed = counts[decider] if decider else 0
    if decider is None and "Worker" in counts:
        decider, needed = "Worker", counts["Worker"]
        if kind.name == "TFJob" and policy != ALL_WORKERS:
            needed = 1
    alone = len(counts) == 1 and needed == sum(counts.values())
    return {
        role: CompletionPolicy(
            min_failed=None if dynamic and role == "Worker" and kind.name == "TFJob" else 1,
            min_succeeded=needed if role == decider and not alone else None,
        )
        for role in counts
    }


def is_elastic(kind: JobKind, role: str) -> bool:
    """Whether the elasticPolicy is about this role: the workers of a PyTorchJob."""
    return kind.name == "PyTorchJob" and role == "Worker"


def with_minimum(
    kind: JobKind, policy: CompletionPolicy, replicas: int, least: int | None
) -> CompletionPolicy:
    """The policy of a PyTorchJob's workers that go on while `least` of them live."""
    if kind.name != "PyTorchJob" or least is None or not 0 < least < replicas:
        return policy
    return policy.model_copy(update={"min_failed": replicas - least + 1})


def minimum_for(kind: JobKind, wanted: Mapping[str, CompletionPolicy], counts: Mapping[str, int]) -> int:
    """The `least` by which the workers end as `wanted`; 0 for all of them."""
    policy, replicas = wanted.get("Worker", CompletionPolicy()), counts.get("Worker", 0)
    if kind.name != "PyTorchJob" or policy.min_failed is None or not 1 < policy.min_failed <= replicas:
        return 0
    return replicas - policy.min_failed + 1


def policy_for(kind: JobKind, wanted: Mapping[str, CompletionPolicy], counts: Mapping[str, int]) -> str:
    """The successPolicy by which the roles end as `wanted`, or as near to it as may be."""
    if kind.name != "TFJob":
        return ""
    dynamic = is_dynamic(kind, wanted)
    said = [completions(kind, counts, policy, dynamic=dynamic) for policy in ("", ALL_WORKERS)]
    right = [policy for policy, each in zip(("", ALL_WORKERS), said, strict=True) if each == wanted]
    if right:
        return right[0]
    worker = wanted.get("Worker")
    all_end = worker is not None and worker.min_succeeded is None and counts["Worker"] > 1
    return ALL_WORKERS if all_end and not set(kind.deciders) & counts.keys() else ""


def is_dynamic(kind: JobKind, wanted: Mapping[str, CompletionPolicy]) -> bool:
    """Whether workers of a TFJob may fail."""
    worker = wanted.get("Worker")
    return kind.name == "TFJob" and worker is not None and worker.min_failed is None


def retry_limit(policies: Collection[str], backoff: int | None) -> int | None:
    """How often a failed replica is started again: as the backoff limit says, without end, or never."""
    if all(policy == NEVER for policy in policies):
        return 0
    return backoff


def condition_for(policy: str, policies: Collection[str]) -> RestartCondition:
    """The ends of a role of this restart policy that are retried; `policies` are those of all roles.

    Where all of them are Never the job has no retries, so that nothing is left to say of a role.
    """
    if policy == EXIT_CODE:
        return RestartCondition.EXIT_CODE
    is_left_out = policy == NEVER and any(each != NEVER for each in policies)
    return RestartCondition.NEVER if is_left_out else RestartCondition.FAILURE
