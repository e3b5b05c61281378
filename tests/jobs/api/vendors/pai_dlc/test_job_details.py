"""GetJob: the job as its page shows it, in the vendor's fields."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from jobs.api.vendors.pai_dlc import statuses
from jobs.lifecycle import transitions
from jobs.models import Attempt, Event, Job, Replica, Visibility
from jobs.spec import RoleSpec
from jobs.states import EndKind, Phase, ReasonCode, ReplicaState, State
from quotas.accounts import tokens
from tests.factories import make_job, make_replica, make_spec
from tests.jobs.api.conftest import People
from tests.jobs.api.vendors.pai_dlc.service_calls import Dlc
from tests.jobs.api.vendors.pai_dlc.test_job_creation import REQUEST


def get(people: People, job: Job, **query: Any) -> dict[str, Any]:
    found: dict[str, Any] = Dlc(people.owner).get(f"jobs/dlc{job.public_id}", **query)
    return found


def test_get_job_answers_what_was_created(people: People) -> None:
    dlc = Dlc(people.owner)
    request = {
        **REQUEST,
        "Envs": {"LR": "0.1"},
        "ThirdpartyLibs": ["numpy==1.16.1"],
        "ThirdpartyLibDir": "/root",
        "UserVpc": {"VpcId": "vpc-1", "SwitchId": "vsw-1", "ExtendedCIDRs": ["192.168.0.0/24"]},
        "Settings": {"Tags": {"team": "a b"}, "Caller": "local", "BusinessUserId": "42"},
        "JobMaxRunningTimeMinutes": 90,
        "Options": "fs.oss.download.thread.concurrency=4",
        "WorkspaceId": "vision",
        "ResourceId": "default",
        "Priority": 3,
        "Description": "a test",
    }
    job_id = dlc.post("jobs", request)["JobId"]
    found = dlc.get(f"jobs/{job_id}")
    vpc = {"VpcId": "vpc-1", "SwitchId": "vsw-1", "ExtendedCidrs": ["192.168.0.0/24"]}
    expected = {**request, "UserVpc": vpc}
    assert {key: found[key] for key in expected} == expected
    assert found["JobId"] == job_id
    assert found["Status"] == "Queuing"
    assert found["WorkspaceName"] == "Vision"
    assert (found["UserId"], found["Username"]) == ("olga", "olga")
    assert (found["RequestCPU"], found["RequestGPU"], found["RequestMemory"]) == (2, 0, 4.0)
    assert found["RestartTimes"] == "0/0"
    assert found["Pods"] == []
    assert [entry["Status"] for entry in found["StatusHistory"]] == ["Queuing"]


def test_get_job_of_other_format_is_answered_in_dlc_fields(people: People) -> None:
    job = make_job(State.RUNNING, owner=people.owner, quota=people.quota)
    found = get(people, job)
    assert found["JobType"] == "PyTorchJob"
    assert found["JobSpecs"][0]["Type"] == "Worker"
    assert found["UserCommand"] == "echo hello"


def test_get_job_times_are_in_utc_to_the_second(people: People) -> None:
    at = datetime(2021, 1, 12, 22, 35, 1, 999, tzinfo=UTC)
    job = make_job(State.SUCCEEDED, owner=people.owner, quota=people.quota)
    Job.objects.filter(pk=job.pk).update(
        created_at=at, started_at=at + timedelta(minutes=1), ended_at=at + timedelta(minutes=3)
    )
    found = get(people, job)
    assert found["GmtCreateTime"] == "2021-01-12T22:35:01Z"
    assert found["GmtRunningTime"] == "2021-01-12T22:36:01Z"
    assert found["GmtFinishTime"] == found["GmtSuccessedTime"] == "2021-01-12T22:38:01Z"
    assert "GmtFailedTime" not in found
    assert found["Duration"] == 120
    assert (found["Status"], found["ReasonCode"]) == ("Succeeded", "JobSucceeded")


@pytest.mark.parametrize(
    ("state", "phase", "status"),
    [
        (State.QUEUED, Phase.QUEUING, "Queuing"),
        (State.QUEUED, Phase.RESTARTING, "Restarting"),
        (State.QUEUED, Phase.STOPPING, "Stopping"),
        (State.SUBMITTING, Phase.CREATING, "EnvPreparing"),
        (State.PENDING, Phase.QUEUING, "Queuing"),
        (State.PENDING, Phase.ENV_PREPARING, "EnvPreparing"),
        (State.PENDING, Phase.BIDDING, "Bidding"),
        (State.RUNNING, Phase.ENV_PREPARING, "EnvPreparing"),
        (State.RUNNING, Phase.SANITY_CHECKING, "SanityChecking"),
        (State.RUNNING, Phase.RUNNING, "Running"),
        (State.RUNNING, Phase.STOPPING, "Stopping"),
        (State.RUNNING, Phase.SUCCEEDED_RESERVING, "SucceededReserving"),
        (State.RUNNING, Phase.FAILED_RESERVING, "FailedReserving"),
        (State.SUCCEEDED, Phase.ENDED, "Succeeded"),
        (State.FAILED, Phase.ENDED, "Failed"),
        (State.STOPPED, Phase.ENDED, "Stopped"),
        (State.LOST, Phase.ENDED, "Failed"),
    ],
)
def test_status_of_state_and_phase(people: People, state: State, phase: Phase, status: str) -> None:
    job = make_job(state, owner=people.owner, quota=people.quota, phase=phase)
    assert statuses.status_of(job) == status
    assert Job.objects.filter(statuses.match_status(status)).get() == job


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("phase", list(Phase))
def test_every_state_and_phase_has_one_status(state: State, phase: Phase) -> None:
    job = Job(state=state, phase=phase)
    assert statuses.status_of(job) in statuses.NAMES


def test_every_reason_has_a_code() -> None:
    codes = {code: statuses.reason_code(code) for code in ReasonCode}
    assert codes[ReasonCode.USER_STOP] == "JobStoppedByUser"
    assert codes[ReasonCode.OUT_OF_MEMORY] == "OutOfMemory"
    assert all(code.isidentifier() for code in codes.values())


def test_get_job_stopped_by_user_has_documented_reason(people: People) -> None:
    found = get(people, make_job(State.STOPPED, owner=people.owner, quota=people.quota))
    assert (found["ReasonCode"], found["ReasonMessage"]) == ("JobStoppedByUser", "Job is stopped by user.")
    assert found["GmtStoppedTime"]


def test_get_job_history_has_each_status_once(people: People) -> None:
    job = make_job(State.STOPPED, owner=people.owner, quota=people.quota)
    for kind in (Event.Kind.SUBMITTED, Event.Kind.ADMITTED, Event.Kind.ACCEPTED, Event.Kind.STARTED):
        transitions.record(job, kind)
    transitions.record(job, Event.Kind.END_WANTED, params={"kind": EndKind.USER_STOP, "why": ""})
    transitions.record(job, Event.Kind.ENDED, params={"state": "STOPPED", "reason": "user_stop"})
    history = get(people, job)["StatusHistory"]
    assert [entry["Status"] for entry in history] == [
        "Queuing",
        "EnvPreparing",
        "Running",
        "Stopping",
        "Stopped",
    ]
    assert all(one["EndTime"] == next_one["StartTime"] for one, next_one in pairwise(history))
    assert history[-1]["EndTime"] == history[-1]["StartTime"]
    assert history[-1]["ReasonCode"] == "JobStoppedByUser"


def test_get_job_lost_has_failed_until_it_is_found_again(people: People) -> None:
    job = make_job(State.LOST, owner=people.owner, quota=people.quota)
    transitions.record(job, Event.Kind.STARTED)
    transitions.record(job, Event.Kind.LOST, params={"state": "LOST", "reason": "lost", "cluster": "Local"})
    found = get(people, job)
    assert (found["Status"], found["SubStatus"], found["ReasonCode"]) == ("Failed", "Lost", "Lost")
    assert "its outcome is unknown" in found["ReasonMessage"]
    assert found["GmtFailedTime"] == found["GmtFinishTime"] != ""
    assert [entry["Status"] for entry in found["StatusHistory"]] == ["Running", "Failed"]
    assert found["StatusHistory"][-1]["ReasonCode"] == "Lost"
    transitions.record(job, Event.Kind.FOUND_AGAIN)
    Job.objects.filter(pk=job.pk).update(state=State.RUNNING, phase=Phase.RUNNING, ended_at=None)
    found = get(people, job)
    assert found["Status"] == "Running"
    assert [entry["Status"] for entry in found["StatusHistory"]] == ["Running", "Failed", "Running"]


@pytest.fixture
def retried(people: People) -> Job:
    """A running job of two roles: attempt 1 failed, run 1 of attempt 2 was restarted by the backend."""
    spec = make_spec(
        roles=(RoleSpec(name="Master", command="m"), RoleSpec(name="Worker", command="w", replicas=2))
    )
    job = make_job(State.RUNNING, owner=people.owner, quota=people.quota, spec=spec)
    Replica.objects.filter(attempt__job=job).update(state=ReplicaState.FAILED)
    Job.objects.filter(pk=job.pk).update(attempt_number=2, run_number=2)
    job.refresh_from_db()
    second = Attempt.objects.create(job=job, number=2, key="second")
    for run, state in ((1, ReplicaState.STOPPED), (2, ReplicaState.RUNNING)):
        make_replica(second, "Master", 0, run=run, state=state)
        for index in range(2):
            make_replica(second, "Worker", index, run=run, state=state)
    return job


def test_get_job_pods_have_those_of_earlier_runs(people: People, retried: Job) -> None:
    pods = get(people, retried)["Pods"]
    name = f"dlc{retried.public_id}"
    assert [pod["PodId"] for pod in pods] == [f"{name}-master-0", f"{name}-worker-0", f"{name}-worker-1"]
    assert {pod["Status"] for pod in pods} == {"Running"}
    for pod in pods:
        assert [each["Status"] for each in pod["HistoryPods"]] == ["Failed", "Failed"]
        assert {each["PodId"] for each in pod["HistoryPods"]} == {pod["PodId"]}
        assert len({pod["PodUid"], *(each["PodUid"] for each in pod["HistoryPods"])}) == 3
    assert [pod["PodUid"] for pod in get(people, retried)["Pods"]] == [pod["PodUid"] for pod in pods]


def test_get_job_counts_replicas_of_each_role(people: People, retried: Job) -> None:
    counts = get(people, retried)["JobReplicaStatuses"]
    assert [(each["Type"], each["Active"], each["EstimatedPodCount"]) for each in counts] == [
        ("Master", 1, 1),
        ("Worker", 2, 2),
    ]


@pytest.mark.parametrize("word", ["False", "false", "FALSE"])
def test_get_job_without_detail_has_no_pods(people: People, retried: Job, word: str) -> None:
    found = get(people, retried, NeedDetail=word)
    assert not {"Pods", "StatusHistory", "JobReplicaStatuses"} & found.keys()
    assert get(people, retried, NeedDetail="True")["Pods"]


def test_get_job_costs_the_same_with_many_replicas(
    people: People, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    spec = make_spec(roles=(RoleSpec(name="Worker", command="w", replicas=40),))
    job = make_job(State.RUNNING, owner=people.owner, quota=people.quota, spec=spec)
    dlc = Dlc(people.owner)
    with django_assert_max_num_queries(11):
        assert len(dlc.get(f"jobs/dlc{job.public_id}")["Pods"]) == 40


def test_get_job_of_attempt_that_waits_shows_pods_of_earlier_one(people: People) -> None:
    job = make_job(State.FAILED, owner=people.owner, quota=people.quota)
    Attempt.objects.create(job=job, number=2, key="second")
    Job.objects.filter(pk=job.pk).update(attempt_number=2, state=State.QUEUED, phase=Phase.RESTARTING)
    assert [pod["Status"] for pod in get(people, job)["Pods"]] == ["Failed"]


def test_get_job_shows_strangers_nothing_and_members_little(people: People) -> None:
    job = make_job(State.RUNNING, owner=people.owner, quota=people.quota)
    address = f"jobs/dlc{job.public_id}"
    assert Dlc(people.stranger).refusal("get", address) == (404, "ResourceNotFound")
    seen = Dlc(people.member).get(address)
    assert (seen["Status"], seen["DisplayName"]) == ("Running", "hello")
    assert "UserCommand" not in seen
    assert "Pods" not in seen
    for reader in (people.manager, people.admin):
        assert Dlc(reader).get(address)["UserCommand"] == "echo hello"
        assert "UserCommand" not in Dlc(reader, {"read"}).get(address)
    Job.objects.filter(pk=job.pk).update(visibility=Visibility.PUBLIC)
    assert Dlc(people.member, {"read"}).get(address)["UserCommand"] == "echo hello"


@pytest.mark.parametrize("name", ["", "x", "dlc", "dlcabsent", "dlc%00", "DLC", "dlc1%20x", "..", "dlc%2Fx"])
def test_get_job_of_no_job_is_the_vendors_error(people: People, name: str) -> None:
    status, code = Dlc(people.owner).refusal("get", f"jobs/{name}")
    assert status in {400, 404}
    assert code in {"ResourceNotFound", "InvalidApi.NotFound", "InvalidParameter"}


def test_get_job_by_bare_id_is_not_found(people: People) -> None:
    job = make_job(State.RUNNING, owner=people.owner, quota=people.quota)
    assert Dlc(people.owner).refusal("get", f"jobs/{job.public_id}") == (404, "ResourceNotFound")


def test_get_job_needs_scope_read(people: People) -> None:
    job = make_job(State.RUNNING, owner=people.owner, quota=people.quota)
    dlc = Dlc(people.owner, set(tokens.SCOPES) - {"read"})
    assert dlc.refusal("get", f"jobs/dlc{job.public_id}") == (403, "NoPermission")


def test_deleted_job_is_not_found(people: People) -> None:
    job = make_job(State.FAILED, owner=people.owner, quota=people.quota)
    dlc = Dlc(people.owner)
    dlc.delete(f"jobs/dlc{job.public_id}")
    assert dlc.refusal("get", f"jobs/dlc{job.public_id}") == (404, "ResourceNotFound")
