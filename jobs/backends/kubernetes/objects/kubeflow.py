"""Kubeflow's kinds: as which of them a job goes, and the object that its operator makes pods of.

What is said of the operator follows training-operator v1.9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from jobs.backends.base import Submission
from jobs.backends.kubernetes.config import KubernetesConfig
from jobs.backends.kubernetes.discovery import KUEUE, Operators
from jobs.backends.kubernetes.handles import AttemptRef
from jobs.dialects.kubeflow import keys, kinds, renderer
from jobs.dialects.kubeflow.kinds import JobKind
from jobs.node.frameworks.job import find_leader
from jobs.node.network.names import label_roles
from jobs.spec import JobSpec

Object = dict[str, Any]

INDEX_LABEL: Final = "training.kubeflow.org/replica-index"
"""The operator's label of a pod with the index of its replica."""

QUEUE_LABEL: Final = f"{KUEUE}/queue-name"


def _types(kind: JobKind, spec: JobSpec) -> list[str]:
    return kinds.types(kind, [(role.name, role.replicas) for role in spec.roles])


def _has_other_leader(kind: JobKind, spec: JobSpec) -> bool:
    types = _types(kind, spec)
    leader = types[find_leader(role.name for role in spec.roles)]
    return bool({*types} & {*kind.deciders}) and leader not in kind.deciders


PLAIN: Final[Mapping[str, Callable[[JobKind, JobSpec], bool]]] = {
    "the launcher needs a token of the cluster": lambda kind, _spec: kind.name == "MPIJob",
    "the kind has no name for a role": lambda kind, spec: "" in _types(kind, spec),
    "the kind needs a role": lambda kind, spec: bool(kind.needed) and kind.needed not in _types(kind, spec),
    "rank 0 is in another role": _has_other_leader,
    "PyTorch goes on when a replica fails": lambda kind, spec: (
        kind.name == "PyTorchJob" and any(role.completion.min_failed != 1 for role in spec.roles)
    ),
    "a pod that is ended for its sidecars would be made again": lambda _kind, spec: any(
        role.sidecars for role in spec.roles
    ),
}
"""Why a job whose kind is served goes as plain pods, and when."""


def choose_kind(spec: JobSpec, config: KubernetesConfig, operators: Operators) -> tuple[JobKind | None, str]:
    """Return the kind as which a job goes, and the queue of Kueue in which it waits, "" for none.

    The kind is one of those that the cluster serves; None for plain pods, which wait in no queue.
    """
    kind = next((each for each in kinds.KINDS if each.framework is spec.framework), None)
    if kind is None or kind.name not in operators.kinds or any(holds(kind, spec) for holds in PLAIN.values()):
        return None, ""
    return kind, spec.tags.get(QUEUE_LABEL, config.local_queue) if operators.kueue else ""


def name_roles(kind: JobKind | None, roles: Sequence[tuple[str, int]]) -> list[str]:
    """Return what stands for each role, of a name and so many replicas, in the names of its pods."""
    if kind is None:
        return label_roles(name for name, _replicas in roles)
    return [name.lower() for name in kinds.types(kind, roles)]


def port_name(kind: JobKind) -> str:
    """Return the name of the port at which the operator has replicas meet."""
    return f"{kind.name.lower()}-port"


def render_job(
    submission: Submission,
    config: KubernetesConfig,
    kind: JobKind,
    labels: Mapping[str, str],
    pods: Iterable[Object],
) -> Object:
    """Return the object of an attempt with these labels, and a pod of each role for a template.

    The console decides about ends: the operator starts nothing again, and leaves pods where they are.  What
    has the label of a queue is suspended until Kueue admits it.
    """
    spec = submission.spec
    found: Object = renderer.render_spec(spec, {})
    job: Object = found["spec"]
    specs = job[kind.specs]
    for name, pod in zip(_types(kind, spec), pods, strict=True):
        template = {
            "metadata": {"labels": pod["metadata"]["labels"]},
            "spec": {key: value for key, value in pod["spec"].items() if key != "restartPolicy"},
        }
        specs[name] |= {keys.RESTART_POLICY.key: kinds.NEVER, keys.TEMPLATE.key: template}
    priority = config.priority_classes.get(str(spec.priority))
    job.pop(keys.ELASTIC_POLICY.key, None)
    job[keys.RUN_POLICY.key] = {
        "cleanPodPolicy": "None",
        keys.BACKOFF.key: 0,
        **({keys.TIME_LIMIT.key: spec.time_limit_s} if spec.time_limit_s else {}),
        **({keys.SCHEDULING.key: {"priorityClass": priority}} if priority else {}),
        **({keys.SUSPEND.key: True} if QUEUE_LABEL in labels else {}),
    }
    return {**found, "metadata": {"name": submission.key, "labels": dict(labels)}}


def job_path(attempt: AttemptRef, kind: str) -> str:
    """Return the path of an attempt's object of a kind."""
    return f"/apis/{kinds.V1}/namespaces/{attempt.namespace}/{kind.lower()}s/{attempt.key}"
