"""Version 1 by paths, and what holds for every operation of both versions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from jobs.api.vendors.aihc import v1, v2
from jobs.api.vendors.operations import Kind, Location, Operation, Parameter, Support
from jobs.models import Job
from jobs.states import State
from quotas.accounts import tokens
from tests.factories import make_job
from tests.jobs.api.conftest import People
from tests.jobs.api.vendors.aihc.conftest import Aihc, as_user, read, refused

pytestmark = pytest.mark.django_db

BODY: dict[str, Any] = {
    "name": "hello",
    "queue": "default",
    "jobFramework": "PyTorchJob",
    "jobSpec": {
        "command": "echo hello",
        "image": "python:3.12",
        "replicas": 2,
        "resources": [{"name": "cpu", "quantity": 1.0}, {"name": "memory", "quantity": "1.0GB"}],
        "imageConfig": None,
        "envs": None,
        "enableRDMA": False,
        "hostNetwork": False,
    },
    "datasources": [{"mountPath": "/mnt/cluster", "name": None, "type": "pfs"}],
    "faultTolerance": False,
    "labels": None,
    "priority": "normal",
}
"""A job as the command line sends it."""


@pytest.fixture
def job(people: People) -> Job:
    return make_job(State.RUNNING, owner=people.owner, quota=people.quota)


def test_create_job_v1_answers_in_result(owner: Aihc, people: People) -> None:
    found = read(owner.send("POST", "/api/v1/aijobs", BODY, resourcePoolId="local"))

    job = Job.objects.get()
    assert found["result"] == {"jobId": f"job-{job.public_id}", "jobName": "hello"}
    assert (job.replicas_total, job.quota) == (2, people.quota)


def test_get_job_v1_has_what_the_command_line_reads(owner: Aihc, job: Job) -> None:
    found = read(owner.send("GET", f"/api/v1/aijobs/job-{job.public_id}", resourcePoolId="local"))["result"]

    assert found["jobFramework"] == "PyTorchJob"
    assert found["podList"]["listMeta"]["totalItems"] == 1
    (pod,) = found["podList"]["pods"]
    assert pod["podStatus"]["status"] == "READY"
    assert {"PodIP", "nodeName", "objectMeta", "replicaType", "restartCount", "finishedAt", "envs"} <= set(
        pod
    )
    assert {each["name"] for each in found["resources"]} >= {"cpu", "memory"}


def test_list_jobs_v1_filters_and_pages(owner: Aihc, people: People) -> None:
    for number in range(3):
        make_job(owner=people.owner, quota=people.quota, name=f"job {number}")

    def listed(**query: Any) -> Any:
        return read(owner.send("GET", "/api/v1/aijobs", resourcePoolId="local", **query))["result"]

    assert (listed()["total"], listed(pageSize=2, pageNo=2)["jobs"][0]["name"]) == (3, "job 0")
    assert listed(queue="none")["total"] == listed(Queue="none")["total"] == 0
    assert listed(Queue="default")["total"] == 3


def test_stop_update_delete_v1(owner: Aihc, people: People) -> None:
    job = make_job(owner=people.owner, quota=people.quota)
    path, pool = f"/api/v1/aijobs/job-{job.public_id}", {"resourcePoolId": "local"}

    refused(owner.send("PUT", path, {"priority": "high"}, **pool), 403, "AccessDenied")
    assert read(owner.send("POST", f"{path}/stop", **pool))["result"]["jobName"] == job.name
    assert read(owner.send("DELETE", path, **pool))["result"]["jobId"] == f"job-{job.public_id}"
    refused(owner.send("GET", path, **pool), 404, "ResourceNotFound")


def test_webterminal_v1_answers_address_with_ticket(owner: Aihc, job: Job) -> None:
    path = f"/api/v1/aijobs/job-{job.public_id}/pods/main-0/webterminal"

    address = read(owner.send("GET", path, resourcePoolId="local"))["result"]["WebTerminalUrl"]

    assert address.startswith("ws://testserver/terminals/tickets/")


def test_pools_and_queues_v1_have_what_the_command_line_reads(owner: Aihc) -> None:
    (pool,) = read(owner.send("GET", "/api/v1/resourcepools", pageSize=20, pageNo=1))["result"][
        "resourcePools"
    ]
    one = read(owner.send("GET", "/api/v1/resourcepools/local", resourcePoolId="local"))["result"][
        "resourcePool"
    ]
    (queue,) = read(owner.send("GET", "/api/v1/resourcepools/local/queue"))["result"]["queues"]
    same = read(owner.send("GET", "/api/v1/resourcepools/local/queue/default"))["result"]["queue"]

    assert pool == one
    assert (pool["metadata"]["id"], pool["status"]["nodeCount"]["total"]) == ("local", 0)
    assert queue == same
    assert (queue["name"], queue["deserved"]["nvidia.com/gpu"]) == ("default", "0")
    refused(owner.send("GET", "/api/v1/resourcepools/foreign/queue"), 404, "ResourceNotFound")
    refused(owner.send("GET", "/api/v1/resourcepools/local/queue/x"), 404, "ResourceNotFound")


# --- every operation ---------------------------------------------------------------------------------------

OPERATIONS = [*v1.OPERATIONS, *v2.OPERATIONS]
_WRONG: dict[Kind, tuple[Any, ...]] = {
    Kind.TEXT: (7, [], {}, True),
    Kind.INTEGER: ("x", 1.5, [], True, 2**60),
    Kind.BOOLEAN: ("yes", 1, []),
    Kind.ANY: ([], {}, True),
}


def label(operation: Operation) -> str:
    return f"{operation.name} {operation.path}"


def wrong_values() -> Iterator[tuple[Operation, Parameter, Any]]:
    """Yield each operation with a parameter and a value that it must refuse."""
    for operation in OPERATIONS:
        for parameter in operation.parameters:
            if parameter.support is Support.IGNORED or parameter.location is Location.PATH:
                continue
            if parameter.location is Location.BODY:
                yield from ((operation, parameter, value) for value in _WRONG[parameter.kind])
            elif parameter.kind is not Kind.TEXT:
                yield operation, parameter, "x"
            if parameter.choices:
                yield operation, parameter, "none of them"


def call(api: Aihc, operation: Operation, job: Job, **changes: Any) -> Any:
    """Call an operation with right values, but for `changes`."""
    right: dict[str, Any] = {
        "resourcePoolId": "local",
        "poolId": "local",
        "queueId": "default",
        "queue": "default",
        "jobId": f"job-{job.public_id}",
        "podName": f"job-{job.public_id}-main-0",
        "metricType": "GpuUsage",
        "priority": "high",
    }
    values = {
        each.name: right[each.name] for each in operation.parameters if each.required and each.name in right
    } | changes
    parts: dict[Location, dict[str, Any]] = {location: {} for location in Location}
    for each in operation.parameters:
        if each.name in values:
            parts[each.location][each.name] = values[each.name]
    path = f"/{operation.path}"
    for name, value in parts[Location.PATH].items():
        path = path.replace(f"<str:{name}>", value)
    query = parts[Location.QUERY] | ({} if operation.path else {"action": operation.name})
    body: Any = parts[Location.BODY] if operation.method in {"POST", "PUT"} else None
    if operation.format:
        body = {**BODY, "command": "echo hello"}
    return api.send(operation.method, path, body, **query)


@pytest.mark.parametrize("operation", OPERATIONS, ids=label)
def test_operation_wrong_types_are_refused(owner: Aihc, people: People, operation: Operation) -> None:
    job = make_job(State.RUNNING, owner=people.owner, quota=people.quota)
    api = as_user(people.admin)
    for each, parameter, value in wrong_values():
        if each is operation:
            answer = call(api, operation, job, **{parameter.name: value})
            assert answer.status_code == 400, (parameter.name, value, answer.content)
            message = refused(answer, 400, "InvalidParam")
            assert message.startswith(parameter.name)


@pytest.mark.parametrize("operation", OPERATIONS, ids=label)
def test_operation_missing_parameter_is_refused(owner: Aihc, job: Job, operation: Operation) -> None:
    api = owner
    for parameter in operation.parameters:
        if parameter.required and parameter.location is not Location.PATH and operation.scope == "read":
            assert "required" in refused(
                call(
                    api,
                    operation,
                    job,
                    **{parameter.name: None if parameter.location is Location.BODY else ""},
                ),
                400,
                "InvalidParam",
            )


@pytest.mark.parametrize("operation", OPERATIONS, ids=label)
def test_operation_answers_as_its_row_says(people: People, operation: Operation) -> None:
    state = State.FAILED if operation.name == "DeleteJob" else State.RUNNING
    if operation.name in {"ModifyJob", "UpdateJob"}:
        state = State.QUEUED
    job = make_job(state, owner=people.owner, quota=people.quota)
    person = people.admin if operation.scope == "admin" else people.owner
    api = as_user(person, *tokens.SCOPES)
    if operation.name in {"ModifyJob", "UpdateJob"}:
        api.create(resourcePoolId="aihc-serverless", queueID="vision/local/default")
        job = Job.objects.latest("pk")

    answer = call(api, operation, job)

    if operation.support is Support.REFUSED:
        refused(answer, 400, "UnsupportedOperation")
        assert operation.note
    else:
        read(answer)


@pytest.mark.parametrize("operation", OPERATIONS, ids=label)
def test_operation_without_key_is_refused(job: Job, operation: Operation) -> None:
    answer = call(Aihc("JCAKnobody", "x"), operation, job)

    refused(answer, 403, "InvalidAccessKeyId")


def test_operations_cover_the_clients() -> None:
    assert {each.name for each in v2.OPERATIONS} == {
        *(
            "CreateJob",
            "DescribeJobs",
            "DescribeJob",
            "StopJob",
            "DeleteJob",
            "ModifyJob",
            "DescribeJobNodes",
        ),
        *("DescribeJobEvents", "DescribePodEvents", "DescribeJobLogs", "DescribeJobWebterminal"),
        *(
            "DescribeJobMetrics",
            "DescribeResourcePools",
            "DescribeResourcePool",
            "DescribeResourcePoolOverview",
        ),
        *("DescribeResourcePoolConfiguration", "DescribeQueues", "DescribeQueue"),
    }
    assert all(each.note for each in OPERATIONS if each.support is not Support.FULL)
