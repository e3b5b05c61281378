"""One notification for all jobs of a sweep that ended: it counts them, and is renewed with each.

The events of the jobs stay as they are, for webhooks and for rules; what people read is the summary.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from django.db.models import Count, Exists, OuterRef
from django.db.models.functions import Now

from jobs.models import Notification, NotificationEvent, Sweep, SweepRun
from jobs.models.kinds import Kind
from jobs.states import TERMINAL, State

ENDS: Final = frozenset({Kind.SUCCEEDED, Kind.PARTLY, Kind.FAILED, Kind.STOPPED})
"""Kinds of a sweep's jobs that the summary stands for."""


def find_sweeps(events: Iterable[NotificationEvent]) -> Mapping[int, Sweep]:
    """Return the sweep of each job that ended by one of the events, by the job's primary key."""
    jobs = [event.job_id for event in events if event.job_id and event.kind in ENDS]
    runs = SweepRun.objects.filter(job__in=jobs).select_related("sweep__owner", "sweep__workspace")
    return {run.job_id: run.sweep for run in runs} if jobs else {}


def count_jobs(sweep: Sweep) -> dict[str, Any]:
    """Return the values for the sentence: how many jobs of the sweep ended, and how many of them failed.

    Of several rounds the last counts.
    """
    later = SweepRun.objects.filter(
        sweep=OuterRef("sweep"), number=OuterRef("number"), round__gt=OuterRef("round")
    )
    runs = SweepRun.objects.filter(~Exists(later), sweep=sweep).order_by()
    counts = dict(runs.values_list("job__state").annotate(count=Count("pk")))
    ended = sum(count for state, count in counts.items() if State(state) in TERMINAL)
    failed = {"jobs_failed": counts[State.FAILED]} if counts.get(State.FAILED) else {}
    return {
        "sweep": sweep.public_id,
        "name": sweep.name,
        "jobs_ended": ended,
        "jobs_total": sum(counts.values()),
        **failed,
    }


def renew(event: NotificationEvent, sweep: Sweep, people: Collection[int]) -> None:
    """Bring the sweep's summary up to date after an event of one of its jobs, and show it to people anew.

    It holds the job that failed last.  For others than `people` who have it, it changes in place.
    """
    columns: dict[str, Any] = {"kind": Kind.SWEEP.value, "workspace_id": sweep.workspace_id, "routed": True}
    summary, _new = NotificationEvent.objects.get_or_create(key=f"sweep:{sweep.pk}", defaults=columns)
    # Locked by this first: of two workers the later one counts after the earlier one has committed.
    NotificationEvent.objects.filter(pk=summary.pk).update(at=Now())
    summary.refresh_from_db()
    params = {**summary.params, **count_jobs(sweep)}
    if event.kind == Kind.FAILED:
        summary.job_id, params["attempt"] = event.job_id, event.params.get("attempt")
        params["failed_name"] = event.params.get("name", "")
    summary.params = params
    summary.save(update_fields=["params", "job"])
    # A new row stands first in the list; the old one goes, so that there is one.
    Notification.objects.filter(event=summary, person__in=people).delete()
    Notification.objects.bulk_create(
        [Notification(person_id=person, event=summary) for person in people], ignore_conflicts=True
    )
