"""What others run on a cluster: rows that follow the engine's own list, and never become jobs of ours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from django.db import transaction

from jobs.backends.base import Inventory, NodeSeen, QueuedJob
from jobs.models import Attempt, OtherJob
from quotas import ledger
from quotas.amounts import Amounts
from quotas.clusters import gputypes
from quotas.models import Cluster

MOST: Final = 20_000
"""So many are shown; what the rest uses counts all the same."""

AT_ONCE: Final = 500


def of_others(cluster: Cluster, jobs: Sequence[QueuedJob]) -> list[QueuedJob]:
    """Those that are not attempts of ours.  Anybody can give a job the name of ours, but not its number,
    which the database has once the attempt was handed over.
    """
    handles = sorted({job.handle for job in jobs if job.handle})
    ours: set[str] = set()
    for first in range(0, len(handles), AT_ONCE):
        rows = Attempt.objects.filter(job__cluster=cluster, handle__in=handles[first : first + AT_ONCE])
        ours.update(rows.values_list("handle", flat=True))
    on_their_way = _on_their_way(cluster) if any(job.handle not in ours for job in jobs) else set()
    return [job for job in jobs if job.handle not in ours and not (job.handle and job.name in on_their_way)]


def _on_their_way(cluster: Cluster) -> set[str]:
    """The keys of attempts that are being handed over: their number is not known yet."""
    rows = Attempt.objects.filter(job__cluster=cluster, live=True, handle="")
    return set(rows.values_list("key", flat=True))


def book_types(cluster: Cluster, jobs: Sequence[QueuedJob]) -> None:
    """Book the GPU types that the engine gave to attempts of ours that asked for any."""
    told = {str(job.handle): job for job in jobs if job.handle and job.running and job.gpus}
    asked_any = Attempt.objects.filter(job__cluster=cluster, live=True).exclude(handle="")
    keys = ledger.untyped(cluster.pk) if told else []
    known = gputypes.names() if keys else {}
    for key, handle in asked_any.filter(key__in=keys).values_list("key", "handle"):
        if handle in told:
            ledger.rebook_types(key, gputypes.renamed(Amounts(0, 0, told[handle].gpus), known).gpus)


def nodes_used(seen: Inventory, jobs: Iterable[QueuedJob]) -> Iterator[NodeSeen]:
    """The nodes as the inventory keeps them: one on which only jobs of ours run is used by nobody else,
    although the engine gives them more than they asked for.
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
    """Make the cluster's rows what was told, touching only those that differ."""
    known = gputypes.names()
    told = {job.number: _values(job, known) for job in jobs[:MOST]}
    rows = {row.number: row for row in OtherJob.objects.filter(cluster=cluster)}
    OtherJob.objects.filter(pk__in=[row.pk for number, row in rows.items() if number not in told]).delete()
    changed = []
    for number, values in told.items():
        row = rows.get(number)
        if row is not None and any(getattr(row, name) != value for name, value in values.items()):
            for name, value in values.items():
                setattr(row, name, value)
            changed.append(row)
    if changed:
        OtherJob.objects.bulk_update(changed, _COLUMNS, batch_size=AT_ONCE // 10)
    new = [
        OtherJob(cluster=cluster, number=number, **values)
        for number, values in told.items()
        if number not in rows
    ]
    OtherJob.objects.bulk_create(new, batch_size=AT_ONCE // 10, ignore_conflicts=True)


_COLUMNS: Final = (
    "name",
    "user",
    "partition",
    "running",
    "reason",
    "cpu_milli",
    "memory_mib",
    "gpus",
    "nodes",
    "submitted_at",
    "started_at",
    "ends_at",
    "output",
)


def _values(job: QueuedJob, known: Any) -> dict[str, Any]:
    return {
        "name": job.name[:256],
        "user": job.user[:64],
        "partition": job.partition[:64],
        "running": job.running,
        "reason": job.reason[:200],
        "cpu_milli": job.cpu_milli,
        "memory_mib": job.memory_mib,
        "gpus": dict(gputypes.renamed(Amounts(0, 0, dict(job.gpus)), known).gpus),
        "nodes": list(job.nodes),
        "submitted_at": _moment(job.submitted_at),
        "started_at": _moment(job.started_at),
        "ends_at": _moment(job.ends_at),
        "output": job.output,
    }


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
