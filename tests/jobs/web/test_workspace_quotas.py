"""A workspace's admin splits its quotas and sets job policies; nobody else does."""

from __future__ import annotations

import pytest
from django.test import Client

from quotas.models import JobPolicy, Quota, Role
from tests.factories import make_membership, make_user
from tests.jobs.conftest import Place

pytestmark = pytest.mark.django_db

PAGE = "/workspaces/vision/quotas"


@pytest.fixture
def manager(place: Place, client: Client) -> Client:
    user = make_user("manager")
    make_membership(user, place.workspace, Role.ADMIN)
    client.force_login(user)
    return client


def part(place: Place, **values: object) -> dict[str, object]:
    return {"parent": place.quota.pk, "name": "Part", "slug": "part", **values}


def test_admin_splits_a_quota_within_what_the_workspace_has(place: Place, manager: Client) -> None:
    Quota.objects.update(gpus=8, person_gpus=3)
    too_much = manager.post(f"{PAGE}/new", part(place, gpus=9))
    assert too_much.status_code == 422
    assert "available" in too_much.content.decode()
    assert manager.post(f"{PAGE}/new", part(place, gpus=4, person_gpus=4)).status_code == 422
    assert (
        manager.post(f"{PAGE}/new", part(place, gpus=4, gpus_by_type="A100: 2", cpu_milli="1.5")).status_code
        == 302
    )
    made = Quota.objects.get(slug="part")
    assert (made.parent, made.gpus, made.gpus_by_type, made.cpu_milli) == (place.quota, 4, {"A100": 2}, 1500)
    assert made.person_gpus == 3
    assert "Part" in manager.get(PAGE).content.decode()
    manager.post(f"{PAGE}/{made.pk}", part(place, gpus=6))
    made.refresh_from_db()
    assert made.gpus == 6
    manager.post(f"{PAGE}/{made.pk}", {"delete": "yes"})
    assert not Quota.objects.filter(slug="part").exists()


def test_whole_quota_and_console_policies_stay_with_the_console(place: Place, manager: Client) -> None:
    policy = JobPolicy.objects.create(quota=place.quota, highest_priority=3)
    assert manager.post(f"{PAGE}/{place.quota.pk}", {"gpus": 99}).status_code == 403
    assert manager.post(f"/workspaces/vision/policies/{policy.pk}", {"delete": "yes"}).status_code == 403
    assert "Priority up to 3" in manager.get(PAGE).content.decode()


def test_admin_sets_a_policy_of_the_workspace(place: Place, manager: Client) -> None:
    values = {"quota": place.quota.pk, "highest_priority": 4, "gpu_types": "V100, A100"}
    assert manager.post("/workspaces/vision/policies/new", values).status_code == 302
    policy = JobPolicy.objects.get()
    assert (policy.by_workspace, policy.highest_priority, policy.type_names) == (True, 4, ("V100", "A100"))
    assert manager.post("/workspaces/vision/policies/new", values).status_code == 422
    manager.post(f"/workspaces/vision/policies/{policy.pk}", {"delete": "yes"})
    assert not JobPolicy.objects.exists()


def test_member_is_refused_and_stranger_finds_nothing(place: Place, client: Client) -> None:
    client.force_login(place.owner)
    assert client.get(PAGE).status_code == 403
    client.force_login(make_user("stranger"))
    assert client.get(PAGE).status_code == 404
