"""Jobs as rows of CSV."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from jobs.models import Job
from quotas import sheets

MOST: Final = 5000
"""At most so many jobs are exported at a time."""

HEADINGS: Final = (
    *("id", "name", "state", "reason", "owner", "workspace", "cluster", "quota"),
    *("gpu_type", "gpus", "replicas", "priority", "submitted", "started", "ended"),
)


def csv_of(jobs: Iterable[Job]) -> bytes:
    """Return jobs as CSV; their owners, workspaces, clusters and quotas have to be loaded."""
    return sheets.lines([HEADINGS, *map(_row, jobs)])


def _row(job: Job) -> tuple[object, ...]:
    times = (each.isoformat() if each else "" for each in (job.created_at, job.started_at, job.ended_at))
    return (
        *(job.public_id, job.name, job.state, job.reason_code, job.owner.get_username()),
        *(job.workspace.slug, job.cluster.slug, job.quota.slug),
        *(job.gpu_type, job.gpus, job.replicas_total, job.priority),
        *times,
    )
