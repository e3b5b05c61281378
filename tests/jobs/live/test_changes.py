"""What a page hears of changes: only its own workspaces', coalesced, and never silently too little."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest
from django.conf import LazySettings
from django.contrib.sessions.models import Session

from jobs.lifecycle import transitions
from jobs.live import bus, connection, cursor, timings
from jobs.models import Job
from quotas.models import Membership, User
from tests.factories import make_job
from tests.jobs.live.conftest import People
from tests.serving import RedisServer, listening
from tests.waiting import wait_for

SignIn = Callable[[User], httpx.Client]


def test_change_stream_names_changes(sign_in: SignIn, people: People, job: Job) -> None:
    with listening(sign_in(people.owner), "/live/") as events:
        hello = events.next("changed")
        assert hello.data == {"names": []}
        assert cursor.parse(hello.identity)
        transitions.tell(job)
        told = events.next("changed")
    assert told.data == {"names": [f"job:{job.public_id}", "jobs"]}
    assert cursor.parse(told.identity)


def test_change_stream_omits_other_workspaces(sign_in: SignIn, people: People, job: Job) -> None:
    mine = make_job(owner=people.stranger)
    with listening(sign_in(people.stranger), "/live/") as events:
        events.next("changed")
        transitions.tell(job)
        transitions.tell(mine)
        assert f"job:{mine.public_id}" in events.next("changed").data["names"]


def test_change_stream_combines_rapid_changes(sign_in: SignIn, people: People, job: Job) -> None:
    with listening(sign_in(people.owner), "/live/") as events:
        events.next("changed")
        for number in range(50):
            bus.publish(job.workspace_id, [f"job:{number}"])
        told: set[str] = set()
        messages = 0
        while len(told) < 50:
            told.update(events.next("changed").data["names"])
            messages += 1
    assert messages < 25


def test_change_stream_replays_missed_changes(sign_in: SignIn, people: People, job: Job) -> None:
    since = cursor.at_render()
    transitions.tell(job)
    for asked in ({"params": {"since": since}}, {"headers": {"Last-Event-ID": since}}):
        with listening(sign_in(people.owner), "/live/", **asked) as events:
            assert f"job:{job.public_id}" in events.next("changed").data["names"]


def test_change_stream_resets_page_older_than_history(sign_in: SignIn, people: People, job: Job) -> None:
    since = cursor.at_render()
    wait_for(lambda: cursor.at_render() != since)  # the clock has gone on by a millisecond
    for _change in range(bus.STREAM_LENGTH + 200):
        bus.publish(job.workspace_id, ["jobs"])
    with listening(sign_in(people.owner), "/live/", params={"since": since}) as events:
        assert events.next("changed", "reset").name == "reset"


def test_change_stream_resets_after_redis_data_loss(sign_in: SignIn, people: People, job: Job) -> None:
    since = cursor.at_render()
    bus.client().flushall()
    with listening(sign_in(people.owner), "/live/", params={"since": since}) as events:
        assert events.next("changed", "reset").name == "reset"


def test_change_stream_survives_redis_restart_without_loss(
    sign_in: SignIn, people: People, job: Job, redis_server: RedisServer
) -> None:
    with listening(sign_in(people.owner), "/live/") as events:
        events.next("changed")
        redis_server.stop()
        assert events.next("reset").identity == ""  # anything may happen now, and nobody can tell
        redis_server.start()
        assert cursor.parse(events.next("reset").identity)
        bus._away_until = 0.0
        transitions.tell(job)
        assert f"job:{job.public_id}" in events.next("changed").data["names"]


def test_change_stream_begun_without_redis_works_once_redis_returns(
    sign_in: SignIn, people: People, job: Job, redis_server: RedisServer
) -> None:
    redis_server.stop()
    with listening(sign_in(people.owner), "/live/") as events:
        assert events.next("reset").identity == ""
        redis_server.start()
        assert cursor.parse(events.next("reset").identity)
        bus._away_until = 0.0
        transitions.tell(job)
        assert f"job:{job.public_id}" in events.next("changed").data["names"]


def test_stream_without_sign_in_is_refused(base_url: str, job: Job) -> None:
    for path in ("/live/", f"/jobs/{job.public_id}/stream"):
        assert httpx.get(base_url + path, trust_env=False).status_code == 401


def test_job_stream_omits_other_jobs(sign_in: SignIn, people: People, job: Job) -> None:
    with listening(sign_in(people.member), f"/jobs/{job.public_id}/stream") as events:
        events.next("changed")
        bus.publish(job.workspace_id, ["job:another"])
        transitions.tell(job)
        assert events.next("changed").data["names"] == [f"job:{job.public_id}", "jobs"]


def test_job_stream_hides_job_from_stranger_and_log_from_member(
    sign_in: SignIn, people: People, job: Job
) -> None:
    path = f"/jobs/{job.public_id}/stream"
    assert sign_in(people.stranger).get(path).status_code == 404
    assert sign_in(people.member).get(path, params={"log": "main/0"}).status_code == 403


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rights are looked at again at once."""
    monkeypatch.setattr(connection, "LOOK_AGAIN_S", (0.05, 0.1))


@pytest.mark.usefixtures("impatient")
def test_change_stream_ends_after_sign_out(sign_in: SignIn, people: People, job: Job) -> None:
    with listening(sign_in(people.owner), "/live/") as events:
        events.next("changed")
        Session.objects.all().delete()
        events.ended()


@pytest.mark.usefixtures("impatient")
def test_job_stream_ends_when_account_is_disabled(sign_in: SignIn, people: People, job: Job) -> None:
    with listening(sign_in(people.owner), f"/jobs/{job.public_id}/stream") as events:
        events.next("changed")
        User.objects.filter(pk=people.owner.pk).update(is_active=False)
        events.ended()


@pytest.mark.usefixtures("impatient")
def test_job_stream_ends_when_membership_is_removed(sign_in: SignIn, people: People, job: Job) -> None:
    with listening(sign_in(people.member), f"/jobs/{job.public_id}/stream") as events:
        events.next("changed")
        Membership.objects.filter(user=people.member).delete()
        events.ended()


@pytest.mark.usefixtures("impatient")
def test_change_stream_includes_newly_joined_workspace(sign_in: SignIn, people: People, job: Job) -> None:
    with listening(sign_in(people.stranger), "/live/") as events:
        events.next("changed")
        Membership.objects.create(user=people.stranger, workspace=job.workspace)
        events.next("reset")
        transitions.tell(job)
        assert f"job:{job.public_id}" in events.next("changed").data["names"]


def test_change_stream_over_limit_per_user_is_rejected(
    sign_in: SignIn, people: People, job: Job, settings: LazySettings
) -> None:
    settings.CONSOLE_STREAMS_PER_PERSON = 2
    client = sign_in(people.owner)
    with listening(client, "/live/") as first, listening(client, "/live/"):
        first.next("changed")
        refused = client.get("/live/")
        assert refused.status_code == 429
        assert int(refused.headers["Retry-After"]) > 0
        with listening(sign_in(people.member), "/live/") as another:
            another.next("changed")
    wait_for(lambda: timings.registry.get_sample_value("console_open_streams") == 0)
