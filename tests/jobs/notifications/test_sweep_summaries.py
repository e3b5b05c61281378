"""One notification for the jobs of a sweep: on the page, in messages, and not for webhooks."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs.models import (
    Attempt,
    Delivery,
    DeliveryItem,
    Job,
    Notification,
    NotificationRule,
    Sweep,
    SweepRun,
    Visibility,
)
from jobs.notifications import Kind, composition, inbox, routing
from jobs.notifications.sweep_summaries import count_jobs
from jobs.states import ReasonCode, State
from tests.factories import attempt_of, make_job
from tests.jobs.notifications.test_routing import channel, end
from tests.jobs.web.conftest import People, browser, seen

pytestmark = pytest.mark.django_db


@pytest.fixture
def sweep(people: People) -> Sweep:
    """A sweep of three jobs that run."""
    row = Sweep.objects.create(
        name="lr", owner=people.owner, workspace=people.quota.workspace, names=["lr"], at_once=3
    )
    for number in range(3):
        job = make_job(State.RUNNING, owner=people.owner, quota=people.quota, name=f"lr-{number}")
        SweepRun.objects.create(sweep=row, job=job, number=number)
    return row


def job_of(sweep: Sweep, number: int) -> Job:
    return Job.objects.get(sweep_run__sweep=sweep, sweep_run__number=number, sweep_run__round=1)


def finish(sweep: Sweep, number: int, state: State = State.SUCCEEDED) -> Job:
    job = job_of(sweep, number)
    end(job, state, ReasonCode.EXIT_CODE if state is State.FAILED else ReasonCode.COMPLETED)
    routing.route()
    return job


def test_sweep_has_one_notification_that_is_renewed(people: People, sweep: Sweep) -> None:
    finish(sweep, 0)
    [first] = inbox.list_notifications(people.owner).rows
    assert (first.told.title, first.level) == ("Sweep lr: 1 of 3 jobs ended.", "ok")
    inbox.read(people.owner, first.pk)
    failed = finish(sweep, 1, State.FAILED)
    Attempt.objects.filter(job=failed).update(
        fault={"code": "exit_code", "origin": "own", "line": "KeyError: <b>loss_2</b>"}
    )
    finish(sweep, 2)
    [row] = inbox.list_notifications(people.owner).rows
    assert (row.told.title, row.level) == ("Sweep lr: 3 of 3 jobs ended, 1 failed.", "bad")
    assert (row.told.text, row.line, row.sweep) == (
        "Last failed: lr-1.",
        "KeyError: <b>loss_2</b>",
        sweep.public_id,
    )
    assert (row.unread, inbox.unread(people.owner)) == (True, 1)
    text = seen(browser(people.owner).get("/notices/"))
    assert f"/sweeps/{sweep.public_id}" in text
    assert "KeyError: &lt;b&gt;loss_2" in browser(people.owner).get("/notices/").content.decode()


def test_sweep_summary_counts_the_last_round_of_each_job(people: People, sweep: Sweep) -> None:
    finish(sweep, 0, State.FAILED)
    again = make_job(State.RUNNING, owner=people.owner, quota=people.quota)
    SweepRun.objects.create(sweep=sweep, job=again, number=0, round=2)
    counts = count_jobs(sweep)
    assert (counts["jobs_ended"], counts["jobs_total"], "jobs_failed" in counts) == (0, 3, False)


def test_sweep_messages_are_one_line_for_people_and_each_job_for_programs(
    people: People, sweep: Sweep
) -> None:
    chat, webhook = channel(people.owner, kind="slack"), channel(people.owner)
    finish(sweep, 0)
    finish(sweep, 1, State.FAILED)
    for row, expected in ((chat, 1), (webhook, 2)):
        delivery = Delivery.objects.create(channel=row)
        assert DeliveryItem.objects.filter(channel=row).update(delivery=delivery) == 2
        message = composition.compose(delivery)
        assert message is not None
        assert len(message.lines) == expected
        if row == chat:
            [line] = message.lines
            assert line.title == "Sweep lr: 2 of 3 jobs ended, 1 failed."
            assert (line.text, line.level) == ("lr-1 failed.", "bad")
            assert line.url.endswith(f"/sweeps/{sweep.public_id}")
            assert message.thread == sweep.public_id


def test_sweep_summary_reaches_only_those_whose_rules_ask(people: People, sweep: Sweep) -> None:
    rule = routing.page_rule(people.owner)
    NotificationRule.objects.filter(pk=rule.pk).update(events=[Kind.FAILED.value])
    finish(sweep, 0)
    assert not Notification.objects.exists()
    finish(sweep, 1, State.FAILED)
    inbox.read(people.owner, Notification.objects.get().pk)
    finish(sweep, 2)
    [row] = inbox.list_notifications(people.owner).rows
    assert (row.told.title, row.unread) == ("Sweep lr: 3 of 3 jobs ended, 1 failed.", False)
    assert inbox.list_notifications(people.member).rows == []


def test_failure_line_is_shown_to_readers_of_the_log_with_few_queries(people: People) -> None:
    jobs = [make_job(State.RUNNING, owner=people.member, quota=people.quota) for _ in range(3)]
    for job in jobs:
        end(job, State.FAILED, ReasonCode.EXIT_CODE)
        Attempt.objects.filter(pk=attempt_of(job).pk).update(
            fault={"code": "exit_code", "origin": "own", "line": f"Error {job.pk}"}
        )
    routing.route()
    Notification.objects.update(person=people.owner)
    with CaptureQueriesContext(connection) as queries:
        rows = inbox.list_notifications(people.owner).rows
    assert [row.line for row in rows] == ["", "", ""]
    assert len(queries) <= 6
    Job.objects.filter(pk=jobs[0].pk).update(visibility=Visibility.PUBLIC)
    lines = {row.line for row in inbox.list_notifications(people.owner).rows}
    assert lines == {"", f"Error {jobs[0].pk}"}
