"""PAI-DLC's services as its own SDK calls them, in the releases 1.4.0, 1.4.17 and 1.11.6."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from django.utils import timezone

from jobs.models import Job, ReplicaUsage, SanityCheck
from jobs.states import State
from quotas.accounts import access_keys, tokens
from quotas.models import Role
from tests.clients import environments
from tests.factories import (
    TEMPLATE_FILE,
    make_cluster,
    make_job,
    make_quota,
    make_user,
    make_workspace,
    replica_of,
)
from tests.serving import web_server

RELEASES: Final = ("1.4.0", "1.4.17", "1.11.6")
NEWEST: Final = "1.11.6"
PROXIES: Final = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")

PREFACE: Final = """
import json, os
from alibabacloud_pai_dlc20201203 import models
from alibabacloud_pai_dlc20201203.client import Client
from alibabacloud_credentials.client import Client as Credentials
from alibabacloud_tea_openapi.models import Config
from Tea.exceptions import TeaException

client = Client(Config(credential=Credentials(), region_id="cn-hangzhou",
                       endpoint=os.environ["ENDPOINT"], protocol="http"))
JOB, POD = os.environ["JOB"], os.environ["POD"]

def say(body):
    print(json.dumps(body.to_map()))

def refused(call, *arguments):
    try:
        call(*arguments)
    except TeaException as error:
        print(json.dumps({"code": error.code, "message": error.message, "status": error.statusCode}))
"""

Run = Callable[[str], list[Any]]
"""Runs Python with a client; returns the objects that it printed."""


def run_client(release: str, code: str, **environ: str) -> list[Any]:
    """What a program with the SDK of that release prints."""
    inherited = {name: value for name, value in os.environ.items() if name.lower() not in PROXIES}
    done = subprocess.run(
        [str(environments.python(f"dlc-{release}")), "-c", PREFACE + code],
        env={**inherited, **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def job(transactional_db: None) -> Job:
    """A running job of somebody who develops in the workspace vision."""
    owner = make_user("olga")
    workspace = make_workspace("vision", members={owner: Role.DEVELOPER})
    return make_job(State.RUNNING, owner=owner, quota=make_quota(workspace, make_cluster("local"), "default"))


@pytest.fixture
def run(job: Job, release: str) -> Iterator[Run]:
    """The client as the owner of the job."""
    issued = access_keys.issue(job.owner, scopes=tokens.SCOPES)
    with web_server() as url:
        environ = {
            "ENDPOINT": url.removeprefix("http://"),
            "ALIBABA_CLOUD_ACCESS_KEY_ID": issued.row.key_id,
            "ALIBABA_CLOUD_ACCESS_KEY_SECRET": issued.secret,
            "JOB": f"dlc{job.public_id}",
            "POD": f"dlc{job.public_id}-main-0",
        }
        yield lambda code: run_client(release, code, **environ)


@pytest.mark.parametrize("form", ["http://{}", "{}/", "{}/prefix"])
def test_sdk_takes_endpoint_with_scheme_slash_or_prefix(job: Job, release: str, form: str) -> None:
    issued = access_keys.issue(job.owner, scopes=tokens.SCOPES)
    with web_server() as url:
        listed, found = run_client(
            release,
            """
say(client.list_jobs(models.ListJobsRequest(display_name="", show_own=True)).body)
refused(client.get_job, "dlc1 x~*", *([models.GetJobRequest()] if hasattr(models, "GetJobRequest") else []))
""",
            ENDPOINT=form.format(url.removeprefix("http://")),
            ALIBABA_CLOUD_ACCESS_KEY_ID=issued.row.key_id,
            ALIBABA_CLOUD_ACCESS_KEY_SECRET=issued.secret,
            JOB="",
            POD="",
        )
    assert [each["JobId"] for each in listed["Jobs"]] == [f"dlc{job.public_id}"]
    assert found["code"] == "ResourceNotFound"


def test_sdk_finds_a_small_spec_first(run: Run) -> None:
    (specs,) = run(
        """
say(client.list_ecs_specs(models.ListEcsSpecsRequest(page_size=100, sort_by="Memory", order="asc")).body)
"""
    )
    assert specs["EcsSpecs"][0]["InstanceType"] == "ecs.s6-c1m2.small"
    assert specs["TotalCount"] == len(specs["EcsSpecs"])
    assert specs["RequestId"]


def test_sdk_reads_metrics_and_health_checks(run: Run, job: Job) -> None:
    now = timezone.now()
    points = [[now.timestamp() - 60, 30, 150]]
    ReplicaUsage.objects.create(replica=replica_of(job), at=now, memory_mib=512, points=points)
    phase = {
        "phase": "CheckInit",
        "status": "Succeeded",
        "message": "",
        "started_at": 1.5,
        "finished_at": 2.5,
    }
    SanityCheck.objects.create(attempt=replica_of(job).attempt, status="Succeeded", phases=[phase])
    metrics, checks, check = run(
        """
say(client.get_job_metrics(JOB, models.GetJobMetricsRequest(metric_type="GpuCoreUsage", time_step="1m")).body)
say(client.list_job_sanity_check_results(JOB, models.ListJobSanityCheckResultsRequest(order="desc")).body)
say(client.get_job_sanity_check_result(
    JOB, models.GetJobSanityCheckResultRequest(sanity_check_number=1, sanity_check_phase="CheckInit")).body)
"""
    )
    (pod,) = metrics["PodMetrics"]
    assert pod["PodId"] == f"dlc{job.public_id}-main-0"
    assert [each["Value"] for each in pod["Metrics"]] == [30]
    (item,) = check["SanityCheckResult"]
    assert (item["CheckNumber"], item["Phase"], item["Status"]) == (1, "CheckInit", "Succeeded")
    assert (checks["SanityCheckResults"], checks["TotalCount"]) == ([[item]], 1)
    assert checks["RequestID"]
    assert check["JobId"] == f"dlc{job.public_id}"
    assert check["RequestID"]


def test_sdk_gets_the_address_of_a_terminal(run: Run) -> None:
    (terminal,) = run(
        "say(client.get_web_terminal(JOB, POD, models.GetWebTerminalRequest(is_shared=True)).body)"
    )
    assert terminal["WebTerminalUrl"].startswith("ws://127.0.0.1:")


def test_sdk_creates_reads_stops_starts_and_lists_tensorboards(run: Run, job: Job) -> None:
    name, found, stopped, again, listed = run(
        """
made = client.create_tensorboard(models.CreateTensorboardRequest(
    display_name="curves", job_id=JOB, source_id=JOB, source_type="job", workspace_id="vision",
    summary_path="/root/data", max_running_time_minutes=60)).body
say(made)
name = made.tensorboard_id
say(client.get_tensorboard(name, models.GetTensorboardRequest(jod_id=JOB, workspace_id="vision")).body)
client.stop_tensorboard(name, models.StopTensorboardRequest(workspace_id="vision"))
say(client.get_tensorboard(name, models.GetTensorboardRequest(workspace_id="vision")).body)
client.start_tensorboard(name, models.StartTensorboardRequest(workspace_id="vision"))
say(client.get_tensorboard(name, models.GetTensorboardRequest(workspace_id="vision")).body)
say(client.list_tensorboards(models.ListTensorboardsRequest(
    workspace_id="vision", show_own=True, verbose=True, job_id=JOB, status="Creating")).body)
"""
    )
    assert name["JobId"] == f"dlc{job.public_id}"
    assert (found["Status"], found["DisplayName"]) == ("Creating", "curves")
    assert found.get("MaxRunningTimeMinutes", 60) == 60  # 1.4.0 does not read it
    assert "to=tensorboard" in found["TensorboardUrl"]
    assert (stopped["Status"], again["Status"]) == ("Stopped", "Creating")
    assert [each["TensorboardId"] for each in listed["Tensorboards"]] == [name["TensorboardId"]]


def test_sdk_deletes_a_stopped_tensorboard(run: Run) -> None:
    conflict, deleted, gone = run(
        """
name = client.create_tensorboard(models.CreateTensorboardRequest(job_id=JOB)).body.tensorboard_id
request = models.DeleteTensorboardRequest(workspace_id="vision")
refused(client.delete_tensorboard, name, request)
client.stop_tensorboard(name, models.StopTensorboardRequest())
say(client.delete_tensorboard(name, request).body)
refused(client.get_tensorboard, name, models.GetTensorboardRequest())
"""
    )
    assert (conflict["code"], conflict["status"]) == ("OperationConflict", 409)
    assert deleted["TensorboardId"].startswith("tensorboard-")
    assert (gone["code"], gone["status"]) == ("ResourceNotFound", 404)


def test_sdk_raises_what_is_refused(run: Run) -> None:
    errors = run(
        """
refused(client.get_token, models.GetTokenRequest(target_id=JOB, target_type="job"))
refused(client.get_tensorboard_shared_url, "tensorboard-x", models.GetTensorboardSharedUrlRequest())
refused(client.get_job_metrics, JOB, models.GetJobMetricsRequest(metric_type="Nothing"))
refused(client.get_job_metrics, "dlcnobody12345", models.GetJobMetricsRequest(metric_type="MemoryUsage"))
refused(client.get_web_terminal, JOB, POD + "9", models.GetWebTerminalRequest())
"""
    )
    assert [(each["code"], each["status"]) for each in errors] == [
        ("UnsupportedOperation", 400),
        ("UnsupportedOperation", 400),
        ("InvalidParameter", 400),
        ("ResourceNotFound", 404),
        ("ResourceNotFound", 404),
    ]


@pytest.mark.parametrize("release", [NEWEST], indirect=True)
def test_newest_sdk_creates_lists_changes_and_deletes_templates(run: Run) -> None:
    made, listed, changed, all_versions, default, deleted = run(
        f"""
content = json.dumps({json.loads(TEMPLATE_FILE)!r})
made = client.create_job_template(models.CreateJobTemplateRequest(
    template_name="training", content=content, workspace_id="vision", description="d",
    constraints={{"$.UserCommand": "locked"}}, metadata={{"team": "a"}})).body
say(made)
name = made.template_id
say(client.list_job_templates(models.ListJobTemplatesRequest(workspace_id="vision")).body)
say(client.update_job_template(name, models.UpdateJobTemplateRequest(content=content)).body)
say(client.get_job_template(name, models.GetJobTemplateRequest(version="all")).body)
say(client.set_job_template_default_version(
    name, models.SetJobTemplateDefaultVersionRequest(version=2)).body)
say(client.delete_job_template(name, models.DeleteJobTemplateRequest()).body)
"""
    )
    assert (made["Version"], made["Metadata"]) == (1, {"team": "a"})
    assert [each["TemplateName"] for each in listed["JobTemplates"]] == ["training"]
    assert (changed["VersionCreated"], changed["DefaultVersion"]) == (True, 1)
    assert [each["Version"] for each in all_versions["Versions"]] == [2, 1]
    assert default["DefaultVersion"] == 2
    assert deleted["TemplateId"] == made["TemplateId"]


@pytest.mark.parametrize("release", [NEWEST], indirect=True)
def test_newest_sdk_raises_what_has_no_meaning_here(run: Run) -> None:
    errors = run(
        """
tag = models.TagResourcesRequestTag(key="k", value="v")
refused(client.tag_resources, models.TagResourcesRequest(
    region_id="cn-hangzhou", resource_id=[JOB], resource_type="Job", tag=[tag]))
refused(client.untag_resources, models.UntagResourcesRequest(resource_id=[JOB], resource_type="Job"))
refused(client.create_signal, JOB, models.CreateSignalRequest(signal="SIGTERM"))
refused(client.list_signals, JOB, models.ListSignalsRequest())
refused(client.get_metrics, models.GetMetricsRequest(job_id=JOB))
refused(client.list_ray_history_servers, models.ListRayHistoryServersRequest(workspace_id="vision"))
refused(client.create_ray_history_server, models.CreateRayHistoryServerRequest(workspace_id="vision"))
"""
    )
    assert [each["code"] for each in errors] == ["UnsupportedOperation"] * 7
