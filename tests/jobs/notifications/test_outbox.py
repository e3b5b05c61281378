"""What is worth telling is written in the transaction that made it true, once."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from jobs.lifecycle import transitions
from jobs.models import Event, Job, NotificationEvent
from jobs.notifications import Kind, tell
from jobs.states import EndKind, Phase, Reason, ReasonCode, State
from tests.factories import attempt_of, make_job, make_user

pytestmark = pytest.mark.django_db


def ended(state: State, code: ReasonCode, **columns: Any) -> NotificationEvent:
    """What is told of a running job that ends so."""
    job = make_job(State.RUNNING, **columns)
    transitions.end(job, attempt_of(job), state, Reason(code))
    return NotificationEvent.objects.get()


@pytest.mark.parametrize(
    ("state", "code", "failed", "kind"),
    [
        (State.SUCCEEDED, ReasonCode.COMPLETED, 0, Kind.SUCCEEDED),
        (State.SUCCEEDED, ReasonCode.COMPLETED_WITH_FAILURES, 1, Kind.PARTLY),
        (State.FAILED, ReasonCode.EXIT_CODE, 1, Kind.FAILED),
        (State.STOPPED, ReasonCode.ADMIN_STOP, 0, Kind.STOPPED),
        (State.STOPPED, ReasonCode.TIME_LIMIT, 0, Kind.STOPPED),
        (State.STOPPED, ReasonCode.PREEMPTED, 0, Kind.PREEMPTED),
        (State.STOPPED, ReasonCode.DRAINED, 0, Kind.PREEMPTED),
        (State.LOST, ReasonCode.LOST, 0, Kind.LOST),
    ],
)
def test_outbox_job_end_records_kind_and_reason(
    state: State, code: ReasonCode, failed: int, kind: Kind
) -> None:
    told = ended(state, code, replicas_failed=failed)
    assert (told.kind, told.params["reason"], told.params["failed"]) == (kind, code, failed)


def test_outbox_job_start_records_started_event() -> None:
    job = make_job(State.PENDING)
    with transaction.atomic():
        transitions.apply(
            job,
            State.RUNNING,
            Reason(ReasonCode.RUNNING),
            phase=Phase.RUNNING,
            event=Event.Kind.STARTED,
        )
    assert NotificationEvent.objects.get().kind == Kind.STARTED


@pytest.mark.parametrize(
    ("code", "kind"), [(ReasonCode.EXIT_CODE, Kind.AGAIN), (ReasonCode.PREEMPTED, Kind.PREEMPTED)]
)
def test_outbox_new_attempt_records_reason_code(code: ReasonCode, kind: Kind) -> None:
    job = make_job(State.RUNNING)
    with transaction.atomic():
        transitions.apply(
            job,
            State.QUEUED,
            Reason(ReasonCode.RETRYING, {"attempt": 2, "code": code}),
            phase=Phase.RESTARTING,
            event=Event.Kind.QUEUED_AGAIN,
        )
    told = NotificationEvent.objects.get()
    assert (told.kind, told.params["reason_params"]["code"]) == (kind, code)


def test_outbox_requested_end_records_no_event() -> None:
    job = make_job(State.RUNNING)
    with transaction.atomic():
        transitions.want_end(job, attempt_of(job), EndKind.PREEMPTION)
    assert not NotificationEvent.objects.exists()


def test_outbox_rolled_back_transaction_records_no_event() -> None:
    job = make_job(State.RUNNING)
    with transaction.atomic():
        transitions.end(job, attempt_of(job), State.FAILED, Reason(ReasonCode.EXIT_CODE))
        assert NotificationEvent.objects.exists()
        transaction.set_rollback(True)
    assert not NotificationEvent.objects.exists()
    assert Job.objects.get().state == State.RUNNING


def test_outbox_message_with_same_key_is_recorded_once() -> None:
    alice = make_user("alice")
    for _again in range(2):
        tell([alice], Kind.MESSAGE, {"text": "The cluster moves on Friday."}, key="move")
    told = NotificationEvent.objects.get()
    assert (told.people, told.params) == ([alice.pk], {"text": "The cluster moves on Friday."})


def test_outbox_message_without_recipients_is_not_recorded() -> None:
    tell([], Kind.MESSAGE, {"text": "?"})
    assert not NotificationEvent.objects.exists()
