"""Nodes as the engine reports them, and an admin's decisions about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from quotas import audit
from quotas.amounts import Amounts
from quotas.clusters import gputypes
from quotas.models import Action, Cluster, Node, NodeState, Reservation, User

NOTHING: Final = Amounts()

REPORTED: Final = (
    "cpu_milli",
    "memory_mib",
    "gpus",
    "gpu_list",
    "others",
    "partitions",
    "programs",
    "schedulable",
    "why",
    "seen_at",
)
"""Fields of a node that an inventory sets; all others are an admin's."""

BATCH_SIZE: Final = 200
"""Rows in one statement."""


@dataclass(frozen=True, slots=True)
class NodeReport:
    """One node as its backend reports it; `gpu_list` is shown as it is.  `programs` None: not known."""

    name: str
    amounts: Amounts
    gpu_list: Sequence[Mapping[str, Any]]
    schedulable: bool
    why: str
    programs: Sequence[str] | None = None
    used: Amounts = NOTHING
    partitions: Sequence[str] = ()


@transaction.atomic
def record(
    cluster: Cluster,
    reports: Sequence[NodeReport],
    held: Mapping[str, Amounts] | None = None,
    set_aside: Sequence[Mapping[str, Any]] = (),
    facilities: Mapping[str, Any] | None = None,
) -> None:
    """Make the cluster's nodes what was reported, GPUs under the names that quotas use.

    A node that is no longer reported is removed, or down while something is still held on it; one that is
    back takes jobs again.  What an admin decided about a node stays.

    `held` is the result of `held_on` before the engine was queried: what is used beyond that, and beyond what
    is held now, was not started from here.  `set_aside` and `facilities` are as `Cluster` has them.
    """
    before, now = held or {}, held_on(cluster)
    known = gputypes.names()
    nodes = [
        _node(cluster, report, known, before.get(report.name, Amounts()), now.get(report.name, Amounts()))
        for report in reports
    ]
    Node.objects.bulk_create(
        nodes, BATCH_SIZE, update_conflicts=True, unique_fields=("cluster", "name"), update_fields=REPORTED
    )
    names = [report.name for report in reports]
    Node.objects.filter(cluster=cluster, name__in=names, state=NodeState.DOWN).update(
        state=NodeState.SCHEDULABLE, state_at=Now()
    )
    missing = Node.objects.filter(cluster=cluster).exclude(name__in=names)
    in_use = _in_use(cluster)
    missing.filter(name__in=in_use).exclude(state=NodeState.DOWN).update(
        state=NodeState.DOWN, state_at=Now(), state_by=None, state_why=""
    )
    missing.exclude(name__in=in_use).delete()
    Cluster.objects.filter(pk=cluster.pk).update(
        answered_at=Now(),
        trouble="",
        set_aside=[dict(each) for each in set_aside],
        facilities=None if facilities is None else dict(facilities),
    )


def _node(
    cluster: Cluster, report: NodeReport, known: Mapping[str, str], before: Amounts, now: Amounts
) -> Node:
    return Node(
        cluster=cluster,
        name=report.name,
        cpu_milli=report.amounts.cpu_milli,
        memory_mib=report.amounts.memory_mib,
        gpus=dict(gputypes.canonicalize(report.amounts, known).gpus),
        others=_foreign_use(gputypes.canonicalize(report.used, known), before, now),
        gpu_list=[dict(gpu) for gpu in report.gpu_list],
        partitions=list(report.partitions),
        programs=None if report.programs is None else list(report.programs),
        schedulable=report.schedulable,
        why=report.why[:500],
        seen_at=Now(),
    )


def held_on(cluster: Cluster) -> dict[str, Amounts]:
    """Return the amounts that are held on each node of the cluster."""
    found: dict[str, Amounts] = {}
    rows = Reservation.objects.filter(cluster=cluster, active=True).values_list("placement", flat=True)
    for placement in rows:
        for node, amounts in placement:
            found[node] = found.get(node, Amounts()) + Amounts.from_json(amounts)
    return found


def _foreign_use(used: Amounts, before: Amounts, now: Amounts) -> dict[str, Any]:
    """Return what is used and not held from here, as stored; of two counts of the held the larger counts."""
    kinds = {*used.gpus, *before.gpus, *now.gpus}
    return Amounts(
        max(0, used.cpu_milli - max(before.cpu_milli, now.cpu_milli)),
        max(0, used.memory_mib - max(before.memory_mib, now.memory_mib)),
        {
            kind: max(0, used.gpus.get(kind, 0) - max(before.gpus.get(kind, 0), now.gpus.get(kind, 0)))
            for kind in kinds
        },
    ).to_json()


def _in_use(cluster: Cluster) -> set[str]:
    rows = Reservation.objects.filter(cluster=cluster, active=True).values_list("placement", flat=True)
    return {node for placement in rows for node, _amounts in placement}


def decide(
    nodes: QuerySet[Node],
    state: NodeState,
    *,
    by: User | None,
    why: str = "",
    empty_by: datetime | None = None,
) -> int:
    """Record an admin's decision about nodes; return how many there were.

    Cordoned and draining nodes start nothing; what runs on a draining one is moved elsewhere at `empty_by`.
    """
    new = {"state": str(state), "state_why": why[:500], "empty_by": empty_by}
    with transaction.atomic():
        before = list(nodes.select_for_update(of=("self",)).select_related("cluster"))
        for node in before:
            log_decision(node, new, by=by)
        Node.objects.filter(pk__in=[node.pk for node in before]).update(**new, state_by=by, state_at=Now())
    return len(before)


def log_decision(node: Node, new: Mapping[str, Any], *, by: User | None = None) -> None:
    """Write what is about to change of a node into the audit log, where anything does."""
    changes = {key: (getattr(node, key), value) for key, value in new.items() if getattr(node, key) != value}
    if changes:
        audit.log(Action.UPDATE, node, changes=changes, actor=by, name=f"{node.cluster.slug}/{node.name}")


def raw_types(cluster_id: int) -> dict[str, str]:
    """Return the engine's own name of each type of GPU that the cluster has."""
    known = gputypes.names()
    rows: Iterable[Sequence[Mapping[str, Any]]] = Node.objects.filter(cluster_id=cluster_id).values_list(
        "gpu_list", flat=True
    )
    found = {str(gpu.get("type", "")) for gpus in rows for gpu in gpus}
    return {gputypes.canonical(raw, known): raw for raw in found}
