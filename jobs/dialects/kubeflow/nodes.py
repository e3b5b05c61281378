"""Which nodes: labels, names by way of an affinity, and the type of GPU that feature discovery labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.dialects.rendering import Document
from jobs.spec import NodeChoice

HOSTNAME: Final = "kubernetes.io/hostname"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def names(affinity: object) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The nodes to run on and those to keep away from; None for any other affinity."""
    found: dict[str, tuple[str, ...]] = {}
    try:
        expressions = affinity["nodeAffinity"][_REQUIRED]["nodeSelectorTerms"][0]["matchExpressions"]  # type: ignore[index]
        for each in expressions:
            found[each["operator"]] = tuple(each["values"])
    except (TypeError, KeyError, IndexError):
        return None
    only, never = found.get("In", ()), found.get("NotIn", ())
    strings = all(isinstance(name, str) for name in (*only, *never))
    return (only, never) if strings and document(NodeChoice(only=only, never=never)) == affinity else None


def document(nodes: NodeChoice) -> Document:
    """The affinity that says the names; empty when there are none."""
    expressions: list[Mapping[str, object]] = [
        {"key": HOSTNAME, "operator": operator, "values": list(values)}
        for operator, values in (("In", nodes.only), ("NotIn", nodes.never))
        if values
    ]
    if not expressions:
        return {}
    return {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}}
