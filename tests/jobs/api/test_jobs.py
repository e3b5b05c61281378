"""Reading, stopping and deleting jobs: who may, and what it costs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs.lifecycle import transitions
from jobs.models import Endpoint, Event, Job, Replica, Visibility
from jobs.spec import RoleSpec
from jobs.states import ReplicaState, State
from tests.factories import attempt_of, make_endpoint, make_job, make_spec, replica_of
from tests.jobs.api.conftest import V1, Api, People, api, body_of, problem


def all_pages(caller: Api, path: str, name: str, **query: Any) -> list[dict[str, Any]]:
    """Every row of a paged answer."""
    answer = body_of(caller.get(path, **query))
    rows: list[dict[str, Any]] = answer[name]
    while answer["next"]:
        answer = body_of(caller.get(answer["next"]))
        assert answer[name], "a page that was promised is empty"
        rows += answer[name]
    return rows


# --- the list ----------------------------------------------------------------------------------------------


def test_job_list_pages_by_key_and_misses_no_job(people: People) -> None:
    made = [make_job(owner=people.owner, quota=people.quota).public_id for _number in range(7)]
    make_job(owner=people.stranger)
    rows = all_pages(api(people.member), "jobs", "jobs", limit=3)
    assert [row["id"] for row in rows] == made[::-1]


def test_job_list_pages_do_not_shift_when_a_job_is_added(people: People) -> None:
    made = [make_job(owner=people.owner, quota=people.quota).public_id for _number in range(4)]
    first = body_of(api(people.owner).get("jobs", limit=2))
    make_job(owner=people.owner, quota=people.quota)
    second = body_of(api(people.owner).get(first["next"]))
    assert [row["id"] for row in first["jobs"] + second["jobs"]] == made[::-1]


def test_job_list_filters_by_state_owner_and_workspace(people: People) -> None:
    running = make_job(State.RUNNING, owner=people.owner, quota=people.quota).public_id
    waiting = make_job(owner=people.member, quota=people.quota).public_id
    for query, expected in (
        ({"state": "RUNNING"}, {running}),
        ({"state": ["RUNNING", "QUEUED"]}, {running, waiting}),
        ({"owner": "me"}, {waiting}),
        ({"owner": "olga"}, {running}),
        ({"workspace": "vision"}, {running, waiting}),
        ({"workspace": "speech"}, set()),
    ):
        rows = body_of(api(people.member).get("jobs", **query))["jobs"]
        assert {row["id"] for row in rows} == expected, query


def test_job_list_query_count_is_independent_of_job_count(people: People) -> None:
    member = api(people.member)
    make_job(owner=people.owner, quota=people.quota)
    body_of(member.get("jobs"))

    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            body_of(member.get("jobs"))
        return len(seen)

    before = queries()
    for _number in range(10):
        make_job(State.RUNNING, owner=people.owner, quota=people.quota)
    assert queries() == before <= 5, "one of them for why the waiting ones wait, one for the workspaces"


@pytest.mark.parametrize("query", [{"limit": "x"}, {"after": "-1"}, {"after": "9" * 30}])
def test_job_list_rejects_an_invalid_limit_or_cursor(people: People, query: dict[str, str]) -> None:
    told = problem(api(people.owner).get("jobs", **query))
    assert told["problems"][0]["pointer"] == f"/{next(iter(query))}"


# --- one job -----------------------------------------------------------------------------------------------


def test_job_is_fully_readable_by_its_owner(people: People, job: Job) -> None:
    told = body_of(api(people.owner).get(f"jobs/{job.public_id}"))
    assert told["notes"] == []
    [replica] = told["tasks"]
    assert replica == {
        "role": "main",
        "index": 0,
        "attempt": 1,
        "run": 1,
        "state": "RUNNING",
        "exit_code": None,
        "signal": None,
        "node": "localhost",
        "endpoints": [],
    }


def test_job_for_members_shows_state_and_reason_without_details(people: People, job: Job) -> None:
    told = body_of(api(people.member).get(f"jobs/{job.public_id}"))
    assert (told["id"], told["state"], told["tasks"], told["notes"]) == (job.public_id, "RUNNING", None, None)
    assert told["reason"]["message"]


PARTS = ["replicas", "tasks", "events", "logs?role=main", "stream?log=main/0", "endpoints"]


@pytest.mark.parametrize("part", PARTS)
def test_job_details_are_refused_to_members(people: People, job: Job, part: str) -> None:
    assert problem(api(people.member).get(f"jobs/{job.public_id}/{part}"))["status"] == 403


@pytest.mark.parametrize("part", ["", *PARTS])
def test_job_is_not_found_for_strangers(people: People, job: Job, part: str) -> None:
    path = f"jobs/{job.public_id}/{part}".rstrip("/")
    assert problem(api(people.stranger).get(path))["status"] == 404
    assert problem(api(people.owner).get(path.replace(job.public_id, "nosuchjob000")))["status"] == 404


@pytest.mark.parametrize("who", ["manager", "admin"])
def test_job_is_read_and_stopped_by_workspace_managers(people: People, job: Job, who: str) -> None:
    caller = api(getattr(people, who))
    assert body_of(caller.get(f"jobs/{job.public_id}"))["tasks"]
    assert body_of(caller.post(f"jobs/{job.public_id}/stop"))["phase"] == "Stopping"


def test_public_job_is_read_by_members_but_not_stopped(people: People, job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(visibility=Visibility.PUBLIC)
    assert body_of(api(people.member).get(f"jobs/{job.public_id}"))["tasks"]
    assert body_of(api(people.member).get(f"jobs/{job.public_id}/events")) == {"events": [], "next": None}
    assert problem(api(people.member).post(f"jobs/{job.public_id}/stop"))["status"] == 403


def test_replica_shows_the_signal_beside_its_exit_code(people: People, job: Job) -> None:
    Replica.objects.filter(pk=replica_of(job).pk).update(state=ReplicaState.FAILED, exit_code=137, signal=9)
    [replica] = body_of(api(people.owner).get(f"jobs/{job.public_id}/replicas"))["replicas"]
    assert (replica["exit_code"], replica["signal"]) == (137, 9)


def test_replicas_over_one_hundred_are_paged(people: People) -> None:
    spec = make_spec(roles=(RoleSpec(name="worker", command="true", replicas=250),))
    job = make_job(State.RUNNING, owner=people.owner, quota=people.quota, spec=spec, dialect="openpai-v1")
    caller = api(people.owner)
    told = body_of(caller.get(f"jobs/{job.public_id}"))
    assert [replica["index"] for replica in told["tasks"]] == list(range(100))
    following = body_of(caller.get(told["tasks_next"]))
    assert following["tasks"][0]["index"] == 100
    rows = all_pages(caller, f"jobs/{job.public_id}/replicas", "replicas", limit=70)
    assert all_pages(caller, f"jobs/{job.public_id}/tasks", "tasks", limit=70) == rows
    assert [replica["index"] for replica in rows] == list(range(250))


def test_job_query_count_is_independent_of_replica_count(people: People) -> None:
    caller = api(people.owner)

    def queries(replicas: int) -> int:
        spec = make_spec(roles=(RoleSpec(name="worker", command="true", replicas=replicas),))
        job = make_job(State.RUNNING, owner=people.owner, quota=people.quota, spec=spec, dialect="openpai-v1")
        for replica in Replica.objects.filter(attempt__job=job):
            make_endpoint(replica)
        with CaptureQueriesContext(connection) as seen:
            body_of(caller.get(f"jobs/{job.public_id}"))
        return len(seen)

    queries(1)
    assert queries(1) == queries(30) <= 8


# --- endpoints ---------------------------------------------------------------------------------------------


@pytest.fixture
def endpoint(job: Job) -> Endpoint:
    return make_endpoint(replica_of(job), port=8888)


def test_endpoint_is_listed_with_its_opening_link(people: People, job: Job, endpoint: Endpoint) -> None:
    [replica] = body_of(api(people.owner).get(f"jobs/{job.public_id}"))["tasks"]
    [served] = body_of(api(people.owner).get(f"jobs/{job.public_id}/endpoints"))
    assert replica["endpoints"][0]["url"] == f"http://testserver/endpoints/{endpoint.slug}/open"
    expected = {"label": "jupyter", "host": "127.0.0.1", "port": 8888, "ready": True}
    assert {name: served[name] for name in expected} == expected
    assert (served["role"], served["index"], served["url"]) == ("main", 0, replica["endpoints"][0]["url"])


def test_endpoint_not_ready_shows_the_reason(people: People, job: Job, endpoint: Endpoint) -> None:
    told = {
        "ready": False,
        "why": "silent",
        "why_params": {"port": 8888},
        "source": "announced",
        "path": "/x",
    }
    Endpoint.objects.filter(pk=endpoint.pk).update(**told)
    [served] = body_of(api(people.owner).get(f"jobs/{job.public_id}/endpoints"))
    assert served["reason"] == {"code": "silent", "message": "No process is listening on port 8888."}
    assert (served["ready"], served["origin"], served["path"]) == (False, "announced", "/x")
    Endpoint.objects.filter(pk=endpoint.pk).update(ready=True)
    [served] = body_of(api(people.owner).get(f"jobs/{job.public_id}/endpoints"))
    assert (served["ready"], served["reason"]) == (True, None)


def test_endpoint_of_an_ended_replica_is_closed(people: People, job: Job, endpoint: Endpoint) -> None:
    Replica.objects.filter(pk=endpoint.replica_id).update(state=ReplicaState.SUCCEEDED)
    [replica] = body_of(api(people.owner).get(f"jobs/{job.public_id}/replicas"))["replicas"]
    assert (replica["endpoints"][0]["url"], replica["endpoints"][0]["ready"]) == (None, False)


# --- its end -----------------------------------------------------------------------------------------------


def test_job_stopped_twice_shows_stopping_and_records_one_event(people: People, job: Job) -> None:
    caller = api(people.owner)
    assert body_of(caller.post(f"jobs/{job.public_id}/stop"))["phase"] == "Stopping"
    assert body_of(caller.post(f"jobs/{job.public_id}/stop"))["state"] == "RUNNING"
    assert Event.objects.filter(job=job, kind=Event.Kind.END_WANTED).count() == 1


def test_job_waiting_ends_at_once_when_stopped(people: People) -> None:
    job = make_job(owner=people.owner, quota=people.quota, dialect="openpai-v1")
    told = body_of(api(people.owner).post(f"jobs/{job.public_id}/stop"))
    assert (told["state"], told["reason"]["code"]) == ("STOPPED", "user_stop")


def test_job_delete_is_refused_until_the_job_has_ended(people: People, job: Job) -> None:
    caller = api(people.owner)
    assert problem(caller.delete(f"jobs/{job.public_id}"))["status"] == 409
    Job.objects.filter(pk=job.pk).update(state=State.FAILED)
    assert caller.delete(f"jobs/{job.public_id}").status_code == 204
    assert problem(caller.get(f"jobs/{job.public_id}"))["status"] == 404


# --- events ------------------------------------------------------------------------------------------------


def test_job_events_are_paged_in_order(people: People, job: Job) -> None:
    for number in range(5):
        transitions.record(job, Event.Kind.REPLICA_STARTED, params={"index": number}, actor=people.owner)
    rows = all_pages(api(people.owner), f"jobs/{job.public_id}/events", "events", limit=2)
    assert [row["params"]["index"] for row in rows] == list(range(5))
    assert rows[0]["actor"] == "olga"
    assert rows[0]["at"].endswith("Z")
    assert attempt_of(job).number == rows[0]["attempt"]


def test_query_line_finds_jobs_and_names_its_problems(people: People) -> None:
    make_job(State.FAILED, owner=people.owner, quota=people.quota, name="bert-loss", gpus=8)
    make_job(State.RUNNING, owner=people.owner, quota=people.quota, name="bert")
    caller = api(people.member)
    assert [row["name"] for row in body_of(caller.get("jobs", q="loss gpu>4 state:failed"))["jobs"]] == [
        "bert-loss"
    ]
    (refused,) = problem(caller.get("jobs", q="stat:failed"))["problems"]
    assert (refused["pointer"], refused["code"]) == ("/q", "unknown_filter")


def test_description_and_tags_are_changed_by_the_owner_and_told_to_readers(people: People, job: Job) -> None:
    path = f"{V1}/jobs/{job.public_id}"
    change = json.dumps({"description": "A baseline", "tags": ["nlp", "best"]})
    assert api(people.member).send("patch", path, change).status_code == 403
    told = body_of(api(people.owner).send("patch", path, change))
    assert (told["description"], told["tags"]) == ("A baseline", ["best", "nlp"])
    assert body_of(api(people.member).get(f"jobs/{job.public_id}"))["tags"] is None
