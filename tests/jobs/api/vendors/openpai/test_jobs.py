"""Reading, stopping, deleting and tagging jobs, as owner, member, manager, stranger and admin."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from pytest_django import DjangoAssertNumQueries

from jobs.models import Attempt, Event, Job, JobTag, Replica
from jobs.spec import RoleSpec
from jobs.states import Phase, ReasonCode, State
from tests.factories import attempt_of, make_endpoint, make_job, make_quota, make_spec, replica_of
from tests.jobs.api.conftest import People, body_of
from tests.jobs.api.vendors.openpai.conftest import PaiOf, error_of
from tests.jobs.api.vendors.openpai.test_submission import V1, V2

pytestmark = pytest.mark.django_db

ALL = ("read", "submit", "stop", "exec", "admin")


# --- one job ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["v1/jobs/olga~hello", "v1/user/olga/jobs/hello", "v2/user/olga/jobs/hello", "v1/jobs/hello"],
)
def test_job_is_shown_to_owner_under_every_address(people: People, job: Job, pai: PaiOf, path: str) -> None:
    body = body_of(pai(people.owner).get(path))
    status = body["jobStatus"]
    assert (body["name"], status["username"], status["state"]) == ("hello", "olga", "RUNNING")
    assert (status["subState"], status["executionType"]) == ("APPLICATION_RUNNING", "START")
    assert status["virtualCluster"] == "default"
    (task,) = body["taskRoles"]["main"]["taskStatuses"]
    assert (task["taskIndex"], task["taskState"], task["containerIp"]) == (0, "RUNNING", "localhost")
    assert task["containerId"] == f"{job.public_id}.main-0"


def test_job_shows_member_its_status_only(people: People, job: Job, pai: PaiOf) -> None:
    body = body_of(pai(people.member).get("v1/user/olga/jobs/hello"))
    assert body["jobStatus"]["state"] == "RUNNING"
    assert body["taskRoles"] == {}


def test_job_shows_manager_its_tasks_with_admin_scope_only(people: People, job: Job, pai: PaiOf) -> None:
    assert body_of(pai(people.manager).get("v2/jobs/olga~hello"))["taskRoles"] == {}
    assert body_of(pai(people.manager, ALL).get("v2/jobs/olga~hello"))["taskRoles"]["main"]
    assert body_of(pai(people.admin, ALL).get("v2/jobs/olga~hello"))["taskRoles"]["main"]


PATHS_OF_JOB = (
    "v1/user/olga/jobs/hello",
    "v1/user/olga/jobs/hello/config",
    "v1/user/olga/jobs/hello/ssh",
    "v1/jobs/olga/jobs/hello/config",
    "v2/jobs/olga~hello",
    "v2/jobs/olga~hello/config",
    "v2/jobs/olga~hello/ssh",
    "v2/jobs/olga~hello/events",
    "v2/jobs/olga~hello/attempts/0",
    "v2/jobs/olga~hello/job-attempts",
    "v2/jobs/olga~hello/job-attempts/0",
    "v2/jobs/olga~hello/job-attempts/healthz",
    "v2/jobs/olga~hello/attempts/0/taskRoles/main/taskIndex/0/attempts",
    "v2/jobs/olga~hello/attempts/0/taskRoles/main/taskIndex/0/attempts/0/logs",
    "v2/jobs/olga~hello/attempts/0/taskRoles/main/taskIndex/0/attempts/0/logs/all",
)


@pytest.mark.parametrize("path", PATHS_OF_JOB)
def test_job_is_not_found_for_stranger(people: People, job: Job, pai: PaiOf, path: str) -> None:
    assert error_of(pai(people.stranger, ALL).get(path), 404) == (
        "NoJobError",
        "Job olga~hello is not found.",
    )


@pytest.mark.parametrize("path", PATHS_OF_JOB)
def test_job_is_refused_without_token(people: People, job: Job, pai: PaiOf, path: str) -> None:
    assert error_of(pai().get(path), 401)[0] == "UnauthorizedUserError"


PUBLIC_PATHS = {
    "v1/user/olga/jobs/hello",
    "v2/jobs/olga~hello",
    "v2/jobs/olga~hello/job-attempts/healthz",
}
"""They show the state only."""


@pytest.mark.parametrize("path", sorted(set(PATHS_OF_JOB) - PUBLIC_PATHS))
def test_private_parts_are_refused_to_member(people: People, job: Job, pai: PaiOf, path: str) -> None:
    assert error_of(pai(people.member, ALL).get(path), 403)[0] == "ForbiddenUserError"


def test_job_of_second_version_has_more(people: People, job: Job, pai: PaiOf) -> None:
    JobTag.objects.create(job=job, name="paper")
    body = body_of(pai(people.owner).get("v2/jobs/olga~hello"))
    assert (body["debugId"], body["tags"], body["jobPriority"]) == (job.public_id, ["paper"], None)
    assert (body["jobStatus"]["attemptId"], body["jobStatus"]["attemptState"]) == (0, "AttemptRunning")
    (task,) = body["taskRoles"]["main"]["taskStatuses"]
    assert (task["containerNodeName"], task["attemptId"], task["retries"]) == ("localhost", 0, 0)


def test_job_names_ports_where_cluster_shows_addresses(people: People, job: Job, pai: PaiOf) -> None:
    replica = replica_of(job)
    make_endpoint(replica, port=8888, label="web")
    make_endpoint(replica, port=8889, label="web", ordinal=1)

    def ports(scopes: tuple[str, ...] = ALL) -> Any:
        body = body_of(pai(people.owner, scopes).get("v1/user/olga/jobs/hello"))
        return body["taskRoles"]["main"]["taskStatuses"][0]["containerPorts"]

    assert ports() == {}
    job.cluster.shows_addresses = True
    job.cluster.save()
    assert ports() == {"web": "8888,8889"}
    assert ports(("read",)) == {}


def test_job_details_cost_the_same_for_many_tasks(
    people: People, pai: PaiOf, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    roles = (RoleSpec(name="main", command="a", replicas=50),)
    make_job(State.RUNNING, owner=people.owner, quota=people.quota, spec=make_spec(name="wide", roles=roles))
    client = pai(people.owner)
    client.get("v2/jobs/olga~wide")
    with django_assert_max_num_queries(14):
        body = body_of(client.get("v2/jobs/olga~wide"))
    assert len(body["taskRoles"]["main"]["taskStatuses"]) == 50


STATES = {
    State.QUEUED: ("WAITING", "FRAMEWORK_WAITING", "WAITING", "AttemptCreationPending", None, None),
    State.SUBMITTING: ("WAITING", "APPLICATION_CREATED", "WAITING", "AttemptCreationRequested", None, None),
    State.PENDING: ("WAITING", "APPLICATION_WAITING", "WAITING", "AttemptPreparing", None, None),
    State.RUNNING: ("RUNNING", "APPLICATION_RUNNING", "RUNNING", "AttemptRunning", None, None),
    State.SUCCEEDED: ("SUCCEEDED", "FRAMEWORK_COMPLETED", "SUCCEEDED", "Completed", 0, 0),
    State.FAILED: ("FAILED", "FRAMEWORK_COMPLETED", "FAILED", "Completed", 1, 1),
    State.STOPPED: ("STOPPED", "FRAMEWORK_COMPLETED", "STOPPED", "Completed", -7351, -210),
    State.LOST: ("UNKNOWN", "UNKNOWN", "UNKNOWN", "UNKNOWN", None, None),
}


@pytest.mark.parametrize("state", list(State))
def test_job_state_is_in_words_of_each_version(people: People, pai: PaiOf, state: State) -> None:
    make_job(state, owner=people.owner, quota=people.quota)
    client = pai(people.owner)
    first = body_of(client.get("v1/jobs/olga~hello"))["jobStatus"]
    second = body_of(client.get("v2/jobs/olga~hello"))["jobStatus"]
    found = (first["state"], first["subState"], second["state"], second["subState"])
    assert (*found, first["appExitCode"], second["appExitCode"]) == STATES[state]
    ended = state in {State.SUCCEEDED, State.FAILED, State.STOPPED}
    assert (first["appExitSpec"] is not None) is ended


def test_job_that_is_being_stopped_says_so(people: People, job: Job, pai: PaiOf) -> None:
    Job.objects.update(phase=Phase.STOPPING)
    client = pai(people.owner)
    first = body_of(client.get("v1/jobs/olga~hello"))["jobStatus"]
    second = body_of(client.get("v2/jobs/olga~hello"))["jobStatus"]
    assert (first["state"], first["executionType"]) == ("RUNNING", "STOP")
    assert (second["state"], second["subState"]) == ("STOPPING", "AttemptDeletionRequested")


def test_job_of_earlier_attempt_shows_how_that_ended(people: People, job: Job, pai: PaiOf) -> None:
    first = attempt_of(job)
    Attempt.objects.filter(pk=first.pk).update(
        reason_code=ReasonCode.EXIT_CODE, reason_params={"exit_code": 3}
    )
    Replica.objects.update(exit_code=3)
    Attempt.objects.create(job=job, number=2, key=f"{first.key}-2")
    Job.objects.update(attempt_number=2)
    client = pai(people.owner)
    newest = body_of(client.get("v2/jobs/olga~hello"))["jobStatus"]
    assert (newest["attemptId"], newest["retries"], newest["retryDetails"]["user"]) == (1, 1, 1)
    earlier = body_of(client.get("v2/jobs/olga~hello/attempts/0"))
    assert (earlier["jobStatus"]["state"], earlier["jobStatus"]["appExitCode"]) == ("FAILED", 3)
    assert earlier["taskRoles"]["main"]["taskStatuses"][0]["containerExitCode"] == 3
    history = body_of(client.get("v2/jobs/olga~hello/job-attempts"))
    assert [(row["attemptIndex"], row["isLatest"]) for row in history] == [(1, True), (0, False)]
    assert error_of(client.get("v2/jobs/olga~hello/attempts/7"), 404)[0] == "NoJobError"
    assert error_of(client.get("v2/jobs/olga~hello/attempts/x"), 400)[0] == "InvalidParametersError"
    assert Job.objects.get().state == State.RUNNING


def test_attempts_of_task_are_its_runs(people: People, job: Job, pai: PaiOf) -> None:
    path = "v2/jobs/olga~hello/attempts/0/taskRoles/{}/taskIndex/0/attempts"
    body = body_of(pai(people.owner).get(path.format("main")))
    assert [task["taskState"] for task in body["attempts"]] == ["RUNNING"]
    assert error_of(pai(people.owner).get(path.format("other")), 404)[0] == "NoJobError"


def test_events_have_type_and_count(people: People, job: Job, pai: PaiOf) -> None:
    Event.objects.create(job=job, kind=Event.Kind.SUBMITTED)
    Event.objects.create(job=job, kind=Event.Kind.LOST)
    client = pai(people.owner)
    body = body_of(client.get("v2/jobs/olga~hello/events"))
    assert [event["reason"] for event in body["data"]] == ["Submitted", "Lost"]
    warnings = body_of(client.get("v2/jobs/olga~hello/events", type="Warning"))
    assert (warnings["totalCount"], warnings["data"][0]["reason"]) == (1, "Lost")


# --- config ----------------------------------------------------------------------------------------------


def test_config_of_first_version_is_original(people: People, pai: PaiOf) -> None:
    client = pai(people.owner)
    client.post("v1/jobs", V1)
    answer = client.get("v1/user/olga/jobs/hello/config")
    assert answer.headers["Content-Type"].startswith("application/json")
    assert json.loads(answer.content) == V1
    assert body_of(client.get("v1/jobs/olga/jobs/hello/config")) == V1


def test_config_of_second_version_is_converted(people: People, pai: PaiOf) -> None:
    client = pai(people.owner)
    client.post("v1/jobs", V1)
    answer = client.get("v2/jobs/olga~hello/config")
    assert answer.headers["Content-Type"].startswith("text/yaml")
    config = yaml.safe_load(answer.content)
    assert (str(config["protocolVersion"]), config["name"]) == ("2", "hello")


def test_config_of_yaml_job_is_json_unless_yaml_is_accepted(people: People, pai: PaiOf) -> None:
    client = pai(people.owner)
    client.post("v2/jobs", V2, "text/yaml")
    assert body_of(client.get("v1/jobs/olga~hello_v2/config"))["name"] == "hello_v2"
    assert client.get("v2/jobs/olga~hello_v2/config").content.decode() == V2


def test_config_hides_secrets(people: People, pai: PaiOf) -> None:
    client = pai(people.owner)
    client.post("v1/jobs", {**V1, "jobEnvs": {"API_TOKEN": "hunter2hunter2"}})
    for path in ("v1/jobs/olga~hello/config", "v2/jobs/olga~hello/config"):
        assert b"hunter2" not in client.get(path).content


# --- stop, delete, tag -----------------------------------------------------------------------------------


def test_stop_by_owner_asks_for_end(people: People, job: Job, pai: PaiOf) -> None:
    answer = pai(people.owner).put("v1/user/olga/jobs/hello/executionType", {"value": "STOP"})
    assert body_of(answer, 202) == {"message": "execute job olga~hello successfully"}
    assert attempt_of(job).end_kind == "user_stop"
    second = pai(people.owner).put("v2/jobs/olga~hello/executionType", {"value": "STOP"})
    assert body_of(second, 202)["message"] == "Execute job olga~hello successfully."


def test_stop_by_member_is_forbidden(people: People, job: Job, pai: PaiOf) -> None:
    answer = pai(people.member).put("v1/user/olga/jobs/hello/executionType", {"value": "STOP"})
    assert error_of(answer, 403) == (
        "ForbiddenUserError",
        "User mei is not allowed to execute job olga~hello.",
    )


def test_stop_by_manager_needs_admin_scope(people: People, job: Job, pai: PaiOf) -> None:
    path = "v2/jobs/olga~hello/executionType"
    assert error_of(pai(people.manager).put(path, {"value": "STOP"}), 403)[0] == "ForbiddenUserError"
    assert pai(people.manager, ALL).put(path, {"value": "STOP"}).status_code == 202
    assert attempt_of(job).end_kind == "admin_stop"


def test_stop_by_stranger_or_without_scope_is_refused(people: People, job: Job, pai: PaiOf) -> None:
    path = "v1/user/olga/jobs/hello/executionType"
    assert error_of(pai(people.stranger, ALL).put(path, {"value": "STOP"}), 404)[0] == "NoJobError"
    assert error_of(pai(people.owner, ["read"]).put(path, {"value": "STOP"}), 403)[0] == "ForbiddenUserError"
    assert attempt_of(job).end_kind == ""


def test_start_changes_nothing_before_end_and_is_refused_after(people: People, job: Job, pai: PaiOf) -> None:
    client, path = pai(people.owner), "v1/user/olga/jobs/hello/executionType"
    assert client.put(path, {"value": "START"}).status_code == 202
    Job.objects.update(state=State.SUCCEEDED)
    assert error_of(client.put(path, {"value": "START"}), 501)[0] == "NotImplementedError"


@pytest.mark.parametrize("value", ["start", "", 1, None, [], {}])
def test_execution_type_of_wrong_value_is_refused(people: People, job: Job, pai: PaiOf, value: Any) -> None:
    answer = pai(people.owner).put("v1/user/olga/jobs/hello/executionType", {"value": value})
    assert error_of(answer, 400)[0] == "InvalidParametersError"


def test_delete_of_running_job_conflicts(people: People, job: Job, pai: PaiOf) -> None:
    assert error_of(pai(people.owner).delete("v1/user/olga/jobs/hello"), 409)[0] == "ConflictJobError"


def test_delete_by_owner_hides_ended_job(people: People, pai: PaiOf) -> None:
    make_job(State.SUCCEEDED, owner=people.owner, quota=people.quota)
    assert error_of(pai(people.member).delete("v1/user/olga/jobs/hello"), 403) == (
        "ForbiddenUserError",
        "User mei is not allowed to remove job olga~hello.",
    )
    client = pai(people.owner)
    answer = client.delete("v1/user/olga/jobs/hello")
    assert body_of(answer, 202) == {"message": "deleted job olga~hello successfully"}
    assert error_of(client.get("v1/user/olga/jobs/hello"), 404)[0] == "NoJobError"


def test_tag_is_added_and_deleted_by_owner(people: People, job: Job, pai: PaiOf) -> None:
    client, path = pai(people.owner), "v2/jobs/olga~hello/tag"
    for _again in range(2):
        assert body_of(client.put(path, {"value": "paper"}))["message"] == (
            "Add tag paper for job olga~hello successfully."
        )
    assert body_of(client.get("v2/jobs", tagsContain="paper"))[0]["tags"] == ["paper"]
    assert body_of(client.get("v2/jobs", tagsNotContain="paper")) == []
    assert error_of(pai(people.member).put(path, {"value": "x"}), 403)[1] == (
        "User mei is not allowed to add tag to job olga~hello."
    )
    assert client.delete(path, {"value": "paper"}).status_code == 200
    assert error_of(client.delete(path, {"value": "paper"}), 404)[0] == "NoTagError"
    for value in ("", "x" * 256, 1, None, ["a"]):
        assert error_of(client.put(path, {"value": value}), 400)[0] == "InvalidParametersError"


# --- lists -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["v1/jobs", "v2/jobs", "v1/user/olga/jobs"])
def test_list_shows_workspace_to_members_only(people: People, job: Job, pai: PaiOf, path: str) -> None:
    for person, count in ((people.owner, 1), (people.member, 1), (people.stranger, 0), (people.admin, 1)):
        assert len(body_of(pai(person).get(path))) == count
    assert error_of(pai().get(path), 401)[0] == "UnauthorizedUserError"


def test_list_item_has_fields_of_each_version(people: People, job: Job, pai: PaiOf) -> None:
    (first,) = body_of(pai(people.owner).get("v1/jobs"))
    assert first == {
        "name": "hello",
        "namespace": "olga",
        "username": "olga",
        "state": "RUNNING",
        "subState": "APPLICATION_RUNNING",
        "executionType": "START",
        "retries": 0,
        "retryDetails": {"user": 0, "platform": 0, "resource": 0},
        "createdTime": int(job.created_at.timestamp() * 1000),
        "completedTime": None,
        "appExitCode": None,
        "virtualCluster": "default",
        "totalGpuNumber": 0,
        "totalTaskNumber": 1,
        "totalTaskRoleNumber": 1,
    }
    (second,) = body_of(pai(people.owner).get("v2/jobs"))
    assert {"debugId", "tags", "retryDelayTime", "submissionTime", "launchedTime", "jobPriority"} <= set(
        second
    )


def test_list_is_filtered_by_every_parameter(people: People, pai: PaiOf) -> None:
    other = make_quota(people.quota.workspace, people.quota.cluster, "gpu")
    make_job(State.RUNNING, owner=people.owner, quota=people.quota, name="alpha", gpus=4)
    make_job(State.SUCCEEDED, owner=people.member, quota=other, name="beta")
    make_job(State.RUNNING, owner=people.member, quota=people.quota, name="gamma", phase=Phase.STOPPING)
    client = pai(people.owner)

    def names(path: str = "v2/jobs", **query: str) -> list[str]:
        return [item["name"] for item in body_of(client.get(path, **query))]

    assert names() == ["gamma", "beta", "alpha"]
    assert names(username="mei") == ["gamma", "beta"]
    assert names("v1/jobs", username="mei") == ["gamma", "beta"]
    assert names(username="mei,olga", vc="gpu") == ["beta"]
    assert names(state="RUNNING") == ["alpha"]
    assert names(state="STOPPING,SUCCEEDED") == ["gamma", "beta"]
    assert names(state="NONE") == []
    assert names(keyword="lph") == ["alpha"]
    assert names(keyword="gpu") == ["beta"]
    assert names(order="jobName,ASC") == ["alpha", "beta", "gamma"]
    assert names(order="totalGpuNumber,DESC")[0] == "alpha"
    assert names(order="completionTime,ASC")[0] == "beta"
    assert names(order="nonsense") == ["gamma", "beta", "alpha"]
    assert names(offset="1", limit="1") == ["beta"]
    assert names(jobPriority="prod") == []
    assert len(names(jobPriority="prod,default")) == 3
    counted = body_of(client.get("v2/jobs", withTotalCount="true", limit="1", vc="default"))
    assert (counted["totalCount"], [item["name"] for item in counted["data"]]) == (2, ["gamma"])


def test_list_limit_is_bounded(people: People, pai: PaiOf) -> None:
    client = pai(people.owner)
    assert error_of(client.get("v2/jobs", limit="50001"), 400) == (
        "InvalidParametersError",
        "Limit exceeds max number 50000.",
    )
    for query in ({"limit": "-1"}, {"offset": "-1"}, {"limit": "x"}, {"offset": "9" * 30}):
        assert error_of(client.get("v2/jobs", **query), 400)[0] == "InvalidParametersError"


@pytest.mark.parametrize("path", ["v1/jobs", "v2/jobs"])
def test_list_costs_the_same_for_many_jobs(
    people: People, pai: PaiOf, path: str, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for _index in range(12):
        job = make_job(State.RUNNING, owner=people.owner, quota=people.quota, attempt_number=2)
        JobTag.objects.create(job=job, name="tag")
    client = pai(people.owner)
    client.get(path)
    with django_assert_max_num_queries(5):
        assert len(body_of(client.get(path))) == 12
