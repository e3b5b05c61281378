"""POST jobs: accepted once, refused with every reason, and never slower for having more around it."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import translation
from django.utils.translation import gettext

from jobs import dialects
from jobs.dialects.base import Refused
from jobs.messages import problem_message
from jobs.models import Job, JobFile
from jobs.states import State
from quotas.models import Role
from tests.factories import make_cluster, make_membership, make_quota, make_workspace
from tests.jobs.api.conftest import FIELDS, People, api, body_of, file, problem


def test_submit_creates_a_job_from_a_job_file(people: People) -> None:
    answer = api(people.owner).submit(file())
    told = body_of(answer, 201)
    job = Job.objects.get(public_id=told["id"])
    assert (job.owner, job.name, job.quota) == (people.owner, "hello", people.quota)
    assert told["state"] == State.QUEUED
    assert told["phase"] == "Queuing"
    assert set(told["reason"]) == {"code", "message"}
    assert told["tasks"] == []
    assert answer.headers["Location"].endswith(f"/api/console/v1/jobs/{told['id']}")
    assert body_of(api(people.owner).get(answer.headers["Location"])) == told


def test_submit_reports_ignored_fields_as_notes(people: People) -> None:
    notes = body_of(api(people.owner).submit(file(storageGB=5)), 201)["notes"]
    assert [note["pointer"] for note in notes] == ["/storageGB"]
    assert notes[0]["line"] == 1
    assert notes[0]["message"]


def test_submit_reports_each_problem_with_its_place(people: People) -> None:
    text = '{\n  "jobName": "hello",\n  "image": "python:3.12",\n  "taskRoles": []\n}'
    told = problem(api(people.owner).submit(text))
    assert told["status"] == 400
    [found] = told["problems"]
    assert set(found) == FIELDS
    assert (found["pointer"], found["line"]) == ("/taskRoles", 4)
    assert not Job.objects.exists()


@pytest.mark.parametrize("language", ["zh-hans", "ja", "en"])
def test_submit_reports_problems_in_the_language_of_the_reader(people: People, language: str) -> None:
    told = problem(api(people.owner, **{"Accept-Language": language}).submit("{}"))
    with pytest.raises(Refused) as refused:
        dialects.parse("{}")
    with translation.override(language):
        assert told["detail"] == gettext("The job file can't be accepted.")
        messages = [problem_message(found) for found in refused.value.problems]
    assert [found["message"] for found in told["problems"]] == messages


def test_submit_again_with_the_same_key_returns_the_same_job(people: People) -> None:
    owner = api(people.owner)
    first = body_of(owner.submit(file(), key="k1"), 201)
    again = owner.submit(file(), key="k1")
    assert again.headers["Idempotent-Replayed"] == "true"
    assert body_of(again)["id"] == first["id"]
    assert Job.objects.count() == 1


def test_submit_with_a_used_key_and_another_request_is_a_conflict(people: People) -> None:
    owner = api(people.owner)
    body_of(owner.submit(file(), key="k1"), 201)
    assert problem(owner.submit(file(jobName="other"), key="k1"))["status"] == 409
    assert Job.objects.count() == 1


def test_submit_refused_leaves_its_key_free(people: People) -> None:
    owner = api(people.owner)
    assert owner.submit("{}", key="k1").status_code == 400
    body_of(owner.submit(file(), key="k1"), 201)


def test_submit_key_of_one_user_is_free_for_another(people: People) -> None:
    first = body_of(api(people.owner).submit(file(), key="k1"), 201)
    assert body_of(api(people.member).submit(file(), key="k1"), 201)["id"] != first["id"]


def test_submit_key_over_the_length_limit_is_refused(people: People) -> None:
    assert problem(api(people.owner).submit(file(), key="k" * 256))["status"] == 400
    body_of(api(people.owner).submit(file(), key="k" * 255), 201)


def test_submit_uses_the_given_workspace_cluster_and_quota(people: People) -> None:
    other = make_quota(make_workspace("robots", members={people.owner: Role.DEVELOPER}), make_cluster("slow"))
    told = body_of(
        api(people.owner).submit(file(), workspace="robots", cluster="slow", quota=other.slug), 201
    )
    assert (told["workspace"], told["cluster"], told["quota"]) == ("robots", "slow", other.slug)


@pytest.mark.parametrize("place", [{"workspace": "speech"}, {"cluster": "moon"}, {"quota": "gold"}])
def test_submit_to_a_place_closed_to_the_user_is_a_problem(people: People, place: dict[str, str]) -> None:
    assert problem(api(people.owner).submit(file(), **place))["problems"][0]["code"] == "no_such_place"


def test_submit_by_a_viewer_finds_no_place(people: People) -> None:
    make_membership(people.member, people.quota.workspace, Role.VIEWER)
    assert problem(api(people.member).submit(file()))["problems"][0]["code"] == "no_place"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/file"),
        ({"file": ""}, "/file"),
        ({"file": 5}, "/file"),
        ({"file": "{}", "dialect": "klingon"}, "/dialect"),
        ({"file": "{}", "workspace": "not a slug"}, "/workspace"),
        ([], ""),
    ],
)
def test_submit_request_with_invalid_fields_names_the_field(people: People, body: Any, pointer: str) -> None:
    told = problem(api(people.owner).post("jobs", body))
    assert told["status"] == 400
    assert [found["pointer"] for found in told["problems"]] == [pointer]


@pytest.mark.parametrize("body", ["", "{", "\ufeff{}", "[" * 100_000, b"\xff\xfe", '{"file": NaN'])
def test_submit_body_not_json_is_refused(people: People, body: str | bytes) -> None:
    assert problem(api(people.owner).post("jobs", body))["status"] == 400


@pytest.mark.parametrize("text", ["\ud800", '{"jobName": "\ud83d"}', '{"jobName": "a\u0000b"}', "\x01"])
def test_submit_with_invalid_characters_is_refused(people: People, text: str) -> None:
    assert problem(api(people.owner).submit(text))["status"] == 400


def test_submit_over_one_mebibyte_is_refused_unread(people: People) -> None:
    told = problem(api(people.owner).submit("x" * 1024 * 1024))
    assert told["status"] == 413


def test_submit_with_keep_original_stores_the_file_unchanged(people: People) -> None:
    kept = body_of(api(people.owner).submit(file(), keep_original=True), 201)
    assert JobFile.objects.get(job__public_id=kept["id"]).text == file()


def test_submit_query_count_is_independent_of_existing_rows(people: People) -> None:
    owner = api(people.owner)
    body_of(owner.submit(file()), 201)  # the token has been used: its next use writes nothing

    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            body_of(owner.submit(file(), key=f"key-{Job.objects.count()}"), 201)
        return len(seen) - 1  # counting the jobs

    before = queries()
    for _more in range(5):
        workspace = make_workspace(members={people.owner: Role.DEVELOPER})
        make_quota(workspace, make_cluster())
    assert queries() == before
    assert before <= 16


def test_submit_of_a_pasted_request_stores_only_the_job_file(people: People) -> None:
    text = f"curl http://x -H 'Authorization: Bearer s3cret' -d '{file()}'\n"
    kept = body_of(api(people.owner).submit(text), 201)
    assert JobFile.objects.get(job__public_id=kept["id"]).text == file()
    preview = body_of(api(people.owner).post("preview", {"file": text}))
    assert "preview" in preview
