"""Usage of ended jobs by their engine's accounting, where nobody measured them while they ran.

It becomes two samples of each replica: the beginning of its run, and the mean of all of it at its end.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import structlog
from django.db.models import F, QuerySet
from django.db.models.functions import Now
from django.db.models.lookups import Exact

from jobs.backends.base import Handle, Unreachable
from jobs.backends.measures import Accounted, AccountedUse
from jobs.clusters import NoSuchBackend, backend_for
from jobs.models import Replica, ReplicaUsage
from jobs.models.usage import Sample
from quotas.models import Cluster
from quotas.models.expressions import Unindexed

log = structlog.get_logger(__name__)

ACCOUNTED_WITHIN: Final = timedelta(minutes=15)
"""So long after its end a job is looked up: accounting may be late, or have nothing."""

MOST_REPLICAS: Final = 2000
"""Of one pass."""


def due_clusters() -> list[int]:
    """Return the clusters with replicas to look up."""
    return sorted(set(_list_due().order_by().values_list("attempt__job__cluster_id", flat=True)))


def _list_due() -> QuerySet[Replica]:
    """Return replicas of jobs that ended lately, and whose usage nobody knows."""
    return Replica.objects.filter(
        attempt__ended_at__gt=Now() - ACCOUNTED_WITHIN,
        attempt__number=F("attempt__job__attempt_number"),
        run=F("attempt__job__run_number"),
        started_at__isnull=False,
        ended_at__gt=F("started_at"),
        use=None,
    ).exclude(attempt__handle="")


def collect(cluster_id: int) -> None:
    """Store the usage of the cluster's ended jobs, by one call for all of them."""
    rows = (
        _list_due()
        .filter(Exact(Unindexed("attempt__job__cluster_id"), cluster_id))
        .select_related("attempt")
        .order_by("attempt__ended_at")
    )
    replicas = list(rows[:MOST_REPLICAS])
    if not replicas:
        return
    try:
        backend = backend_for(Cluster.objects.get(pk=cluster_id))
        if not isinstance(backend, Accounted):
            return
        found = backend.read_usage(list({Handle(each.attempt.handle): None for each in replicas}))
    except (NoSuchBackend, Unreachable) as error:
        log.warning("accounted_usage_failed", cluster=cluster_id, error=str(error))
        return
    uses = {(handle, use.role): use for handle, roles in found.items() for use in roles}
    made = [
        _row(replica, use)
        for replica in replicas
        if (use := uses.get((Handle(replica.attempt.handle), replica.role))) is not None
    ]
    ReplicaUsage.objects.bulk_create(made, ignore_conflicts=True, batch_size=200)


def _row(replica: Replica, use: AccountedUse) -> ReplicaUsage:
    assert replica.started_at is not None
    assert replica.ended_at is not None
    begin, end = replica.started_at.timestamp(), replica.ended_at.timestamp()
    cpu = None if use.cpu_s is None else round(100 * use.cpu_s / (end - begin))
    samples = [Sample(at, None, cpu, use.memory_mib) for at in (begin, end)]
    return ReplicaUsage(
        replica=replica,
        at=replica.ended_at,
        cpu_s=use.cpu_s,
        cpu_milli=None if cpu is None else 10 * cpu,
        memory_mib=use.memory_mib,
        points=samples,
    )
