"""Routing of an event: to those who asked and may know, once each."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.utils import timezone

from jobs.lifecycle import transitions
from jobs.models import Channel, DeliveryItem, Job, JobFile, Notification, NotificationEvent, NotificationRule
from jobs.models.kinds import CHOICES
from jobs.notifications import Kind, outbox, routing, tell, times
from jobs.states import Reason, ReasonCode, State
from quotas.models import Membership, User, Workspace
from tests.factories import attempt_of, make_job, make_membership, make_quota
from tests.jobs.web.conftest import People

pytestmark = pytest.mark.django_db

EVERYTHING = [value for value, _label in CHOICES]


def channel(person: User | None = None, **columns: Any) -> Channel:
    """A webhook that is ready, with one rule."""
    rule = {name: columns.pop(name) for name in list(columns) if name in RULE}
    defaults = {"kind": "webhook", "verified_at": timezone.now()}
    row = Channel.objects.create(person=person, **{**defaults, **columns})
    NotificationRule.objects.create(channel=row, **{"events": EVERYTHING, **rule})
    return row


def workspace_channel(workspace: Workspace, about: Workspace | None = None) -> Channel:
    """A webhook that belongs to a workspace, about all jobs of one."""
    row = Channel.objects.create(workspace=workspace, kind="webhook", verified_at=timezone.now())
    NotificationRule.objects.create(
        channel=row, events=EVERYTHING, scope="workspace", workspace=about or workspace
    )
    return row


RULE = {field.name for field in NotificationRule._meta.fields} - {"id", "channel"}


def failed(people: People, **columns: Any) -> Job:
    """A job of the owner that just failed."""
    job = make_job(State.RUNNING, owner=people.owner, quota=people.quota, **columns)
    end(job, State.FAILED, ReasonCode.EXIT_CODE)
    return job


def end(job: Job, state: State, code: ReasonCode) -> None:
    transitions.end(job, attempt_of(job), state, Reason(code))


def on_page() -> list[str]:
    return sorted(Notification.objects.values_list("person__username", flat=True))


def told(row: Channel) -> list[str]:
    return list(DeliveryItem.objects.filter(channel=row).values_list("event__kind", flat=True))


def test_routing_failed_job_notifies_only_owner_on_page(people: People) -> None:
    failed(people)
    assert routing.route() == 1
    assert on_page() == ["alice"]
    assert NotificationEvent.objects.get().params["owner"] == "alice"


def test_routing_routed_event_is_not_routed_again(people: People) -> None:
    failed(people)
    assert (routing.route(), routing.route()) == (1, 0)
    assert Notification.objects.count() == 1


def test_routing_alert_of_job_file_reaches_owner_whatever_the_rules_say(people: People) -> None:
    silent, other = channel(people.owner, events=[]), channel(people.member, events=[])
    for dialect, items in (
        ("aihc", ["jobFailed", "jobFT"]),
        ("aihc", ["jobRunning"]),
        ("kubeflow", ["jobFailed"]),
    ):
        job = make_job(State.RUNNING, owner=people.owner, quota=people.quota, dialect=dialect)
        JobFile.objects.update_or_create(
            job=job, defaults={"extras": {"/alertConfig": {"alertItems": items}}}
        )
        end(job, State.FAILED, ReasonCode.EXIT_CODE)
    routing.route()
    assert (told(silent), told(other)) == (["job.failed"], [])


def test_routing_job_start_appears_on_page_only_with_rule(people: People) -> None:
    outbox.of_event(make_job(State.RUNNING, owner=people.owner), "started", {}, None)
    routing.route()
    assert on_page() == []
    NotificationRule.objects.filter(channel__person=people.owner).update(events=[Kind.STARTED])
    outbox.of_event(Job.objects.get(), "started", {}, None)
    routing.route()
    assert on_page() == ["alice"]


def test_personal_channel_receives_only_own_jobs(people: People) -> None:
    mine, others = channel(people.owner), channel(people.member)
    failed(people)
    routing.route()
    assert (told(mine), told(others)) == ([Kind.FAILED], [])


def test_workspace_rule_serves_members_and_admins_but_not_strangers(people: People) -> None:
    asked = {"scope": NotificationRule.Scope.WORKSPACE, "workspace": people.quota.workspace}
    rows = [channel(person, **asked) for person in (people.member, people.stranger, people.admin)]
    failed(people)
    routing.route()
    assert [told(row) for row in rows] == [[Kind.FAILED], [], [Kind.FAILED]]


def test_workspace_rule_of_removed_member_receives_nothing(people: People) -> None:
    row = channel(people.member, scope=NotificationRule.Scope.WORKSPACE, workspace=people.quota.workspace)
    Membership.objects.filter(user=people.member).delete()
    failed(people)
    routing.route()
    assert told(row) == []


def test_disabled_account_receives_no_notifications(people: People) -> None:
    row = channel(people.owner)
    User.objects.filter(pk=people.owner.pk).update(is_active=False)
    failed(people)
    routing.route()
    assert (told(row), on_page()) == ([], [])


def test_workspace_channel_receives_only_its_own_jobs(people: People) -> None:
    here = workspace_channel(people.quota.workspace)
    elsewhere = make_quota()
    failed(people)
    end(make_job(State.RUNNING, quota=elsewhere), State.FAILED, ReasonCode.EXIT_CODE)
    routing.route()
    assert DeliveryItem.objects.filter(channel=here).count() == 1


def test_workspace_channel_about_other_workspace_receives_nothing(people: People) -> None:
    row = workspace_channel(make_quota().workspace, about=people.quota.workspace)
    failed(people)
    routing.route()
    assert told(row) == []


def test_quota_rule_receives_only_events_of_its_quota(people: People) -> None:
    other = make_quota(people.quota.workspace, people.quota.cluster, "other")
    rows = [
        channel(people.member, scope=NotificationRule.Scope.QUOTA, quota=quota)
        for quota in (people.quota, other)
    ]
    failed(people)
    routing.route()
    assert [told(row) for row in rows] == [[Kind.FAILED], []]


def test_channel_with_two_rules_gets_one_delivery_at_earlier_time(people: People) -> None:
    row = channel(people.owner, pace=NotificationRule.Pace.DAILY)
    NotificationRule.objects.create(channel=row, events=[Kind.FAILED])
    failed(people)
    routing.route()
    assert DeliveryItem.objects.get().due_at <= timezone.now()


@pytest.mark.parametrize("columns", [{"off": "person"}, {"verified_at": None}])
def test_channel_disabled_or_unconfirmed_receives_nothing(people: People, columns: dict[str, Any]) -> None:
    row = channel(people.owner, **columns)
    failed(people)
    routing.route()
    assert told(row) == []


def test_routing_own_stop_reaches_webhook_but_not_chat_or_page(people: People) -> None:
    hook, chat = channel(people.owner), channel(people.owner, kind="slack")
    job = make_job(State.RUNNING, owner=people.owner, quota=people.quota)
    end(job, State.STOPPED, ReasonCode.USER_STOP)
    routing.route()
    assert (told(hook), told(chat), on_page()) == ([Kind.STOPPED], [], [])


def test_routing_job_stopped_by_admin_notifies_owner(people: People) -> None:
    job = make_job(State.RUNNING, owner=people.owner, quota=people.quota)
    end(job, State.STOPPED, ReasonCode.ADMIN_STOP)
    routing.route()
    assert on_page() == ["alice"]


def test_routing_direct_message_appears_on_page_despite_rules(people: People) -> None:
    routing.page_rule(people.member)
    NotificationRule.objects.update(events=[])
    row = channel(people.member, events=[Kind.MESSAGE])
    deaf = channel(people.member, events=[Kind.FAILED])
    tell([people.member, people.stranger], Kind.MESSAGE, {"text": "Back at noon."})
    routing.route()
    assert on_page() == ["bob", "mallory"]
    assert (told(row), told(deaf)) == ([Kind.MESSAGE], [])


def test_routing_direct_message_stays_hidden_from_workspace_rule(people: People) -> None:
    row = channel(people.member, scope=NotificationRule.Scope.WORKSPACE, workspace=people.quota.workspace)
    job = make_job(State.RUNNING, owner=people.owner, quota=people.quota)
    tell([people.owner], Kind.MESSAGE, {"text": "Your job is in the way."}, job)
    routing.route()
    assert (told(row), on_page()) == ([], ["alice"])


def test_routing_wait_event_follows_wait_minutes_of_channel(people: People) -> None:
    patient, hasty = channel(people.owner, wait_minutes=240), channel(people.owner, wait_minutes=60)
    outbox.of_waiting(make_job(owner=people.owner, quota=people.quota), 1, 60)
    routing.route()
    assert (told(patient), told(hasty)) == ([], [Kind.WAITS])


def test_routing_quota_event_notifies_its_managers_and_users(people: People) -> None:
    make_job(State.RUNNING, owner=people.owner, quota=people.quota)
    outbox.of_quota(people.quota, 40, 92, "gpu")
    routing.route()
    assert on_page() == ["alice", "carol"]


@pytest.mark.parametrize(("before", "percent", "heard"), [(40, 89, 0), (89, 90, 1), (90, 95, 0), (40, 99, 1)])
def test_routing_quota_event_notifies_when_chosen_share_is_passed(
    people: People, before: int, percent: int, heard: int
) -> None:
    row = channel(people.member, scope=NotificationRule.Scope.QUOTA, quota=people.quota, quota_percent=90)
    outbox.of_quota(people.quota, before, percent, "gpu")
    routing.route()
    assert len(told(row)) == heard


def test_digest_due_time_follows_hour_in_users_time_zone(people: People) -> None:
    User.objects.filter(pk=people.owner.pk).update(time_zone="Asia/Shanghai")
    row = channel(people.owner, pace=NotificationRule.Pace.DAILY, hour=8)
    failed(people)
    routing.route()
    due = DeliveryItem.objects.get(channel=row).due_at
    assert (due.astimezone(UTC).hour, due > timezone.now()) == (0, True)


@pytest.mark.parametrize(
    ("pace", "quiet", "now", "due"),
    [
        ("now", (None, None), "2026-11-21T03:10", "2026-11-21T03:10"),
        ("now", (22, 7), "2026-11-21T03:10", "2026-11-21T07:00"),
        ("now", (22, 7), "2026-11-21T23:10", "2026-11-22T07:00"),
        ("now", (22, 7), "2026-11-21T07:00", "2026-11-21T07:00"),
        ("now", (1, 5), "2026-11-21T03:10", "2026-11-21T05:00"),
        ("now", (5, 5), "2026-11-21T05:10", "2026-11-21T05:10"),
        ("hourly", (None, None), "2026-11-21T03:10", "2026-11-21T04:00"),
        ("hourly", (22, 7), "2026-11-21T21:10", "2026-11-22T07:00"),
        ("daily", (None, None), "2026-11-21T08:00", "2026-11-22T08:00"),
        ("daily", (None, None), "2026-11-21T07:59", "2026-11-21T08:00"),
    ],
)
def test_next_due_depends_on_pace_and_quiet_hours(
    people: People, pace: str, quiet: tuple[int | None, int | None], now: str, due: str
) -> None:
    row = channel(people.owner, pace=pace, quiet_from=quiet[0], quiet_until=quiet[1])
    rule = NotificationRule.objects.select_related("channel__person").get(channel=row)
    moment = datetime.fromisoformat(now).replace(tzinfo=UTC)
    assert times.next_due(rule, moment) == datetime.fromisoformat(due).replace(tzinfo=UTC)


def test_routing_member_of_two_workspaces_is_notified_once(people: People) -> None:
    make_membership(people.member, make_quota().workspace)
    tell([people.member], Kind.MESSAGE, {"text": "Hello."})
    assert routing.route() == 1
    assert on_page() == ["bob"]
