"""Retention: an ended job keeps its files as long as was asked, and is then deleted for good."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import F
from django.test import Client

from jobs.access.folders.retention import KEEP
from jobs.backends.base import Handle
from jobs.models import Attempt, Job
from jobs.scheduling import cleanup, reconcile
from jobs.spec import JobSpec, Reservation, RetryPolicy
from jobs.states import State
from jobs.submission import job_control
from quotas.models import Action, AuditEntry
from tests.jobs.conftest import Place, attempt_of, queued, spec
from tests.jobs.engine import MemoryEngine

pytestmark = pytest.mark.django_db

DAY_S = 24 * 3600


def retained(when: str, seconds: int = 3 * DAY_S) -> JobSpec:
    return spec(reserve_after=Reservation(seconds=seconds, when=when))


def ended(place: Place, engine: MemoryEngine, job_spec: JobSpec, code: int = 0) -> Job:
    """A job that has ended with `code`, its logs stored."""
    job = queued(place, job_spec)
    reconcile.drain(place.cluster.pk)
    handle = Handle(attempt_of(job).handle)
    engine.succeed(handle) if code == 0 else engine.fail(handle)
    reconcile.observe(place.cluster.pk)
    cleanup.seal(attempt_of(job).pk)
    job.refresh_from_db()
    assert job.state == (State.SUCCEEDED if code == 0 else State.FAILED)
    return job


def pass_time(span: timedelta) -> None:
    """Let everything that is written down have happened so much earlier."""
    Job.objects.update(ended_at=F("ended_at") - span, expires_at=F("expires_at") - span)
    Attempt.objects.update(ended_at=F("ended_at") - span, kept_until=F("kept_until") - span)


def test_retained_job_keeps_its_files_and_is_then_deleted(place: Place, engine: MemoryEngine) -> None:
    job = ended(place, engine, retained("always"))
    handle = Handle(attempt_of(job).handle)
    assert job.ended_at is not None
    assert job.expires_at == attempt_of(job).kept_until == job.ended_at + timedelta(days=3)
    pass_time(timedelta(days=2))
    cleanup.clean_up()
    assert (engine.forgotten, Job.objects.get(pk=job.pk).deleted_at) == ([], None)
    pass_time(timedelta(days=1))
    cleanup.clean_up()
    assert engine.forgotten == [handle]
    assert not Job.objects.filter(pk=job.pk).exists()
    entry = AuditEntry.objects.get(action=Action.DELETE, object_repr=job.public_id)
    assert entry.actor is None
    assert "expires_at" in entry.details


def test_short_retention_deletes_the_job_before_its_files_would_go(
    place: Place, engine: MemoryEngine
) -> None:
    job = ended(place, engine, retained("always", seconds=600))
    pass_time(timedelta(seconds=601))
    cleanup.clean_up()
    assert not Job.objects.filter(pk=job.pk).exists()


@pytest.mark.parametrize(
    ("when", "code", "is_retained"),
    [
        ("failed", 1, True),
        ("failed", 0, False),
        ("succeeded", 0, True),
        ("succeeded", 1, False),
    ],
)
def test_retention_applies_to_the_results_that_it_names(
    place: Place, engine: MemoryEngine, when: str, code: int, is_retained: bool
) -> None:
    job = ended(place, engine, retained(when), code)
    assert (job.expires_at is not None) is is_retained
    pass_time(timedelta(days=30))
    cleanup.clean_up()
    assert Job.objects.filter(pk=job.pk).exists() is not is_retained
    assert len(engine.forgotten) == 1, "its files go in either case"


def test_retention_keeps_the_files_of_earlier_attempts(place: Place, engine: MemoryEngine) -> None:
    job_spec = retained("failed").model_copy(update={"retry": RetryPolicy(limit=1)})
    job = queued(place, job_spec)
    reconcile.drain(place.cluster.pk)
    first = attempt_of(job)
    engine.fail(Handle(first.handle))
    reconcile.observe(place.cluster.pk)
    cleanup.seal(first.pk)
    first.refresh_from_db()
    assert first.ended_at is not None
    assert first.kept_until == first.ended_at + KEEP, "nobody knows yet how the job will end"
    Attempt.objects.filter(job=job).update(created_at=F("created_at") - timedelta(hours=1))
    Job.objects.filter(pk=job.pk).update(state=State.FAILED, ended_at=first.ended_at)
    second = attempt_of(job)
    Attempt.objects.filter(pk=second.pk).update(ended_at=first.ended_at)
    cleanup.seal(second.pk)
    kept = set(Attempt.objects.filter(job=job).values_list("kept_until", flat=True))
    assert kept == {first.ended_at + timedelta(days=3)}


def test_job_without_retention_stays_when_its_files_have_gone(place: Place, engine: MemoryEngine) -> None:
    job = ended(place, engine, spec())
    pass_time(KEEP + timedelta(seconds=1))
    cleanup.clean_up()
    assert len(engine.forgotten) == 1
    assert Job.objects.get(pk=job.pk).deleted_at is None


def test_files_stored_by_an_earlier_release_go_after_a_week(place: Place, engine: MemoryEngine) -> None:
    ended(place, engine, spec())
    Attempt.objects.update(kept_until=None)
    pass_time(timedelta(days=6))
    cleanup.clean_up()
    assert engine.forgotten == []
    pass_time(timedelta(days=2))
    cleanup.clean_up()
    assert len(engine.forgotten) == 1


def test_files_are_kept_longer_on_request(place: Place, engine: MemoryEngine, client: Client) -> None:
    job = ended(place, engine, spec())
    client.force_login(place.owner)
    address = f"/jobs/{job.public_id}/files/keep"
    client.post(address)
    pass_time(timedelta(days=29))
    cleanup.clean_up()
    assert engine.forgotten == []
    assert AuditEntry.objects.filter(action=Action.UPDATE, object_repr=job.public_id).count() == 1
    pass_time(timedelta(days=2))
    client.post(address)
    cleanup.clean_up()
    assert engine.forgotten == [Handle(attempt_of(job).handle)], "their time was over when it was asked again"


def test_files_are_kept_no_longer_than_the_job(place: Place, engine: MemoryEngine) -> None:
    job = ended(place, engine, retained("always"))
    assert job_control.keep_files(place.owner, job) == job.expires_at
