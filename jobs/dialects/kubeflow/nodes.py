"""Which nodes: labels, names by way of an affinity, and the type of GPU that feature discovery labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jobs.dialects.rendering import JsonObject
from jobs.spec import NodeChoice

HOSTNAME: Final = "kubernetes.io/hostname"
_NODES: Final = "nodeAffinity"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def names(affinity: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The nodes to run on and those to keep away from; None for any other affinity to nodes.

    Affinities to pods beside it are kept, and don't matter here.
    """
    found: dict[str, tuple[str, ...]] = {}
    try:
        expressions = affinity[_NODES][_REQUIRED]["nodeSelectorTerms"][0]["matchExpressions"]
        for each in expressions:
            found[each["operator"]] = tuple(each["values"])
    except (TypeError, KeyError, IndexError):
        return None
    only, never = found.get("In", ()), found.get("NotIn", ())
    strings = all(isinstance(name, str) for name in (*only, *never))
    if not strings:
        return None
    same = document(NodeChoice(only=only, never=never)).get(_NODES) == affinity[_NODES]
    return (only, never) if same else None


def document(nodes: NodeChoice) -> JsonObject:
    """The affinity that says the names; empty when there are none."""
    expressions: list[Mapping[str, object]] = [
        {"key": HOSTNAME, "operator": operator, "values": list(values)}
        for operator, values in (("In", nodes.only), ("NotIn", nodes.never))
        if values
    ]
    if not expressions:
        return {}
    return {_NODES: {_REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}}
