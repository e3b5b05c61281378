"""Pods of a job as GetJob answers them: those of the current run, each with those of earlier runs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Final

from django.utils import timezone

from jobs.api.vendors.operations import JsonObject, render_time
from jobs.api.vendors.pai_dlc import statuses
from jobs.api.vendors.pai_dlc.identifiers import newest_first, pod_id, pod_uid
from jobs.models import Job, Replica

MOST_ATTEMPTS: Final = 10
"""Pods are answered of so many attempts, the newest."""


def render_pods(job: Job) -> list[JsonObject]:
    """Return the pods of the newest run with their HistoryPods; one query."""
    rows = newest_first(job).filter(attempt__number__gt=job.attempt_number - MOST_ATTEMPTS)
    runs = [list(run) for _key, run in groupby(rows, lambda row: (row.attempt.number, row.run))]
    earlier: dict[tuple[str, int], list[JsonObject]] = {}
    for replica in (row for run in runs[1:] for row in run):
        earlier.setdefault((replica.role, replica.index), []).append(_render_pod(job, replica))
    return [
        {**_render_pod(job, replica), "HistoryPods": earlier.get((replica.role, replica.index), [])}
        for replica in (runs[0] if runs else ())
    ]


def _render_pod(job: Job, replica: Replica) -> JsonObject:
    duration = 0.0
    if replica.started_at is not None:
        duration = ((replica.ended_at or timezone.now()) - replica.started_at).total_seconds()
    return {
        "PodId": pod_id(job, replica),
        "PodUid": pod_uid(job, replica),
        "Type": replica.role,
        "Status": statuses.pod_status(replica, job),
        "SubStatus": statuses.pod_sub_status(replica),
        "ResourceType": "Normal",
        "Ip": "",
        "NodeName": replica.node,
        "Duration": max(0.0, duration),
        "GmtCreateTime": render_time(replica.attempt.created_at),
        "GmtStartTime": render_time(replica.started_at),
        "GmtFinishTime": render_time(replica.ended_at),
    }


def render_counts(pods: Iterable[JsonObject]) -> list[JsonObject]:
    """Return JobReplicaStatuses: for each role of these pods, how many run, wait and have ended."""
    counts: dict[str, JsonObject] = {}
    for pod in pods:
        role = counts.setdefault(
            pod["Type"],
            {"Type": pod["Type"], "Active": 0, "Queuing": 0, "Dequeued": 0, "EstimatedPodCount": 0},
        )
        role["EstimatedPodCount"] += 1
        name = {"Running": "Active", "Pending": "Queuing"}.get(pod["Status"], "Dequeued")
        role[name] += 1
    return list(counts.values())
