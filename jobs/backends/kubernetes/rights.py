"""The rights that the console needs on a cluster, and a sentence for each that it lacks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from jobs.backends.base import Unreachable
from jobs.backends.kubernetes.client.api import Api, ApiError
from jobs.backends.kubernetes.config import KubernetesConfig
from jobs.backends.kubernetes.discovery import KEPT_S, Operators

CLUSTER: Final = (("nodes", "get list"), ("pods", "list watch"), ("namespaces", "list"))
"""Resources of the whole cluster, and the verbs on them."""

NAMESPACED: Final = (
    ("configmaps", "get list create patch delete deletecollection"),
    ("events", "list"),
    ("networkpolicies", "create delete"),
    ("persistentvolumeclaims", "create delete"),
    ("pods", "get list watch create delete deletecollection"),
    ("pods/exec", "get create"),
    ("pods/log", "get"),
    ("pods/portforward", "get create"),
    ("secrets", "create delete"),
    ("services", "create delete"),
)
"""Resources of each namespace of jobs, and the verbs on them (deploy/kubernetes/rbac.yaml)."""

OPERATORS: Final = {
    "PyTorchJob": ("pytorchjobs", "get create delete"),
    "TFJob": ("tfjobs", "get create delete"),
    "XGBoostJob": ("xgboostjobs", "get create delete"),
    "Kueue": ("workloads", "list"),
}
"""The same for each operator whose kind the cluster serves."""

_GROUPS: Final = {
    "networkpolicies": "networking.k8s.io",
    **dict.fromkeys(("pytorchjobs", "tfjobs", "xgboostjobs"), "kubeflow.org"),
    "workloads": "kueue.x-k8s.io",
}
_MOST_NAMESPACES: Final = 5
"""So many namespaces are asked about; there are some forty questions for each."""


def list_namespaces(api: Api, config: KubernetesConfig) -> list[str]:
    """Return the namespaces of jobs that there are."""
    if config.namespace:
        return [config.namespace]
    found = (each["metadata"]["name"] for each in api.list("/api/v1/namespaces").items)
    return sorted(name for name in found if name.startswith(config.namespace_prefix))


def find_lacking(api: Api, config: KubernetesConfig, operators: Operators) -> Iterator[str]:
    """Yield what an admin has to repair.  Raises Unreachable."""
    try:
        yield from (text for resource, verbs in CLUSTER for text in _ask(api, "", resource, verbs))
        if config.create_namespaces:
            yield from _ask(api, "", "namespaces", "create")
        namespaces = list_namespaces(api, config)
        if not namespaces and not config.create_namespaces:
            yield f"No namespace begins with {config.namespace_prefix}: create one for each workspace."
        for namespace in namespaces[:_MOST_NAMESPACES]:
            found = (OPERATORS[name] for name in operators.names if name in OPERATORS)
            for resource, verbs in (*NAMESPACED, *found):
                yield from _ask(api, namespace, resource, verbs)
    except ApiError as error:
        raise Unreachable(str(error)) from error


_usable: Final[dict[tuple[str, str], tuple[float, frozenset[str]]]] = {}
"""The server's address and a namespace → when it was asked, and the kinds that the console may use there."""


def find_usable(api: Api, server: str, namespace: str, operators: Operators) -> Operators:
    """Return the operators whose objects the console may make in a namespace, by an answer of lately.

    Jobs go as plain pods where an admin has not given the rights.  Raises ApiError or Unreachable.
    """
    asked_at, names = _usable.get((server, namespace), (0.0, frozenset()))
    if not asked_at or time.monotonic() - asked_at >= KEPT_S:
        asks = {name: OPERATORS[name] for name in operators.kinds & OPERATORS.keys()}
        names = frozenset(name for name, ask in asks.items() if not any(_ask(api, namespace, *ask)))
        _usable[server, namespace] = time.monotonic(), names
    return replace(operators, kinds=operators.kinds & names)


def _ask(api: Api, namespace: str, resource: str, verbs: str) -> Iterator[str]:
    """Yield a sentence for each verb that the console may not use."""
    name, _, part = resource.partition("/")
    for verb in verbs.split():
        about: dict[str, Any] = {"verb": verb, "resource": name, "group": _GROUPS.get(name, "")}
        if part:
            about["subresource"] = part
        if namespace:
            about["namespace"] = namespace
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": about},
        }
        answer = api.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
        if not (answer.get("status") or {}).get("allowed"):
            yield f"Missing right: {verb} {resource}" + (f" in {namespace}" if namespace else "")
