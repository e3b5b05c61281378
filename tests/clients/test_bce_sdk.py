"""Baidu's own SDK runs jobs on a console with the real local backend."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from django.conf import LazySettings

from jobs.models import Job
from quotas.accounts import access_keys, tokens
from quotas.models import Cluster, User
from tests.clients import environments
from tests.factories import make_site_storage
from tests.seeds import FOLDER
from tests.waiting import wait_for

pytestmark = pytest.mark.once

SECONDS: Final = 120

PREFACE: Final = """
import json, os, time
from baidubce.auth.bce_credentials import BceCredentials
from baidubce.bce_client_configuration import BceClientConfiguration
from baidubce.exception import BceHttpClientError
from baidubce.services.aihc.aihc_client import AihcClient
from baidubce.utils import Expando

def make(secret=os.environ["SECRET"]):
    credentials = BceCredentials(os.environ["KEY"], secret)
    return AihcClient(BceClientConfiguration(credentials=credentials, endpoint=os.environ["ENDPOINT"]))

client = make()
pool, queue = "local", "default"

def plain(value):
    if isinstance(value, list):
        return [plain(each) for each in value]
    if hasattr(value, "__dict__"):
        return {key: plain(each) for key, each in value.__dict__.items() if key != "metadata"}
    return value

def say(response):
    print(json.dumps(plain(response)))

def refused(call, *arguments, **named):
    try:
        call(*arguments, **named)
    except BceHttpClientError as error:
        print(json.dumps([error.status_code, error.code, str(error.last_error), bool(error.request_id)]))

def wait(job_id, *statuses):
    for _number in range(600):
        found = client.job.DescribeJob(pool, queue, job_id)
        if found.status in statuses:
            return found
        if found.status in {"Succeeded", "Failed", "Stopped"}:
            break
        time.sleep(0.1)
    events = client.job.DescribeJobEvents(pool, queue, job_id).events
    raise SystemExit("\\n".join([found.status, *(event.message for event in events)]))

spec = {
    "image": "python:3.12",
    "replicas": 1,
    "resources": [{"name": "cpu", "quantity": "1"}, {"name": "memory", "quantity": "0.25"}],
    "envs": [{"name": "WORD", "value": "hello"}],
}
"""

Run = Callable[[str], list[Any]]
"""Runs Python with a client; returns the objects that it printed."""


@pytest.fixture
def cluster(cluster: Cluster, settings: LazySettings) -> Iterator[Cluster]:
    """The same with a folder in the place of the file system that the page's sample mounts."""
    with tempfile.TemporaryDirectory(prefix="jc-") as folder:
        Path(folder).chmod(0o777)  # jobs may have users of their own
        shared = {"folders": {folder: {"workspaces": ["*"], "write": True}}}
        make_site_storage("pfs://pfs-pxE6jz", folder)
        settings.CONSOLE_LOCAL = {**settings.CONSOLE_LOCAL, **shared}
        yield cluster


@pytest.fixture
def run(console: str, person: User) -> Run:
    interpreter = environments.python("bce")
    issued = access_keys.issue(person, scopes=tokens.SCOPES)
    inherited = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    environ = {**inherited, "ENDPOINT": console, "KEY": issued.row.key_id, "SECRET": issued.secret}

    def call(code: str) -> list[Any]:
        done = subprocess.run(
            [str(interpreter), "-c", PREFACE + textwrap.dedent(code)],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return call


def test_sdk_runs_a_job_to_its_end(run: Run) -> None:
    created, jobs, found, events, pod_events, logs, nodes, metrics, stopped, deleted = run(
        """
        command = 'echo "$WORD from $AIHC_JOB_NAME"'
        created = client.job.CreateJob(pool, queue, "hello", command, spec, priority="high")
        say(created)
        say(client.job.DescribeJobs(pool, keywordType="name", keyword="hel"))
        wait(created.jobId, "Succeeded", "Failed")
        found = client.job.DescribeJob(pool, queue, created.jobId, needDetail=True)
        say(found)
        pod = found.pods[0].objectMeta.name
        say(client.job.DescribeJobEvents(pool, queue, created.jobId, startTime="1", endTime="4000000000"))
        say(client.job.DescribeJobPodEvents(pool, queue, created.jobId, pod))
        say(client.job.DescribeJobLogs(pool, queue, created.jobId, pod, maxLines=100, chunkSize=1))
        say(client.job.DescribeJobNodes(pool, queue, created.jobId))
        say(client.job.DescribeJobMetrics(pool, queue, created.jobId, "GpuUsage", timeStep="15"))
        say(client.job.StopJob(pool, queue, created.jobId))
        say(client.job.DeleteJob(pool, queue, created.jobId))
        """
    )

    assert created["jobName"] == "hello"
    assert [job["jobId"] for job in jobs["jobs"]] == [created["jobId"]]
    assert jobs["totalCount"] == 1
    assert (found["status"], found["priority"]) == ("Succeeded", "high")
    assert found["finishedAt"]
    assert "SuccessfulCreateJob" in [event["reason"] for event in events["events"]]
    assert [event["reason"] for event in pod_events["events"]][-1] == "Completed"
    assert logs["logs"][0].startswith("hello from")
    assert logs["nextMarker"] == ""
    assert len(nodes["nodes"]) == 1
    assert metrics["metrics"] == [] or metrics["metrics"][0]["podName"] == found["pods"][0]["podName"]
    assert stopped["jobId"] == deleted["jobId"] == created["jobId"]
    assert Job.objects.get().deleted_at is not None


def test_sdk_stops_a_running_job_and_opens_its_terminal(run: Run) -> None:
    terminal, found = run(
        """
        created = client.job.CreateJob(pool, queue, "long", "sleep 600", spec)
        wait(created.jobId, "Running")
        pod = created.jobId + "-worker-0"
        say(client.job.DescribeJobWebterminal(pool, queue, created.jobId, pod, handshakeTimeoutSecond="30"))
        client.job.StopJob(pool, queue, created.jobId)
        say(wait(created.jobId, "Stopped"))
        """
    )

    assert terminal["webTerminalUrl"].startswith("ws://127.0.0.1:")
    assert found["status"] == "Stopped"


def test_sdk_jobs_of_one_second_are_all_created(run: Run) -> None:
    run(
        """
        for number in range(4):
            client.job.CreateJob(pool, queue, f"job-{number}", "true", spec)
        """
    )

    assert sorted(Job.objects.values_list("name", flat=True)) == [f"job-{number}" for number in range(4)]
    wait_for(lambda: not Job.objects.exclude(state="SUCCEEDED").exists())


def test_sdk_reads_pools_and_queues(run: Run) -> None:
    pools, pool, overview, configuration, queues, queue = run(
        """
        say(client.resource_pool.DescribeResourcePools("common", keyword="~ *", order="DESC"))
        say(client.resource_pool.DescribeResourcePool(pool))
        say(client.resource_pool.DescribeResourcePoolOverview())
        say(client.resource_pool.DescribeResourcePoolConfiguration(pool))
        say(client.resource_pool.DescribeQueues(pool, pageNumber=1, pageSize=10))
        say(client.resource_pool.DescribeQueue(queue))
        """
    )

    assert (pools["totalCount"], pools["resourcePools"]) == (0, [])
    assert pool["resourcePoolId"] == "local"
    assert overview["resourcePoolsStatisticWithType"][0]["nodesStatistic"]["totalCount"] == 1
    assert configuration["resourcePoolId"] == "local"
    assert [each["queueId"] for each in queues["queues"]] == ["default"]
    assert queue["queueName"] == "default"


def test_sdk_reads_errors(run: Run) -> None:
    errors = run(
        """
        refused(client.job.DescribeJob, pool, queue, "job-aaaaaaaaaaaa")
        refused(client.job.CreateJob, pool, queue, "x", "true", {"image": "a", "replicas": "many"})
        refused(client.job.CreateJob, "elsewhere", queue, "x", "true", spec)
        refused(make("another secret").job.DescribeJobs, pool)
        refused(client.job.ModifyJob, pool, queue, "job-aaaaaaaaaaaa", "highest")
        """
    )

    assert [error[:2] for error in errors] == [
        [404, "ResourceNotFound"],
        [400, "InvalidParam"],
        [400, "InvalidParam"],
        [400, "SignatureDoesNotMatch"],
        [400, "InvalidParam"],
    ]
    assert all(error[3] for error in errors)
    assert not Job.objects.exists()


def test_sdk_sends_the_sample_of_the_page(run: Run) -> None:
    sample = FOLDER / "aihc-pytorchjob.json"

    created, found, stopped = run(
        f"""
        created = client.job._send_job_request(b"POST", b"/", body=open({str(sample)!r}).read(),
            params={{"action": "CreateJob", "resourcePoolId": "local"}})
        say(created)
        say(wait(created.jobId, "Running"))
        client.job.StopJob(pool, queue, created.jobId)
        say(wait(created.jobId, "Stopped"))
        """
    )

    assert created["jobName"] == "api-0513-2"
    assert (found["command"], found["queue"]) == ("sleep 1d", "default")
    assert found["datasources"][0]["mountPath"] == "/mnt/cluster"
    assert stopped["jobId"] == created["jobId"]
