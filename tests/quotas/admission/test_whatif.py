"""What other limits would do, before they are anybody's."""

from __future__ import annotations

from copy import copy
from typing import Any

import pytest

from quotas import ledger
from quotas.admission import whatif
from quotas.admission.whatif import Drain, LimitPreview
from quotas.amounts import Amounts, Part
from quotas.models import Node, Quota, Request, Reservation
from tests.factories import make_cluster, make_quota, make_user, make_workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def quota(db: None) -> Quota:
    """Four GPUs of the eight of a node."""
    cluster = make_cluster("north")
    Node.objects.create(cluster=cluster, name="n1", cpu_milli=64_000, memory_mib=2**20, gpus={"A100": 8})
    return make_quota(make_workspace("vision"), cluster, "default", gpus=4)


def wants(quota: Quota, holder: str, gpus: int, *, held: bool = False, borrowed: bool = False) -> None:
    each = Amounts(1000, 1024, {"A100": gpus})
    parts = [Part(1, each)]
    request = ledger.ask(holder, quota=quota, owner=make_user(), parts=parts, priority=1, declared_s=None)
    if held:
        ledger.reserve(request, [("n1", each)], borrowed=borrowed)
        ledger.record_start(holder)


def with_(quota: Quota, **limits: Any) -> LimitPreview:
    changed = copy(quota)
    for name, value in limits.items():
        setattr(changed, name, value)
    return whatif.preview(quota.cluster, {quota.pk: changed})


def test_preview_of_limit_below_use_drains_and_ends_no_job(quota: Quota) -> None:
    wants(quota, "runs", 3, held=True)
    found = with_(quota, gpus=2)
    assert found.drains == (Drain(quota.pk, "gpu", 3, 2),)
    assert found.above == ("runs",)
    assert found.given_back == ()
    assert not found.nothing


def test_preview_of_lowered_quota_counts_jobs_of_child_quotas(quota: Quota) -> None:
    leaf = make_quota(quota.workspace, quota.cluster, "leaf", parent=quota)
    wants(leaf, "runs", 3, held=True)
    assert with_(quota, gpus=2).above == ("runs",)


def test_preview_excludes_borrowed_resources(quota: Quota) -> None:
    wants(quota, "borrows", 3, held=True, borrowed=True)
    found = with_(quota, gpus=2)
    assert (found.drains, found.above) == ((), ())


@pytest.mark.parametrize(
    ("limits", "kind"),
    [
        ({"most_jobs": 0}, "jobs"),
        ({"cpu_milli": 500}, "cpu"),
        ({"memory_mib": 512}, "memory"),
        ({"gpus_by_type": {"A100": 1}}, "A100"),
    ],
)
def test_preview_checks_every_kind_of_limit(quota: Quota, limits: dict[str, Any], kind: str) -> None:
    wants(quota, "runs", 3, held=True)
    assert [each.kind for each in with_(quota, **limits).drains] == [kind]


def test_preview_lists_waiting_jobs_as_starting_or_impossible(quota: Quota) -> None:
    wants(quota, "runs", 3, held=True)
    wants(quota, "waits", 3)
    assert with_(quota, gpus=8).starts == ("waits",)
    assert with_(quota, gpus=2).never == ("waits",)


def test_preview_of_lowered_limit_lists_jobs_now_having_to_wait(quota: Quota) -> None:
    wants(quota, "runs", 2, held=True)
    wants(quota, "next", 2)
    found = with_(quota, gpus=3)
    assert (found.waits, found.never, found.drains) == (("next",), (), ())


def test_preview_without_effect_on_jobs_reports_no_effect(quota: Quota) -> None:
    wants(quota, "runs", 3, held=True)
    assert with_(quota, gpus=5).nothing


def test_preview_stores_nothing(quota: Quota) -> None:
    wants(quota, "waits", 3)
    with_(quota, gpus=0)
    quota.refresh_from_db()
    assert quota.gpus == 4
    assert Request.objects.get().state == Request.State.WAITING
    assert not Reservation.objects.exists()
