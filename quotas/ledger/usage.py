"""Usage over time: GPU-hours of a period, and a row for each whole hour."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import Max, Min, Sum
from django.utils import timezone

from quotas.models import Period, Quota, Request, Reservation, UsageHour

HOUR: Final = timedelta(hours=1)
MOST_HOURS: Final = 200
"""How many hours one call makes up for."""

KEPT: Final = timedelta(days=400)

CORES: Final = ""
"""The type under which an hour's core-seconds stand."""


def period_start(period: str, now: datetime) -> datetime:
    """When the period began in which `now` lies, in the console's own time zone."""
    midnight = timezone.localtime(now).replace(hour=0, minute=0, second=0, microsecond=0)
    if period == Period.DAY:
        return midnight
    if period == Period.WEEK:
        return midnight - timedelta(days=midnight.weekday())
    return midnight.replace(day=1)


def gpu_seconds(quota_ids: Collection[int], start: datetime, now: datetime) -> dict[int, int]:
    """GPU-seconds held directly under each quota from `start` until now, without what was borrowed.

    Whole hours come from the rows of `roll_up`, the rest from the reservations themselves.
    """
    used: dict[int, int] = defaultdict(int)
    hours = UsageHour.objects.filter(quota__in=quota_ids, hour__gte=start)
    rows = (
        hours.exclude(gpu_type=CORES)
        .values("quota")
        .annotate(held=Sum("seconds"), lent=Sum("borrowed_seconds"))
    )
    for row in rows:
        used[row["quota"]] += row["held"] - row["lent"]
    last = UsageHour.objects.aggregate(last=Max("hour"))["last"]
    rest = max(start, last + HOUR) if last is not None else start
    for each in _reservations_between(rest, now, quota_ids):
        if not each["borrowed"]:
            used[each["quota_id"]] += each["gpus"] * _overlap(each, rest, now)
    return dict(used)


def _reservations_between(
    begin: datetime, end: datetime, quota_ids: Collection[int] | None = None
) -> Iterable[Mapping[str, Any]]:
    held = Reservation.objects.filter(created_at__lt=end)
    if quota_ids is not None:
        held = held.filter(quota__in=quota_ids)
    rows = held.values("quota_id", "gpus", "amounts", "borrowed", "created_at", "released_at", "active")
    # Two reads, each by its index: with OR all reservations are read.
    released = rows.filter(active=False, released_at__gt=begin)
    return rows.filter(active=True).union(released, all=True).iterator()


def _overlap(row: Mapping[str, Any], begin: datetime, end: datetime) -> int:
    until = end if row["active"] else min(end, row["released_at"])
    span: timedelta = until - max(begin, row["created_at"])
    return max(0, round(span.total_seconds()))


def roll_up(now: datetime | None = None) -> int:
    """Write the rows of every hour that is over and has none yet; answers for how many hours."""
    end = (now or timezone.now()).replace(minute=0, second=0, microsecond=0)
    last = UsageHour.objects.aggregate(last=Max("hour"))["last"]
    if last is None:
        first = Reservation.objects.aggregate(first=Min("created_at"))["first"]
        if first is None:
            return 0
        last = first.replace(minute=0, second=0, microsecond=0) - HOUR
    elif not Reservation.objects.exists():
        return 0
    hour = last + HOUR
    hour = max(hour, end - MOST_HOURS * HOUR)
    done = 0
    while hour < end:
        _roll_up(hour)
        hour += HOUR
        done += 1
    if done:
        UsageHour.objects.filter(hour__lt=end - KEPT).delete()
    return done


@transaction.atomic
def _roll_up(hour: datetime) -> None:
    held: dict[tuple[int, str], list[int]] = defaultdict(lambda: [0, 0])
    for row in _reservations_between(hour, hour + HOUR):
        seconds = _overlap(row, hour, hour + HOUR)
        kinds = {**row["amounts"].get("gpus", {}), CORES: row["amounts"].get("cpu_milli", 0) / 1000}
        for kind, count in kinds.items():
            sums = held[row["quota_id"], kind or "GPU"] if kind != CORES else held[row["quota_id"], CORES]
            sums[0] += round(seconds * count)
            sums[1] += round(seconds * count) if row["borrowed"] else 0
    waiting = Counter(Request.objects.filter_waiting().values_list("quota_id", flat=True))
    for quota_id in Quota.objects.values_list("pk", flat=True):
        held[quota_id, CORES]  # an hour in which nothing was held has a row too: it is done
    UsageHour.objects.bulk_create(
        [
            UsageHour(
                quota_id=quota_id,
                hour=hour,
                gpu_type=kind,
                seconds=sums[0],
                borrowed_seconds=sums[1],
                waiting=waiting[quota_id] if kind == CORES else 0,
            )
            for (quota_id, kind), sums in held.items()
        ],
        ignore_conflicts=True,
        batch_size=500,
    )
