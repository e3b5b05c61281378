"""Submission of job files of both versions."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from jobs.models import Job, JobFile
from jobs.states import State
from quotas.models import Role
from tests.factories import make_cluster, make_job, make_quota, make_workspace
from tests.jobs.api.conftest import HELLO, People, body_of
from tests.jobs.api.vendors.openpai.conftest import PaiOf, error_of

pytestmark = pytest.mark.django_db

V1: dict[str, Any] = {**HELLO, "image": "python:3.12"}
V2 = """protocolVersion: 2
name: hello_v2
type: job
prerequisites:
  - {name: image, type: dockerimage, uri: "python:3.12"}
taskRoles:
  main:
    instances: 1
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 512, gpu: 0}
    commands: [echo hello]
"""


def role(**changes: Any) -> dict[str, Any]:
    return {**V1, "taskRoles": [{**V1["taskRoles"][0], **changes}]}


@pytest.mark.parametrize("mount", ["v1/jobs", "v1/user/olga/jobs", "v2/user/olga/jobs"])
def test_submit_json_answers_201_with_job(people: People, pai: PaiOf, mount: str) -> None:
    answer = pai(people.owner).post(mount, V1)
    body = body_of(answer, 201)
    assert answer.headers["Location"] == "http://testserver/rest-server/api/v1/user/olga/jobs/hello"
    assert (body["name"], body["jobStatus"]["state"]) == ("hello", "WAITING")
    assert body["taskRoles"]["main"]["taskStatuses"][0]["taskState"] == "WAITING"
    assert Job.objects.get().dialect == "openpai-v1"


def test_submit_by_put_requires_name_of_address(people: People, pai: PaiOf) -> None:
    client = pai(people.owner)
    assert error_of(client.put("v1/user/olga/jobs/other", V1), 400)[0] == "InvalidParametersError"
    assert client.put("v1/user/olga/jobs/hello", V1).status_code == 201
    assert error_of(client.put("v1/jobs/olga~hello", V1), 409)[0] == "ConflictJobError"


def test_submit_form_reads_nested_names(people: People, pai: PaiOf) -> None:
    fields = {
        "jobName": "nested",
        "image": "python:3.12",
        "taskRoles[0][name]": "main",
        "taskRoles[0][taskNumber]": "2",
        "taskRoles[0][cpuNumber]": "1",
        "taskRoles[0][memoryMB]": "512",
        "taskRoles[0][command]": "echo 1",
        "taskRoles[0][minFailedTaskCount]": "",
        "taskRoles[0][portList][0][label]": "web",
        "taskRoles[0][portList][0][beginAt]": "0",
        "jobEnvs[COUNT]": "3",
    }
    answer = pai(people.owner).post(
        "v1/user/olga/jobs", urlencode(fields), "application/x-www-form-urlencoded"
    )
    assert answer.status_code == 201, answer.content
    file = JobFile.objects.get()
    (main,) = file.spec.roles
    assert (main.replicas, main.command, main.completion.min_failed) == (2, "echo 1", None)
    assert file.spec.env["COUNT"] == "3"
    assert json.loads(file.text)["taskRoles"][0]["portList"][0] == {"label": "web", "beginAt": 0}


def test_submit_yaml_answers_202(people: People, pai: PaiOf) -> None:
    client = pai(people.owner)
    answer = client.post("v2/jobs", V2, "text/yaml")
    message = "Update job hello_v2 for user olga successfully."
    assert body_of(answer, 202) == {"status": 202, "message": message}
    assert Job.objects.get().dialect == "openpai-v2"
    assert error_of(client.post("v2/jobs", V2, "text/yaml"), 409) == (
        "ConflictJobError",
        "Job olga~hello_v2 already exists.",
    )


def test_submit_version_2_to_address_of_version_1_is_accepted(people: People, pai: PaiOf) -> None:
    assert pai(people.owner).post("v1/jobs", V2, "text/yaml").status_code == 201
    assert Job.objects.get().dialect == "openpai-v2"


def test_submit_twice_conflicts_until_deleted(people: People, pai: PaiOf) -> None:
    client = pai(people.owner)
    assert client.post("v1/jobs", V1).status_code == 201
    assert error_of(client.post("v1/jobs", V1), 409) == ("ConflictJobError", "Job name hello already exists")
    assert client.delete("v1/jobs/olga~hello").status_code == 202
    assert client.post("v1/jobs", V1).status_code == 201


def test_submit_name_of_other_user_is_accepted(people: People, pai: PaiOf) -> None:
    make_job(State.RUNNING, owner=people.member, quota=people.quota)
    assert pai(people.owner).post("v1/jobs", V1).status_code == 201


def test_submit_for_other_user_is_refused(people: People, pai: PaiOf) -> None:
    code, _message = error_of(pai(people.owner).post("v1/user/mei/jobs", V1), 403)
    assert code == "ForbiddenUserError"


def test_submit_without_scope_is_refused(people: People, pai: PaiOf) -> None:
    assert error_of(pai(people.owner, ["read"]).post("v1/jobs", V1), 403)[0] == "ForbiddenUserError"


def test_submit_without_token_is_refused(people: People, pai: PaiOf) -> None:
    assert error_of(pai().post("v1/jobs", V1), 401) == (
        "UnauthorizedUserError",
        "Guest is not allowed to do this operation.",
    )


# --- virtual clusters ------------------------------------------------------------------------------------


def test_submit_to_virtual_cluster_uses_quota(people: People, pai: PaiOf) -> None:
    wanted = make_quota(people.quota.workspace, people.quota.cluster, "gpu")
    assert pai(people.owner).post("v1/jobs", {**V1, "virtualCluster": "gpu"}).status_code == 201
    assert Job.objects.get().quota == wanted


@pytest.mark.parametrize("name", ["nowhere", "secret"])
def test_submit_to_unknown_virtual_cluster_is_not_found(people: People, pai: PaiOf, name: str) -> None:
    make_quota(make_workspace("elsewhere"), make_cluster(), "secret")
    assert error_of(pai(people.owner).post("v1/jobs", {**V1, "virtualCluster": name}), 404) == (
        "NoVirtualClusterError",
        f"Virtual cluster {name} is not found.",
    )


def test_submit_to_virtual_cluster_without_right_is_forbidden(people: People, pai: PaiOf) -> None:
    readable = make_workspace("reading", members={people.owner: Role.VIEWER})
    make_quota(readable, people.quota.cluster, "theirs")
    assert error_of(pai(people.owner).post("v1/jobs", {**V1, "virtualCluster": "theirs"}), 403) == (
        "ForbiddenUserError",
        "User olga is not allowed to do operation in theirs",
    )


# --- sentences -------------------------------------------------------------------------------------------


def in_role(field: str, rule: str) -> str:
    return (
        'child "taskRoles" fails because ["taskRoles" at position 0 fails because '
        f'[child "{field}" fails because ["{field}" {rule}]]]'
    )


BAD_NAME = (
    'child "jobName" fails because ["jobName" with value "a b" fails to match the required pattern: '
    r"/^[A-Za-z0-9\-._]+$/]"
)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {"image": "a", "taskRoles": V1["taskRoles"]},
            'child "jobName" fails because ["jobName" is required]',
        ),
        ({**V1, "jobName": ""}, 'child "jobName" fails because ["jobName" is not allowed to be empty]'),
        (
            {**V1, "jobName": "a b"},
            BAD_NAME,
        ),
        ({"jobName": "a", "image": "a"}, 'child "taskRoles" fails because ["taskRoles" is required]'),
        (
            {**V1, "taskRoles": []},
            'child "taskRoles" fails because ["taskRoles" must contain at least 1 items]',
        ),
        (role(memoryMB=100, shmMB=200), in_role("shmMB", "must be less than or equal to 100")),
        (role(taskNumber=1.5), in_role("taskNumber", "must be an integer")),
        (role(taskNumber="many"), in_role("taskNumber", "must be a number")),
        (role(minFailedTaskCount=0), in_role("minFailedTaskCount", "must be larger than or equal to 1")),
        (role(command=""), in_role("command", "is not allowed to be empty")),
        (
            role(minFailedTaskCount=5),
            "minFailedTaskCount or minSucceededTaskCount should not be greater than tasks number.",
        ),
        (
            {**V1, "retryCount": -3},
            'child "retryCount" fails because ["retryCount" must be larger than or equal to -2]',
        ),
        ({**V1, "gpuType": 3}, 'child "gpuType" fails because ["gpuType" must be a string]'),
        ([], '"value" must be an object'),
        ({**V1, "jobEnvs": {"-": 1}}, 'child "jobEnvs" fails because ["-" is not allowed]'),
    ],
)
def test_submit_refused_says_sentence_of_joi(people: People, pai: PaiOf, body: Any, message: str) -> None:
    assert error_of(pai(people.owner).post("v1/jobs", body), 400) == ("InvalidParametersError", message)


def test_submit_text_that_is_no_job_is_refused(people: People, pai: PaiOf) -> None:
    for text in ("{", "", "[1", "\0", "name: [", "1"):
        assert error_of(pai(people.owner).post("v1/jobs", text), 400)[0] == "InvalidParametersError"
        assert (
            error_of(pai(people.owner).post("v2/jobs", text, "text/yaml"), 400)[0] == "InvalidProtocolError"
        )


@pytest.mark.parametrize("text", ["[", "a[b=1", "a=1&a[b]=2", "a[b]=1&a=2", "a[b][c][d][e][f][g][h][i][j]=1"])
def test_submit_malformed_form_is_refused(people: People, pai: PaiOf, text: str) -> None:
    answer = pai(people.owner).post("v1/jobs", text, "application/x-www-form-urlencoded")
    assert error_of(answer, 400)[0] == "InvalidParametersError"


def test_submit_version_2_refused_says_errors_of_ajv(people: People, pai: PaiOf) -> None:
    text = V2.replace("name: hello_v2\n", "").replace("instances: 1", "instances: some")
    code, message = error_of(pai(people.owner).post("v2/jobs", text, "text/yaml"), 400)
    assert code == "InvalidProtocolError"
    found = {each["keyword"]: each for each in json.loads(message)}
    assert found["required"]["message"] == "should have required property 'name'"
    assert found["type"]["dataPath"] == ".taskRoles.main.instances"


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("dockerImage: image", "dockerImage: other", "Prerequisite other does not exist."),
        (
            "prerequisites:\n",
            'prerequisites:\n  - {name: image, type: dockerimage, uri: "a"}\n',
            "Duplicate dockerimage prerequisites image.",
        ),
    ],
)
def test_submit_version_2_refused_says_sentence_of_check(
    people: People, pai: PaiOf, before: str, after: str, message: str
) -> None:
    answer = pai(people.owner).post("v2/jobs", V2.replace(before, after), "text/yaml")
    assert error_of(answer, 400) == ("InvalidProtocolError", message)
