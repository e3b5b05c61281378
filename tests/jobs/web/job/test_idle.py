"""What pages and the API say of a job that does not use what it holds, and who may keep it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils.timezone import now

from jobs.models import Idleness, Job, ReplicaUsage
from jobs.spec import Resources, RoleSpec
from jobs.states import State
from quotas import ledger
from quotas.amounts import Amounts, Part
from quotas.models import Node
from tests.factories import attempt_of, make_job, make_spec, replica_of
from tests.jobs.web.conftest import People, browser, seen

ROLES = (RoleSpec(name="main", command="train", resources=Resources(gpus=2, gpu_type="A100")),)


@pytest.fixture
def job(people: People) -> Job:
    """Idle for three hours; its owner was told an hour ago."""
    job = make_job(
        State.RUNNING,
        owner=people.owner,
        quota=people.quota,
        spec=make_spec(name="sleepy", roles=ROLES),
        idle_since=now() - timedelta(hours=3),
        gpus=2,
    )
    Idleness.objects.create(
        attempt=attempt_of(job),
        counts_from=now() - timedelta(hours=3),
        warned_at=now() - timedelta(hours=1),
        ends_at=now() + timedelta(hours=1),
        extensions=1,
    )
    return job


def url(job: Job) -> str:
    return f"/jobs/{job.public_id}/"


def test_job_page_shows_idle_warning_and_owner_keeps_job(people: People, job: Job) -> None:
    text = seen(browser(people.owner).get(url(job)))
    assert "The job is not using its resources." in text
    assert "Unless used again, the job will be stopped:" in text
    assert "Keep running" in text
    response = browser(people.owner).post(f"{url(job)}keep", follow=True)
    assert "The job keeps running; idle time was reset." in seen(response)
    assert "Keep running" not in seen(browser(people.owner).get(url(job)))
    again = browser(people.owner).post(f"{url(job)}keep", follow=True)
    assert "Can't keep the job running" in seen(again)


def test_keep_running_is_limited_to_owner_and_admins(people: People, job: Job) -> None:
    assert "Keep running" not in seen(browser(people.member).get(url(job)))
    assert browser(people.member).post(f"{url(job)}keep").status_code == 403
    assert browser(people.stranger).post(f"{url(job)}keep").status_code == 404
    assert browser().post(f"{url(job)}keep").status_code == 302
    assert Idleness.objects.get().kept == 0
    for user in (people.manager, people.admin):
        assert "Keep running" in seen(browser(user).get(url(job)))
    browser(people.admin).post(f"{url(job)}keep")
    assert Idleness.objects.get().kept == 1


def test_metrics_tab_shows_measurements_to_readers(people: People, job: Job) -> None:
    at = now()
    ReplicaUsage.objects.create(
        replica=replica_of(job),
        at=at,
        cpu_milli=1500,
        memory_mib=2048,
        gpu_percents=[3, 0],
        points=[[(at - timedelta(minutes=30)).timestamp(), 97, 400], [at.timestamp(), 3, 150]],
    )
    response = browser(people.owner).get(f"{url(job)}?tab=metrics")
    text = seen(response)
    assert "GPU utilization" in text
    assert "3%" in text
    assert "2 GiB" in text
    [chart] = [each for each in response.context["metrics"].charts if each.key == "gpu"]
    assert ",97]" in chart.series
    assert "GPU utilization" not in seen(browser(people.member).get(f"{url(job)}?tab=metrics"))
    assert browser(people.stranger).get(f"{url(job)}?tab=metrics").status_code == 404


def test_metrics_tab_without_measurements_shows_notice(people: People, job: Job) -> None:
    assert "No metrics" in seen(browser(people.owner).get(f"{url(job)}?tab=metrics"))


def test_quota_and_node_pages_show_idle_holdings(people: People, job: Job) -> None:
    Node.objects.create(
        cluster=people.quota.cluster, name="n1", cpu_milli=8000, memory_mib=8192, gpus={"A100": 4}
    )
    each = Amounts(1000, 1024, {"A100": 2})
    asked = ledger.ask(
        attempt_of(job).key,
        quota=people.quota,
        owner=people.owner,
        parts=[Part(1, each)],
        priority=1,
        declared_s=None,
    )
    ledger.reserve(asked, [("n1", each)])
    for page in ("/quotas/", "/nodes/"):
        for user in (people.owner, people.member, people.admin):
            assert "The job is not using its resources." in seen(browser(user).get(page)), page
        assert "The job is not using its resources." not in seen(browser(people.stranger).get(page)), page
    Job.objects.update(idle_since=None)
    assert "The job is not using its resources." not in seen(browser(people.owner).get("/nodes/"))


def test_job_api_shows_idle_since_only_while_running(people: People, job: Job) -> None:
    address = f"/api/console/v1/jobs/{job.public_id}"
    assert browser(people.owner).get(address).json()["idle_since"] is not None
    Job.objects.update(state=State.STOPPED)
    assert browser(people.owner).get(address).json()["idle_since"] is None
