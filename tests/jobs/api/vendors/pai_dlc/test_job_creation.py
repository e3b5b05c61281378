"""CreateJob: a request as the SDK sends it becomes a job, and what is wrong with it is named."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.utils import timezone

from jobs.models import Job, JobFile, JobSecret, Visibility
from jobs.scheduling import reconcile
from jobs.submission import job_submission
from quotas.accounts import tokens
from tests.factories import make_cluster, make_quota, make_workspace
from tests.jobs.api.conftest import People
from tests.jobs.api.vendors.pai_dlc.service_calls import Dlc

REQUEST: dict[str, Any] = {
    "DisplayName": "tf-mnist",
    "JobType": "TFJob",
    "JobSpecs": [
        {
            "Type": "Worker",
            "Image": "tensorflow:1.15",
            "PodCount": 2,
            "ResourceConfig": {"CPU": "1", "Memory": "2Gi"},
        }
    ],
    "UserCommand": "python /root/code/mnist.py",
}


def created(people: People, **changes: Any) -> Job:
    answer = Dlc(people.owner).post("jobs", {**REQUEST, **changes})
    assert answer.keys() == {"RequestId", "JobId"}
    return Job.objects.get(public_id=answer["JobId"].removeprefix("dlc"))


def test_create_job_submits_it_to_named_workspace_and_quota(people: People) -> None:
    other = make_quota(people.quota.workspace, people.quota.cluster, "batch")
    job = created(people, WorkspaceId="vision", ResourceId="batch", Priority=7)
    assert (job.name, job.dialect, job.owner, job.quota, job.priority) == (
        "tf-mnist",
        "dlc",
        people.owner,
        other,
        7,
    )
    assert job.replicas_total == 2
    assert job.visibility == Visibility.PRIVATE


def test_create_job_without_ids_takes_the_usual_quota(people: People) -> None:
    assert created(people).quota == people.quota


def test_create_job_takes_blanks_of_the_page_for_none(people: People) -> None:
    assert created(people, ResourceId="<replace with your id>").quota == people.quota


def test_create_job_takes_whole_address_of_ambiguous_quota(people: People) -> None:
    second = make_quota(people.quota.workspace, make_cluster("second"), "default")
    assert created(people, ResourceId="vision/second/default").quota == second


def test_create_job_refuses_quota_of_other_workspace_than_named(people: People) -> None:
    body = {**REQUEST, "WorkspaceId": "vision", "ResourceId": "speech/local/default"}
    assert Dlc(people.owner).refusal("post", "jobs", body) == (400, "InvalidParameter")


def test_create_job_opens_public_job_to_its_workspace(people: People) -> None:
    assert created(people, Accessibility="PUBLIC").visibility == Visibility.PUBLIC


def test_create_job_names_every_problem_with_its_pointer(people: People) -> None:
    body = {**REQUEST, "JobType": "Other", "Priority": 12, "UserCommand": ""}
    answer = Dlc(people.owner).send("post", "jobs", body)
    assert answer.status_code == 400
    found = json.loads(answer.content)
    assert found["Code"] == "InvalidParameter"
    for pointer in ("/JobType: ", "/Priority: ", "/UserCommand: "):
        assert pointer in found["Message"]


def test_create_job_names_what_is_unknown_by_its_place_in_the_request(
    people: People, settings: LazySettings
) -> None:
    settings.CONSOLE_LOCAL = {"cpu_milli": 8000, "memory_mib": 65536, "gpus": {}, "engine": "none"}
    worker = {**REQUEST["JobSpecs"][0], "ResourceConfig": {"CPU": "1", "Memory": "2Gi", "GPU": "64"}}
    body = {
        **REQUEST,
        "JobSpecs": [worker],
        "DataSources": [{"DataSourceId": "d-1"}, {"DataSourceId": "d-2"}],
        "CodeSource": {"CodeSourceId": "code-1"},
    }
    reconcile.take_inventory(people.quota.cluster_id)
    message = json.loads(Dlc(people.owner).send("post", "jobs", body).content)["Message"]
    assert set(re.findall(r"(?:^| )(/\S*): ", message)) == {
        "/JobSpecs/0/ResourceConfig/GPU",
        "/JobSpecs/0/Image",
        "/DataSources/0/DataSourceId",
        "/DataSources/1/DataSourceId",
        "/CodeSource/CodeSourceId",
    }


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"a": "' + b"\\ud800" + b'"}'])
def test_create_job_refuses_body_that_is_no_request(people: People, body: bytes) -> None:
    answer = Dlc(people.owner)._api.send("post", "/api/v1/jobs", body)
    assert (answer.status_code, json.loads(answer.content)["Code"]) == (400, "InvalidParameter")


def test_create_job_refuses_more_than_documented_bytes(people: People) -> None:
    body = {**REQUEST, "Envs": {"LONG": "x" * 65_536}}
    answer = Dlc(people.owner).send("post", "jobs", body)
    assert (answer.status_code, json.loads(answer.content)["Code"]) == (400, "InvalidParameter")
    assert "65536" in json.loads(answer.content)["Message"]
    assert not Job.objects.exists()


def test_create_job_takes_secrets_out_of_the_file(people: People) -> None:
    spec = {
        **REQUEST["JobSpecs"][0],
        "ImageConfig": {"DockerRegistry": "r.example.com", "Username": "u", "Password": "hunter2"},
    }
    job = created(people, JobSpecs=[spec], Envs={"API_TOKEN": "s3cr3t"})
    stored = JobFile.objects.get(job=job)
    assert "hunter2" not in stored.text + stored.spec_json + json.dumps(stored.extras)
    assert {row.reveal() for row in JobSecret.objects.filter(job=job)} == {"hunter2", "s3cr3t"}
    answer = json.dumps(Dlc(people.owner).get(f"jobs/dlc{job.public_id}"))
    assert "hunter2" not in answer
    assert "s3cr3t" not in answer


def test_create_job_with_idempotency_key_runs_once(people: People) -> None:
    dlc = Dlc(people.owner)
    options = {"content_type": "application/json", "headers": {"Idempotency-Key": "one"}}
    answers = [dlc._api._call("post", "/api/v1/jobs", json.dumps(REQUEST), **options) for _i in range(2)]
    assert len({json.loads(answer.content)["JobId"] for answer in answers}) == 1
    changed = json.dumps({**REQUEST, "Priority": 2})
    other = dlc._api._call("post", "/api/v1/jobs", changed, **options)
    assert (other.status_code, json.loads(other.content)["Code"]) == (409, "OperationConflict")
    assert Job.objects.count() == 1


def crash_after_commit(people: People, monkeypatch: pytest.MonkeyPatch) -> Job:
    """Create a job whose answer is not made."""

    def crash(point: str) -> None:
        if point == "accept.after_commit":
            raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(job_submission, "fault", crash)
        with pytest.raises(SystemExit):
            Dlc(people.owner).post("jobs", REQUEST)
    return Job.objects.latest("pk")


def age(job: Job, seconds: int) -> None:
    Job.objects.filter(pk=job.pk).update(created_at=timezone.now() - timedelta(seconds=seconds))


def test_create_job_repeated_after_crash_answers_the_same_job(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = crash_after_commit(people, monkeypatch)
    age(job, 10)
    assert created(people) == job
    assert created(people) != job  # it is answered by now


@pytest.mark.parametrize("seconds", [0, 301])
def test_create_job_without_answer_now_or_long_ago_is_another(
    people: People, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    job = crash_after_commit(people, monkeypatch)
    age(job, seconds)
    assert created(people) != job


def test_create_job_without_answer_is_no_other_request(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = crash_after_commit(people, monkeypatch)
    age(job, 10)
    assert created(people, UserCommand="other") != job
    body_of_member = Dlc(people.member).post("jobs", REQUEST)
    assert body_of_member["JobId"] != f"dlc{job.public_id}"


def test_create_job_same_request_twice_creates_two(people: People) -> None:
    first = created(people)
    age(first, 10)
    assert created(people) != first


def test_create_job_failure_after_commit_answers_the_job(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(point: str) -> None:
        if point == "accept.after_commit":
            raise ArithmeticError

    monkeypatch.setattr(job_submission, "fault", fail)
    assert created(people) == Job.objects.get()


def test_create_job_in_foreign_workspace_is_refused(people: People) -> None:
    make_quota(make_workspace("secret"), people.quota.cluster, "q")
    for name in ("secret", "absent"):
        body = {**REQUEST, "WorkspaceId": name}
        assert Dlc(people.owner).refusal("post", "jobs", body) == (400, "InvalidParameter")
    assert not Job.objects.exists()


def test_create_job_needs_scope_submit(people: People) -> None:
    dlc = Dlc(people.owner, set(tokens.SCOPES) - {"submit"})
    assert dlc.refusal("post", "jobs", REQUEST) == (403, "NoPermission")
