"""Past prices of resources: by the closest spec, or by the spot price."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Self

from django.db.models import Q
from django.utils import timezone

from quotas.amounts import Amounts
from quotas.models import PriceSpan


@dataclass(frozen=True, slots=True)
class Charged:
    """By which spec something is priced ("" by none), and what it costs in an hour, in millionths."""

    spec: str = ""
    micro: Fraction = Fraction(0)


NOTHING = Charged()


class Prices:
    """All prices that held at some time between two moments."""

    def __init__(self, spans: Sequence[PriceSpan]) -> None:
        self._specs = [span for span in spans if not span.spot]
        # One with hours goes before one without.
        self._spot = sorted((span for span in spans if span.spot), key=lambda span: span.from_hour is None)

    @classmethod
    def between(cls, begin: datetime, end: datetime) -> Self:
        """Return the prices from `begin` to `end`; one query."""
        held = PriceSpan.objects.filter(Q(ends=None) | Q(ends__gt=begin), begins__lt=end)
        return cls(list(held.order_by("id")))

    @property
    def are_none(self) -> bool:
        """Tell whether nothing had a price."""
        return not any(span.price_micro for span in (*self._specs, *self._spot))

    def changes(self) -> Iterable[datetime]:
        """When any of them begins or ends."""
        for span in (*self._specs, *self._spot):
            yield span.begins
            if span.ends is not None:
                yield span.ends

    def of_spec(self, at: datetime, cluster_id: int, workspace_id: int, each: Amounts) -> Charged:
        """The lowest price that a spec gives: its own for its own size, else for the part that is needed.

        The part is the largest of the shares of its cores, its memory and its GPUs, which may be more than
        one.  Only specs with GPUs of the type price what has GPUs, and only specs without them the rest.
        """
        found = [
            Charged(span.name, span.price_micro * share)
            for span in self._specs
            if _holds(span, at)
            and span.cluster_id in (None, cluster_id)
            and span.workspace_id in (None, workspace_id)
            and (share := _share(span, each)) is not None
        ]
        return min(found, key=lambda charged: (charged.micro, charged.spec), default=NOTHING)

    def of_spot(self, at: datetime, cluster_id: int, each: Amounts) -> Charged:
        """The price of each GPU by its type, or of each core where there is none.

        A GPU of any type costs what the dearest one does, as admission has it.
        """
        prices = self._spot_at(at, cluster_id)
        if not each.gpu_count:
            return Charged("", prices.get("", 0) * Fraction(each.cpu_milli, 1000))
        dearest = max((price for kind, price in prices.items() if kind), default=0)
        of_gpus = [count * (prices.get(kind, 0) if kind else dearest) for kind, count in each.gpus.items()]
        return Charged("", Fraction(sum(of_gpus)))

    def _spot_at(self, at: datetime, cluster_id: int) -> dict[str, int]:
        """Return the prices at a time by GPU type; "" is a core."""
        found: dict[str, int] = {}
        for span in self._spot:
            held = span.cluster_id == cluster_id and _holds(span, at)
            if held and in_hours(span.from_hour, span.until_hour, _hour(at)):
                found.setdefault(span.name, span.price_micro)
        return found


def _hour(at: datetime) -> int:
    return timezone.localtime(at, timezone.get_default_timezone()).hour


def in_hours(first: int | None, last: int | None, hour: int) -> bool:
    """Whether `hour` is one of those from `first` to before `last`, which may pass midnight."""
    if first is None or last is None:
        return True
    return first <= hour < last if first < last else hour >= first or hour < last


def _holds(span: PriceSpan, at: datetime) -> bool:
    """In whole seconds, as everything is counted."""
    second = int(at.timestamp())
    begins = int(span.begins.timestamp())
    return begins <= second and (span.ends is None or second < int(span.ends.timestamp()))


def _share(span: PriceSpan, each: Amounts) -> Fraction | None:
    """How much of the spec is needed; None where it is of another kind."""
    has, wanted = sum(span.gpus.values()), each.gpu_count
    kinds = set(each.gpus) - {""}
    if bool(has) != bool(wanted) or not kinds <= set(span.gpus):
        return None
    shares = [Fraction(each.cpu_milli, span.cpu_milli), Fraction(each.memory_mib, span.memory_mib)]
    return max([*shares, Fraction(wanted, has)] if has else shares)
