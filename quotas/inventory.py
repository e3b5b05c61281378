"""Nodes as the engine told them, and machines as admission sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models.functions import Now

from quotas.admission import Ceiling, Machine
from quotas.amounts import Amounts
from quotas.ledger import Held
from quotas.models import Cluster, Node, Quota


@dataclass(frozen=True, slots=True)
class NodeReport:
    """One node as its backend reports it; `gpu_list` is shown as it is."""

    name: str
    amounts: Amounts
    gpu_list: Sequence[Mapping[str, Any]]
    schedulable: bool
    why: str


def record(cluster: Cluster, reports: Sequence[NodeReport]) -> None:
    """Make the cluster's nodes what was reported; nodes no longer reported are removed.

    Whether a known node may be used stays as it is: that belongs to the admin.
    """
    for report in reports:
        Node.objects.update_or_create(
            cluster=cluster,
            name=report.name,
            defaults={
                "cpu_milli": report.amounts.cpu_milli,
                "memory_mib": report.amounts.memory_mib,
                "gpus": dict(report.amounts.gpus),
                "gpu_list": [dict(gpu) for gpu in report.gpu_list],
                "seen_at": Now(),
            },
            create_defaults={
                "cpu_milli": report.amounts.cpu_milli,
                "memory_mib": report.amounts.memory_mib,
                "gpus": dict(report.amounts.gpus),
                "gpu_list": [dict(gpu) for gpu in report.gpu_list],
                "schedulable": report.schedulable,
                "why": report.why,
                "seen_at": Now(),
            },
        )
    Node.objects.filter(cluster=cluster).exclude(name__in=[report.name for report in reports]).delete()
    Cluster.objects.filter(pk=cluster.pk).update(answered_at=Now(), trouble="")


def machines_of(cluster: Cluster, held: Held) -> list[Machine]:
    """The cluster's schedulable nodes, less what is held on them."""
    machines = []
    for node in Node.objects.filter(cluster=cluster, schedulable=True).order_by("name"):
        has = Amounts(node.cpu_milli, node.memory_mib, dict(node.gpus))
        machines.append(Machine(node.name, has, _less(has, held.by_node.get(node.name, Amounts()))))
    return machines


def ceilings_of(quotas: Sequence[Quota], held: Held) -> dict[int, Ceiling]:
    """Each quota's limits beside what is held under it."""
    return {
        quota.pk: Ceiling(
            name=quota.name,
            cpu_milli=quota.cpu_milli,
            memory_mib=quota.memory_mib,
            gpus=quota.gpus,
            gpus_by_type=dict(quota.gpus_by_type),
            jobs=quota.most_jobs,
            held=held.by_quota.get(quota.pk, Amounts()),
            holders=held.holders_by_quota.get(quota.pk, 0),
        )
        for quota in quotas
    }


def _less(has: Amounts, held: Amounts) -> Amounts:
    return Amounts(
        has.cpu_milli - held.cpu_milli,
        has.memory_mib - held.memory_mib,
        {kind: count - held.gpus.get(kind, 0) for kind, count in has.gpus.items()},
    )
