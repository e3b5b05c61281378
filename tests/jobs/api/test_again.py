"""`POST jobs/ID/again`, and jobs that say which other they were made from."""

from __future__ import annotations

from jobs.models import Job, Visibility
from jobs.states import State
from tests.jobs.api.conftest import People, api, body_of, file, problem


def submitted(people: People, state: State = State.SUCCEEDED) -> Job:
    told = body_of(api(people.owner).submit(file(jobName="first")), 201)
    Job.objects.filter(public_id=told["id"]).update(state=state)
    return Job.objects.get(public_id=told["id"])


def test_again_of_a_running_job_needs_second_copy(people: People) -> None:
    path = f"jobs/{submitted(people, State.RUNNING).public_id}/again"
    call = api(people.owner, {"submit", "read"})
    assert problem(call.post(path))["status"] == 409
    assert problem(call.post(f"{path}?second_copy=false"))["status"] == 409
    assert Job.objects.count() == 1
    body_of(call.post(f"{path}?second_copy=true"), 201)
    assert Job.objects.count() == 2


def test_again_submits_a_linked_copy_once_per_key(people: People) -> None:
    first = submitted(people)
    call = api(people.owner, {"submit", "read"})
    path = f"jobs/{first.public_id}/again"
    told = body_of(call.post(path, None, **{"Idempotency-Key": "k"}), 201)
    assert (told["name"], told["state"]) == ("first", "QUEUED")
    assert Job.objects.get(public_id=told["id"]).origin == first
    assert body_of(call.post(path, None, **{"Idempotency-Key": "k"}))["id"] == told["id"]
    assert Job.objects.count() == 2


def test_again_requires_read_access_and_submit_scope(people: People) -> None:
    first = submitted(people)
    path = f"jobs/{first.public_id}/again"
    assert problem(api(people.member).post(path))["status"] == 403
    assert problem(api(people.stranger).post(path))["status"] == 404
    assert problem(api(people.owner, {"read"}).post(path))["status"] == 403
    Job.objects.filter(pk=first.pk).update(visibility=Visibility.PUBLIC)
    told = body_of(api(people.member, {"submit", "read"}).post(path), 201)
    assert told["owner"] == people.member.username


def test_submit_like_another_job_records_a_readable_origin(people: People) -> None:
    first = submitted(people)
    told = body_of(api(people.owner).submit(file(jobName="second"), like=first.public_id), 201)
    assert Job.objects.get(public_id=told["id"]).origin == first
    assert problem(api(people.stranger).submit(file(), like=first.public_id))["status"] == 404
    assert problem(api(people.member).submit(file(), like=first.public_id))["status"] == 403
