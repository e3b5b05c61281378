"""The tree of quotas: what a child may promise, and what lowering does."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.test import Client
from django.utils import timezone

from quotas import ledger
from quotas.admission import snapshot
from quotas.amounts import Amounts, Part
from quotas.ledger import usage
from quotas.models import GpuType, Node, NodeState, Period, Quota, Reservation, SpotPrice, UsageHour
from tests.factories import make_cluster, make_quota, make_user, make_workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def parent() -> Quota:
    return make_quota(slug="department", gpus=8, gpus_by_type={"A100": 4})


def child(parent: Quota, slug: str, **limits: object) -> Quota:
    return Quota(
        workspace=parent.workspace, cluster=parent.cluster, parent=parent, slug=slug, name=slug, **limits
    )


def told(quota: Quota) -> dict[str, list[str]]:
    with pytest.raises(ValidationError) as refused:
        quota.full_clean()
    return refused.value.message_dict


def test_child_quotas_share_the_limit_of_the_parent(parent: Quota) -> None:
    first = child(parent, "first", gpus=6)
    first.full_clean()
    first.save()
    child(parent, "second", gpus=2).full_clean()
    message = "Limit of Department exceeded: 8 available, but its child quotas would have 9 in total."
    assert told(child(parent, "second", gpus=3)) == {"gpus": [message]}


def test_child_quotas_share_gpu_type_limits_of_the_parent(parent: Quota) -> None:
    assert "A100: " in told(child(parent, "first", gpus_by_type={"A100": 5}))["gpus_by_type"][0]


def test_parent_limit_below_the_sum_of_children_is_refused(parent: Quota) -> None:
    child(parent, "first", gpus=6).save()
    parent.gpus = 5
    assert "Child quotas have 6 in total" in told(parent)["gpus"][0]


def test_quota_without_limit_counts_limits_of_its_children(parent: Quota) -> None:
    middle = child(parent, "middle")
    middle.save()
    assert "its child quotas would have 9 in total" in told(child(middle, "leaf", gpus=9))["gpus"][0]


def test_quota_tree_rejects_circles_and_second_cluster(parent: Quota) -> None:
    leaf = child(parent, "leaf")
    leaf.save()
    parent.parent = leaf
    assert "parent" in told(parent)
    stranger = child(parent, "stranger")
    stranger.cluster = make_cluster()
    assert "parent" in told(stranger)


def test_gpu_type_limit_must_be_a_number(parent: Quota) -> None:
    assert "gpus_by_type" in told(child(parent, "first", gpus_by_type={"A100": "4"}))


def form_of(quota: Quota, **changes: object) -> dict[str, object]:
    fields = {
        field.name: field.value_from_object(quota)
        for field in Quota._meta.concrete_fields
        if field.name != "id" and field.value_from_object(quota) is not None
    }
    none = {"policies-TOTAL_FORMS": "0", "policies-INITIAL_FORMS": "0"}
    return {**fields, "gpus_by_type": "", **none, **changes}


def test_quota_lowered_below_use_requires_confirmation_to_drain(parent: Quota) -> None:
    leaf = child(parent, "leaf")
    leaf.save()
    request = ledger.ask(
        "a",
        quota=leaf,
        owner=make_user(),
        parts=[Part(1, Amounts(1000, 1024, {"A100": 3}))],
        priority=1,
        declared_s=None,
    )
    ledger.reserve(request, [])
    admin = Client()
    admin.force_login(make_user(admin=True))
    address = f"/admin/quotas/quota/{parent.pk}/change/"
    response = admin.post(address, form_of(parent, gpus=2))
    assert "stops nothing: running jobs finish" in response.content.decode()
    parent.refresh_from_db()
    assert parent.gpus == 8
    assert admin.post(address, form_of(parent, gpus=2, drain="on")).status_code == 302
    parent.refresh_from_db()
    assert parent.gpus == 2
    assert Reservation.objects.filter(active=True).count() == 1


def test_gpu_type_alias_in_quota_form_is_stored_as_canonical_name(parent: Quota) -> None:
    GpuType.objects.create(name="A100", aliases=["nvidia-a100"])
    admin = Client()
    admin.force_login(make_user(admin=True))
    form = form_of(parent, gpus_by_type="NVIDIA-A100: 2")
    assert admin.post(f"/admin/quotas/quota/{parent.pk}/change/", form).status_code == 302
    parent.refresh_from_db()
    assert parent.gpus_by_type == {"A100": 2}


def test_workspace_and_quota_admin_pages_open() -> None:
    quota = make_quota()
    admin = Client()
    admin.force_login(make_user(admin=True))
    assert admin.get(f"/admin/quotas/workspace/{quota.workspace_id}/change/").status_code == 200
    assert admin.get(f"/admin/quotas/quota/{quota.pk}/change/").status_code == 200


def test_node_admin_records_actor_and_reason_of_draining() -> None:
    node = Node.objects.create(cluster=make_cluster(), name="n1")
    root = make_user("root", admin=True)
    admin = Client()
    admin.force_login(root)
    form = {"state": "draining", "state_why": "new disks", "empty_by_0": "2030-01-01", "empty_by_1": "10:00"}
    assert admin.post(f"/admin/quotas/node/{node.pk}/change/", form).status_code == 302
    node.refresh_from_db()
    assert (node.state, node.state_why, node.state_by) == (NodeState.DRAINING, "new disks", root)
    for action, state in (("uncordon", "schedulable"), ("cordon", "cordoned"), ("drain", "draining")):
        chosen = {"action": action, "_selected_action": [node.pk], "confirmed": "yes", "why": "new disks"}
        admin.post("/admin/quotas/node/", chosen)
        node.refresh_from_db()
        assert (node.state, node.state_by) == (state, root)


# --- GPU-hours, prices ----------------------------------------------------------------------------------


def hold(quota: Quota, gpus: int, hours: float, *, ago: float = 0.0, borrowed: bool = False) -> None:
    """Something that held GPUs for so many hours, and ended `ago` hours ago (0: it goes on)."""
    each = Amounts(1000, 1024, {"A100": gpus})
    holder = f"h{Reservation.objects.count()}"
    request = ledger.ask(
        holder, quota=quota, owner=make_user(), parts=[Part(1, each)], priority=1, declared_s=None
    )
    ledger.reserve(request, [], borrowed=borrowed)
    now = timezone.now()
    rows = Reservation.objects.filter(request=request)
    rows.update(created_at=now - timedelta(hours=hours + ago))
    if ago:
        rows.update(active=False, released_at=now - timedelta(hours=ago))


def test_gpu_hours_are_equal_before_and_after_roll_up() -> None:
    quota = make_quota()
    hold(quota, 2, 3.5)
    hold(quota, 1, 1.25, ago=2)
    hold(quota, 4, 2, borrowed=True)
    now = timezone.now()
    start = now - timedelta(hours=30)
    start = start.replace(minute=0, second=0, microsecond=0)
    exact = usage.gpu_seconds([quota.pk], start, now)[quota.pk]
    assert exact == pytest.approx((2 * 3.5 + 1.25) * 3600, abs=5)
    assert usage.roll_up(now) > 0
    assert usage.roll_up(now) == 0
    assert usage.gpu_seconds([quota.pk], start, now)[quota.pk] == pytest.approx(exact, abs=5)
    lent = sum(UsageHour.objects.filter(gpu_type="A100").values_list("borrowed_seconds", flat=True))
    assert lent > 0


def test_quota_with_gpu_hours_used_by_child_has_none_left(parent: Quota) -> None:
    parent.gpu_hours, parent.period = 6, Period.MONTH
    parent.save()
    leaf = child(parent, "leaf")
    leaf.save()
    assert snapshot._accounts([parent, leaf], timezone.now(), {})[parent.pk].hours_left
    hold(leaf, 2, 0.5)
    now = timezone.now() + timedelta(days=365)
    Reservation.objects.update(created_at=now.replace(day=1, hour=12) - timedelta(days=1))
    later = now.replace(day=20)
    assert not snapshot._accounts([parent, leaf], later, {})[parent.pk].hours_left


@pytest.mark.parametrize(("hour", "expected"), [(3, 200), (12, 400), (23, 200)])
def test_spot_prices_follow_the_hours_of_the_day(hour: int, expected: int) -> None:
    cluster = make_cluster()
    SpotPrice.objects.create(cluster=cluster, gpu_type="A100", market_micro=1000, price_micro=400)
    SpotPrice.objects.create(
        cluster=cluster, gpu_type="A100", market_micro=1000, price_micro=200, from_hour=22, until_hour=6
    )
    now = timezone.localtime().replace(hour=hour)
    assert snapshot.prices_of(cluster, now)["A100"].now_micro == expected


def test_snapshot_takes_a_fixed_number_of_queries(django_assert_max_num_queries: object) -> None:
    quota = make_quota(make_workspace())
    owner = make_user()
    for number in range(20):
        parts = [Part(1, Amounts(1000, 1024))]
        request = ledger.ask(f"r{number}", quota=quota, owner=owner, parts=parts, priority=1, declared_s=None)
        if number % 2:
            ledger.reserve(request, [])
    with django_assert_max_num_queries(7):  # type: ignore[operator]
        assert len(snapshot.take(quota.cluster).waiting) == 10
