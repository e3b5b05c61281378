"""When something may start: only if the past says so (docs/quotas.md, "Why does it wait?").

A forecast is the range in which nine of ten earlier requests of the same quota and size had waited.  It is
shown only if, replayed over those earlier ones, each time with what was known before, it held for four of
five of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from quotas.amounts import Part
from quotas.models import Request, Reservation

LOOKED_AT: Final = 200
LEAST_KNOWN: Final = 20
"""A forecast needs so many earlier ones, and so many on which it was tried."""

HAS_TO_HOLD: Final = 0.8
LOW, HIGH = 0.05, 0.95


@dataclass(frozen=True, slots=True)
class Forecast:
    """Seconds from now, at least and at most; or why there is no forecast: `few`, `unsteady` or `longer`.

    `known` is how many earlier ones there are, `held` the share of those tried for which the forecast held.
    """

    least_s: int | None = None
    most_s: int | None = None
    because: str = ""
    known: int = 0
    held: float = 0.0


def forecast(waits: Sequence[float], waited: float) -> Forecast:
    """Return a forecast from earlier waits (seconds, oldest first) after `waited` seconds of waiting."""
    known = len(waits)
    if known < 2 * LEAST_KNOWN:
        return Forecast(because="few", known=known)
    tried = range(LEAST_KNOWN, known)
    held = sum(_is_within(waits[:at], waits[at]) for at in tried) / len(tried)
    if held < HAS_TO_HOLD:
        return Forecast(because="unsteady", known=known, held=held)
    longer = [wait for wait in waits if wait >= waited]
    if len(longer) < LEAST_KNOWN:
        return Forecast(because="longer", known=known, held=held)
    least, most = _range(longer)
    return Forecast(max(0, round(least - waited)), max(0, round(most - waited)), known=known, held=held)


def _range(waits: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(waits)
    last = len(ordered) - 1
    return ordered[int(LOW * last)], ordered[-int(-HIGH * last // 1)]


def _is_within(before: Sequence[float], wait: float) -> bool:
    least, most = _range(before)
    return least <= wait <= most


def earlier_waits(request: Request) -> list[float]:
    """How long the last requests of the same quota and about the same size had waited; one query."""
    gpus = sum(part.count * part.each.gpu_count for part in map(Part.from_json, request.parts))
    least = 1 << (gpus.bit_length() - 1) if gpus else 0
    rows = Reservation.objects.filter(quota_id=request.quota_id, gpus__gte=least, gpus__lt=2 * least or 1)
    pairs = rows.order_by("-id").values_list("created_at", "request__since")[:LOOKED_AT]
    return [max(0.0, (admitted - since).total_seconds()) for admitted, since in reversed(pairs)]
