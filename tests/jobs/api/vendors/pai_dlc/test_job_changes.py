"""UpdateJob, StopJob, DeleteJob: by the commands of the pages, for those who may."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jobs.dialects.document import Document
from jobs.models import Event, Job, Visibility
from jobs.states import State
from jobs.submission import JobTarget, submit
from quotas.accounts import tokens
from tests.factories import make_job
from tests.jobs.api.conftest import People
from tests.jobs.api.vendors.pai_dlc.service_calls import Dlc
from tests.jobs.api.vendors.pai_dlc.test_job_creation import REQUEST


@pytest.fixture
def queued(people: People) -> Job:
    return submit(people.owner, Document(json.dumps(REQUEST), "dlc"), place=JobTarget("vision")).job


@pytest.fixture
def running(people: People) -> Job:
    return make_job(State.RUNNING, owner=people.owner, quota=people.quota)


def address(job: Job) -> str:
    return f"jobs/dlc{job.public_id}"


def fresh(job: Job) -> Job:
    return Job.objects.get(pk=job.pk)


def test_update_job_opens_it_to_its_workspace(people: People, running: Job) -> None:
    answer = Dlc(people.owner).put(address(running), {"Accessibility": "PUBLIC"})
    assert answer["JobId"] == f"dlc{running.public_id}"
    assert fresh(running).visibility == Visibility.PUBLIC
    assert Event.objects.filter(job=running, kind=Event.Kind.SHARED).count() == 1
    Dlc(people.owner).put(address(running), {"Accessibility": "PUBLIC"})
    assert Event.objects.filter(job=running, kind=Event.Kind.SHARED).count() == 1


def test_update_job_never_makes_it_private_again(people: People, running: Job) -> None:
    Job.objects.filter(pk=running.pk).update(visibility=Visibility.PUBLIC)
    body = {"Accessibility": "PRIVATE"}
    assert Dlc(people.owner).refusal("put", address(running), body) == (400, "InvalidParameter")
    assert fresh(running).visibility == Visibility.PUBLIC


def test_update_job_changes_priority_for_admins(people: People, queued: Job) -> None:
    Dlc(people.admin).put(address(queued), {"Priority": 9})
    assert fresh(queued).priority == 9
    body = {"Priority": 3, "Accessibility": "PUBLIC"}
    assert Dlc(people.owner).refusal("put", address(queued), body) == (403, "NoPermission")
    assert (fresh(queued).priority, fresh(queued).visibility) == (9, Visibility.PRIVATE)
    Dlc(people.owner).put(address(queued), {"Priority": 9})


def test_update_job_keeps_priority_of_running_job(people: People, running: Job) -> None:
    body = {"Accessibility": "PUBLIC", "Priority": 9}
    assert Dlc(people.admin).refusal("put", address(running), body) == (409, "OperationConflict")
    assert fresh(running).visibility == Visibility.PRIVATE


def test_update_job_names_what_cannot_be_changed(people: People, running: Job) -> None:
    body = {"Description": "x", "UserCommand": "y", "JobSpecs": [{}], "Accessibility": "PUBLIC"}
    answer = Dlc(people.owner).send("put", address(running), body)
    found = json.loads(answer.content)
    assert (answer.status_code, found["Code"]) == (400, "UnsupportedOperation")
    for name in ("Description", "UserCommand", "JobSpecs"):
        assert name in found["Message"]
    assert fresh(running).visibility == Visibility.PRIVATE


def test_update_job_takes_empty_list_of_the_sdk_for_none(people: People, running: Job) -> None:
    Dlc(people.owner).put(address(running), {"JobSpecs": [], "Accessibility": "PUBLIC"})
    assert fresh(running).visibility == Visibility.PUBLIC


@pytest.mark.parametrize(
    "body", [{"Priority": 0}, {"Priority": "high"}, {"Accessibility": "Public"}, {"Accessibility": 1}, []]
)
def test_update_job_refuses_wrong_values(people: People, running: Job, body: Any) -> None:
    assert Dlc(people.owner).refusal("put", address(running), body) == (400, "InvalidParameter")


def test_stop_job_ends_queued_job(people: People, queued: Job) -> None:
    answer = Dlc(people.owner).send("post", f"{address(queued)}/stop")
    assert answer.status_code == 200
    body = json.loads(answer.content)
    assert (body.keys(), body["JobId"]) == ({"RequestId", "JobId"}, f"dlc{queued.public_id}")
    assert fresh(queued).state == State.STOPPED
    assert Dlc(people.owner).send("post", f"{address(queued)}/stop").status_code == 200


def test_delete_job_is_for_ended_ones(people: People, running: Job) -> None:
    assert Dlc(people.owner).refusal("delete", address(running)) == (409, "OperationConflict")
    Job.objects.filter(pk=running.pk).update(state=State.FAILED)
    answer = Dlc(people.owner).delete(address(running))
    assert (answer.keys(), answer["JobId"]) == ({"RequestId", "JobId"}, f"dlc{running.public_id}")
    assert fresh(running).deleted_at


CALLS = [("put", "", "submit"), ("post", "/stop", "stop"), ("delete", "", "stop")]


@pytest.mark.parametrize(("method", "suffix", "scope"), CALLS)
def test_changes_are_for_owner_and_managers(
    people: People, method: str, suffix: str, scope: str, running: Job
) -> None:
    Job.objects.filter(pk=running.pk).update(state=State.FAILED)
    path = address(running) + suffix
    body: dict[str, str] | None = {} if method == "put" else None
    assert Dlc(people.stranger).refusal(method, path, body) == (404, "ResourceNotFound")
    assert Dlc(people.member).refusal(method, path, body) == (403, "NoPermission")
    without = set(tokens.SCOPES) - {scope}
    assert Dlc(people.owner, without).refusal(method, path, body) == (403, "NoPermission")
    without = set(tokens.SCOPES) - {"admin"}
    assert Dlc(people.manager, without).refusal(method, path, body) == (403, "NoPermission")
    assert Dlc(people.manager).send(method, path, body).status_code == 200
