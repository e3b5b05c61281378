"""The ledger: asked, held, put back, closed; always the sum of what is active."""

from __future__ import annotations

import pytest

from quotas import ledger
from quotas.amounts import Amounts
from quotas.bootstrap import ensure_defaults
from quotas.ledger import Part
from quotas.models import Quota, Request, User

pytestmark = pytest.mark.django_db

TWO_GPUS = Part(2, Amounts(1000, 1024, {"A100": 1}))


@pytest.fixture
def quota() -> Quota:
    ensure_defaults(User.objects.create_superuser("admin"))
    return Quota.objects.get()


def ask(quota: Quota, holder: str = "a") -> Request:
    owner = User.objects.get()
    return ledger.ask(holder, quota=quota, owner=owner, parts=[TWO_GPUS], priority=1, declared_s=None)


def held(quota: Quota) -> Amounts:
    return ledger.held_on(quota.cluster_id).by_quota.get(quota.pk, Amounts())


def test_a_request_holds_nothing_until_it_is_reserved(quota: Quota) -> None:
    request = ask(quota)
    assert held(quota) == Amounts()
    ledger.reserve(request, [("n1", Amounts(2000, 2048, {"A100": 2}))])
    assert held(quota) == Amounts(2000, 2048, {"A100": 2})
    assert ledger.held_on(quota.cluster_id).by_node["n1"].gpus == {"A100": 2}


def test_what_is_put_back_waits_again_and_can_be_reserved_again(quota: Quota) -> None:
    request = ask(quota)
    ledger.reserve(request, [])
    ledger.put_back("a")
    request.refresh_from_db()
    assert (request.state, held(quota)) == (Request.State.WAITING, Amounts())
    ledger.reserve(request, [])
    assert held(quota).gpu_count == 2


def test_closing_twice_is_closing_once(quota: Quota) -> None:
    ledger.reserve(ask(quota), [])
    ledger.reserve(ask(quota, "b"), [])
    ledger.close("a")
    ledger.close("a")
    ledger.put_back("a")
    assert held(quota).gpu_count == 2
    assert Request.objects.get(holder="a").state == Request.State.CLOSED


def test_the_sum_counts_holders_and_amounts_by_quota(quota: Quota) -> None:
    for holder in "abc":
        ledger.reserve(ask(quota, holder), [])
    now = ledger.held_on(quota.cluster_id)
    assert (now.holders_by_quota[quota.pk], now.by_quota[quota.pk].cpu_milli) == (3, 6000)


def test_defaults_are_made_once(quota: Quota) -> None:
    ensure_defaults(User.objects.get())
    assert Quota.objects.count() == 1
