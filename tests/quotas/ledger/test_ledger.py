"""The ledger: asked, held, put back, closed; always the sum of what is active."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from quotas import ledger
from quotas.accounts.bootstrap import ensure_defaults
from quotas.admission import snapshot
from quotas.amounts import Amounts, total
from quotas.ledger import Part, Terms
from quotas.models import Quota, Request, Reservation, User

pytestmark = pytest.mark.django_db

USUAL = Terms()
TWO_GPUS = Part(2, Amounts(1000, 1024, {"A100": 1}))


@pytest.fixture
def quota() -> Quota:
    ensure_defaults(User.objects.create_superuser("admin"))
    return Quota.objects.get()


def ask(quota: Quota, holder: str = "a", terms: Terms = USUAL) -> Request:
    owner = User.objects.get()
    return ledger.ask(
        holder, quota=quota, owner=owner, parts=[TWO_GPUS], priority=1, declared_s=None, terms=terms
    )


def held(quota: Quota) -> Amounts:
    return total(each.amounts for each in snapshot.take(quota.cluster).holdings)


def test_request_holds_nothing_until_reserved(quota: Quota) -> None:
    request = ask(quota)
    assert held(quota) == Amounts()
    here = Amounts(2000, 2048, {"A100": 2})
    ledger.reserve(request, [("n1", here)])
    assert held(quota) == here
    [holding] = snapshot.take(quota.cluster).holdings
    assert holding.placement == (("n1", here),)


def test_reservation_holds_the_assigned_gpu_types(quota: Quota) -> None:
    parts = [Part(2, Amounts(1000, 1024, {"": 1}))]
    request = ledger.ask("a", quota=quota, owner=User.objects.get(), parts=parts, priority=1, declared_s=None)
    ledger.reserve(request, [("n1", Amounts(2000, 2048, {"A100": 1, "P100": 1}))])
    assert held(quota).gpus == {"A100": 1, "P100": 1}
    assert Reservation.objects.get().gpus == 2


def test_request_put_back_waits_and_can_be_reserved_again(quota: Quota) -> None:
    request = ask(quota)
    ledger.reserve(request, [])
    ledger.record_start("a")
    ledger.ask_back("a")
    ledger.put_back("a")
    request.refresh_from_db()
    assert (request.state, held(quota)) == (Request.State.WAITING, Amounts())
    ledger.reserve(request, [])
    assert held(quota).gpu_count == 2
    [holding] = snapshot.take(quota.cluster).holdings
    assert (holding.running, holding.coming) == (False, False)


def test_request_closed_twice_is_closed_once(quota: Quota) -> None:
    ledger.reserve(ask(quota), [])
    ledger.reserve(ask(quota, "b"), [])
    ledger.close("a")
    ledger.close("a")
    ledger.put_back("a")
    assert held(quota).gpu_count == 2
    assert Request.objects.get(holder="a").state == Request.State.CLOSED


def test_reservation_may_shrink_but_never_grows(quota: Quota) -> None:
    ledger.reserve(ask(quota), [("n1", Amounts(2000, 2048, {"A100": 2}))])
    ledger.shrink("a", [("n1", Amounts(1000, 1024, {"A100": 1}))])
    assert held(quota) == Amounts(1000, 1024, {"A100": 1})
    for more in (Amounts(1000, 1024, {"A100": 2}), Amounts(1001, 1), Amounts(1, 1, {"P100": 1})):
        with pytest.raises(ValueError, match="n1"):
            ledger.shrink("a", [("n1", more)])
    ledger.close("a")
    ledger.shrink("a", [])
    assert held(quota) == Amounts()


def test_held_request_is_not_queued_until_released(quota: Quota) -> None:
    ask(quota)
    assert ledger.hold("a")
    assert not ledger.hold("a")
    now = snapshot.take(quota.cluster)
    assert ([each.holder for each in now.apart], now.waiting) == (["a"], [])
    assert ledger.release("a")
    assert not ledger.release("a")
    assert [each.holder for each in snapshot.take(quota.cluster).waiting] == ["a"]


def test_admitted_request_cannot_be_held(quota: Quota) -> None:
    ledger.reserve(ask(quota), [])
    assert not ledger.hold("a")


def test_retry_request_retains_terms_and_waiting_time_not_run_time(quota: Quota) -> None:
    now = timezone.now()
    request = ask(quota, terms=Terms(idle="force", bids=[{"percent": 50}]))
    Request.objects.update(since=now - timedelta(hours=5))
    ledger.reserve(request, [])
    Reservation.objects.update(created_at=now - timedelta(hours=4))
    ledger.ask_again("a", "b", delay=timedelta(0))
    again = Request.objects.get(holder="b")
    assert (again.idle, again.bids, again.parts) == ("force", [{"percent": 50}], request.parts)
    assert abs((timezone.now() - again.since) - timedelta(hours=1)) < timedelta(minutes=1)


def test_defaults_are_created_once(quota: Quota) -> None:
    ensure_defaults(User.objects.get())
    assert Quota.objects.count() == 1
