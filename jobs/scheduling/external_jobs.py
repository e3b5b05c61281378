"""External jobs of a cluster: rows that follow the backend's own list, and never become jobs of ours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from django.db import transaction
from django.db.models.lookups import Exact

from jobs.backends.base import Inventory, NodeSeen, QueuedJob
from jobs.models import Attempt, ExternalJob
from jobs.scheduling.observations import assign, moment
from quotas import ledger
from quotas.amounts import Amounts
from quotas.clusters import gputypes
from quotas.models import Cluster
from quotas.models.expressions import Unindexed

MOST: Final = 20_000
"""Number of stored rows; the resources of further ones count all the same."""

AT_ONCE: Final = 500


def select_external(cluster: Cluster, jobs: Sequence[QueuedJob]) -> list[QueuedJob]:
    """Return those that are not attempts of ours.

    Anybody can give a job the name of ours, but not its number, which the database has after the submission.
    """
    handles = sorted({job.handle for job in jobs if job.handle})
    ours: set[str] = set()
    is_here = Exact(Unindexed("job__cluster_id"), cluster.pk)
    for first in range(0, len(handles), AT_ONCE):
        rows = Attempt.objects.filter(is_here, handle__in=handles[first : first + AT_ONCE])
        ours.update(rows.values_list("handle", flat=True))
    submitting: set[str] = set()  # attempts whose number is not known yet
    if any(job.handle not in ours for job in jobs):
        attempts = Attempt.objects.filter(is_here, live=True, handle="")
        submitting.update(attempts.values_list("key", flat=True))
    return [job for job in jobs if job.handle not in ours and not (job.handle and job.name in submitting)]


def book_types(cluster: Cluster, jobs: Sequence[QueuedJob]) -> None:
    """Book the GPU types that the backend allocated to attempts that asked for any."""
    running = {str(job.handle): job for job in jobs if job.handle and job.running and job.gpus}
    attempts = Attempt.objects.filter(live=True, job__cluster=cluster).exclude(handle="")
    keys = ledger.holders_without_types(cluster.pk) if running else []
    known = gputypes.names() if keys else {}
    for key, handle in attempts.filter(key__in=keys).values_list("key", "handle"):
        if handle in running:
            ledger.rebook_types(key, gputypes.canonicalize(Amounts(0, 0, running[handle].gpus), known).gpus)


def nodes_used(seen: Inventory, jobs: Iterable[QueuedJob]) -> Iterator[NodeSeen]:
    """Yield the nodes as the inventory stores them.

    A node on which only jobs of ours run has everything free, although the backend gives them more than they
    asked for.
    """
    busy = {node for job in jobs for node in job.nodes}
    for node in seen.nodes:
        if node.name in busy:
            yield node
            continue
        yield replace(
            node,
            free_cpu_milli=node.cpu_milli,
            free_memory_mib=node.memory_mib,
            free_gpus=tuple(gpu.index for gpu in node.gpus),
        )


@transaction.atomic
def record(cluster: Cluster, jobs: Sequence[QueuedJob]) -> None:
    """Make the cluster's rows those of the backend's list, touching only those that differ."""
    known = gputypes.names()
    found = {job.number: _values(job, known) for job in jobs[:MOST]}
    rows = {row.number: row for row in ExternalJob.objects.filter(cluster=cluster)}
    ExternalJob.objects.filter(
        pk__in=[row.pk for number, row in rows.items() if number not in found]
    ).delete()
    changed = [row for number, row in rows.items() if number in found and assign(row, found[number])]
    if changed:
        ExternalJob.objects.bulk_update(changed, list(found[changed[0].number]), batch_size=AT_ONCE // 10)
    new = [
        ExternalJob(cluster=cluster, number=number, **values)
        for number, values in found.items()
        if number not in rows
    ]
    ExternalJob.objects.bulk_create(new, batch_size=AT_ONCE // 10, ignore_conflicts=True)


def _values(job: QueuedJob, known: Any) -> dict[str, Any]:
    return {
        "name": job.name[:256],
        "user": job.user[:64],
        "partition": job.partition[:64],
        "running": job.running,
        "reason": job.reason[:200],
        "cpu_milli": job.cpu_milli,
        "memory_mib": job.memory_mib,
        "gpus": dict(gputypes.canonicalize(Amounts(0, 0, dict(job.gpus)), known).gpus),
        "nodes": list(job.nodes),
        "submitted_at": moment(job.submitted_at),
        "started_at": moment(job.started_at),
        "ends_at": moment(job.ends_at),
        "output": job.output,
    }
