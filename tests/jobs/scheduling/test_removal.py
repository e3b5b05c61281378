"""Removal by the retention of workspaces: what is due goes in small steps, once, and is counted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.core.exceptions import ValidationError
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.db import connection, transaction
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from jobs.access.folders import retention
from jobs.logs import log_store
from jobs.models import (
    Attempt,
    Event,
    Job,
    LogChunk,
    LogStream,
    RetentionDays,
    RetentionKind,
    RetentionPolicy,
    RetentionTally,
    StoredObject,
    TreeUse,
    UploadedTree,
)
from jobs.models.retention import load_days, load_days_of
from jobs.scheduling import cleanup, removal
from jobs.scheduling.removal import RemovalEstimate
from jobs.states import State
from jobs.submission import job_control
from quotas.models import Action, AuditEntry, Workspace
from tests.factories import attempt_of, make_job, make_quota, make_workspace

pytestmark = pytest.mark.django_db

LOG = b"epoch 1\n"


def ended(days_ago: int, workspace: Workspace | None = None, state: State = State.SUCCEEDED) -> Job:
    """A job that ended then, with a stored log, events and uploaded code; its folders are gone."""
    job = make_job(state, quota=make_quota(workspace) if workspace else None)
    moment = timezone.now() - timedelta(days=days_ago, minutes=1)
    Job.objects.filter(pk=job.pk).update(ended_at=moment)
    attempt = attempt_of(job)
    Attempt.objects.filter(pk=attempt.pk).update(
        ended_at=moment, logs_sealed_at=moment, forgotten_at=moment, kept_until=moment, live=False
    )
    LogStream.objects.filter(attempt=attempt).delete()
    stream = LogStream.objects.create(
        attempt=attempt, role="worker", sealed=True, state=LogStream.State.COMPLETE, size=len(LOG)
    )
    name = storages["logs"].save(f"{stream.pk}/0", ContentFile(LOG))
    LogChunk.objects.create(stream=stream, offset=0, length=len(LOG), storage_name=name)
    Event.objects.create(job=job, kind=Event.Kind.ENDED)
    manifest = StoredObject.objects.create(name=f"tree-{job.pk}")
    tree = UploadedTree.objects.create(
        sha256=f"{job.pk:064}", files=1, size=100, manifest=manifest, kept_until=timezone.now()
    )
    TreeUse.objects.create(tree=tree, job=job)
    job.refresh_from_db()
    return job


def keep(workspace: Workspace | None = None, **days: int) -> RetentionPolicy:
    policy, _is_new = RetentionPolicy.objects.update_or_create(workspace=workspace, defaults=days)
    return policy


def has_log(job: Job) -> bool:
    return LogChunk.objects.filter(stream__attempt__job=job).exists()


def test_nothing_is_removed_without_a_policy() -> None:
    job = ended(3000)
    assert not removal.remove_due()
    assert Job.objects.get(pk=job.pk).deleted_at is None
    assert has_log(job)


def test_each_kind_goes_after_its_own_days() -> None:
    old, fresh = ended(31), ended(29)
    stored = LogChunk.objects.get(stream__attempt__job=old).storage_name
    keep(logs=30, events=30, uploads=30)
    removal.remove_due()
    stream = LogStream.objects.get(attempt__job=old)
    assert (stream.state, stream.size, has_log(old)) == (LogStream.State.GONE, 0, False)
    assert log_store.read(stream, 0, 100).data == b""
    assert not storages["logs"].exists(stored)
    assert not Event.objects.filter(job=old).exists()
    assert not TreeUse.objects.filter(job=old).exists()
    assert Job.objects.get(pk=old.pk).deleted_at is None
    assert has_log(fresh)
    assert Event.objects.filter(job=fresh).exists()
    assert TreeUse.objects.filter(job=fresh).exists()


def test_jobs_past_their_days_go_with_all_that_they_have() -> None:
    old, fresh = ended(31), ended(29)
    stored = LogChunk.objects.get(stream__attempt__job=old).storage_name
    keep(jobs=30)
    removal.remove_due()
    cleanup.clean_up()
    assert list(Job.objects.filter(pk__in=[old.pk, fresh.pk])) == [fresh]
    assert not storages["logs"].exists(stored)
    assert not AuditEntry.objects.filter(action=Action.DELETE).exists(), "one entry a day, not one a job"


@pytest.mark.parametrize("state", [State.QUEUED, State.RUNNING, State.LOST])
def test_unfinished_jobs_are_never_due(state: State) -> None:
    job = ended(400, state=state)
    keep(jobs=1, logs=1, events=1, uploads=1)
    removal.remove_due()
    assert Job.objects.get(pk=job.pk).deleted_at is None
    assert has_log(job)
    assert Event.objects.filter(job=job).exists()


def test_kept_job_is_not_touched_until_it_is_over() -> None:
    job = ended(400)
    Attempt.objects.filter(job=job).update(forgotten_at=None, kept_until=timezone.now() + timedelta(hours=1))
    job_control.keep_files(job.owner, job)
    keep(jobs=30, logs=30, events=30, uploads=30)
    removal.remove_due()
    assert Job.objects.get(pk=job.pk).deleted_at is None
    assert has_log(job)
    Attempt.objects.filter(job=job).update(kept_until=F("kept_until") - timedelta(days=31))
    removal.remove_due()
    assert Job.objects.get(pk=job.pk).deleted_at is not None


def test_job_with_a_longer_retention_of_its_own_stays() -> None:
    job = ended(400)
    Job.objects.filter(pk=job.pk).update(expires_at=timezone.now() + timedelta(days=1))
    keep(jobs=30)
    removal.remove_due()
    assert Job.objects.get(pk=job.pk).deleted_at is None


def test_workspace_has_its_own_days_within_the_sites() -> None:
    vision, speech = make_workspace("vision"), make_workspace("speech")
    keep(jobs=90, logs=60)
    keep(vision, logs=7)
    assert load_days()[vision.pk] == load_days_of(vision.pk) == RetentionDays(jobs=90, logs=7)
    assert load_days()[speech.pk] == RetentionDays(jobs=90, logs=60)
    with pytest.raises(ValidationError, match="At most 60 days"):
        RetentionPolicy(workspace=vision, logs=61).full_clean()
    with pytest.raises(ValidationError, match="jobs are deleted then"):
        RetentionPolicy(jobs=10, events=11).full_clean()
    keep(logs=5)
    assert load_days_of(vision.pk).logs == 5, "a shorter default of the site applies at once"


def test_interrupted_removal_is_finished_and_counted_once() -> None:
    job = ended(31)
    keep(logs=30)
    stream = LogStream.objects.get(attempt__job=job)
    stored = LogChunk.objects.get(stream=stream).storage_name
    with transaction.atomic():  # what a process that is killed here leaves: no files, all rows
        log_store.remove(stream)
        transaction.set_rollback(True)
    assert not storages["logs"].exists(stored)
    assert has_log(job)
    removal.remove_due()
    removal.remove_due()
    assert not has_log(job)
    tally = RetentionTally.objects.get(kind=RetentionKind.LOGS)
    assert (tally.count, tally.size) == (1, len(LOG))


def test_pass_takes_a_batch_and_says_that_more_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "BATCH", 2)
    jobs = [ended(40 + number) for number in range(3)]
    keep(events=30)
    assert removal.remove_due()
    left = Event.objects.filter(job__in=jobs).values_list("job", flat=True)
    assert list(left) == [jobs[0].pk], "the oldest go first"
    assert not removal.remove_due()
    assert not Event.objects.filter(job__in=jobs).exists()


def test_audit_log_has_one_entry_a_day_for_a_workspace() -> None:
    workspace = make_workspace("vision")
    for _number in range(3):
        ended(31, workspace)
    keep(logs=30, events=30)
    removal.remove_due()
    tidied = AuditEntry.objects.filter(action=Action.TIDY)
    assert not tidied.exists(), "the day is not over"
    today = datetime.now(UTC).date()
    RetentionTally.objects.update(day=today - timedelta(days=1))
    removal.remove_due()
    removal.remove_due()
    entry = tidied.get()
    assert entry.workspace == workspace
    assert entry.details == {
        "day": (today - timedelta(days=1)).isoformat(),
        "removed": {
            "events": {"count": 3, "bytes": 0},
            "logs": {"count": 3, "bytes": 3 * len(LOG)},
        },
    }
    assert not RetentionTally.objects.exists()


def test_estimate_names_counts_and_bytes_by_workspace() -> None:
    vision, speech = make_workspace("vision"), make_workspace("speech")
    ended(31, vision)
    ended(95, vision)
    ended(31, speech)
    now = timezone.now()
    days = load_days(RetentionPolicy(jobs=90, logs=30, events=30, uploads=30))
    with CaptureQueriesContext(connection) as queries:
        found = removal.estimate(days, now)
    assert len(queries) == 7, "whatever the number of workspaces"
    one = {
        RetentionKind.LOGS: RemovalEstimate(1, len(LOG)),
        RetentionKind.EVENTS: RemovalEstimate(1, 0),
        RetentionKind.UPLOADS: RemovalEstimate(1, 100),
    }
    assert found == {
        vision.pk: {RetentionKind.JOBS: RemovalEstimate(1, len(LOG)), **one},
        speech.pk: one,
    }
    assert Job.objects.filter(deleted_at=None).count() == 3, "nothing is removed by it"


def test_folders_are_kept_for_the_days_of_their_workspace() -> None:
    vision = make_workspace("vision")
    keep(vision, folders=7)
    for workspace, kept in ((vision, timedelta(days=7)), (make_workspace("speech"), retention.KEEP)):
        attempt = attempt_of(ended(0, workspace))
        Attempt.objects.filter(pk=attempt.pk).update(kept_until=None)
        attempt.refresh_from_db()
        retention.decide(attempt)
        attempt.refresh_from_db()
        assert attempt.ended_at is not None
        assert attempt.kept_until == attempt.ended_at + kept
