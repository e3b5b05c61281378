"""Whether an asset can be had, found out by the local backend as the person who asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobs.assets import check_requests
from jobs.messages.assets import asset_message
from jobs.models import Asset, AssetCheck, RamRole
from jobs.scheduling import asset_checks
from jobs.scheduling.reconcile import due_clusters
from quotas.models import Cluster
from tests.factories import make_cluster, make_quota
from tests.jobs.assets.conftest import make_code, make_dataset, make_image
from tests.jobs.backends.conftest import place as folders
from tests.jobs.backends.local import goods
from tests.jobs.web.conftest import People
from tests.waiting import wait_for

__all__ = ["folders"]

pytestmark = pytest.mark.django_db


def settings_of(people: People, **settings: Any) -> Cluster:
    cluster = people.quota.cluster
    Cluster.objects.filter(pk=cluster.pk).update(config={"engine": "none", **settings})
    cluster.refresh_from_db()
    return cluster


def tried(people: People, asset: Asset, version: int | None = None) -> AssetCheck:
    """How a check of the owner ends."""
    check = check_requests.request_check(people.owner, asset, version)
    assert people.quota.cluster_id in due_clusters()["drain"]
    asset_checks.begin(check.cluster_id)

    def over() -> bool:
        asset_checks.look(check.cluster_id)
        check.refresh_from_db()
        return check.is_over

    wait_for(over)
    assert due_clusters()["observe"] == []
    return check


def test_asset_check_reads_a_folder_as_the_job_would(people: People, folders: Path) -> None:
    settings_of(people, folders={str(folders): {"workspaces": ["vision"]}})
    row = make_dataset(people.quota.workspace, f"{folders}/sets", mount_path="/mnt/x")
    check = tried(people, row)
    assert (check.state, check.code, check.said.split()) == ("works", "worked", ["file"])
    gone = make_dataset(people.quota.workspace, f"{folders}/absent")
    check = tried(people, gone)
    assert (check.state, check.code) == ("failed", "refused")
    assert "absent" in check.said


def test_asset_check_clones_a_repository(people: People, folders: Path) -> None:
    goods.repository(folders / "repo")
    settings_of(
        people,
        folders={str(folders): {"workspaces": ["vision"]}},
        code_sources={"code-known": {"uri": f"file://{folders}/repo", "branch": "old"}},
    )
    row = make_code(people.quota.workspace, key="code-known")
    check = tried(people, row)
    assert check.state == "works", check.said
    assert check.said.splitlines()[-1] == "file"


def test_asset_check_of_a_forbidden_repository_shows_cluster_reason(people: People) -> None:
    settings_of(people)
    check = tried(people, make_code(people.quota.workspace))
    assert (check.state, check.code) == ("failed", "refused")
    assert "git.example.org" in check.said


def test_asset_check_of_an_image_without_container_engine_fails(people: People) -> None:
    settings_of(people, allow_plain=True)
    check = tried(people, make_image(people.quota.workspace))
    assert (check.state, check.code) == ("failed", "image_not_used")
    assert "no container engine" in asset_message(check.code)


def test_asset_check_reports_a_missing_personal_secret(people: People) -> None:
    settings_of(people)
    check = tried(people, make_code(people.quota.workspace, own_secret="GIT_TOKEN"))
    assert (check.code, check.said) == ("no_own_secret", "GIT_TOKEN")


def test_asset_checks_are_limited_per_asset_and_in_total(people: People) -> None:
    rows = [make_code(people.quota.workspace) for _ in range(check_requests.MOST_OPEN + 1)]
    first = check_requests.request_check(people.owner, rows[0])
    assert check_requests.request_check(people.owner, rows[0]) == first
    for row in rows[1:-1]:
        check_requests.request_check(people.owner, row)
    with pytest.raises(check_requests.CheckRefused) as shut:
        check_requests.request_check(people.owner, rows[-1])
    assert shut.value.code == "too_many_trials"
    assert check_requests.request_check(people.member, rows[-1]).asker == people.member


def test_asset_check_is_refused_for_untestable_kinds_and_clusters(people: People) -> None:
    role = RamRole.objects.create(workspace=people.quota.workspace, name="r", arn="acs:ram::1:role/x")
    with pytest.raises(check_requests.CheckRefused) as shut:
        check_requests.request_check(people.owner, role)
    assert shut.value.code == "no_trial"
    elsewhere = make_quota(people.stranger.memberships.get().workspace, make_cluster(backend="slurm"))
    with pytest.raises(check_requests.CheckRefused) as shut:
        check_requests.request_check(people.stranger, make_code(elsewhere.workspace))
    assert shut.value.code == "no_cluster"
