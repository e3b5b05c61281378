"""Cost estimates of what has not begun, by current prices.

The same prices by which the ledger charges it afterwards (`quotas.billing.ledger_days`): a spec's, or that of
preemptible resources.  In a quota that is paid for as a whole nothing is to pay; the estimate is
what the reports will count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from fractions import Fraction

from django.utils import timezone

from quotas.admission import Bid, Price
from quotas.admission.bids import cost, most_of
from quotas.amounts import Amounts, Part
from quotas.billing.pricing import Prices
from quotas.models import Quota, Source


class Billing(StrEnum):
    """How what a quota holds is paid for (DLC page, billing method)."""

    AS_YOU_GO = "as_you_go"
    SUBSCRIPTION = "subscription"


@dataclass(frozen=True, slots=True)
class CostLine:
    """`count` equal replicas, and what one of them costs in an hour, in millionths.

    `micro` None is no price set.  `spec` is the size by which it is priced, "" for none; `most_micro` is the
    most that one of preemptible resources may come to cost before it is taken back.
    """

    count: int
    each: Amounts
    spec: str = ""
    micro: int | None = None
    most_micro: int | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """Return the total cost in millionths; None where any part has no price."""

    billing: Billing
    preemptible: bool
    lines: tuple[CostLine, ...]

    @property
    def hour_micro(self) -> int | None:
        """In an hour."""
        return _sum([(line.count, line.micro) for line in self.lines])

    @property
    def most_hour_micro(self) -> int | None:
        """In an hour, at the most that was bid; None where there are no bids."""
        return _sum([(line.count, line.most_micro) for line in self.lines]) if self.preemptible else None

    @property
    def is_priced(self) -> bool:
        """Whether everything in it has a price."""
        return self.hour_micro is not None

    def over(self, seconds: int) -> int | None:
        """In so many seconds."""
        hour = self.hour_micro
        return None if hour is None else round(Fraction(hour * seconds, 3600))


def _sum(pairs: Sequence[tuple[int, int | None]]) -> int | None:
    found = [(count, micro) for count, micro in pairs if micro is not None]
    return sum(count * micro for count, micro in found) if len(found) == len(pairs) else None


def estimate(
    quota: Quota, parts: Sequence[Part], bids: Sequence[Bid], spot: dict[str, Price] | None = None
) -> Estimate:
    """Return what `parts` would cost in the quota; `spot` has the prices of preemptible resources.

    One query, or none of preemptible resources.
    """
    if quota.source == Source.PREEMPTIBLE:
        prices = spot or {}
        lines = [
            _spot(part, bids[index] if index < len(bids) else Bid(), prices)
            for index, part in enumerate(parts)
        ]
        return Estimate(Billing.AS_YOU_GO, True, tuple(lines))
    now = timezone.now()
    held = Prices.between(now, now + timedelta(seconds=1))
    billing = Billing.AS_YOU_GO if quota.source == Source.PUBLIC else Billing.SUBSCRIPTION
    lines = []
    for part in parts:
        charged = held.of_spec(now, quota.cluster_id, quota.workspace_id, part.each)
        micro = round(charged.micro) if charged.spec else None
        lines.append(CostLine(part.count, part.each, charged.spec, micro))
    return Estimate(billing, False, tuple(lines))


def _spot(part: Part, bid: Bid, prices: dict[str, Price]) -> CostLine:
    if not _has_price(part.each, prices):
        return CostLine(part.count, part.each)
    market, now = cost(part.each, prices)
    return CostLine(part.count, part.each, "", now, most_of(bid, market))


def _has_price(each: Amounts, prices: dict[str, Price]) -> bool:
    """Of a GPU of any type one of them is enough; what has none is priced by its cores."""
    if not each.gpu_count:
        return "" in prices
    of_gpus = set(prices) - {""}
    return bool(of_gpus) and set(each.gpus) - {""} <= of_gpus
