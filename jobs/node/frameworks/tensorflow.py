"""TensorFlow: the cluster of TF_CONFIG.

An evaluator is no part of the cluster: its own task names it alone (TensorFlow's guide to distributed
training; Kubeflow's operator does so too).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

_ROLES: Final = frozenset({"chief", "master", "ps", "worker", "evaluator"})
_EVALUATOR: Final = "evaluator"


def has_config(framework: str | None, roles: Mapping[str, int]) -> bool:
    """Return whether the job is TensorFlow's, or its several replicas have the names of TensorFlow's roles.

    TensorFlow 1 refuses to start when TF_CONFIG names roles that it does not know.
    """
    has_its_roles = {name.lower() for name in roles} <= _ROLES
    return framework == "tensorflow" or (sum(roles.values()) > 1 and has_its_roles)


def cluster_roles(names: Iterable[str]) -> list[tuple[int, str]]:
    """Return the position of each role of the cluster, and its name there."""
    return [(at, name.lower()) for at, name in enumerate(names) if name.lower() != _EVALUATOR]
