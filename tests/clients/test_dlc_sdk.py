"""PAI-DLC's own SDK runs jobs here, in the releases 1.4.0, 1.4.17 and 1.11.6, on the real local backend."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from typing import Any, Final

import pytest

from jobs.models import Job
from jobs.states import State
from quotas.accounts import access_keys, tokens
from quotas.models import Cluster, Role, User
from tests.clients import environments
from tests.factories import make_job, make_quota, make_user, make_workspace
from tests.seeds import SEEDS

pytestmark = pytest.mark.once

RELEASES: Final = ("1.4.0", "1.4.17", "1.11.6")
NEWEST: Final = "1.11.6"
PROXIES: Final = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")

PREFACE: Final = """
import asyncio, json, os, time
from alibabacloud_pai_dlc20201203 import models
from alibabacloud_pai_dlc20201203.client import Client
from alibabacloud_credentials.client import Client as Credentials
from alibabacloud_tea_openapi.models import Config
from Tea.exceptions import TeaException

client = Client(Config(credential=Credentials(), region_id="cn-hangzhou",
                       endpoint=os.environ["ENDPOINT"], protocol="http"))
ENDS = ("Succeeded", "Failed", "Stopped")

def say(name, value):
    print(json.dumps([name, value.to_map() if hasattr(value, "to_map") else value]))

def refused(name, call, *arguments):
    try:
        call(*arguments)
    except TeaException as error:
        request_id = (error.data or {}).get("RequestId")
        say(name, {"code": error.code, "message": error.message, "status": error.statusCode,
                   "request_id": request_id})
    else:
        say(name, "accepted")

def request_of(body):
    return models.CreateJobRequest().from_map(body)

def body_of(name, command, **more):
    spec = {"Type": "Worker", "PodCount": 1, "Image": "registry.example.com/torch:2.4",
            "ResourceConfig": {"CPU": "1", "Memory": "512Mi"}}
    return {"DisplayName": name, "JobType": "PyTorchJob", "JobSpecs": [spec], "UserCommand": command,
            "WorkspaceId": "vision", "ResourceId": "default", **more}

def get(job):
    return client.get_job(job, models.GetJobRequest(need_detail=True)).body

def wait(job, *statuses):
    until = time.monotonic() + 60
    while get(job).status not in statuses:
        assert time.monotonic() < until, get(job).to_map()
        time.sleep(0.2)
    return get(job)

def names(**filters):
    return [each.display_name for each in client.list_jobs(models.ListJobsRequest(**filters)).body.jobs]
"""

LIFE: Final = """
job = client.create_job(request_of(body_of(
    "greets", 'echo "hello $WHOM"', Envs={"WHOM": "world"},
    Settings={"Tags": {"team": "a b", "2026": "x"}}))).body
say("created", job)
job = job.job_id
sleeper = client.create_job(request_of(body_of("sleeps", "exec sleep 600"))).body.job_id
say("succeeded", wait(job, *ENDS))
pod = get(job).pods[0]
say("pod", pod)
say("logs", client.get_pod_logs(job, pod.pod_id, models.GetPodLogsRequest(max_lines=10)).body)
say("job_events", client.get_job_events(job, models.GetJobEventsRequest(max_events_num=100)).body)
say("pod_events", client.get_pod_events(
    job, pod.pod_id, models.GetPodEventsRequest(pod_uid=pod.pod_uid)).body)

say("lists", {
    "name": names(display_name="greet"),
    "status": names(status="Succeeded"),
    "tags": names(tags={"team": "a b", "2026": "x"}),
    "other tag": names(tags={"2026": "y"}),
    "workspace": names(workspace_id="vision", order="asc", sort_by="DisplayName"),
    "elsewhere": names(workspace_id="nowhere"),
    "own": names(show_own=True, job_type="PyTorchJob", order="asc"),
    "pages": [names(page_number=number, page_size=1, order="asc", show_own=True) for number in (1, 2, 3)],
})
say("page", client.list_jobs(models.ListJobsRequest(page_size=1, show_own=True)).body)

change = models.UpdateJobRequest().from_map({"Accessibility": "PUBLIC"})
say("updated", client.update_job(sleeper, change).body)
wait(sleeper, "Running")
refused("too early", client.delete_job, sleeper)
say("stop", client.stop_job(sleeper).body)
say("stopped", wait(sleeper, *ENDS))
say("stop again", client.stop_job(sleeper).body)
say("deleted", client.delete_job(sleeper).body)
refused("gone", client.get_job, sleeper, models.GetJobRequest())

refused("wrong", client.create_job, request_of(body_of("wrong", "", JobType="Nothing", Priority=12)))
refused("empty", client.create_job, models.CreateJobRequest())
refused("peer's log", client.get_pod_logs, os.environ["PEER"], os.environ["PEER"] + "-main-0",
        models.GetPodLogsRequest())
refused("peer's stop", client.stop_job, os.environ["PEER"])
refused("stranger's", client.get_job, os.environ["STRANGER"], models.GetJobRequest())
"""

NEWEST_LIFE: Final = """
from darabonba.runtime import RuntimeOptions

async def run():
    request = request_of(body_of("async", "true"))
    made = await client.create_job_with_options_async(request, {}, RuntimeOptions())
    return (await client.get_job_async(made.body.job_id, models.GetJobRequest())).body

made = asyncio.run(run())
say("async", made)
wait(made.job_id, *ENDS)
for name, body in json.loads(os.environ["SEEDS"]).items():
    refused(name, client.create_job, request_of(body))
"""


_OF_TFJOB: Final = [
    "/JobSpecs/0: Local has no GPUs.",
    "/DataSources/0/DataSourceId: Dataset d-*****",
    "/CodeSource/CodeSourceId: Code code-****",
]
LACKING: Final = {
    "000-dlc-sdk-public.json": ["workspace “12345”"],
    "000-dlc-sdk-public.json in vision": ["/DataSources/0/DataSourceId: Dataset d-example"],
    "001-dlc-tfjob.json": _OF_TFJOB,
    "001-dlc-tfjob.json in vision": _OF_TFJOB,
    "003-dlc-sdk-spot-discount.json": ["workspace “12****”"],
    "003-dlc-sdk-spot-price.json": ["workspace “12****”"],
}
"""Sentences about what this console lacks for a sample: as it is printed, and with a workspace from here."""


@dataclass(frozen=True, slots=True)
class Sdk:
    """The client of one release as one person, with the ids of jobs that it may not read."""

    release: str
    environ: dict[str, str]

    def run(self, code: str, **environ: str) -> dict[str, Any]:
        """Return what a program says, by name."""
        inherited = {name: value for name, value in os.environ.items() if name.lower() not in PROXIES}
        done = subprocess.run(
            [str(environments.python(f"dlc-{self.release}")), "-c", PREFACE + code],
            env={**inherited, **self.environ, **environ},
            capture_output=True,
            text=True,
            check=False,
            timeout=150,
        )
        assert done.returncode == 0, done.stderr
        return dict(json.loads(line) for line in done.stdout.splitlines())


@pytest.fixture
def sdk(person: User, cluster: Cluster, console: str, request: pytest.FixtureRequest) -> Sdk:
    """The client of a release as olga, who shares the workspace vision with a peer."""
    quota = person.memberships.get().workspace.quotas.get()
    peer, stranger = make_user("peer"), make_user("stranger")
    quota.workspace.memberships.create(user=peer, role=Role.DEVELOPER)
    speech = make_quota(make_workspace("speech", members={stranger: Role.DEVELOPER}), cluster, "batch")
    issued = access_keys.issue(person, scopes=tokens.SCOPES)
    peers = make_job(State.SUCCEEDED, owner=peer, quota=quota)
    strangers = make_job(State.SUCCEEDED, owner=stranger, quota=speech)
    environ = {
        "ENDPOINT": console.removeprefix("http://"),
        "ALIBABA_CLOUD_ACCESS_KEY_ID": issued.row.key_id,
        "ALIBABA_CLOUD_ACCESS_KEY_SECRET": issued.secret,
        "PEER": f"dlc{peers.public_id}",
        "STRANGER": f"dlc{strangers.public_id}",
    }
    return Sdk(request.param, environ)


@pytest.mark.parametrize("sdk", RELEASES, indirect=True)
def test_sdk_runs_jobs_from_creation_to_deletion(sdk: Sdk) -> None:
    said = sdk.run(LIFE)
    _check_first_job(said)
    _check_lists(said)
    _check_stopped_job(said)
    _check_refusals(said)


def _check_first_job(said: dict[str, Any]) -> None:
    job = said["created"]["JobId"]
    assert said["created"]["RequestId"]
    assert (said["succeeded"]["JobId"], said["succeeded"]["Status"]) == (job, "Succeeded")
    assert (said["succeeded"]["ReasonCode"], said["succeeded"]["Envs"]) == ("JobSucceeded", {"WHOM": "world"})
    assert said["succeeded"]["JobSpecs"][0]["PodCount"] == 1
    pod = said["pod"]
    assert (pod["PodId"], pod["Type"], pod["Status"]) == (f"{job}-worker-0", "Worker", "Succeeded")
    assert (said["logs"]["PodId"], said["logs"]["PodUid"]) == (pod["PodId"], pod["PodUid"])
    assert "hello world" in said["logs"]["Logs"]
    assert said["job_events"]["JobId"] == job
    assert len(said["job_events"]["Events"]) >= 3
    assert (said["pod_events"]["JobId"], said["pod_events"]["PodId"]) == (job, pod["PodId"])


def _check_lists(said: dict[str, Any]) -> None:
    lists = said["lists"]
    assert lists["name"] == ["greets"]
    assert "greets" in lists["status"]
    assert "sleeps" not in lists["status"]
    assert (lists["tags"], lists["other tag"], lists["elsewhere"]) == (["greets"], [], [])
    assert {"greets", "sleeps"} < set(lists["workspace"])
    assert lists["own"] == ["greets", "sleeps"]
    assert lists["pages"] == [["greets"], ["sleeps"], []]
    assert (said["page"]["TotalCount"], len(said["page"]["Jobs"])) == (2, 1)


def _check_stopped_job(said: dict[str, Any]) -> None:
    job = said["updated"]["JobId"]
    assert (said["too early"]["code"], said["too early"]["status"]) == ("OperationConflict", 409)
    assert (said["stopped"]["Status"], said["stopped"]["ReasonCode"]) == ("Stopped", "JobStoppedByUser")
    assert said["stopped"].get("Accessibility", "PUBLIC") == "PUBLIC"  # 1.4.0 does not read it
    for name in ("stop", "stop again", "deleted"):
        assert said[name].keys() == {"JobId", "RequestId"}
        assert said[name]["JobId"] == job
    assert Job.objects.get(name="sleeps").deleted_at


def _check_refusals(said: dict[str, Any]) -> None:
    expected = {
        "gone": ("ResourceNotFound", 404),
        "wrong": ("InvalidParameter", 400),
        "empty": ("InvalidParameter", 400),
        "peer's log": ("NoPermission", 403),
        "peer's stop": ("NoPermission", 403),
        "stranger's": ("ResourceNotFound", 404),
    }
    for name, error in expected.items():
        assert (said[name]["code"], said[name]["status"]) == error, said[name]
        assert said[name]["request_id"] in said[name]["message"]
    for field in ("JobType", "Priority", "UserCommand"):
        assert f"/{field}: " in said["wrong"]["message"]
    assert "JobSpecs" in said["empty"]["message"]


@pytest.mark.parametrize("sdk", [NEWEST], indirect=True)
def test_newest_sdk_awaits_answers_and_names_what_samples_lack_here(sdk: Sdk) -> None:
    said = sdk.run(NEWEST_LIFE, SEEDS=json.dumps(_samples()))
    assert said["async"]["DisplayName"] == "async"
    for name, sentences in LACKING.items():
        assert said[name] != "accepted", name
        assert (said[name]["code"], said[name]["status"]) == ("InvalidParameter", 400)
        for sentence in sentences:
            assert sentence in said[name]["message"], name
    accepted = {name for name, answer in said.items() if answer == "accepted"}
    assert accepted == _samples().keys() - LACKING.keys()


def printed_samples() -> dict[str, dict[str, Any]]:
    """Return the samples of the vendor's pages as they are printed."""
    return {str(each): json.loads(_strip_comma(each.text)) for each in SEEDS if each.dialect == "dlc"}


def _samples() -> dict[str, dict[str, Any]]:
    """Return the samples, each as it is printed and with a workspace from here."""
    printed = printed_samples()
    placed = {f"{name} in vision": {**body, "WorkspaceId": "vision"} for name, body in printed.items()}
    return {**printed, **placed}


def _strip_comma(text: str) -> str:
    """Return a sample without the comma behind the last field of an object."""
    return re.sub(r",(\s*})", r"\1", text)
