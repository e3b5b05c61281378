"""`GET jobs/ID/file`: what a job was submitted as, for whoever may read it."""

from __future__ import annotations

import pytest

from jobs.models import Job, Visibility
from jobs.states import State
from tests.factories import make_job
from tests.jobs.api.conftest import People, api, body_of, file, problem


@pytest.fixture
def job(people: People) -> Job:
    text = file(codeDir="$SECRET:PLACE")
    return make_job(State.RUNNING, owner=people.owner, quota=people.quota, dialect="openpai-v1", text=text)


def test_job_file_has_placeholders_and_roles_in_order(people: People, job: Job) -> None:
    told = body_of(api(people.owner, {"read"}).get(f"jobs/{job.public_id}/file"))
    assert told == {"dialect": "openpai-v1", "text": file(codeDir="$SECRET:PLACE"), "roles": ["main"]}


def test_public_job_file_is_read_by_members_not_strangers(people: People, job: Job) -> None:
    path = f"jobs/{job.public_id}/file"
    assert problem(api(people.member).get(path))["status"] == 403
    assert problem(api(people.stranger).get(path))["status"] == 404
    assert body_of(api(people.manager).get(path))
    assert body_of(api(people.admin).get(path))
    assert problem(api(people.manager, {"read"}).get(path))["status"] == 403
    assert problem(api(people.owner, {"submit"}).get(path))["status"] == 403
    Job.objects.filter(pk=job.pk).update(visibility=Visibility.PUBLIC)
    assert body_of(api(people.member, {"read"}).get(path))
