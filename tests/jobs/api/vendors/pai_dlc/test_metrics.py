"""GetJobMetrics and the health checks of PAI-DLC."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from jobs.models import Job, ReplicaUsage, SanityCheck, Visibility
from quotas.models import User
from tests.factories import attempt_of, make_replica, replica_of
from tests.jobs.api.conftest import People
from tests.jobs.api.vendors.pai_dlc.service_calls import Dlc

NOW = timezone.now().replace(second=0, microsecond=0)


@pytest.fixture
def measured(job: Job) -> Job:
    """A job with three measurements, the first of them without a known GPU."""
    at = NOW.timestamp()
    points = [[at - 1200, None, 10], [at - 300, 40, 150], [at, 80, 250, 512, 1.5, 2, 3, 4]]
    ReplicaUsage.objects.create(
        replica=replica_of(job), at=NOW, cpu_s=5, cpu_milli=2500, memory_mib=512, points=points
    )
    return job


def values(user: User, job: Job, metric: str, **query: Any) -> list[float]:
    answer = Dlc(user).get(f"jobs/dlc{job.public_id}/metrics", MetricType=metric, **query)
    assert answer["JobId"] == f"dlc{job.public_id}"
    (pod,) = answer["PodMetrics"]
    assert pod["PodId"] == f"dlc{job.public_id}-main-0"
    return [each["Value"] for each in pod["Metrics"]]


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("GpuCoreUsage", [40, 80]),
        ("CpuCoreUsage", [10, 150, 250]),
        ("MemoryUsage", [512]),
        ("GpuMemoryUsage", []),
        ("NetworkInputRate", [3]),
        ("NetworkOutputRate", [4]),
        ("DiskReadRate", [1.5]),
        ("DiskWriteRate", [2]),
    ],
)
def test_metrics_are_the_stored_measurements(
    people: People, measured: Job, metric: str, expected: list[float]
) -> None:
    assert values(people.owner, measured, metric, TimeStep="1m") == expected


def test_metrics_are_limited_to_the_requested_time(people: People, measured: Job) -> None:
    since = (NOW - timedelta(minutes=10)).strftime("%Y-%m-%dT%H:%M:%SZ")
    until = (NOW - timedelta(minutes=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
    found = values(people.owner, measured, "CpuCoreUsage", TimeStep="60", StartTime=since, EndTime=until)
    assert found == [150]


def test_metrics_of_a_time_without_an_hour_before_it_are_empty(people: People, measured: Job) -> None:
    assert values(people.owner, measured, "CpuCoreUsage", EndTime="0001-01-01T00:00:00Z") == []


def test_metrics_have_one_value_a_step(people: People, measured: Job) -> None:
    assert values(people.owner, measured, "CpuCoreUsage", TimeStep="1d")[-1] == 250


def test_metrics_of_unmeasured_job_are_empty(people: People, job: Job) -> None:
    assert values(people.owner, job, "CpuCoreUsage") == []


def test_metric_times_are_milliseconds(people: People, measured: Job) -> None:
    answer = Dlc(people.owner).get(f"jobs/dlc{measured.public_id}/metrics", MetricType="MemoryUsage")
    assert answer["PodMetrics"][0]["Metrics"] == [{"Time": int(NOW.timestamp()) * 1000, "Value": 512.0}]


@pytest.mark.parametrize("step", ["0", "5 minutes", "-1m", "1y", "m"])
def test_metrics_with_wrong_step_are_refused(people: People, job: Job, step: str) -> None:
    path = f"jobs/dlc{job.public_id}/metrics"
    found = Dlc(people.owner).refusal("get", path, MetricType="CpuCoreUsage", TimeStep=step)
    assert found == (400, "InvalidParameter")


def test_metrics_take_a_constant_number_of_queries(
    people: People, measured: Job, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for index in range(1, 6):
        make_replica(attempt_of(measured), index=index)
    dlc = Dlc(people.owner)
    with django_assert_max_num_queries(6):
        answer = dlc.get(f"jobs/dlc{measured.public_id}/metrics", MetricType="CpuCoreUsage")
    assert len(answer["PodMetrics"]) == 6


READS: dict[str, dict[str, Any]] = {
    "metrics": {"MetricType": "CpuCoreUsage"},
    "sanitycheckresults": {},
    "sanitycheckresult": {"SanityCheckNumber": 1},
}


@pytest.mark.parametrize("path", READS)
def test_job_reads_are_for_those_who_may_read_it(people: People, job: Job, path: str) -> None:
    address, query = f"jobs/dlc{job.public_id}/{path}", READS[path]
    for user in (people.owner, people.manager, people.admin):
        assert Dlc(user).send("get", address, **query).status_code == 200
    assert Dlc(people.member).refusal("get", address, **query) == (403, "NoPermission")
    assert Dlc(people.stranger).refusal("get", address, **query) == (404, "ResourceNotFound")
    assert Dlc(people.manager, ["read"]).refusal("get", address, **query) == (403, "NoPermission")
    assert Dlc(people.owner, ["submit"]).refusal("get", address, **query) == (403, "NoPermission")
    Job.objects.filter(pk=job.pk).update(visibility=Visibility.PUBLIC)
    assert Dlc(people.member).send("get", address, **query).status_code == 200


@pytest.mark.parametrize("path", READS)
@pytest.mark.parametrize("name", ["dlcnobody12345", "x", "dlc"])
def test_job_reads_of_unknown_job_are_not_found(people: People, path: str, name: str) -> None:
    assert Dlc(people.owner).refusal("get", f"jobs/{name}/{path}", **READS[path]) == (404, "ResourceNotFound")


def test_sanity_checks_are_empty(people: People, job: Job) -> None:
    listed = Dlc(people.owner).get(f"jobs/dlc{job.public_id}/sanitycheckresults")
    assert (listed["SanityCheckResults"], listed["TotalCount"]) == ([], 0)
    assert listed["RequestID"]
    found = Dlc(people.owner).get(f"jobs/dlc{job.public_id}/sanitycheckresult", SanityCheckNumber=1)
    assert (found["JobId"], found["SanityCheckResult"]) == (f"dlc{job.public_id}", [])
    assert found["RequestID"]


def test_sanity_checks_are_answered_by_number_and_phase(people: People, job: Job) -> None:
    attempt = attempt_of(job)
    phases = [
        {"phase": name, "status": "Succeeded", "message": "", "started_at": 1.5, "finished_at": None}
        for name in ("CheckInit", "DeviceCheck")
    ]
    for run in (1, 2):
        SanityCheck.objects.create(attempt=attempt, run=run, status="Succeeded", phases=phases)
    dlc, address = Dlc(people.owner), f"jobs/dlc{job.public_id}/sanitycheckresult"
    listed = dlc.get(f"{address}s", Order="desc")
    assert listed["TotalCount"] == 2
    assert [[row["CheckNumber"] for row in rows] for rows in listed["SanityCheckResults"]] == [[2, 2], [1, 1]]
    assert dlc.get(address, SanityCheckNumber=2, SanityCheckPhase="DeviceCheck")["SanityCheckResult"] == [
        {
            "CheckNumber": 2,
            "Phase": "DeviceCheck",
            "Status": "Succeeded",
            "Message": "",
            "StartedAt": "1970-01-01T00:00:01.500000+00:00",
            "FinishedAt": "",
        }
    ]
    assert len(dlc.get(address, SanityCheckNumber=1)["SanityCheckResult"]) == 2
    assert dlc.get(address, SanityCheckNumber=3)["SanityCheckResult"] == []


def test_sanity_check_without_number_is_refused(people: People, job: Job) -> None:
    path = f"jobs/dlc{job.public_id}/sanitycheckresult"
    assert Dlc(people.owner).refusal("get", path) == (400, "InvalidParameter")
