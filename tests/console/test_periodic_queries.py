"""What workers do costs the same however many jobs have ended: every task, and a job from start to end."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from importlib import import_module
from typing import Any

import pytest
from django.db import connection
from django.db.models import Model
from django.utils import timezone

from console.celery import app
from console.home import CHECKOUT
from jobs.backends.base import Handle, QueuedJob
from jobs.models import Attempt, Draft, DryRun, Event, Job, LogChunk, LogStream, StackDump
from jobs.scheduling import cleanup, reconcile
from quotas.models import AuditEntry, Request, UsageHour, UsageMark
from tests import query_plans
from tests.jobs.conftest import Place, attempt_of, engine, place, queued
from tests.jobs.engine import MemoryEngine

pytestmark = pytest.mark.django_db

__all__ = ["engine", "place"]

ADDED = 400

BOUNDED = {
    # As many as admins and people make.
    "quotas_cluster",
    "quotas_gputype",
    "quotas_node",
    "quotas_pricespan",
    "quotas_quota",
    "quotas_workspace",
    "jobs_logsink",
    "jobs_notificationrule",
    "jobs_quotalevel",
    "jobs_retentionpolicy",
    # People who signed in by a provider.
    "quotas_grant",
    # One row for each log that is read for training metrics now; it goes when the log ends.
    "jobs_metricscursor",
    # Uploaded files: only a look at all, every ten minutes, finds those that nothing refers to any more.
    "jobs_storedobject",
}
"""Tables of which a pass may read all."""


def end(place: Place, engine: MemoryEngine, job: Job) -> Job:
    """Take the job through all its states, and store its logs."""
    reconcile.drain(place.cluster.pk)
    handle = Handle(attempt_of(job).handle)
    engine.run(handle)
    reconcile.observe(place.cluster.pk)
    engine.succeed(handle)
    reconcile.observe(place.cluster.pk)
    cleanup.seal(attempt_of(job).pk)
    cleanup.clean_up()
    job.refresh_from_db()
    return job


def make_open_work(place: Place, engine: MemoryEngine) -> Attempt:
    """One job in each unfinished state; returns an ended attempt whose logs are not stored."""
    running, ending, sending, _pending = (queued(place) for _ in range(4))
    reconcile.drain(place.cluster.pk)
    engine.run(Handle(attempt_of(running).handle))
    engine.succeed(Handle(attempt_of(ending).handle))
    reconcile.observe(place.cluster.pk)
    Job.objects.filter(pk=sending.pk).update(state="SUBMITTING")
    Attempt.objects.filter(job=sending).update(handle="", live=False)
    queued(place)
    return attempt_of(ending)


def list_tasks(**arguments: Any) -> dict[str, Callable[[], object]]:
    """Return every task of the console with its arguments."""
    for path in CHECKOUT.glob("*/tasks.py"):
        import_module(f"{path.parent.name}.tasks")
    found: dict[str, Callable[[], object]] = {}
    for name, task in app.tasks.items():
        if not name.startswith("celery."):
            parameters = inspect.signature(task.run).parameters
            found[name] = partial(task.run, **{each: arguments[each] for each in parameters})
    return found


def test_work_costs_the_same_however_many_jobs_ended(place: Place, engine: MemoryEngine) -> None:
    ended = end(place, engine, queued(place))
    attempt = attempt_of(ended)
    LogChunk.objects.create(stream=LogStream.objects.get(attempt=attempt), offset=0, length=1)
    old: list[Model] = [
        ended,
        Request.objects.get(holder=attempt.key),
        AuditEntry.objects.create(action="read"),
    ]
    old.append(
        DryRun.objects.create(
            state="done", ended_at=timezone.now(), owner=place.owner, cluster=place.cluster, quota=place.quota
        )
    )
    StackDump.objects.create(attempt=attempt, state="done", ended_at=timezone.now())
    query_plans.make_older(old, timedelta(days=40))
    booked = timezone.now() - timedelta(hours=2)
    UsageHour.objects.create(quota=place.quota, hour=booked.replace(minute=0, second=0, microsecond=0))
    UsageMark.objects.create(pk=1, until=booked)
    for _time in range(2):
        for call in list_tasks(cluster_id=place.cluster.pk, attempt_id=attempt.pk).values():
            call()
    UsageHour.objects.filter(hour__gt=booked).delete()
    UsageMark.objects.update(until=booked)
    engine.queue = (QueuedJob("7", "theirs", "bob", running=True, handle=Handle("7")),)
    unsealed = make_open_work(place, engine)
    calls = list_tasks(cluster_id=place.cluster.pk, attempt_id=unsealed.pk)
    assert "jobs.tasks.sweep" in calls
    calls["a job"] = lambda: end(place, engine, queued(place))

    def grow() -> int:
        hours = (booked - timedelta(hours=number) for number in range(1, ADDED))
        UsageHour.objects.bulk_create(UsageHour(quota=place.quota, hour=hour) for hour in hours)
        return query_plans.multiply(old, ADDED)

    reports = query_plans.find_growing(calls, grow, bounded=BOUNDED)
    assert not reports, "\n".join(reports)


def test_statement_that_reads_every_added_row_is_reported(place: Place) -> None:
    event = Event.objects.create(job=queued(place), kind=Event.Kind.SUBMITTED)
    calls = {
        "all": lambda: list(Event.objects.filter(attempt=7).order_by()),
        "own": lambda: list(Event.objects.filter(pk=event.pk)),
        "empty": lambda: list(Draft.objects.filter(name="x").order_by()),
    }
    reports = query_plans.find_growing(calls, lambda: query_plans.multiply([event], ADDED), bounded=())
    names = ["all", "empty"] if connection.vendor == "sqlite" else ["all"]
    assert [report.partition(":")[0] for report in reports] == names
