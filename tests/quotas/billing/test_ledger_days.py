"""The usage ledger: sums of what was held are exact, whenever and however often they are made."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest
from django.conf import LazySettings
from hypothesis import HealthCheck, given
from hypothesis import settings as tried
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from quotas import ledger
from quotas.admission import bids, snapshot
from quotas.amounts import Amounts, Part
from quotas.billing import ledger_days
from quotas.billing.pricing import Prices
from quotas.models import PriceSpan, Quota, Reservation, Source, Spec, SpotPrice, UsageDay, UsageMark, User
from quotas.models import Request as Asked
from tests.factories import make_cluster, make_quota, make_user, make_workspace

BEGIN = datetime(2026, 3, 1, 10, 20, tzinfo=UTC)
HOURS = 30


def hold(
    quota: Quota,
    owner: User,
    parts: list[Part],
    *,
    at: datetime,
    until: datetime | None = None,
    holder: str = "h",
    **columns: Any,
) -> Reservation:
    """A reservation as it would have been made then."""
    request = ledger.ask(holder, quota=quota, owner=owner, parts=parts, priority=1, declared_s=None)
    ledger.reserve(request, [])
    Asked.objects.filter(pk=request.pk).update(since=at - timedelta(minutes=10))
    Reservation.objects.filter(request=request).update(
        created_at=at, started_at=at, released_at=until, active=until is None, **columns
    )
    return Reservation.objects.get(request=request)


def gpus(count: int, kind: str = "A100", cores: int = 8) -> Amounts:
    return Amounts(cores * 1000, cores * 1024, {kind: count} if count else {})


def price(spec: Spec, *, begins: datetime, ends: datetime | None = None) -> None:
    PriceSpan.objects.filter(row=spec.pk, spot=False, ends=None).update(begins=begins, ends=ends)


moments = st.integers(0, HOURS * 3600 * 1_000_000).map(lambda us: BEGIN + timedelta(microseconds=us))
spans = st.tuples(moments, moments).map(sorted)
held = st.lists(
    st.tuples(
        spans,
        st.integers(0, 2),  # whose
        st.integers(0, 1),  # in which quota
        st.integers(1, 3),  # replicas
        st.sampled_from([0, 1, 8]),  # GPUs each
        st.booleans(),  # borrowed
    ),
    max_size=8,
)


class Exact(TestCase):
    """Against the plainest way of adding up: each reservation by itself, from first second to last."""

    @tried(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
    @given(held, st.lists(moments, max_size=4).map(sorted), st.lists(moments, max_size=2).map(sorted))
    def test_usage_sums_equal_those_of_the_reservations(
        self, rows: list[Any], passes: list[datetime], changes: list[datetime]
    ) -> None:
        people = [make_user() for _ in range(3)]
        cluster = make_cluster()
        quotas = [make_quota(make_workspace(), cluster) for _ in range(2)]
        spec = Spec.objects.create(
            name="s", cpu_milli=8000, memory_mib=8192, gpus={"A100": 8}, price_micro=7_000_000
        )
        price(spec, begins=BEGIN - timedelta(days=1), ends=changes[0] if changes else None)
        for number, change in enumerate(changes):
            end = changes[number + 1] if number + 1 < len(changes) else None
            columns = {"row": spec.pk, **spec.as_priced(), "price_micro": 1_000_000 * (number + 1)}
            PriceSpan.objects.create(begins=change, ends=end, **columns)
        for number, ((begin, end), who, where, count, each, borrowed) in enumerate(rows):
            part = [Part(count, gpus(each))]
            hold(
                quotas[where], people[who], part, at=begin, until=end, holder=f"h{number}", borrowed=borrowed
            )
        for moment in [*passes, BEGIN + timedelta(hours=HOURS + 2)]:
            ledger_days.roll_up(moment)
        expected: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0, 0, 0, 0])
        costs: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
        for (begin, end), who, where, count, each, borrowed in rows:
            seconds = int(end.timestamp()) - int(begin.timestamp())
            sums = expected[quotas[where].pk, people[who].pk]
            sums[0] += seconds * count * each
            sums[1] += seconds * count * 8000
            sums[2] += seconds * count * each * borrowed
            sums[3] += 1
            sums[4] += int(begin.timestamp()) - int((begin - timedelta(minutes=10)).timestamp())
            if each:
                costs[quotas[where].pk, people[who].pk] += self.cost(begin, end, changes) * count
        found: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0, 0, 0, 0])
        charged: dict[tuple[int, int], int] = defaultdict(int)
        for row in UsageDay.objects.all():
            sums = found[row.quota_id, row.person_id]
            for at, name in enumerate(
                ("gpu_seconds", "core_milliseconds", "borrowed_seconds", "starts", "wait_seconds")
            ):
                sums[at] += getattr(row, name)
            charged[row.quota_id, row.person_id] += row.cost_micro
        assert found == expected
        holders = [f"h{number}" for number in range(len(rows))]
        together = ledger_days.sum_cost(holders, BEGIN + timedelta(hours=HOURS + 2))
        assert together == (sum(charged.values()) if rows else None)
        for key, cost in costs.items():
            assert abs(charged[key] - cost) <= len(rows) * (HOURS + 5)

    @staticmethod
    def cost(begin: datetime, end: datetime, changes: list[datetime]) -> Fraction:
        """Of one replica, which takes the whole spec whatever its GPUs: it takes all its cores."""
        first, last = int(begin.timestamp()), int(end.timestamp())
        cuts = [0, *(int(each.timestamp()) for each in changes), 2**40]
        prices = [7_000_000, *(1_000_000 * (number + 1) for number in range(len(changes)))]
        return sum(
            (
                Fraction(micro * max(0, min(last, to) - max(first, since)), 3600)
                for micro, since, to in zip(prices, cuts, cuts[1:], strict=False)
            ),
            Fraction(0),
        )


pytestmark = pytest.mark.django_db


def test_two_passes_add_an_hour_once() -> None:
    hold(make_quota(), make_user(), [Part(1, gpus(2))], at=BEGIN, until=BEGIN + timedelta(hours=1))
    end = BEGIN + timedelta(hours=5)
    assert ledger_days.roll_up(end) == 2
    before = list(UsageDay.objects.values())
    assert ledger_days.roll_up(end) == 0
    assert list(UsageDay.objects.values()) == before
    assert UsageDay.objects.get().gpu_seconds == 7200
    assert UsageMark.objects.get().until == end.replace(minute=0)


def test_empty_hours_are_skipped(django_assert_max_num_queries: Any) -> None:
    quota, owner = make_quota(), make_user()
    hold(quota, owner, [Part(1, gpus(1))], at=BEGIN, until=BEGIN + timedelta(minutes=5), holder="a")
    later = BEGIN + timedelta(days=300)
    hold(quota, owner, [Part(1, gpus(1))], at=later, until=later + timedelta(minutes=5), holder="b")
    with django_assert_max_num_queries(60):
        assert ledger_days.roll_up(later + timedelta(days=30)) == 2


def test_usage_day_follows_the_console_time_zone(settings: LazySettings) -> None:
    settings.TIME_ZONE = "Asia/Kolkata"  # its days begin at half past
    midnight = datetime(2026, 3, 1, 18, 30, tzinfo=UTC)
    hold(
        make_quota(),
        make_user(),
        [Part(1, gpus(1))],
        at=midnight - timedelta(minutes=10),
        until=midnight + timedelta(minutes=20),
    )
    ledger_days.roll_up(midnight + timedelta(hours=3))
    days = dict(UsageDay.objects.values_list("day", "gpu_seconds"))
    assert {str(day): seconds for day, seconds in days.items()} == {"2026-03-01": 600, "2026-03-02": 1200}


def test_price_change_leaves_past_costs_unchanged() -> None:
    spec = Spec.objects.create(
        name="s", cpu_milli=8000, memory_mib=8192, gpus={"A100": 1}, price_micro=3_600_000
    )
    price(spec, begins=BEGIN - timedelta(days=1))
    hold(make_quota(), make_user(), [Part(2, gpus(1))], at=BEGIN, until=BEGIN + timedelta(hours=1))
    spec.price_micro = 1
    spec.save()
    ledger_days.roll_up(BEGIN + timedelta(hours=4))
    row = UsageDay.objects.get()
    assert (row.cost_micro, row.spec) == (7_200_000, "s")


@pytest.mark.parametrize(
    ("each", "cost", "named"),
    [
        (gpus(8, cores=64), 8_000_000, "big"),
        (gpus(4, cores=8), 4_000_000, "big"),
        (gpus(1, cores=8), 1_000_000, "big"),
        (gpus(1, cores=32), 4_000_000, "big"),
        (gpus(16, cores=8), 16_000_000, "big"),
        (gpus(1, "H100"), 0, ""),
        (gpus(0, cores=4), 500_000, "cpu"),
    ],
)
def test_amounts_unlike_any_spec_are_priced_by_their_share(each: Amounts, cost: int, named: str) -> None:
    for name, cores, kinds, micro in (
        ("big", 64, {"A100": 8}, 8_000_000),
        ("cpu", 8, {}, 1_000_000),
        ("dear", 8, {}, 9_000_000),
    ):
        spec = Spec.objects.create(
            name=name, cpu_milli=cores * 1000, memory_mib=cores * 1024, gpus=kinds, price_micro=micro
        )
        price(spec, begins=BEGIN - timedelta(days=1))
    hold(make_quota(), make_user(), [Part(1, each)], at=BEGIN, until=BEGIN + timedelta(hours=1))
    ledger_days.roll_up(BEGIN + timedelta(hours=4))
    row = UsageDay.objects.get()
    assert (row.cost_micro, row.spec) == (cost, named)


def test_spec_of_another_workspace_or_cluster_prices_nothing() -> None:
    quota = make_quota()
    elsewhere: list[dict[str, Any]] = [{"workspace": make_workspace()}, {"cluster": make_cluster()}]
    for number, columns in enumerate(elsewhere):
        spec = Spec.objects.create(name=f"s{number}", cpu_milli=1, memory_mib=1, price_micro=1000, **columns)
        price(spec, begins=BEGIN - timedelta(days=1))
    hold(quota, make_user(), [Part(1, gpus(0))], at=BEGIN, until=BEGIN + timedelta(hours=1))
    ledger_days.roll_up(BEGIN + timedelta(hours=4))
    assert UsageDay.objects.get().cost_micro == 0


def test_preemptible_resources_are_charged_at_hourly_spot_price() -> None:
    quota = make_quota(source=Source.PREEMPTIBLE)
    always = SpotPrice.objects.create(
        cluster=quota.cluster, gpu_type="A100", market_micro=9_000_000, price_micro=6_000_000
    )
    night = SpotPrice.objects.create(
        cluster=quota.cluster,
        gpu_type="A100",
        from_hour=11,
        until_hour=12,
        market_micro=9_000_000,
        price_micro=3_000_000,
    )
    PriceSpan.objects.update(begins=BEGIN - timedelta(days=1))
    hold(quota, make_user(), [Part(1, gpus(2))], at=BEGIN, until=BEGIN + timedelta(hours=1))
    ledger_days.roll_up(BEGIN + timedelta(hours=4))
    assert UsageDay.objects.get().cost_micro == 2 * (6_000_000 * 2 // 3 + 3_000_000 // 3)
    night.delete()
    always.delete()
    assert not PriceSpan.objects.filter(ends=None).exists()


@pytest.mark.parametrize(
    "each", [gpus(2, ""), gpus(0, cores=3), gpus(1), Amounts(1000, 1, {"": 1, "A100": 2}), gpus(1, "H9000")]
)
def test_charge_equals_the_price_compared_with_the_bid(each: Amounts) -> None:
    quota = make_quota(source=Source.PREEMPTIBLE)
    other = make_cluster()
    for kind, micro, columns in (
        ("", 10_000, {}),
        ("A100", 6_000_000, {}),
        ("A100", 1_000_000, {"from_hour": 10, "until_hour": 11}),
        ("T4", 2_000_000, {}),
        ("H100", 9_000_000, {"cluster": other}),
    ):
        row = {"cluster": quota.cluster, "gpu_type": kind, "market_micro": micro, "price_micro": micro}
        SpotPrice.objects.create(**{**row, **columns})
    PriceSpan.objects.update(begins=BEGIN - timedelta(days=1))
    for at in (BEGIN, BEGIN + timedelta(hours=5)):
        charged = Prices.between(at, at + timedelta(hours=1)).of_spot(at, quota.cluster_id, each)
        assert charged.micro == bids.cost(each, snapshot.prices_of(quota.cluster, at))[1]


def test_returned_resources_are_not_charged() -> None:
    row = hold(make_quota(), make_user(), [Part(4, gpus(1))], at=BEGIN, until=BEGIN + timedelta(hours=1))
    Reservation.objects.filter(pk=row.pk).update(amounts=gpus(1).to_json(), gpus=1)
    ledger_days.roll_up(BEGIN + timedelta(hours=4))
    assert UsageDay.objects.get().gpu_seconds == 3600


def test_pass_query_count_does_not_grow_with_reservations(django_assert_max_num_queries: Any) -> None:
    quota, owner = make_quota(), make_user()
    for number in range(40):
        hold(
            quota,
            owner,
            [Part(1, gpus(1))],
            at=BEGIN,
            until=BEGIN + timedelta(minutes=9),
            holder=f"h{number}",
        )
    with django_assert_max_num_queries(20):
        ledger_days.roll_up(BEGIN + timedelta(hours=1))
