"""CreateJob, and what is read and changed of a job."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs.api.vendors.aihc import names
from jobs.models import Job, TerminalTicket, Visibility
from jobs.spec import RoleSpec
from jobs.states import LIVE, Phase, State
from jobs.submission import job_submission
from quotas.models import UsedSignature
from tests.factories import make_job, make_quota, make_spec, replica_of
from tests.jobs.api.conftest import People
from tests.jobs.api.vendors.aihc.conftest import BODY, Aihc, as_user, read, refused

pytestmark = pytest.mark.django_db

IN_POOL = {"resourcePoolId": "local", "queueID": "default"}


@pytest.fixture
def job(people: People) -> Job:
    return make_job(State.RUNNING, owner=people.owner, quota=people.quota, dialect="aihc")


# --- create ------------------------------------------------------------------------------------------------


def test_create_job_valid_body_answers_id_and_name(owner: Aihc, people: People) -> None:
    answer = read(owner.v2("CreateJob", BODY, **IN_POOL))

    job = Job.objects.get()
    assert answer == {
        "requestId": answer["requestId"],
        "jobId": f"job-{job.public_id}",
        "jobName": "api-0513-2",
    }
    assert (job.owner, job.quota, job.dialect) == (people.owner, people.quota, "aihc")


@pytest.mark.parametrize("key", ["queue", "queueId", "queueID"])
def test_create_job_queue_in_body_is_quota(owner: Aihc, people: People, key: str) -> None:
    other = make_quota(people.quota.workspace, people.quota.cluster, "other")

    read(owner.v2("CreateJob", {**BODY, key: "other"}, resourcePoolId="local"))

    assert Job.objects.get().quota == other


def test_create_job_queue_in_query_precedes_body(owner: Aihc, people: People) -> None:
    make_quota(people.quota.workspace, people.quota.cluster, "other")

    owner.create({**BODY, "queue": "other"})

    assert Job.objects.get().quota == people.quota


def test_create_job_managed_pool_takes_any_cluster(owner: Aihc, people: People) -> None:
    owner.create(resourcePoolId="aihc-serverless", queueID="vision/local/default")

    assert Job.objects.get().quota == people.quota


def test_create_job_default_queue_absent_is_chosen(owner: Aihc, people: People) -> None:
    people.quota.slug = "research"
    people.quota.save()

    owner.create(queueID="default")

    assert Job.objects.get().quota == people.quota


@pytest.mark.parametrize(
    "query",
    [
        {"resourcePoolId": "elsewhere"},
        {"queueID": "none"},
        {"queueID": "vision/elsewhere/default"},
        {"queueID": "a/b"},
        {"queueID": "a/b/c/d"},
    ],
)
def test_create_job_unknown_target_is_refused(owner: Aihc, query: dict[str, str]) -> None:
    refused(owner.v2("CreateJob", BODY, **{**IN_POOL, **query}), 400, "InvalidParam")
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "{", '"x"', "{}", "\ud800".encode("utf-8", "surrogatepass")]
)
def test_create_job_malformed_body_is_refused(owner: Aihc, text: str | bytes) -> None:
    answer = owner.send("POST", "/", text, action="CreateJob", **IN_POOL)

    assert answer.status_code == 400
    assert set(read(answer, 400)) == {"code", "message", "requestId"}


_WRONG: tuple[Any, ...] = (7, "x", True, [1], {"x": 1}, "\0", None)


@pytest.mark.parametrize("path", [(), ("jobSpec",)])
@pytest.mark.parametrize("value", _WRONG)
def test_create_job_wrong_type_never_fails(owner: Aihc, path: tuple[str, ...], value: Any) -> None:
    keys = {
        (): (
            "name",
            "queue",
            "jobType",
            "command",
            "jobSpec",
            "labels",
            "priority",
            "datasources",
            "enableBccl",
            "faultTolerance",
            "faultToleranceArgs",
            "tensorboardConfig",
            "alertConfig",
            "retentionPeriod",
        ),
        ("jobSpec",): ("image", "imageConfig", "replicas", "resources", "envs", "enableRDMA", "hostNetwork"),
    }[path]
    for number, key in enumerate(keys):
        body = json.loads(json.dumps(BODY))
        inner = body[path[0]] if path else body
        inner[key] = value
        body["name"] = f"job-{number}" if key != "name" else value
        query = "action=CreateJob&resourcePoolId=local&queueID=default"
        signature = owner.authorization("POST", "/", query, seconds=600 + number)
        answer = owner.v2("CreateJob", body, authorization=signature, **IN_POOL)
        assert answer.status_code in {200, 400}, (key, answer.content)
        read(answer, answer.status_code)


def test_create_job_nulls_of_sdk_are_absent(owner: Aihc) -> None:
    owner.create({**BODY, "enableBccl": None, "faultTolerance": None})

    assert Job.objects.count() == 1


def test_create_job_same_signature_answers_same_job(owner: Aihc) -> None:
    query = "action=CreateJob&resourcePoolId=local&queueID=default"
    signature = owner.authorization("POST", "/", query)

    answers = [read(owner.v2("CreateJob", BODY, authorization=signature, **IN_POOL)) for _each in range(3)]

    assert len({answer["jobId"] for answer in answers}) == 1
    assert Job.objects.count() == 1


def test_create_job_same_signature_other_body_is_refused(owner: Aihc) -> None:
    signature = owner.authorization("POST", "/", "action=CreateJob&resourcePoolId=local&queueID=default")
    read(owner.v2("CreateJob", BODY, authorization=signature, **IN_POOL))

    answer = owner.v2("CreateJob", {**BODY, "command": "rm -rf /"}, authorization=signature, **IN_POOL)

    assert answer.headers["Retry-After"] == "1"
    refused(answer, 503, "RequestExpired")
    assert Job.objects.count() == 1


def test_create_job_same_body_new_signature_creates_another(owner: Aihc) -> None:
    earlier = datetime.now(UTC) - timedelta(seconds=5)
    query = "action=CreateJob&resourcePoolId=local&queueID=default"
    signature = owner.authorization("POST", "/", query, signed_at=earlier)
    first = read(owner.v2("CreateJob", BODY, authorization=signature, **IN_POOL))

    assert owner.create() != first["jobId"]
    assert Job.objects.count() == 2


class Failure(RuntimeError):
    """Something that nobody expects."""


def test_create_job_failure_after_commit_answers_job(owner: Aihc, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(point: str) -> None:
        if point == "accept.after_commit":
            raise Failure

    monkeypatch.setattr(job_submission, "fault", fail)

    answer = read(owner.v2("CreateJob", BODY, **IN_POOL))

    assert answer["jobId"] == f"job-{Job.objects.get().public_id}"


def test_create_job_crash_after_commit_repeats_to_same_job(
    owner: Aihc, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(point: str) -> None:
        if point == "accept.after_commit":
            raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(job_submission, "fault", crash)
        earlier = datetime.now(UTC) - timedelta(seconds=2)
        query = "action=CreateJob&resourcePoolId=local&queueID=default"
        signature = owner.authorization("POST", "/", query, signed_at=earlier)
        with pytest.raises(SystemExit):
            owner.v2("CreateJob", BODY, authorization=signature, **IN_POOL)
    job = Job.objects.get()

    assert owner.create() == f"job-{job.public_id}"
    assert Job.objects.count() == 1


def test_create_job_crash_long_ago_creates_another(owner: Aihc) -> None:
    first = owner.create()
    UsedSignature.objects.all().delete()
    Job.objects.update(created_at=datetime.now(UTC) - timedelta(minutes=6), idempotency_key="bce-auth-v1:old")

    assert owner.create() != first


def test_create_job_key_of_other_person_creates_own(people: People) -> None:
    first = as_user(people.owner).create()
    UsedSignature.objects.all().delete()

    assert as_user(people.member).create() != first


def test_create_job_without_scope_is_refused(people: People) -> None:
    answer = as_user(people.owner, "read").v2("CreateJob", BODY, **IN_POOL)

    refused(answer, 403, "AccessDenied")


def test_create_job_stranger_is_refused(people: People) -> None:
    refused(as_user(people.stranger).v2("CreateJob", BODY, **IN_POOL), 400, "InvalidParam")


# --- describe ----------------------------------------------------------------------------------------------


def test_describe_job_owner_reads_everything(owner: Aihc) -> None:
    job_id = owner.create({**BODY, "labels": [{"key": "team", "value": "a"}], "priority": "high"})

    found = read(owner.v2("DescribeJob", {"jobId": job_id, "needDetail": True}, **IN_POOL))

    assert found["job"] == {key: found[key] for key in found if key not in {"requestId", "job"}}
    assert "metadata" not in found
    assert found["status"] == "Created"
    assert found["jobType"] == "pytorch"
    assert found["finishedAt"] == ""
    created_at = datetime.strptime(found["createdAt"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    assert abs(datetime.now(UTC) - created_at) < timedelta(minutes=5)
    assert (found["resourcePoolId"], found["queueId"], found["priority"]) == ("local", "default", "high")
    assert found["command"] == "sleep 1d"
    assert found["jobSpec"]["envs"] == BODY["jobSpec"]["envs"]
    assert found["jobSpec"]["image"] == BODY["jobSpec"]["image"]
    labels = {each["key"]: each["value"] for each in found["labels"]}
    assert labels["team"] == "a"
    assert labels["aijob.cce.baidubce.com/ai-user-name"] == "olga"
    assert labels["aijob.cce.baidubce.com/create-from-aihcp-api"] == "true"
    assert [step["conditionType"] for step in found["jobTimeLine"]] == ["Created"]


def test_describe_job_without_priority_shows_normal(owner: Aihc) -> None:
    job_id = owner.create()

    assert read(owner.v2("DescribeJob", {"jobId": job_id}, **IN_POOL))["priority"] == "normal"


def test_describe_job_secret_password_is_left_out(owner: Aihc) -> None:
    spec = {**BODY["jobSpec"], "imageConfig": {"username": "me", "password": "hunter2-hunter2"}}
    job_id = owner.create({**BODY, "jobSpec": spec})

    answer = owner.v2("DescribeJob", {"jobId": job_id}, **IN_POOL)

    assert b"hunter2" not in answer.content
    assert "imageConfig" not in read(answer)["jobSpec"]


def test_describe_job_pods_have_names(owner: Aihc, job: Job) -> None:
    found = read(owner.v2("DescribeJob", {"jobId": f"job-{job.public_id}", "needDetail": True}, **IN_POOL))

    assert [pod["objectMeta"]["name"] for pod in found["pods"]] == [f"job-{job.public_id}-main-0"]
    assert found["pods"][0]["podStatus"] == {"podPhase": "Running", "status": "READY"}
    assert found["status"] == "Running"


def test_describe_job_member_sees_no_file(people: People, job: Job) -> None:
    found = read(as_user(people.member).v2("DescribeJob", {"jobId": f"job-{job.public_id}"}, **IN_POOL))

    assert found["status"] == "Running"
    assert (found["command"], found["jobSpec"]["envs"], found["datasources"]) == ("", [], [])
    assert "image" not in found["jobSpec"]
    assert found["jobTimeLine"] == []


def test_describe_job_public_job_is_read_by_member(people: People, job: Job) -> None:
    Job.objects.update(visibility=Visibility.PUBLIC)

    found = read(as_user(people.member).v2("DescribeJob", {"jobId": f"job-{job.public_id}"}, **IN_POOL))

    assert found["command"] == "echo hello"


def test_describe_job_of_several_roles_is_a_map(owner: Aihc, people: People) -> None:
    roles = tuple(RoleSpec(name=name, replicas=2, command="run") for name in ("ps", "worker"))
    job = make_job(State.RUNNING, owner=people.owner, quota=people.quota, spec=make_spec(roles=roles))
    path = f"/api/v1/aijobs/job-{job.public_id}"

    found = read(owner.v2("DescribeJob", {"jobId": f"job-{job.public_id}", "needDetail": True}, **IN_POOL))
    old = read(owner.send("GET", path, resourcePoolId="local"))["result"]

    assert {name: role["replicas"] for name, role in found["jobSpec"].items()} == {"PS": 2, "Worker": 2}
    assert [pod["podName"].removeprefix(found["jobId"]) for pod in found["pods"]] == [
        "-ps-0",
        "-ps-1",
        "-worker-0",
        "-worker-1",
    ]
    assert (old["replicas"], old["podList"]["listMeta"]["totalItems"]) == (4, 4)


@pytest.mark.parametrize("pool", ["elsewhere", "aihc-serverless"])
def test_describe_job_pool_has_to_match(owner: Aihc, job: Job, pool: str) -> None:
    answer = owner.v2("DescribeJob", {"jobId": f"job-{job.public_id}"}, resourcePoolId=pool)

    assert answer.status_code == (200 if pool == names.MANAGED_POOL else 404)


@pytest.mark.parametrize("job_id", ["", "job-", "job-x'", "x" * 60_000, "job-aaaaaaaaaaaa", "\ud800"])
def test_describe_job_unknown_id_is_not_found(owner: Aihc, job_id: str) -> None:
    answer = owner.v2("DescribeJob", {"jobId": job_id}, **IN_POOL)

    assert (answer.status_code, read(answer, answer.status_code)["code"]) in {
        (404, "ResourceNotFound"),
        (400, "InvalidParam"),
    }


# --- every operation on a job ------------------------------------------------------------------------------

READS = (
    "DescribeJobNodes",
    "DescribeJobEvents",
    "DescribePodEvents",
    "DescribeJobLogs",
    "DescribeJobMetrics",
)
CHANGES = ("StopJob", "DeleteJob")
MORE = {"podName": "main-0", "metricType": "GpuUsage", "priority": "high"}


@pytest.mark.parametrize("action", [*READS, *CHANGES])
def test_operation_on_job_allows_owner_manager_and_admin(people: People, action: str) -> None:
    state = State.SUCCEEDED if action == "DeleteJob" else State.RUNNING
    for user in (people.owner, people.manager, people.admin):
        job = make_job(state, owner=people.owner, quota=people.quota)
        read(as_user(user).v2(action, {"jobId": f"job-{job.public_id}", **MORE}, **IN_POOL))


@pytest.mark.parametrize("action", [*READS, *CHANGES, "ModifyJob"])
def test_operation_on_job_refuses_member_and_stranger(people: People, job: Job, action: str) -> None:
    body = {"jobId": f"job-{job.public_id}", **MORE}

    refused(as_user(people.member).v2(action, body, **IN_POOL), 403, "AccessDenied")
    refused(as_user(people.stranger).v2(action, body, **IN_POOL), 404, "ResourceNotFound")
    job.refresh_from_db()
    assert job.deleted_at is None


@pytest.mark.parametrize("action", CHANGES)
def test_operation_on_job_needs_scope(people: People, job: Job, action: str) -> None:
    answer = as_user(people.owner, "read", "submit").v2(action, {"jobId": f"job-{job.public_id}"}, **IN_POOL)

    refused(answer, 403, "AccessDenied")


def test_stop_job_queued_job_is_stopped(owner: Aihc) -> None:
    job_id = owner.create()

    read(owner.v2("StopJob", {"jobId": job_id}, **IN_POOL))
    read(owner.v2("StopJob", {"jobId": job_id}, **IN_POOL))

    assert read(owner.v2("DescribeJob", {"jobId": job_id}, **IN_POOL))["status"] == "Stopped"


def test_delete_job_running_job_is_conflict(owner: Aihc, job: Job) -> None:
    refused(owner.v2("DeleteJob", {"jobId": f"job-{job.public_id}"}, **IN_POOL), 409, "OperationConflict")


def test_delete_job_ended_job_is_gone(owner: Aihc, people: People) -> None:
    job = make_job(State.FAILED, owner=people.owner, quota=people.quota)
    body = {"jobId": f"job-{job.public_id}"}

    read(owner.v2("DeleteJob", body, **IN_POOL))

    refused(owner.v2("DescribeJob", body, **IN_POOL), 404, "ResourceNotFound")


def test_modify_job_admin_changes_priority(owner: Aihc, people: People) -> None:
    body = {"jobId": owner.create(), "priority": "high"}

    refused(owner.v2("ModifyJob", body, **IN_POOL), 403, "AccessDenied")
    read(as_user(people.admin).v2("ModifyJob", body, **IN_POOL))

    assert read(owner.v2("DescribeJob", body, **IN_POOL))["priority"] == "high"


def test_modify_job_running_job_is_conflict(people: People, job: Job) -> None:
    body = {"jobId": f"job-{job.public_id}", "priority": "low"}

    refused(as_user(people.admin).v2("ModifyJob", body, **IN_POOL), 409, "OperationConflict")


def test_webterminal_answers_address_with_ticket(owner: Aihc, job: Job) -> None:
    body = {"jobId": f"job-{job.public_id}", "podName": "main-0"}

    address = read(owner.v2("DescribeJobWebterminal", body, **IN_POOL))["webTerminalUrl"]

    assert address.startswith("ws://testserver/terminals/tickets/")
    assert TerminalTicket.objects.get().replica == replica_of(job)


def test_webterminal_of_ended_pod_is_conflict(owner: Aihc, people: People) -> None:
    job = make_job(State.SUCCEEDED, owner=people.owner, quota=people.quota)
    body = {"jobId": f"job-{job.public_id}", "podName": "main-0"}

    refused(owner.v2("DescribeJobWebterminal", body, **IN_POOL), 409, "OperationConflict")


def test_webterminal_needs_scope_and_right(people: People, job: Job) -> None:
    body = {"jobId": f"job-{job.public_id}", "podName": "main-0"}
    for api, status in (
        (as_user(people.owner, "read", "stop"), 403),
        (as_user(people.member), 403),
        (as_user(people.stranger), 404),
    ):
        assert api.v2("DescribeJobWebterminal", body, **IN_POOL).status_code == status
    assert not TerminalTicket.objects.exists()


# --- lists -------------------------------------------------------------------------------------------------


def test_describe_jobs_pages_and_orders(owner: Aihc, people: People) -> None:
    made = [make_job(owner=people.owner, quota=people.quota, name=f"job {number}") for number in range(5)]

    first = read(owner.v2("DescribeJobs", {"pageNumber": 1, "pageSize": 2}, resourcePoolId="local"))
    last = read(
        owner.v2("DescribeJobs", {"pageNumber": 3, "pageSize": 2, "order": "asc"}, resourcePoolId="local")
    )

    assert first["totalCount"] == 5
    assert [job["name"] for job in first["jobs"]] == ["job 4", "job 3"]
    assert [job["jobId"] for job in last["jobs"]] == [f"job-{made[4].public_id}"]


def test_describe_jobs_filters(owner: Aihc, people: People) -> None:
    other = make_quota(people.quota.workspace, people.quota.cluster, "other")
    make_job(State.RUNNING, owner=people.owner, quota=people.quota, name="train-a")
    make_job(State.FAILED, owner=people.owner, quota=other, name="train-b")

    def named(**body: Any) -> list[str]:
        return [job["name"] for job in read(owner.v2("DescribeJobs", body, resourcePoolId="local"))["jobs"]]

    assert named(queue="other") == ["train-b"]
    assert named(queue="vision/local/default") == ["train-a"]
    assert named(status="Running") == ["train-a"]
    assert named(status="failed") == ["train-b"]
    assert named(keyword="N-A") == ["train-a"]
    assert named(keyword="oth", keywordType="queueName") == ["train-b"]
    assert named(orderBy="finishedAt") == ["train-b", "train-a"]
    assert named(status="", keyword="") == ["train-b", "train-a"]
    assert read(owner.v2("DescribeJobs", {}, resourcePoolId="elsewhere"))["totalCount"] == 0


@pytest.mark.parametrize(
    "body", [{"status": "Happy"}, {"order": "up"}, {"orderBy": "name"}, {"pageNumber": 0}, {"pageSize": 1001}]
)
def test_describe_jobs_wrong_filter_is_refused(owner: Aihc, body: dict[str, Any]) -> None:
    refused(owner.v2("DescribeJobs", body, resourcePoolId="local"), 400, "InvalidParam")


def test_describe_jobs_stranger_sees_none(people: People, job: Job) -> None:
    found = read(as_user(people.stranger).v2("DescribeJobs", {}, resourcePoolId="local"))

    assert (found["totalCount"], found["jobs"]) == (0, [])


def test_describe_jobs_query_count_is_constant(owner: Aihc, people: People) -> None:
    def count() -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            read(owner.v2("DescribeJobs", {"pageSize": 100}, resourcePoolId="local"))
        return len(queries)

    make_job(owner=people.owner, quota=people.quota, spec=make_spec())
    count()  # the key's use is recorded once
    before = count()
    for _each in range(10):
        make_job(State.RUNNING, owner=people.member, quota=people.quota)

    assert count() == before
    assert before <= 8


def test_statuses_cover_every_state() -> None:
    assert set(names.STATUSES) == set(State)
    assert set(names.PHASES) <= set(Phase)
    assert State.RUNNING in LIVE
