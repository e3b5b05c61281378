"""From what happened to a receiver: gathered, sent, tried again, given up; the receiver is a real server."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.utils import timezone, translation
from pytest_django import Settings

from jobs.fault_tolerance.decisions import Fault
from jobs.fault_tolerance.error_catalogue import Origin
from jobs.lifecycle import transitions
from jobs.models import (
    Attempt,
    Channel,
    Delivery,
    DeliveryItem,
    Job,
    JobSecret,
    Notification,
    NotificationEvent,
    NotificationRule,
)
from jobs.models.kinds import CHOICES
from jobs.notifications import Kind, channels, composition, deliveries, routing, tell
from jobs.notifications.transports.outcome import Outcome
from jobs.states import Reason, ReasonCode, ReplicaState, State
from quotas.models import Membership
from tests.factories import attempt_of, make_job, replica_of
from tests.jobs.receivers import Came, Receiver, receiving
from tests.jobs.web.conftest import People, write_log

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "jcw_secret"
EVERYTHING = [value for value, _label in CHOICES]


@pytest.fixture
def receiver(settings: Settings) -> Iterator[Receiver]:
    settings.CONSOLE_NOTICE_GATHER_SECONDS = 0
    settings.CONSOLE_NOTICE_GAP_SECONDS = 0
    with receiving() as found:
        settings.CONSOLE_EGRESS_HOSTS = [f"http://127.0.0.1:{found.port}"]
        yield found


@pytest.fixture
def hook(people: People, receiver: Receiver) -> Channel:
    """A webhook of the owner that is told everything."""
    row = Channel(person=people.owner, kind="webhook", verified_at=timezone.now(), shown="127.0.0.1 …hook")
    row.encrypt({"url": receiver.url(), "secret": SECRET})
    row.save()
    NotificationRule.objects.create(channel=row, events=EVERYTHING)
    return row


def fail(people: People, name: str = "bert") -> Job:
    job = make_job(State.RUNNING, owner=people.owner, quota=people.quota, name=name)
    transitions.end(job, attempt_of(job), State.FAILED, Reason(ReasonCode.EXIT_CODE, {"exit_code": 1}))
    return job


def work() -> None:
    """What the worker does at a ring."""
    routing.route()
    deliveries.pack()
    deliveries.send()


def due_now() -> None:
    """As if the pause before the next try were over."""
    Delivery.objects.update(due_at=timezone.now() - timedelta(seconds=1))


def answering(status: int, _came: Came) -> tuple[int, dict[str, str], bytes]:
    return status, {}, b""


def events(came: Came) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(came.body)["events"]
    return found


# --- what comes ------------------------------------------------------------------------------------------


def test_delivery_of_failure_reaches_webhook_signed(
    people: People, hook: Channel, receiver: Receiver
) -> None:
    job = fail(people)
    work()
    [came] = receiver.came
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.code, delivery.attempts) == (Delivery.State.SENT, 200, 1)
    assert came.headers["x-console-delivery"] == str(delivery.public_id)
    signed = f"{came.headers['x-console-timestamp']}.{delivery.public_id}.".encode() + came.body
    expected = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
    assert came.headers["x-console-signature"] == f"sha256={expected}"
    [event] = events(came)
    assert (event["kind"], event["level"], event["title"]) == ("job.failed", "bad", "bert failed.")
    assert (event["job"]["id"], event["job"]["reason"]["code"]) == (job.public_id, "exit_code")
    assert event["url"].endswith(f"/jobs/{job.public_id}/")


def test_delivery_combines_simultaneous_events(people: People, hook: Channel, receiver: Receiver) -> None:
    for number in range(40):  # more than are sent in a batch
        fail(people, f"bert-{number}")
    work()
    [came] = receiver.came
    assert len(events(came)) == 40
    assert Delivery.objects.count() == 1


def test_deliveries_to_one_channel_have_a_gap(
    people: People, hook: Channel, receiver: Receiver, settings: Settings
) -> None:
    settings.CONSOLE_NOTICE_GAP_SECONDS = 30
    for number in range(3):
        fail(people, f"bert-{number}")
        work()
    assert [len(events(came)) for came in receiver.came] == [1]
    Channel.objects.update(next_at=timezone.now())
    work()
    assert [len(events(came)) for came in receiver.came] == [1, 2]


def test_delivery_waits_to_gather_following_events(
    people: People, hook: Channel, receiver: Receiver, settings: Settings
) -> None:
    settings.CONSOLE_NOTICE_GATHER_SECONDS = 60
    fail(people)
    work()
    assert receiver.came == []


def test_digest_comes_when_due_with_all_events(people: People, hook: Channel, receiver: Receiver) -> None:
    NotificationRule.objects.update(pace=NotificationRule.Pace.DAILY)
    for number in range(3):
        fail(people, f"bert-{number}")
    work()
    assert receiver.came == []
    DeliveryItem.objects.update(due_at=timezone.now())
    work()
    assert [len(events(came)) for came in receiver.came] == [3]


def test_delivery_uses_recipients_language(people: People, hook: Channel, receiver: Receiver) -> None:
    Channel.objects.filter(pk=hook.pk).update(language="ja")
    with composition.speaking_to(Channel.objects.get(pk=hook.pk)):
        assert translation.get_language() == "ja"


def test_delivery_skips_waiting_events_of_departed_member(
    people: People, hook: Channel, receiver: Receiver
) -> None:
    fail(people)
    routing.route()
    Membership.objects.filter(user=people.owner).delete()
    deliveries.pack()
    deliveries.send()
    assert receiver.came == []
    assert not DeliveryItem.objects.exists()


def test_delivery_retry_stops_for_departed_member(people: People, hook: Channel, receiver: Receiver) -> None:
    receiver.reply = partial(answering, 500)
    fail(people)
    work()
    Membership.objects.filter(user=people.owner).delete()
    due_now()
    deliveries.send()
    assert len(receiver.came) == 1
    assert Delivery.objects.get().error == "nothing_left"


# --- what does not arrive --------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [500, 502, 503, 429, 408])
def test_delivery_after_server_trouble_is_retried_under_same_id(
    people: People, hook: Channel, receiver: Receiver, status: int
) -> None:
    receiver.reply = partial(answering, status)
    fail(people)
    work()
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.attempts, delivery.code) == (Delivery.State.WAITING, 1, status)
    assert timedelta(0) < delivery.due_at - timezone.now() <= timedelta(seconds=15)
    deliveries.send()
    assert len(receiver.came) == 1, "not before its time"
    receiver.reply = partial(answering, 204)
    due_now()
    deliveries.send()
    first, second = receiver.came
    assert Delivery.objects.get().state == Delivery.State.SENT
    assert first.headers["x-console-delivery"] == second.headers["x-console-delivery"]
    assert first.body == second.body


def test_delivery_respects_retry_after(people: People, hook: Channel, receiver: Receiver) -> None:
    receiver.reply = lambda _came: (429, {"Retry-After": "600"}, b"")
    fail(people)
    work()
    assert Delivery.objects.get().due_at - timezone.now() > timedelta(seconds=590)


@pytest.mark.parametrize(("status", "error"), [(301, "redirect"), (400, "rejected"), (404, "rejected")])
def test_delivery_refused_is_not_retried(
    people: People, hook: Channel, receiver: Receiver, status: int, error: str
) -> None:
    receiver.reply = partial(answering, status)
    fail(people)
    work()
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.error) == (Delivery.State.FAILED, error)
    assert Channel.objects.get(pk=hook.pk).failures == 1


def test_delivery_is_given_up_after_its_tries(
    people: People, hook: Channel, receiver: Receiver, settings: Settings
) -> None:
    settings.CONSOLE_NOTICE_TRIES = 3
    receiver.reply = partial(answering, 500)
    fail(people)
    for _try in range(5):
        work()
        due_now()
    assert len(receiver.came) == 3
    assert Delivery.objects.get().state == Delivery.State.FAILED


def test_channel_with_repeated_failures_is_turned_off_and_reported(
    people: People, hook: Channel, receiver: Receiver, settings: Settings
) -> None:
    settings.CONSOLE_NOTICE_FAILURES = 2
    receiver.reply = partial(answering, 404)
    for _each in range(4):
        fail(people)
        work()
    assert Channel.objects.get(pk=hook.pk).off == Channel.Off.FAILED
    assert len(receiver.came) == 2
    told = Notification.objects.filter(person=people.owner, event__kind=Kind.CHANNEL_OFF)
    assert told.count() == 1
    channels.switch(hook, on=True)
    receiver.reply = partial(answering, 200)
    work()
    assert Delivery.objects.filter(state=Delivery.State.SENT).exists(), "what waited is sent once it is on"


def test_delivery_success_resets_channel_failures(people: People, hook: Channel, receiver: Receiver) -> None:
    Channel.objects.update(failures=4)
    fail(people)
    work()
    assert Channel.objects.get(pk=hook.pk).failures == 0


def test_delivery_to_stored_internal_address_is_refused(
    people: People, hook: Channel, receiver: Receiver, settings: Settings
) -> None:
    settings.CONSOLE_EGRESS_HOSTS = []
    fail(people)
    work()
    assert receiver.connections == 0
    assert Delivery.objects.get().error == "http"


# --- killed in between -----------------------------------------------------------------------------------


def test_delivery_of_killed_sender_is_resent_under_same_id(
    people: People, hook: Channel, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(people)
    routing.route()
    deliveries.pack()
    with monkeypatch.context() as killed:
        killed.setattr(deliveries, "_apply", lambda *_args: None)
        deliveries.send()
    deliveries.send()
    assert len(receiver.came) == 1, "while the lease lasts nobody else sends it"
    Delivery.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    deliveries.send()
    first, second = receiver.came
    assert first.headers["x-console-delivery"] == second.headers["x-console-delivery"]
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.attempts) == (Delivery.State.SENT, 2)


def test_delivery_lease_once_expired_changes_nothing(
    people: People, hook: Channel, receiver: Receiver
) -> None:
    fail(people)
    routing.route()
    deliveries.pack()
    late = deliveries._lease(Delivery.objects.get().pk, "")
    assert late is not None
    Delivery.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    deliveries.send()
    deliveries._apply(late, Outcome(500, "trouble", again=True))
    assert Delivery.objects.get().state == Delivery.State.SENT


# --- tests, and sending again ----------------------------------------------------------------------------


def test_channel_test_reports_outcome_without_retry(hook: Channel, receiver: Receiver) -> None:
    receiver.reply = partial(answering, 500)
    channels.test(hook)
    deliveries.send()
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.code) == (Delivery.State.FAILED, 500)
    assert events(receiver.came[0])[0]["kind"] == "test"
    assert Channel.objects.get(pk=hook.pk).failures == 0
    with pytest.raises(channels.Refused, match="too_soon"):
        channels.test(hook)


def test_channel_turned_off_can_be_tested(hook: Channel, receiver: Receiver) -> None:
    channels.switch(hook, on=False)
    channels.test(hook)
    deliveries.send()
    assert len(receiver.came) == 1


def test_delivery_is_resent_under_its_old_id_by_owner_only(
    people: People, hook: Channel, receiver: Receiver
) -> None:
    fail(people)
    work()
    delivery = Delivery.objects.get()
    assert channels.again(people.owner, delivery.public_id) == delivery
    deliveries.send()
    first, second = receiver.came
    assert first.headers["x-console-delivery"] == second.headers["x-console-delivery"]
    for other in (people.member, people.manager, people.admin, people.stranger):
        assert channels.again(other, delivery.public_id) is None


def test_rotated_secret_signs_beside_the_old_one_for_a_day(hook: Channel, receiver: Receiver) -> None:
    new = channels.rotate(hook)
    assert new != SECRET
    channels.test(hook)
    deliveries.send()
    assert receiver.came[0].headers["x-console-signature"].count("sha256=") == 2
    hook.encrypt({**hook.address(), "both_until": "1"})
    hook.save()
    Delivery.objects.all().delete()
    channels.test(hook)
    deliveries.send()
    assert receiver.came[1].headers["x-console-signature"].count("sha256=") == 1


# --- logs ------------------------------------------------------------------------------------------------


def test_delivery_has_log_end_on_request_without_secrets(
    people: People, hook: Channel, receiver: Receiver
) -> None:
    NotificationRule.objects.update(log_lines=True)
    job = make_job(State.RUNNING, owner=people.owner, quota=people.quota)
    secret = JobSecret(job=job, name="token")
    secret.encrypt("hunter2-hunter2")
    secret.save()
    write_log(job, b"login with hunter2-hunter2\nRuntimeError: CUDA out of memory\n")
    replica = replica_of(job)
    replica.state = ReplicaState.FAILED
    replica.save()
    line = "ValueError: no user hunter2-hunter2"
    Attempt.objects.update(fault=Fault("exit_code", Origin.UNKNOWN, line, replica.role, 0).to_json())
    transitions.end(job, attempt_of(job), State.FAILED, Reason(ReasonCode.EXIT_CODE))
    work()
    assert events(receiver.came[0])[0]["log"] == [
        "ValueError: no user ***",
        "login with ***",
        "RuntimeError: CUDA out of memory",
    ]
    assert b"hunter2" not in receiver.came[0].body


def test_delivery_to_member_reports_failure_without_log(
    people: People, hook: Channel, receiver: Receiver
) -> None:
    Channel.objects.update(person=people.member)
    NotificationRule.objects.update(scope="workspace", workspace=people.quota.workspace, log_lines=True)
    job = make_job(State.RUNNING, owner=people.owner, quota=people.quota)
    write_log(job, b"secret sauce\n")
    replica = replica_of(job)
    replica.state = ReplicaState.FAILED
    replica.save()
    transitions.end(job, attempt_of(job), State.FAILED, Reason(ReasonCode.EXIT_CODE))
    work()
    assert events(receiver.came[0])[0]["log"] == []


# --- keeping and forgetting ------------------------------------------------------------------------------


def test_old_notifications_are_deleted_unless_undelivered(
    people: People, hook: Channel, receiver: Receiver
) -> None:
    tell([people.owner], Kind.MESSAGE, {"text": "old"})
    work()
    tell([people.owner], Kind.MESSAGE, {"text": "old, and not told"})
    NotificationEvent.objects.update(at=timezone.now() - timedelta(days=40))
    Delivery.objects.update(created_at=timezone.now() - timedelta(days=40))
    deliveries.forget()
    assert [row.params["text"] for row in NotificationEvent.objects.all()] == ["old, and not told"]
    assert not Delivery.objects.exists()
