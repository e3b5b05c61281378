"""Placement of a role's pods: nodes, labels, GPU types, taints and priority."""

from __future__ import annotations

from typing import Any, Final

from jobs.backends.base import Submission
from jobs.backends.kubernetes.config import KubernetesConfig
from jobs.spec import RoleSpec

Object = dict[str, Any]

_WEIGHT: Final = 100


def render(submission: Submission, role: RoleSpec, config: KubernetesConfig) -> Object:
    """Return the fields of a pod's spec that choose its node."""
    found: Object = {"tolerations": _tolerations(role, config)}
    if config.node_labels:
        found["nodeSelector"] = dict(config.node_labels)
    if affinity := _affinity(submission, role, config):
        found["affinity"] = {"nodeAffinity": affinity}
    if name := config.priority_classes.get(str(submission.spec.priority)):
        found["priorityClassName"] = name
    return found


def _tolerations(role: RoleSpec, config: KubernetesConfig) -> list[Object]:
    """Return the taints that the pods tolerate; nodes with GPUs are usually kept for those who use them."""
    keys = [*config.tolerations, *([config.gpu_resource] if role.resources.gpus else [])]
    return [{"key": key, "operator": "Exists"} for key in keys]


def _affinity(submission: Submission, role: RoleSpec, config: KubernetesConfig) -> Object:
    labels = [{"key": key, "operator": "In", "values": [value]} for key, value in role.nodes.labels.items()]
    has = role.resources
    if has.gpus and has.gpu_type:
        value = config.gpu_label_value(has.gpu_type)
        labels.append({"key": config.gpu_label, "operator": "In", "values": [value]})
    excluded = [_name("NotIn", name) for name in role.nodes.never]
    chosen = [[_name("In", name)] for name in role.nodes.only] or [[]]
    terms = [_term(labels, [*names, *excluded]) for names in chosen]
    found: Object = {}
    if any(terms):
        found["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    reserved = sorted({each.node for each in submission.reserved})
    if reserved:
        found["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": _WEIGHT, "preference": _term([], [_name("In", name)])} for name in reserved
        ]
    return found


def _term(labels: list[Object], names: list[Object]) -> Object:
    """Return a selector term, whose empty parts are left out: an empty term fits no node."""
    return {
        **({"matchExpressions": labels} if labels else {}),
        **({"matchFields": names} if names else {}),
    }


def _name(operator: str, name: str) -> Object:
    return {"key": "metadata.name", "operator": operator, "values": [name]}
