"""Events, logs, metrics and nodes of jobs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from jobs.lifecycle import transitions
from jobs.logs import log_store, redaction
from jobs.models import Attempt, Event, Job, LogChunk, LogStream, Replica, ReplicaUsage
from jobs.states import State
from tests.factories import make_job, replica_of
from tests.jobs.api.conftest import People
from tests.jobs.api.vendors.aihc.conftest import Aihc, read, refused

pytestmark = pytest.mark.django_db

IN_POOL = {"resourcePoolId": "local", "queueID": "default"}


@pytest.fixture
def job(people: People) -> Job:
    return make_job(State.RUNNING, owner=people.owner, quota=people.quota)


def write_log(job: Job, text: str, *, is_open: bool = False) -> None:
    """Store a sealed log of the job's first replica, or a growing one that is read where it lies."""
    row = LogStream.objects.get(attempt__job=job)
    folder = log_store.jobs_root() / job.public_id
    folder.mkdir(parents=True)
    (folder / "output").write_text(text)
    LogStream.objects.filter(pk=row.pk).update(live_path=f"{job.public_id}/output")
    row.refresh_from_db()
    if not is_open:
        log_store.seal(row)


@pytest.fixture
def job_folder(settings: Any, tmp_path: Any) -> None:
    settings.CONSOLE_SHARED_FOLDER = tmp_path
    settings.STORAGES = {
        **settings.STORAGES,
        "logs": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": tmp_path / "logs"},
        },
    }


def logs(owner: Aihc, job: Job, **body: Any) -> Any:
    body = {"jobId": f"job-{job.public_id}", "podName": f"job-{job.public_id}-main-0", **body}
    return read(owner.v2("DescribeJobLogs", body, **IN_POOL))


# --- logs --------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("job_folder")
@pytest.mark.parametrize("is_open", [True, False])
def test_job_logs_are_paged_to_the_end(owner: Aihc, job: Job, is_open: bool) -> None:
    lines = [f"line {number}" for number in range(25)]
    write_log(job, "\n".join(lines) + "\n", is_open=is_open)

    page = logs(owner, job, maxLines=10)
    found = page["logs"]
    while page["nextMarker"]:
        page = logs(owner, job, maxLines=10, marker=page["nextMarker"])
        found += page["logs"]

    assert found == lines
    assert page["podName"] == f"job-{job.public_id}-main-0"


@pytest.mark.usefixtures("job_folder")
def test_job_logs_unfinished_line_waits_for_its_end(owner: Aihc, job: Job) -> None:
    write_log(job, "one\ntwo\nthr", is_open=True)

    assert logs(owner, job)["logs"] == ["one", "two"]


@pytest.mark.usefixtures("job_folder")
def test_job_logs_last_line_without_newline_is_answered(owner: Aihc, job: Job) -> None:
    write_log(job, "one\ntwo")

    assert logs(owner, job)["logs"] == ["one", "two"]


@pytest.mark.usefixtures("job_folder")
def test_job_logs_keywords_select_lines(owner: Aihc, job: Job) -> None:
    write_log(job, "loss 1\nstep\nLOSS 2\nstep\nloss 3\n")

    page = logs(owner, job, keywords="loss", maxLines=2)
    rest = logs(owner, job, keywords="loss", marker=page["nextMarker"])

    assert page["logs"] == ["loss 1", "LOSS 2"]
    assert (rest["logs"], rest["nextMarker"]) == (["loss 3"], "")


@pytest.mark.usefixtures("job_folder")
def test_job_logs_chunk_size_joins_lines(owner: Aihc, job: Job) -> None:
    write_log(job, "a\nb\nc\n")

    assert logs(owner, job, chunkSize=2)["logs"] == ["a\nb", "c"]


@pytest.mark.usefixtures("job_folder")
def test_job_logs_outside_of_time_range_are_empty(owner: Aihc, job: Job) -> None:
    write_log(job, "a\n")
    now = timezone.now().timestamp()

    assert logs(owner, job, endTime=str(int(now) - 3600))["logs"] == []
    assert logs(owner, job, startTime=int(now * 1000) + 3_600_000)["logs"] == []
    assert logs(owner, job, startTime=str(int(now) - 60), endTime="2099-01-01T00:00:00Z")["logs"] == ["a"]


@pytest.mark.usefixtures("job_folder")
def test_job_logs_secrets_are_masked(owner: Aihc, job: Job) -> None:
    redaction.store_secrets([(Attempt.objects.get(job=job), ["hunter2-hunter2"])])
    write_log(job, "key hunter2-hunter2\n", is_open=True)

    assert logs(owner, job)["logs"] == ["key " + "*" * 15]


@pytest.mark.usefixtures("job_folder")
def test_pod_logs_v1_are_the_last_lines(owner: Aihc, job: Job) -> None:
    write_log(job, "".join(f"{number}\n" for number in range(20)))
    path = f"/api/v1/aijobs/job-{job.public_id}/pods/job-{job.public_id}-main-0/logs"

    found = read(owner.send("GET", path, resourcePoolId="local", maxLines=3))["result"]

    assert found["logs"] == ["17", "18", "19"]
    assert LogChunk.objects.exists()


@pytest.mark.parametrize("pod", ["", "x", "main-1", "main-0'", "other-0", "x" * 60_000, "main-9999999"])
def test_job_logs_unknown_pod_is_not_found(owner: Aihc, job: Job, pod: str) -> None:
    body = {"jobId": f"job-{job.public_id}", "podName": pod}

    refused(owner.v2("DescribeJobLogs", body, **IN_POOL), 404, "ResourceNotFound")


@pytest.mark.parametrize(
    "body",
    [
        {"marker": "x"},
        {"marker": "-1"},
        {"maxLines": 0},
        {"chunkSize": 0},
        {"startTime": "soon"},
        {"endTime": [1]},
        {"startTime": True},
        {"startTime": "9" * 15},
        {"startTime": "0001-01-01T00:00:00+23:00"},
    ],
)
def test_job_logs_wrong_values_are_refused(owner: Aihc, job: Job, body: dict[str, Any]) -> None:
    body = {"jobId": f"job-{job.public_id}", "podName": "main-0", **body}

    refused(owner.v2("DescribeJobLogs", body, **IN_POOL), 400, "InvalidParam")


# --- events ------------------------------------------------------------------------------------------------


def test_job_events_have_reasons_and_times(owner: Aihc, job: Job) -> None:
    transitions.record(job, Event.Kind.SUBMITTED, params={"dialect": "aihc"})
    transitions.record(
        job, Event.Kind.REPLICA_ENDED, params={"role": "main", "index": 0, "state": "FAILED", "exit_code": 3}
    )

    found = read(owner.v2("DescribeJobEvents", {"jobId": f"job-{job.public_id}"}, **IN_POOL))

    assert found["total"] == 2
    first, last = found["events"]
    assert (first["reason"], first["type"], first["count"]) == ("SuccessfulCreateJob", "Normal", 1)
    assert (last["reason"], last["type"]) == ("Completed", "Warning")
    assert f"job-{job.public_id}-main-0" in last["message"]
    assert first["firstTimestamp"].endswith("Z")


def test_job_events_are_within_time_range(owner: Aihc, job: Job) -> None:
    transitions.record(job, Event.Kind.SUBMITTED)
    later = str(int((timezone.now() + timedelta(hours=1)).timestamp()))

    body = {"jobId": f"job-{job.public_id}"}
    assert read(owner.v2("DescribeJobEvents", {**body, "startTime": later}, **IN_POOL))["events"] == []
    assert read(owner.v2("DescribeJobEvents", {**body, "endTime": later}, **IN_POOL))["total"] == 1


def test_pod_events_are_of_that_pod_alone(owner: Aihc, job: Job) -> None:
    transitions.record(job, Event.Kind.SUBMITTED)
    for index in (0, 1):
        transitions.record(
            job, Event.Kind.REPLICA_STARTED, params={"role": "main", "index": index, "node": "n"}
        )

    found = read(
        owner.v2("DescribePodEvents", {"jobId": f"job-{job.public_id}", "podName": "main-0"}, **IN_POOL)
    )

    assert [event["reason"] for event in found["events"]] == ["Started"]


def test_job_events_v1_are_in_and_beside_result(owner: Aihc, job: Job) -> None:
    transitions.record(job, Event.Kind.SUBMITTED)

    found = read(owner.send("GET", f"/api/v1/aijobs/job-{job.public_id}/events", resourcePoolId="local"))

    assert found["events"] == found["result"]["events"]
    assert found["total"] == found["result"]["total"] == 1


# --- metrics and nodes -------------------------------------------------------------------------------------


def measure(job: Job) -> float:
    now = float(int(timezone.now().timestamp()))
    points = [[now - 600, 10.0, 50.0, 2], [now - 300, 90.5, 50.0, 3]]
    ReplicaUsage.objects.create(replica=replica_of(job), at=timezone.now(), memory_mib=3, points=points)
    return now


def metrics(owner: Aihc, job: Job, kind: str, **body: Any) -> Any:
    body = {"jobId": f"job-{job.public_id}", "metricType": kind, **body}
    return read(owner.v2("DescribeJobMetrics", body, **IN_POOL))["metrics"]


def test_job_metrics_sample_what_was_measured(owner: Aihc, job: Job) -> None:
    now = measure(job)

    (pod,) = metrics(
        owner, job, "GpuUsage", startTime=str(int(now - 600)), endTime=str(int(now)), timeStep="200"
    )

    assert pod["podName"] == f"job-{job.public_id}-main-0"
    assert [(point["time"] - now, point["value"]) for point in pod["metrics"]] == [
        (-600, "10"),
        (-400, "10"),
        (-200, "90.5"),
        (0, "90.5"),
    ]


def test_job_metrics_memory_is_in_bytes(owner: Aihc, job: Job) -> None:
    measure(job)

    (pod,) = metrics(owner, job, "MemoryAllocation")

    assert {point["value"] for point in pod["metrics"]} == {"2.09715e+06", "3.14573e+06"}


def test_job_metrics_unmeasured_type_is_empty(owner: Aihc, job: Job) -> None:
    measure(job)

    assert metrics(owner, job, "NVLinkSendDataRate") == []


def test_job_metrics_before_measurement_are_empty(owner: Aihc, job: Job) -> None:
    assert metrics(owner, job, "GpuUsage") == []


def test_job_metrics_points_are_bounded(owner: Aihc, job: Job) -> None:
    measure(job)

    (pod,) = metrics(owner, job, "CpuUsage", startTime="1", timeStep=1)

    assert 0 < len(pod["metrics"]) <= 1000


def test_job_nodes_are_named_once(owner: Aihc, job: Job) -> None:
    replica = replica_of(job)
    Replica.objects.create(attempt=replica.attempt, run=1, ordinal=1, role="main", index=1, node=replica.node)

    found = read(owner.v2("DescribeJobNodes", {"jobId": f"job-{job.public_id}"}, **IN_POOL))
    old = read(owner.send("GET", f"/api/v1/aijobs/job-{job.public_id}/nodes", resourcePoolId="local"))

    assert found["nodes"] == ["localhost"]
    assert old["result"] == {"jobId": f"job-{job.public_id}", "nodeName": ["localhost"]}
