"""Entity tags, sparse fields, Idempotency-Key and rate limits of the native API."""

from __future__ import annotations

import pytest
from django.conf import LazySettings
from pytest_django import DjangoAssertNumQueries

from jobs.models import CodeSource, Draft, Job, StoredAnswer, Template
from jobs.states import State
from jobs.submission import templates
from tests.factories import make_job, make_template
from tests.jobs.api.conftest import People, api, body_of, file, problem


def test_etag_of_known_answer_is_304_without_body(people: People, job: Job) -> None:
    caller = api(people.owner)
    for path in (f"jobs/{job.public_id}", "jobs", "quotas"):
        first = caller.get(path)
        again = api(people.owner, **{"If-None-Match": first.headers["ETag"]}).get(path)
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["ETag"] == first.headers["ETag"]
    before = caller.get("jobs").headers["ETag"]
    Job.objects.filter(pk=job.pk).update(name="other")
    assert api(people.owner, **{"If-None-Match": before}).get("jobs").status_code == 200


def test_if_match_refuses_change_of_another_version(people: People) -> None:
    job = make_job(State.QUEUED, owner=people.owner, quota=people.quota)
    path = f"jobs/{job.public_id}"
    tag = api(people.owner).get(path).headers["ETag"]
    assert tag.startswith(f'"{job.version}-')
    Job.objects.filter(pk=job.pk).update(version=job.version + 1)
    refused = api(people.owner).post(f"{path}/stop", **{"If-Match": tag})
    assert problem(refused)["status"] == 412
    job.refresh_from_db()
    assert job.state == State.QUEUED
    tag = api(people.owner).get(path, fields="id").headers["ETag"]
    assert body_of(api(people.owner).post(f"{path}/stop", **{"If-Match": tag}))["state"] == "STOPPED"


@pytest.mark.parametrize("tag", ['W/"1-a"', '"x"', "nonsense", '"2-a"'])
def test_if_match_refuses_other_tags(people: People, job: Job, tag: str) -> None:
    answer = api(people.owner).post(f"jobs/{job.public_id}/stop", **{"If-Match": tag})
    assert problem(answer)["status"] == 412


def test_if_match_any_is_accepted(people: People, job: Job) -> None:
    assert api(people.owner).post(f"jobs/{job.public_id}/stop", **{"If-Match": "*"}).status_code == 200


def test_if_match_is_refused_where_nothing_has_versions(people: People) -> None:
    answer = api(people.owner).post("jobs", {"file": file()}, **{"If-Match": '"1"'})
    assert problem(answer)["status"] == 412
    assert not Job.objects.exists()


# --- fields ----------------------------------------------------------------------------------------------


def test_fields_select_those_of_rows_and_objects(people: People, job: Job) -> None:
    caller = api(people.owner)
    listed = body_of(caller.get("jobs", fields="id,state"))
    assert listed == {"jobs": [{"id": job.public_id, "state": "RUNNING"}], "next": None}
    assert body_of(caller.get(f"jobs/{job.public_id}", fields="name")) == {"name": job.name}


@pytest.mark.parametrize(
    "path", ["jobs", "quotas", "nodes", "sweeps", "drafts", "templates", "external-jobs"]
)
def test_fields_with_unknown_name_are_refused(people: People, path: str) -> None:
    [found] = problem(api(people.owner).get(path, fields="id,nonsense"))["problems"]
    assert (found["pointer"], found["code"]) == ("/fields", "unknown_field")


# --- Idempotency-Key -------------------------------------------------------------------------------------


def test_idempotency_key_creates_once_and_replays_the_answer(people: People) -> None:
    caller, key = api(people.owner), {"Idempotency-Key": "once"}
    first = body_of(caller.post("drafts", {"file": "a"}, **key), 201)
    again = caller.post("drafts", {"file": "a"}, **key)
    assert (body_of(again), again.headers["Idempotent-Replayed"]) == (first, "true")
    assert problem(caller.post("drafts", {"file": "b"}, **key))["status"] == 409
    assert problem(caller.post("templates", {"name": "a", "file": file()}, **key))["status"] == 409
    assert Draft.objects.count() == 1
    other = api(people.member).post("drafts", {"file": "b"}, **key)
    assert body_of(other, 201)["file"] == "b"


def test_idempotency_key_adds_an_asset_once(people: People) -> None:
    caller, key = api(people.manager), {"Idempotency-Key": "asset"}
    body = {"name": "x", "repo": "https://git.example.org/x", "workspace": "vision"}
    first = body_of(caller.post("assets/code", body, **key), 201)
    assert body_of(caller.post("assets/code", body, **key)) == first
    assert problem(caller.post("assets/code", {**body, "name": "y"}, **key))["status"] == 409
    assert CodeSource.objects.count() == 1


def test_idempotency_key_adopts_a_template_once(people: People) -> None:
    row = make_template(people.owner)
    templates.propose(people.owner, row, people.quota.workspace)
    caller, key = api(people.manager), {"Idempotency-Key": "adopt"}
    path = f"templates/{row.public_id}/adopt"
    first = body_of(caller.post(path, **key), 201)
    assert body_of(caller.post(path, **key)) == first
    assert problem(caller.post(path, {"other": 1}, **key))["status"] == 409
    assert Template.objects.count() == 2


def test_idempotency_key_runs_failed_jobs_of_a_sweep_again_once(people: People) -> None:
    caller, key = api(people.owner), {"Idempotency-Key": "sweep"}
    made = body_of(caller.post("sweeps", {"file": file(), "grid": {"env.LR": [0.1, 0.2]}}), 201)
    Job.objects.filter(sweep_run__number=1).update(state=State.FAILED)
    path = f"sweeps/{made['id']}/again"
    first = body_of(caller.post(path, **key))
    Job.objects.filter(public_id=first["runs"][0]["job"]["id"]).update(state=State.FAILED)
    again = caller.post(path, **key)
    assert (body_of(again), again.headers["Idempotent-Replayed"]) == (first, "true")
    assert problem(caller.post(path, {"other": 1}, **key))["status"] == 409
    assert Job.objects.count() == 3


def test_idempotency_key_of_refused_request_can_be_used_again(people: People) -> None:
    caller, key = api(people.owner), {"Idempotency-Key": "again"}
    assert caller.post("drafts", {"file": ""}, **key).status_code == 400
    assert caller.post("templates", {"name": "a", "file": "{}"}, **key).status_code == 400
    assert not StoredAnswer.objects.exists()
    body_of(caller.post("drafts", {"file": "a"}, **key), 201)


def test_idempotency_key_stores_no_value_of_the_request(people: People) -> None:
    api(people.owner).post("drafts", {"file": "hunter2"}, **{"Idempotency-Key": "k"})
    assert "hunter2" not in StoredAnswer.objects.get().digest


# --- rate limit ------------------------------------------------------------------------------------------


def test_rate_limit_answers_429_with_retry_after_for_that_token_alone(
    people: People, settings: LazySettings
) -> None:
    settings.CONSOLE_API_REQUESTS_PER_MINUTE = 3
    caller = api(people.owner)
    assert [caller.get("me").status_code for _each in range(3)] == [200] * 3
    refused = caller.get("me")
    assert problem(refused)["status"] == 429
    assert 1 <= int(refused.headers["Retry-After"]) <= 20
    assert api(people.owner).get("me").status_code == 200


def test_rate_limit_of_zero_limits_nothing(people: People, settings: LazySettings) -> None:
    settings.CONSOLE_API_REQUESTS_PER_MINUTE = 0
    caller = api(people.owner)
    assert {caller.get("me").status_code for _each in range(5)} == {200}


# --- cost ------------------------------------------------------------------------------------------------


def test_lists_cost_a_fixed_number_of_queries(
    people: People, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    caller = api(people.owner)
    for number in range(5):
        make_job(State.RUNNING, owner=people.owner, quota=people.quota)
        caller.post("sweeps", {"file": file(jobName=f"s{number}"), "grid": {"env.LR": [1, 2]}})
        caller.post("drafts", {"file": file()})
        caller.post("templates", {"name": f"t{number}", "file": file()})
    for path, most in {
        "jobs": 6,
        "sweeps": 5,
        "drafts": 4,
        "templates": 4,
        "quotas": 8,
        "nodes": 8,
        "external-jobs": 5,
    }.items():
        caller.get(path)
        with django_assert_max_num_queries(most):
            body_of(caller.get(path))
