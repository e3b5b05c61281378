"""What something would cost, by the prices by which the ledger charges it afterwards."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from quotas import ledger
from quotas.admission import Bid, Price, estimates
from quotas.admission.estimates import Billing
from quotas.amounts import Amounts, Part
from quotas.billing import ledger_days
from quotas.models import Quota, Reservation, Source, Spec
from tests.factories import make_quota, make_user

pytestmark = pytest.mark.django_db

PAIR = Amounts(4000, 8192, {"A100": 2})


@pytest.fixture
def quota(db: None) -> Quota:
    Spec.objects.create(
        name="gpu.large", cpu_milli=4000, memory_mib=8192, gpus={"A100": 2}, price_micro=3_000_001
    )
    return make_quota()


@pytest.mark.parametrize("source", [Source.QUOTA, Source.PUBLIC])
def test_estimate_matches_the_charge_of_an_hour(quota: Quota, source: Source) -> None:
    Quota.objects.filter(pk=quota.pk).update(source=source)
    quota.refresh_from_db()
    parts = [Part(3, PAIR), Part(1, Amounts(1000, 1024, {"A100": 1}))]
    found = estimates.estimate(quota, parts, ())
    request = ledger.ask("a", quota=quota, owner=make_user(), parts=parts, priority=1, declared_s=None)
    ledger.reserve(request, [])
    ledger.record_start("a")
    whole_hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    begin = whole_hour + timedelta(hours=1)  # the ledger rounds what each hour of the clock cost
    Reservation.objects.update(created_at=begin - timedelta(hours=1))
    charged = sum(sums.cost_micro for sums in ledger_days.tally(begin, begin + timedelta(hours=1)).values())
    assert found.hour_micro == charged
    assert found.billing is (Billing.SUBSCRIPTION if source is Source.QUOTA else Billing.AS_YOU_GO)


def test_estimate_with_one_unpriced_part_has_no_total(quota: Quota) -> None:
    found = estimates.estimate(quota, [Part(1, PAIR), Part(1, Amounts(1000, 1024))], ())
    assert [line.micro for line in found.lines] == [3_000_001, None]
    assert (found.hour_micro, found.over(60), found.is_priced) == (None, None, False)


@pytest.mark.parametrize(
    ("bid", "most"), [(Bid(), 2_000_000), (Bid(percent=30), 600_000), (Bid(micro=1_500_000), 1_500_000)]
)
def test_bid_is_the_upper_bound_of_the_estimate(quota: Quota, bid: Bid, most: int) -> None:
    quota.source = Source.PREEMPTIBLE
    spot = {"A100": Price(1_000_000, 250_000), "": Price(10_000, 5_000)}
    found = estimates.estimate(quota, [Part(2, PAIR)], [bid], spot)
    assert (found.hour_micro, found.most_hour_micro) == (1_000_000, 2 * most)
    assert found.over(1800) == 500_000


def test_gpu_type_without_spot_price_has_no_estimate(quota: Quota) -> None:
    quota.source = Source.PREEMPTIBLE
    spot = {"A100": Price(2, 1)}
    kinds = [{"H800": 1}, {}, {"": 1}, {"A100": 1}]
    found = estimates.estimate(quota, [Part(1, Amounts(1000, 1, each)) for each in kinds], (), spot)
    assert [line.micro for line in found.lines] == [None, None, 1, 1]
