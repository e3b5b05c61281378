"""The native API's stream: the job's state, its log, and an end that a script can wait for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

import httpx
import pytest
from django.conf import LazySettings

from jobs.lifecycle import transitions
from jobs.live import connection
from jobs.models import Job
from jobs.states import Phase, Reason, ReasonCode, State
from quotas.accounts import tokens
from quotas.models import AccessToken, User
from tests.jobs.live.conftest import People, WrittenLog
from tests.serving import listening

WithToken = Callable[..., httpx.Client]


@pytest.fixture
def with_token(base_url: str) -> Iterator[WithToken]:
    """A client that sends a token of somebody."""
    made: list[httpx.Client] = []

    def sending(user: User, scopes: tuple[str, ...] = ("read",)) -> httpx.Client:
        token = tokens.issue(user, scopes=scopes, lifetime=timedelta(days=1))
        headers = {"Authorization": f"Bearer {token}"}
        made.append(httpx.Client(base_url=base_url, headers=headers, trust_env=False))
        return made[-1]

    yield sending
    for client in made:
        client.close()


def path(job: Job) -> str:
    return f"/api/console/v1/jobs/{job.public_id}/stream"


def end(job: Job, state: State = State.SUCCEEDED) -> None:
    job.refresh_from_db()
    attempt = job.attempts.get(number=job.attempt_number)
    transitions.end(job, attempt, state, Reason(ReasonCode.COMPLETED))


def test_api_stream_sends_state_first_and_on_change(with_token: WithToken, people: People, job: Job) -> None:
    with listening(with_token(people.owner), path(job)) as events:
        first = events.next()
        assert (first.name, first.data["id"], first.data["state"]) == ("state", job.public_id, "RUNNING")
        assert first.data["reason"]["message"]
        transitions.explain(job, Reason(ReasonCode.STARTING), Phase.RESTARTING)
        assert events.next("state").data["phase"] == "Restarting"


def test_api_stream_stays_silent_without_visible_change(
    with_token: WithToken, people: People, job: Job
) -> None:
    with listening(with_token(people.owner), path(job)) as events:
        events.next("state")
        transitions.tell(job)
        transitions.explain(job, Reason(ReasonCode.STARTING))
        assert events.next("state").data["reason"]["code"] == "starting"


def test_api_stream_ends_with_job(with_token: WithToken, people: People, job: Job) -> None:
    with listening(with_token(people.owner), path(job)) as events:
        events.next("state")
        end(job)
        assert [event.data["state"] for event in events.ended() if event.name == "state"] == ["SUCCEEDED"]


def test_api_stream_ends_with_log_when_log_ends_later(
    with_token: WithToken, people: People, job: Job, written: WrittenLog
) -> None:
    with listening(with_token(people.owner), path(job), params={"log": "main/0"}) as events:
        written.write("one\n")
        assert events.next("log").data == "one\n"
        end(job)
        assert events.next("state").data["state"] == "SUCCEEDED"
        written.write("two\n")
        assert events.next("log").data == "two\n"
        written.finish()
        transitions.tell(job)
        assert [event.name for event in events.ended() if event.name != "ping"] == ["end"]


def test_api_stream_of_ended_job_sends_rest_of_log_and_ends(
    with_token: WithToken, people: People, job: Job, written: WrittenLog
) -> None:
    written.write("all of it\n")
    written.finish()
    end(job)
    with listening(with_token(people.owner), path(job), params={"log": "main/0", "offset": 4}) as events:
        told = [(event.name, event.data) for event in events.ended() if event.name not in {"ping", "state"}]
    assert told == [("log", "of it\n"), ("end", {"state": "complete"})]


def test_api_stream_uses_reader_language(with_token: WithToken, people: People, job: Job) -> None:
    for language in ("ja", "en"):
        headers = {"Accept-Language": language}
        client = with_token(people.owner)
        with listening(client, path(job), headers=headers) as events:
            streamed = events.next("state").data["reason"]["message"]
        read = client.get(path(job).removesuffix("/stream"), headers=headers).json()["reason"]["message"]
        assert streamed == read


def test_api_stream_gives_members_state_but_not_log(with_token: WithToken, people: People, job: Job) -> None:
    with listening(with_token(people.member), path(job)) as events:
        assert events.next("state").data["state"] == "RUNNING"
    assert with_token(people.member).get(path(job), params={"log": "main/0"}).status_code == 403


def test_api_stream_ends_with_revoked_token(
    with_token: WithToken, people: People, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "LOOK_AGAIN_S", (0.05, 0.1))
    with listening(with_token(people.owner), path(job)) as events:
        events.next("state")
        AccessToken.objects.all().delete()
        events.ended()


def test_api_stream_over_limit_is_rejected(
    with_token: WithToken, people: People, job: Job, settings: LazySettings
) -> None:
    settings.CONSOLE_STREAMS_PER_PERSON = 1
    client = with_token(people.owner)
    with listening(client, path(job)) as events:
        events.next("state")
        answer = client.get(path(job))
    assert answer.status_code == 429
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert int(answer.headers["Retry-After"]) > 0


@pytest.mark.parametrize("params", [{"log": "main/0", "offset": "x"}, {"log": "main/-1"}])
def test_api_stream_rejects_non_number_parameters(
    with_token: WithToken, people: People, job: Job, params: dict[str, str]
) -> None:
    answer = with_token(people.owner).get(path(job), params=params)
    assert answer.status_code == 400
    assert answer.headers["Content-Type"] == "application/problem+json"
