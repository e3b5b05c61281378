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


def test_a_job_file_becomes_a_job(people: People) -> None:
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


def test_what_was_ignored_is_told(people: People) -> None:
    notes = body_of(api(people.owner).submit(file(storageGB=5)), 201)["notes"]
    assert [note["pointer"] for note in notes] == ["/storageGB"]
    assert notes[0]["line"] == 1
    assert notes[0]["message"]


def test_every_problem_is_told_with_its_place(people: People) -> None:
    text = '{\n  "jobName": "hello",\n  "image": "python:3.12",\n  "taskRoles": []\n}'
    told = problem(api(people.owner).submit(text))
    assert told["status"] == 400
    [found] = told["problems"]
    assert set(found) == FIELDS
    assert (found["pointer"], found["line"]) == ("/taskRoles", 4)
    assert not Job.objects.exists()


@pytest.mark.parametrize("language", ["zh-hans", "ja", "en"])
def test_sentences_are_in_the_readers_language(people: People, language: str) -> None:
    told = problem(api(people.owner, **{"Accept-Language": language}).submit("{}"))
    with pytest.raises(Refused) as refused:
        dialects.parse("{}")
    with translation.override(language):
        assert told["detail"] == gettext("The job file can't be accepted.")
        messages = [problem_message(found) for found in refused.value.problems]
    assert [found["message"] for found in told["problems"]] == messages


def test_the_same_key_again_answers_the_same_job(people: People) -> None:
    owner = api(people.owner)
    first = body_of(owner.submit(file(), key="k1"), 201)
    again = owner.submit(file(), key="k1")
    assert again.headers["Idempotent-Replayed"] == "true"
    assert body_of(again)["id"] == first["id"]
    assert Job.objects.count() == 1


def test_the_same_key_for_another_request_is_a_conflict(people: People) -> None:
    owner = api(people.owner)
    body_of(owner.submit(file(), key="k1"), 201)
    assert problem(owner.submit(file(jobName="other"), key="k1"))["status"] == 409
    assert Job.objects.count() == 1


def test_a_refused_request_leaves_its_key_free(people: People) -> None:
    owner = api(people.owner)
    assert owner.submit("{}", key="k1").status_code == 400
    body_of(owner.submit(file(), key="k1"), 201)


def test_a_key_is_one_persons(people: People) -> None:
    first = body_of(api(people.owner).submit(file(), key="k1"), 201)
    assert body_of(api(people.member).submit(file(), key="k1"), 201)["id"] != first["id"]


def test_a_key_that_is_too_long_is_refused_rather_than_shortened(people: People) -> None:
    assert problem(api(people.owner).submit(file(), key="k" * 256))["status"] == 400
    body_of(api(people.owner).submit(file(), key="k" * 255), 201)


def test_a_job_goes_where_it_is_sent(people: People) -> None:
    other = make_quota(make_workspace("robots", members={people.owner: Role.DEVELOPER}), make_cluster("slow"))
    told = body_of(
        api(people.owner).submit(file(), workspace="robots", cluster="slow", quota=other.slug), 201
    )
    assert (told["workspace"], told["cluster"], told["quota"]) == ("robots", "slow", other.slug)


@pytest.mark.parametrize("place", [{"workspace": "speech"}, {"cluster": "moon"}, {"quota": "gold"}])
def test_a_place_that_is_not_open_to_the_person_is_a_problem(people: People, place: dict[str, str]) -> None:
    assert problem(api(people.owner).submit(file(), **place))["problems"][0]["code"] == "no_such_place"


def test_a_viewer_has_nowhere_to_submit_to(people: People) -> None:
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
def test_a_request_that_is_none_says_which_field(people: People, body: Any, pointer: str) -> None:
    told = problem(api(people.owner).post("jobs", body))
    assert told["status"] == 400
    assert [found["pointer"] for found in told["problems"]] == [pointer]


@pytest.mark.parametrize("body", ["", "{", "\ufeff{}", "[" * 100_000, b"\xff\xfe", '{"file": NaN'])
def test_a_body_that_is_no_json_is_refused(people: People, body: str | bytes) -> None:
    assert problem(api(people.owner).post("jobs", body))["status"] == 400


@pytest.mark.parametrize("text", ["\ud800", '{"jobName": "\ud83d"}', '{"jobName": "a\u0000b"}', "\x01"])
def test_characters_that_are_none_are_refused(people: People, text: str) -> None:
    assert problem(api(people.owner).submit(text))["status"] == 400


def test_a_request_over_one_mebibyte_is_refused_unread(people: People) -> None:
    told = problem(api(people.owner).submit("x" * 1024 * 1024))
    assert told["status"] == 413


def test_what_the_console_would_fix_can_be_kept(people: People) -> None:
    kept = body_of(api(people.owner).submit(file(), keep_original=True), 201)
    assert JobFile.objects.get(job__public_id=kept["id"]).text == file()


def test_accepting_a_job_takes_the_same_few_queries_however_much_there_is(people: People) -> None:
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
    assert before <= 15


def test_what_was_pasted_is_submitted_as_the_job_file_alone(people: People) -> None:
    text = f"curl http://x -H 'Authorization: Bearer s3cret' -d '{file()}'\n"
    kept = body_of(api(people.owner).submit(text), 201)
    assert JobFile.objects.get(job__public_id=kept["id"]).text == file()
    preview = body_of(api(people.owner).post("preview", {"file": text}))
    assert "preview" in preview
