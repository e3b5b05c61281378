"""GetDashboard and GetRayDashboard of PAI-DLC."""

from __future__ import annotations

import pytest

from jobs.models import Job
from jobs.states import State
from tests.factories import make_endpoint, replica_of
from tests.jobs.api.conftest import People
from tests.jobs.api.vendors.pai_dlc.service_calls import Dlc


def address(slug: str) -> str:
    return f"http://testserver/endpoints/{slug}/open"


def test_dashboard_is_the_port_with_that_label(people: People, job: Job) -> None:
    endpoint = make_endpoint(replica_of(job), label="dashboard")
    dlc = Dlc(people.owner)
    assert dlc.get(f"jobs/dlc{job.public_id}/dashboard")["url"] == address(endpoint.slug)
    ray = make_endpoint(replica_of(job), label="ray-dashboard", port=8265)
    found = dlc.get(f"jobs/dlc{job.public_id}/rayDashboard", isShared="false")
    assert (found["url"], found["metricsEnabled"]) == (address(ray.slug), "false")


@pytest.mark.parametrize("path", ["dashboard", "rayDashboard"])
def test_dashboard_is_for_those_who_may_enter(people: People, job: Job, path: str) -> None:
    make_endpoint(replica_of(job), label="dashboard")
    name = f"jobs/dlc{job.public_id}/{path}"
    for user in (people.owner, people.manager, people.admin):
        assert Dlc(user).send("get", name).status_code == 200
    assert Dlc(people.member).refusal("get", name) == (403, "NoPermission")
    assert Dlc(people.stranger).refusal("get", name) == (404, "ResourceNotFound")
    assert Dlc(people.manager, ["read"]).refusal("get", name) == (403, "NoPermission")
    assert Dlc(people.owner).refusal("get", name, isShared="True", token="t") == (400, "UnsupportedOperation")
    Job.objects.filter(pk=job.pk).update(state=State.SUCCEEDED)
    assert Dlc(people.owner).refusal("get", name) == (404, "ResourceNotFound")


def test_dashboard_of_job_without_one_is_not_found(people: People, job: Job) -> None:
    make_endpoint(replica_of(job), label="jupyter")
    found = Dlc(people.owner).refusal("get", f"jobs/dlc{job.public_id}/dashboard")
    assert found == (404, "ResourceNotFound")
