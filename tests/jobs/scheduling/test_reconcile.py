"""What workers do: each job started once, ended as it ended, whatever gets lost on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from jobs import submission
from jobs.backends.base import Handle, Unreachable
from jobs.models import Attempt, Event, Job, LogStream, Replica, Run
from jobs.scheduling import admission, cleanup, observations, reconcile
from jobs.spec import (
    CompletionPolicy,
    Resources,
    RestartCondition,
    RestartPolicy,
    RetryPolicy,
    RoleSpec,
)
from jobs.states import Reason, ReasonCode, State
from quotas.billing import ledger_days
from quotas.models import Node, Request, Reservation
from tests.jobs.conftest import Place, attempt_of, queued, spec
from tests.jobs.engine import MemoryEngine

pytestmark = pytest.mark.django_db


def handle_of(job: Job) -> Handle:
    return Handle(attempt_of(job).handle)


def active() -> int:
    return Reservation.objects.filter(active=True).count()


def expire_leases() -> None:
    Attempt.objects.exclude(lease_until=None).update(lease_until="2020-01-01T00:00:00Z")


def look(place: Place) -> None:
    reconcile.observe(place.cluster.pk)


def test_reconcile_takes_job_from_queue_to_end(place: Place, engine: MemoryEngine) -> None:
    job = queued(place)
    reconcile.drain(place.cluster.pk)
    job.refresh_from_db()
    assert (job.state, active()) == (State.PENDING, 1)
    engine.run(handle_of(job))
    look(place)
    job.refresh_from_db()
    assert (job.state, job.replicas_running, job.started_at is not None) == (State.RUNNING, 1, True)
    engine.succeed(handle_of(job))
    look(place)
    job.refresh_from_db()
    assert (job.state, job.replicas_running, active()) == (State.SUCCEEDED, 0, 0)
    kinds = list(Event.objects.filter(job=job).values_list("kind", flat=True))
    assert kinds == ["submitted", "admitted", "accepted", "task_started", "started", "task_ended", "ended"]
    assert engine.starts == {attempt_of(job).key: 1}


def test_ended_job_is_charged_from_true_start_to_true_end(place: Place, engine: MemoryEngine) -> None:
    job = queued(place)
    reconcile.drain(place.cluster.pk)
    admitted = timezone.now() - timedelta(seconds=60)
    Reservation.objects.update(created_at=admitted)
    engine.succeed(handle_of(job))
    began, over = admitted + timedelta(seconds=2), admitted + timedelta(seconds=27)
    seen = engine.jobs[handle_of(job)]
    engine.jobs[handle_of(job)] = replace(seen, started_at=began.timestamp(), ended_at=over.timestamp())
    look(place)
    job.refresh_from_db()
    row, attempt, run = Reservation.objects.get(), attempt_of(job), Run.objects.get()
    assert {job.started_at, row.started_at, attempt.started_at, run.started_at} == {began}
    assert {job.ended_at, row.released_at, attempt.ended_at, run.ended_at} == {over}


@pytest.mark.parametrize(("began", "over"), [(-3600, -1800), (3600, 7200)])
def test_reservation_keeps_its_bounds_with_wrong_engine_clock(
    place: Place, engine: MemoryEngine, began: int, over: int
) -> None:
    job = queued(place)
    reconcile.drain(place.cluster.pk)
    now = timezone.now().timestamp()
    engine.succeed(handle_of(job))
    seen = engine.jobs[handle_of(job)]
    engine.jobs[handle_of(job)] = replace(seen, started_at=now + began, ended_at=now + over)
    look(place)
    row, attempt = Reservation.objects.get(), attempt_of(job)
    assert row.created_at <= row.started_at <= row.released_at <= timezone.now()  # type: ignore[operator]
    assert (attempt.started_at, attempt.ended_at) == (row.started_at, row.released_at)


def test_job_never_seen_running_still_counts_as_start(place: Place, engine: MemoryEngine) -> None:
    jobs = [queued(place) for _ in range(3)]
    reconcile.drain(place.cluster.pk)
    engine.run(handle_of(jobs[0]))
    look(place)
    for job in jobs:
        engine.succeed(handle_of(job))
    look(place)
    end = timezone.now() + timedelta(seconds=1)
    sums = ledger_days.tally(end - timedelta(minutes=5), end).values()
    rows = list(Reservation.objects.select_related("request"))
    waits = [int(row.started_at.timestamp()) - int(row.request.since.timestamp()) for row in rows]  # type: ignore[union-attr]
    assert sum(each.starts for each in sums) == len(rows) == 3
    assert sum(each.wait_seconds for each in sums) == sum(waits)


def test_release_failure_is_reported_and_other_jobs_keep_updating(
    place: Place, engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, other = queued(place), queued(place)
    reconcile.drain(place.cluster.pk)
    engine.jobs[handle_of(held)] = replace(engine.jobs[handle_of(held)], held=True)
    engine.run(handle_of(other))

    def release(handles: list[Handle]) -> None:
        raise Unreachable(f"{len(handles)} can't be let go")

    monkeypatch.setattr(engine, "release", release, raising=False)
    look(place)
    other.refresh_from_db()
    place.cluster.refresh_from_db()
    assert (other.state, place.cluster.trouble) == (State.RUNNING, "1 can't be let go")


def test_job_not_fitting_waits_with_reason(place: Place, engine: MemoryEngine) -> None:
    role = RoleSpec(name="w", command="true", resources=Resources(gpus=1, gpu_type="TITANX"))
    job = queued(place, spec(roles=(role,)))
    reconcile.drain(place.cluster.pk)
    job.refresh_from_db()
    assert (job.state, job.reason_code) == (State.QUEUED, ReasonCode.NO_SUCH_GPU)
    assert job.reason_params["gpu_type"] == "TITANX"
    place.node.gpus = {"TITANX": 1}
    place.node.save()
    reconcile.drain(place.cluster.pk)
    job.refresh_from_db()
    assert job.state == State.PENDING


def test_admission_starts_higher_priority_first_then_older(place: Place, engine: MemoryEngine) -> None:
    half = RoleSpec(name="w", command="true", resources=Resources(cpu_milli=40_000))
    jobs = [
        queued(place, spec(name, roles=(half,), priority=p)) for name, p in [("a", 1), ("b", 9), ("c", 9)]
    ]
    reconcile.drain(place.cluster.pk)
    assert [Job.objects.get(pk=job.pk).state for job in jobs] == [State.QUEUED, State.PENDING, State.QUEUED]


def test_engine_refusal_fails_job_with_its_message(place: Place, engine: MemoryEngine) -> None:
    engine.refusal = Reason(ReasonCode.REFUSED, {"detail": "no such image"})
    job = queued(place)
    reconcile.drain(place.cluster.pk)
    job.refresh_from_db()
    assert (job.state, job.reason_params) == (State.FAILED, {"detail": "no such image"})
    assert active() == 0


def test_job_certainly_not_sent_queues_again(place: Place, engine: MemoryEngine) -> None:
    engine.full = True
    job = queued(place)
    reconcile.drain(place.cluster.pk)
    job.refresh_from_db()
    assert (job.state, active()) == (State.QUEUED, 0)
    engine.full = False
    Request.objects.update(not_before=None)
    reconcile.drain(place.cluster.pk)
    assert engine.starts == {attempt_of(job).key: 1}


def test_submission_with_lost_reply_is_found_not_resent(place: Place, engine: MemoryEngine) -> None:
    engine.lose_reply = True
    job = queued(place)
    reconcile.drain(place.cluster.pk)
    job.refresh_from_db()
    assert (job.state, job.reason_code, active()) == (State.SUBMITTING, ReasonCode.UNCONFIRMED, 1)
    engine.lose_reply = False
    reconcile.drain(place.cluster.pk)
    job.refresh_from_db()
    assert job.state == State.SUBMITTING, "somebody else holds the lease"
    expire_leases()
    reconcile.drain(place.cluster.pk)
    job.refresh_from_db()
    assert (job.state, engine.starts) == (State.PENDING, {attempt_of(job).key: 1})


def test_submission_with_lost_request_is_resent_under_same_key(place: Place, engine: MemoryEngine) -> None:
    engine.lose_request = True
    job = queued(place)
    reconcile.drain(place.cluster.pk)
    engine.lose_request = False
    expire_leases()
    reconcile.drain(place.cluster.pk)
    job.refresh_from_db()
    assert (job.state, engine.starts) == (State.PENDING, {attempt_of(job).key: 1})


def test_unreachable_engine_changes_no_job_state(place: Place, engine: MemoryEngine) -> None:
    job = queued(place)
    reconcile.drain(place.cluster.pk)
    engine.away = True
    for _look in range(reconcile.GONE_TIMES + 2):
        look(place)
    job.refresh_from_db()
    place.cluster.refresh_from_db()
    assert job.state == State.PENDING
    assert "does not answer" in place.cluster.trouble


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("point", ["submit.leased", "submit.before_engine", "submit.after_engine"])
def test_worker_killed_while_sending_loses_nothing(
    place: Place, engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    def die(name: str) -> None:
        if name == point:
            raise Killed

    job = queued(place)
    monkeypatch.setattr(reconcile, "fault", die)
    with pytest.raises(Killed):
        reconcile.drain(place.cluster.pk)
    monkeypatch.setattr(reconcile, "fault", lambda _name: None)
    expire_leases()
    reconcile.drain(place.cluster.pk)
    job.refresh_from_db()
    assert (job.state, engine.starts, active()) == (State.PENDING, {attempt_of(job).key: 1}, 1)


def test_worker_paused_while_sending_changes_nothing_later(
    place: Place, engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = queued(place)
    overtaken: list[str] = []

    def freeze(name: str) -> None:
        if name == "submit.before_engine" and not overtaken:
            overtaken.append(name)
            expire_leases()
            reconcile.send(place.cluster.pk)

    monkeypatch.setattr(reconcile, "fault", freeze)
    reconcile.drain(place.cluster.pk)
    job.refresh_from_db()
    assert (job.state, engine.starts) == (State.PENDING, {attempt_of(job).key: 1})
    assert Event.objects.filter(job=job, kind="accepted").count() == 1


def test_job_without_engine_answer_keeps_state_and_cluster_shows_cause(
    place: Place, engine: MemoryEngine
) -> None:
    job, other = queued(place), queued(place)
    reconcile.drain(place.cluster.pk)
    engine.run(handle_of(job))
    look(place)
    del engine.jobs[handle_of(job)]
    engine.silent_of[handle_of(job)] = "slurmdbd does not answer"
    engine.run(handle_of(other))
    for _ in range(reconcile.GONE_TIMES + 1):
        look(place)
    for each in (job, other, place.cluster):
        each.refresh_from_db()
    assert (job.state, other.state) == (State.RUNNING, State.RUNNING)
    assert place.cluster.trouble == "slurmdbd does not answer"
    engine.silent_of.clear()
    for _ in range(reconcile.GONE_TIMES):
        look(place)
    job.refresh_from_db()
    assert job.state == State.LOST


def test_job_missing_once_keeps_state_and_missing_for_good_is_lost(
    place: Place, engine: MemoryEngine
) -> None:
    job = queued(place)
    reconcile.drain(place.cluster.pk)
    handle = handle_of(job)
    kept = engine.jobs.pop(handle)
    look(place)
    job.refresh_from_db()
    assert job.state == State.PENDING
    for _look in range(reconcile.GONE_TIMES):
        look(place)
    job.refresh_from_db()
    assert (job.state, active()) == (State.LOST, 1)
    engine.jobs[handle] = kept
    engine.run(handle)
    look(place)
    job.refresh_from_db()
    assert (job.state, job.ended_at) == (State.RUNNING, None)
    engine.succeed(handle)
    look(place)
    job.refresh_from_db()
    assert (job.state, active()) == (State.SUCCEEDED, 0)


def test_stop_of_queued_job_ends_at_once_and_sends_nothing(place: Place, engine: MemoryEngine) -> None:
    job = queued(place)
    submission.stop(place.owner, job)
    reconcile.drain(place.cluster.pk)
    job.refresh_from_db()
    assert (job.state, job.reason_code, engine.starts) == (State.STOPPED, ReasonCode.USER_STOP, {})


def test_stop_while_sending_takes_effect_once_job_is_found(place: Place, engine: MemoryEngine) -> None:
    engine.lose_reply = True
    job = queued(place)
    reconcile.drain(place.cluster.pk)
    submission.stop(place.owner, Job.objects.get(pk=job.pk))
    engine.lose_reply = False
    expire_leases()
    reconcile.drain(place.cluster.pk)
    look(place)
    assert engine.stopped == [handle_of(job)]
    engine.end_stopped(handle_of(job))
    look(place)
    job.refresh_from_db()
    assert (job.state, job.reason_code) == (State.STOPPED, ReasonCode.USER_STOP)


def test_stop_before_sending_sends_nothing(
    place: Place, engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = queued(place)
    admission.admit(place.cluster.pk)
    submission.stop(place.owner, Job.objects.get(pk=job.pk))
    reconcile.send(place.cluster.pk)
    job.refresh_from_db()
    assert (job.state, engine.starts, active()) == (State.STOPPED, {}, 0)


def test_stop_is_sent_to_engine_only_once(place: Place, engine: MemoryEngine) -> None:
    job = queued(place)
    reconcile.drain(place.cluster.pk)
    submission.stop(place.owner, Job.objects.get(pk=job.pk))
    submission.stop(place.owner, Job.objects.get(pk=job.pk))
    for _look in range(4):
        look(place)
    assert engine.stopped == [handle_of(job)]
    job.refresh_from_db()
    assert (job.state, job.phase) == (State.PENDING, "Stopping"), "only the observed end is an end"


def test_stop_of_job_already_ended_keeps_success(place: Place, engine: MemoryEngine) -> None:
    job = queued(place)
    reconcile.drain(place.cluster.pk)
    submission.stop(place.owner, Job.objects.get(pk=job.pk))
    engine.succeed(handle_of(job))
    look(place)
    job.refresh_from_db()
    assert job.state == State.SUCCEEDED


def test_failed_job_is_retried_up_to_its_limit(place: Place, engine: MemoryEngine) -> None:
    job = queued(place, spec(retry=RetryPolicy(limit=2)))
    for _attempt in range(3):
        Request.objects.update(not_before=None)
        reconcile.drain(place.cluster.pk)
        engine.fail(handle_of(job))
        look(place)
    job.refresh_from_db()
    assert (job.state, job.attempt_number, len(engine.starts), active()) == (State.FAILED, 3, 3, 0)


@pytest.mark.parametrize(
    ("condition", "exit_code", "state"),
    [
        (RestartCondition.EXIT_CODE, 3, State.FAILED),
        (RestartCondition.EXIT_CODE, 137, State.QUEUED),
        (RestartCondition.NEVER, 137, State.FAILED),
    ],
)
def test_restart_policy_of_failed_role_bounds_retries(
    place: Place, engine: MemoryEngine, condition: RestartCondition, exit_code: int, state: State
) -> None:
    role = spec().roles[0].model_copy(update={"restart": RestartPolicy(condition=condition)})
    job = queued(place, spec(roles=(role,), retry=RetryPolicy(limit=2)))
    reconcile.drain(place.cluster.pk)
    engine.fail(handle_of(job), exit_code=exit_code)
    look(place)
    job.refresh_from_db()
    assert job.state == state


def test_platform_failure_does_not_consume_retries(place: Place, engine: MemoryEngine) -> None:
    job = queued(place)
    reconcile.drain(place.cluster.pk)
    engine.fail(handle_of(job), ReasonCode.NODE_LOST)
    look(place)
    job.refresh_from_db()
    assert (job.state, job.attempt_number, job.reason_code) == (State.QUEUED, 2, ReasonCode.RETRYING)


def test_stop_prevents_retry(place: Place, engine: MemoryEngine) -> None:
    job = queued(place, spec(retry=RetryPolicy(limit=None)))
    reconcile.drain(place.cluster.pk)
    submission.stop(place.owner, Job.objects.get(pk=job.pk))
    engine.fail(handle_of(job))
    look(place)
    job.refresh_from_db()
    assert (job.state, job.attempt_number) == (State.FAILED, 1)


def test_engine_requeue_starts_next_run_of_same_attempt(place: Place, engine: MemoryEngine) -> None:
    job = queued(place)
    reconcile.drain(place.cluster.pk)
    engine.run(handle_of(job))
    look(place)
    engine.requeue(handle_of(job), run=2)
    look(place)
    job.refresh_from_db()
    assert (job.state, job.run_number, job.attempt_number, active()) == (State.PENDING, 2, 1, 1)
    assert Replica.objects.filter(attempt__job=job).count() == 2
    assert LogStream.objects.filter(attempt__job=job).count() == 2


def test_observation_older_than_applied_one_is_dropped(
    place: Place, engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = queued(place)
    reconcile.drain(place.cluster.pk)
    engine.run(handle_of(job))
    apply: Callable[..., None] = observations.apply

    def later(attempt: Attempt, seen: object, found: object) -> None:
        monkeypatch.setattr(observations, "apply", apply)
        engine.succeed(handle_of(job))
        look(place)
        apply(attempt, seen, found)

    monkeypatch.setattr(observations, "apply", later)
    look(place)
    job.refresh_from_db()
    assert job.state == State.SUCCEEDED


def test_success_with_failed_replicas_keeps_its_reason(place: Place, engine: MemoryEngine) -> None:
    role = RoleSpec(name="w", command="true", completion=CompletionPolicy(min_failed=None))
    job = queued(place, spec(roles=(role,)))
    reconcile.drain(place.cluster.pk)
    engine.fail(handle_of(job))
    ended = engine.jobs[handle_of(job)]
    reason = Reason(ReasonCode.COMPLETED_WITH_FAILURES, {"failed": 1, "total": 1})
    engine.jobs[handle_of(job)] = type(ended)(
        State.SUCCEEDED, reason, ended.phase, ended.replicas, version="9"
    )
    look(place)
    job.refresh_from_db()
    assert job.state == State.SUCCEEDED
    assert job.succeeded_with_failures


def test_poll_lists_engine_once_for_any_number_of_jobs(place: Place, engine: MemoryEngine) -> None:
    for _job in range(20):
        queued(place)
    reconcile.drain(place.cluster.pk)
    look(place)
    engine.listings = 0
    with CaptureQueriesContext(
        connection,
    ) as queries:
        look(place)
    assert engine.listings == 1
    assert len(queries) <= 2, "unchanged attempts cost no query of their own"


def test_ended_attempt_is_sealed_then_forgotten_after_job_deletion(
    place: Place, engine: MemoryEngine
) -> None:
    job = queued(place)
    reconcile.drain(place.cluster.pk)
    handle = handle_of(job)
    engine.succeed(handle)
    look(place)
    cleanup.clean_up()
    assert engine.forgotten == [], "logs first"
    cleanup.seal(attempt_of(job).pk)
    submission.delete(place.owner, Job.objects.get(pk=job.pk))
    cleanup.clean_up()
    assert engine.forgotten == [handle]
    assert not Job.objects.filter(pk=job.pk).exists()


def test_due_clusters_are_found_from_database_alone(place: Place, engine: MemoryEngine) -> None:
    assert reconcile.due_clusters() == {"drain": [], "observe": [], "inventory": []}
    job = queued(place)
    assert reconcile.due_clusters() == {"drain": [place.cluster.pk], "observe": [], "inventory": []}
    reconcile.drain(place.cluster.pk)
    assert reconcile.due_clusters() == {"drain": [], "observe": [place.cluster.pk], "inventory": []}
    engine.succeed(handle_of(job))
    look(place)
    assert reconcile.due_clusters() == {"drain": [], "observe": [], "inventory": []}
    assert reconcile.sealable() == [attempt_of(job).pk]


def test_inventory_of_cluster_without_nodes_is_due_when_job_waits(place: Place, engine: MemoryEngine) -> None:
    Node.objects.all().delete()
    assert reconcile.due_clusters()["inventory"] == []
    queued(place)
    assert reconcile.due_clusters()["inventory"] == [place.cluster.pk]
    reconcile.take_inventory(place.cluster.pk)
    assert reconcile.due_clusters()["inventory"] == []


def test_inventory_creates_nodes(place: Place, engine: MemoryEngine) -> None:
    place.node.delete()
    reconcile.take_inventory(place.cluster.pk)
    place.cluster.refresh_from_db()
    assert [node.name for node in place.cluster.nodes.all()] == ["memory-1"]
    assert place.cluster.answered_at is not None


def test_job_takes_few_statements_from_submission_to_end(place: Place, engine: MemoryEngine) -> None:
    jobs = 8
    with CaptureQueriesContext(connection) as statements:
        made = [queued(place) for _ in range(jobs)]
        reconcile.drain(place.cluster.pk)
        look(place)
        for change in (engine.run, engine.succeed):
            for job in made:
                change(handle_of(job))
            look(place)
    assert not Job.objects.exclude(state=State.SUCCEEDED).exists()
    asked_by_test = 4 * jobs
    assert (len(statements) - asked_by_test) / jobs < 72
    commits = sum(each["sql"].startswith("RELEASE SAVEPOINT") for each in statements)
    assert commits / jobs < 6
