"""Job policies: what a person, a role or everybody may ask for in a quota, and in those above it."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from jobs import submission
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.messages import problem_message
from jobs.models import JobFile
from jobs.spec import JobSpec, Resources, RoleSpec
from quotas.admission import snapshot
from quotas.limits.job_limits import limits_for
from quotas.models import JobPolicy, Quota, Role, User
from tests.factories import make_membership, make_user
from tests.jobs.conftest import Place, queued, spec

pytestmark = pytest.mark.django_db


def problems(user: User, quota: Quota, job: JobSpec) -> dict[str, str]:
    """The sentences of a job's problems by code."""
    return {each.code: problem_message(each) for each in submission.find_excess(user, quota, job)}


def with_gpus(count: int, kind: str = "", **columns: Any) -> JobSpec:
    role = RoleSpec(name="w", command="true", resources=Resources(gpus=count, gpu_type=kind))
    return spec(roles=(role,), **columns)


def test_refusal_names_the_limit_whose_it_is_and_who_can_change_it(place: Place) -> None:
    JobPolicy.objects.create(quota=place.quota, highest_priority=5, role=Role.DEVELOPER)
    JobPolicy.objects.create(quota=place.quota, job_gpus=2, gpu_types="V100", by_workspace=True)
    found = problems(place.owner, place.quota, with_gpus(4, "A100", priority=9))
    assert found == {
        "policy_highest_priority": "Priority 9 is above the limit of 5 for role “Algorithm developer” in "
        "quota Default. A console admin can change the limit.",
        "policy_job_gpus": "The job requests 4 GPUs; quota Default allows 2 GPUs per job for all users. "
        "An admin of workspace Vision can change the limit.",
        "policy_gpu_types": "GPU type A100 is not allowed for all users in quota Default. Allowed: V100. "
        "An admin of workspace Vision can change this.",
    }
    assert problems(place.owner, place.quota, with_gpus(2, "V100", priority=5)) == {}
    assert "Select a GPU type" in problems(place.owner, place.quota, with_gpus(1))["policy_gpu_types"]


def test_person_goes_before_role_before_everybody(place: Place) -> None:
    for columns in ({}, {"role": Role.DEVELOPER}, {"user": place.owner}):
        policy = JobPolicy(quota=place.quota, **columns)
        policy.highest_priority = 1 + 2 * len(columns) + 2 * bool(columns.get("user"))
        policy.save()
    other = make_user("bob")
    make_membership(other, place.workspace, Role.ADMIN)
    assert limits_for(place.owner, place.quota).number("highest_priority") == 5
    assert limits_for(other, place.quota).number("highest_priority") == 1


def test_strictest_of_the_tree_and_of_the_workspace_holds(place: Place) -> None:
    child = Quota.objects.create(
        workspace=place.workspace, cluster=place.cluster, slug="child", name="Child", parent=place.quota
    )
    JobPolicy.objects.create(quota=place.quota, time_limit_minutes=60)
    JobPolicy.objects.create(quota=child, time_limit_minutes=600, user=place.owner, by_workspace=True)
    limits = limits_for(place.owner, child)
    assert limits.number("time_limit_minutes") == 60
    assert (
        "1 h for all users in quota Default"
        in problems(place.owner, child, spec(time_limit_s=7200))["policy_time_limit_minutes"]
    )


def test_job_without_time_limit_gets_the_default(place: Place) -> None:
    JobPolicy.objects.create(quota=place.quota, default_minutes=30)
    text = '{"jobName": "j", "image": "i", "taskRoles": [{"name": "w", "taskNumber": 1, "cpuNumber": 1,'
    text += ' "memoryMB": 512, "gpuNumber": 0, "command": "true"}]}'
    made = submission.submit(place.owner, Document(text))
    assert JobFile.objects.get(job=made.job).spec.time_limit_s == 1800
    assert [note.code for note in made.notes].count("default_time_limit") == 1


def test_waiting_jobs_of_one_person_are_limited_with_an_exception(place: Place) -> None:
    JobPolicy.objects.create(quota=place.quota, waiting_jobs=1)
    queued(place)
    text = '{"jobName": "j", "image": "i", "taskRoles": [{"name": "w", "taskNumber": 1, "cpuNumber": 1,'
    text += ' "memoryMB": 512, "gpuNumber": 0, "command": "true"}]}'
    with pytest.raises(Refused) as refused:
        submission.submit(place.owner, Document(text))
    assert problem_message(refused.value.problems[0]).startswith("1 job of yours already waiting and 1 job")
    JobPolicy.objects.create(quota=place.quota, waiting_jobs=2, user=place.owner)
    submission.submit(place.owner, Document(text))


def test_running_limits_of_people_reach_admission(place: Place) -> None:
    Quota.objects.update(person_jobs=1)
    job = queued(place)
    JobPolicy.objects.create(quota=place.quota, running_jobs=3, user=place.owner)
    account = snapshot.take(place.cluster).accounts[place.quota.pk]
    assert (account.person.jobs, account.limits_of(job.owner_id).jobs) == (1, 3)
    JobPolicy.objects.create(quota=place.quota, running_jobs=2, by_workspace=True)
    assert snapshot.take(place.cluster).accounts[place.quota.pk].limits_of(job.owner_id).jobs == 2


def test_policy_refuses_a_second_one_for_the_same_people(place: Place) -> None:
    JobPolicy.objects.create(quota=place.quota)
    with pytest.raises(ValidationError):
        JobPolicy(quota=place.quota).full_clean()
    with pytest.raises(ValidationError):
        JobPolicy(quota=place.quota, role=Role.ADMIN, user=place.owner).full_clean()
    with pytest.raises(ValidationError):
        JobPolicy(quota=place.quota, role=Role.ADMIN, time_limit_minutes=5, default_minutes=6).full_clean()
