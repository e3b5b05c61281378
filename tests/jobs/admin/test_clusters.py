"""What the page of a cluster in the admin tells of the cluster."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client

from tests.factories import make_cluster, make_user


def read_cluster_page(facilities: dict[str, object] | None) -> str:
    """The words of the page of a cluster with these facilities."""
    cluster = make_cluster(facilities=facilities)
    client = Client()
    client.force_login(make_user(admin=True))
    page = client.get(f"/admin/quotas/cluster/{cluster.pk}/change/").content.decode()
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("facilities", "told"),
    [
        ({"engines": {"podman": "absent", "docker": "used"}}, "docker"),
        (
            {"engines": {"podman": "absent", "docker": "silent"}},
            (
                "None: docker is installed but not responding (check that its daemon is running); podman is "
                "not installed"
            ),
        ),
        ({"engines": {}}, "None: disabled in the cluster settings."),
        ({"engines": None}, "–"),
        (None, "–"),
    ],
)
def test_cluster_page_names_the_container_engine_or_the_reason_for_none(
    facilities: dict[str, object] | None, told: str
) -> None:
    assert read_cluster_page(facilities).rpartition("ontainer engine ")[2].startswith(f"{told} ")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("facilities", "told"),
    [
        ({"network": "own", "image_network": "own"}, "Each job has its own."),
        ({"network": "own", "image_network": ""}, "Each job has its own, but not jobs in containers."),
        (
            {"network": "host", "image_network": "host"},
            "Shared with the machine, as the cluster's settings say.",
        ),
        (
            {"network": "", "image_network": "", "network_lacks": ["nft", "pasta"]},
            "Shared with the machine. To give each job its own, install or allow: nft, pasta.",
        ),
        ({}, "–"),
        (None, "–"),
    ],
)
def test_cluster_page_tells_the_network_of_jobs(facilities: dict[str, object] | None, told: str) -> None:
    assert read_cluster_page(facilities).rpartition("etwork ")[2].startswith(f"{told} ")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("facilities", "told"), [({"operators": ["PyTorchJob", "Kueue"]}, "PyTorchJob, Kueue"), ({}, "–")]
)
def test_cluster_page_names_the_operators_that_jobs_can_run_by(
    facilities: dict[str, object], told: str
) -> None:
    assert read_cluster_page(facilities).rpartition("Operators ")[2].startswith(f"{told} ")
