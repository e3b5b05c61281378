"""The usage ledger: what each person held on each day, in what, and what it cost.

Hour by hour, what was held is added to the rows of its day, once: the mark that says how far the ledger
goes is locked meanwhile.  The cost of that follows what changed, not how much there is; a report adds up
days, and for the time since the mark asks the reservations themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Any, Final, NamedTuple

from django.db import transaction
from django.db.models import Min, QuerySet
from django.utils import timezone

from quotas.amounts import Amounts, Part, total
from quotas.billing.pricing import Charged, Prices
from quotas.models import Reservation, Source, UsageDay, UsageMark

HOUR: Final = timedelta(hours=1)
SETTLED: Final = timedelta(minutes=1)
"""An hour is added so long after its end: whatever ended in it has been written down by then."""

MOST_HOURS: Final = 500
"""One call adds at most so many hours in which something was held."""

UNNAMED: Final = "GPU"
"""The type of GPUs that have no name."""


class Key(NamedTuple):
    """The key of a row of the ledger."""

    day: date
    quota_id: int
    person_id: int
    gpu_type: str
    spec: str


@dataclass(slots=True)
class Sums:
    """The figures of a row; the names are UsageDay's columns."""

    gpu_seconds: int = 0
    core_milliseconds: int = 0
    borrowed_seconds: int = 0
    wait_seconds: int = 0
    starts: int = 0
    cost_micro: int = 0

    def add(self, other: Sums) -> None:
        """Add another row's."""
        for column in FIGURES:
            setattr(self, column, getattr(self, column) + getattr(other, column))


FIGURES: Final = tuple(field.name for field in fields(Sums))


def roll_up(now: datetime | None = None) -> int:
    """Add every hour that is over and not in the ledger yet; return for how many something was added."""
    end = ((now or timezone.now()) - SETTLED).replace(minute=0, second=0, microsecond=0)
    done = 0
    while done < MOST_HOURS and (added := _next_hour(end)) is not None:
        done += added
    return done


@transaction.atomic
def _next_hour(end: datetime) -> int | None:
    """Whether something was held in the next hour; None when there is none before `end`."""
    mark = UsageMark.objects.select_for_update().filter(pk=1).first()
    if mark is None:
        first = Reservation.objects.aggregate(first=Min("created_at"))["first"]
        if first is None:
            return None
        begin = first.replace(minute=0, second=0, microsecond=0)
        mark, _made = UsageMark.objects.get_or_create(pk=1, defaults={"until": begin})
        mark = UsageMark.objects.select_for_update().get(pk=1)
    if mark.until + HOUR > end:
        return None
    sums = tally(mark.until, mark.until + HOUR)
    _add(sums)
    mark.until = mark.until + HOUR if sums else _next_begin(mark.until + HOUR, end)
    mark.save()
    return int(bool(sums))


def _next_begin(begin: datetime, end: datetime) -> datetime:
    """The hour in which something is held again, at the latest `end`: hours of nothing are passed over."""
    rows = Reservation.objects.filter(created_at__lt=end)
    first = [
        found
        for some in (rows.filter(active=True), rows.filter(active=False, released_at__gte=begin))
        if (found := some.aggregate(first=Min("created_at"))["first"]) is not None
    ]
    if not first:
        return end
    hour: datetime = min(first).replace(minute=0, second=0, microsecond=0)
    return max(begin, min(end, hour))


def _add(sums: Mapping[Key, Sums]) -> None:
    days, quotas = {key.day for key in sums}, {key.quota_id for key in sums}
    known = {
        Key(row.day, row.quota_id, row.person_id, row.gpu_type, row.spec): row
        for row in UsageDay.objects.filter(day__in=days, quota__in=quotas)
    }
    new = []
    for key, figures in sums.items():
        row = known.get(key)
        if row is None:
            row = UsageDay(**key._asdict())
            new.append(row)
        for column in FIGURES:
            setattr(row, column, getattr(row, column) + getattr(figures, column))
    UsageDay.objects.bulk_create(new, batch_size=500)
    UsageDay.objects.bulk_update([known[key] for key in sums if key in known], FIGURES, batch_size=100)


# --- what was held between two moments -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Piece:
    """A time in which no day and no price changes, in whole seconds."""

    at: datetime
    day: date
    begin: int
    end: int

    def overlap(self, begin: int, end: int) -> int:
        return max(0, min(self.end, end) - max(self.begin, begin))


def tally(begin: datetime, end: datetime) -> dict[Key, Sums]:
    """Return usage from `begin` until `end`; a fixed number of queries.

    Moments are cut to whole seconds, so that the sums of two spans are the sums of both together.
    """
    prices = Prices.between(begin, end)
    pieces = list(_pieces(begin, end, prices))
    found: dict[Key, Sums] = defaultdict(Sums)
    for row in _reservations_between(begin, end):
        since, until = _second(row["created_at"]), _second(row["released_at"] or end)
        for piece in pieces:
            seconds = piece.overlap(since, until)
            begun = row["started_at"]
            starts = begun is not None and piece.begin <= _second(begun) < piece.end
            if seconds or starts:
                _count(found, row, piece, seconds, starts=starts, prices=prices)
    return {key: sums for key, sums in found.items() if any(getattr(sums, each) for each in FIGURES)}


def sum_cost(holders: Collection[str], now: datetime) -> int | None:
    """Return what the holders' reservations cost until `now`, in millionths; None where nothing has a price.

    Three queries; shares of a price are rounded an hour at a time, as in the ledger.
    """
    rows = list(_with_columns(Reservation.objects.filter(request__holder__in=holders)))
    if not rows:
        return None
    begin = min(row["created_at"] for row in rows)
    prices = Prices.between(begin, now)
    if prices.are_none:
        return None
    found: dict[Key, Sums] = defaultdict(Sums)
    for piece in _pieces(begin, now, prices):
        for row in rows:
            if seconds := piece.overlap(_second(row["created_at"]), _second(row["released_at"] or now)):
                _count(found, row, piece, seconds, starts=False, prices=prices)
    return sum(sums.cost_micro for sums in found.values())


def _reservations_between(begin: datetime, end: datetime) -> Iterable[Mapping[str, Any]]:
    rows = Reservation.objects.filter(created_at__lt=end)
    released = rows.filter(active=False, released_at__gte=begin)
    # Two reads, each by its index: with OR all reservations are read.
    return _with_columns(rows.filter(active=True)).union(_with_columns(released), all=True)


def _with_columns(rows: QuerySet[Reservation]) -> QuerySet[Reservation, Any]:
    return rows.values(
        "quota_id",
        "cluster_id",
        "quota__source",
        "quota__workspace_id",
        "request__owner_id",
        "request__parts",
        "request__since",
        "amounts",
        "borrowed",
        "created_at",
        "started_at",
        "released_at",
    )


def _pieces(begin: datetime, end: datetime, prices: Prices) -> Iterator[_Piece]:
    """Cut where a price changes and where an hour of the console's zone, and so a day, begins."""
    zone = timezone.get_default_timezone()
    cuts = {_second(begin), _second(end), *(_second(moment) for moment in prices.changes())}
    hour = timezone.localtime(begin, zone).replace(minute=0, second=0, microsecond=0)
    cuts |= {_second(hour + number * HOUR) for number in range(1, (end - hour) // HOUR + 2)}
    inside = sorted(cut for cut in cuts if _second(begin) <= cut <= _second(end))
    for first, last in pairwise(inside):
        at = datetime.fromtimestamp(first, tz=zone)
        yield _Piece(at, at.date(), first, last)


def _second(moment: datetime) -> int:
    return int(moment.timestamp())


def _count(
    found: dict[Key, Sums],
    row: Mapping[str, Any],
    piece: _Piece,
    seconds: int,
    *,
    starts: bool,
    prices: Prices,
) -> None:
    for number, (count, each) in enumerate(_parts(row)):
        charged = _price_of(row, piece, each, prices)
        kind = next((name or UNNAMED for name, gpus in each.gpus.items() if gpus), "")
        key = Key(piece.day, row["quota_id"], row["request__owner_id"], kind, charged.spec)
        gpu_seconds = count * each.gpu_count * seconds
        sums = Sums(
            gpu_seconds=gpu_seconds,
            core_milliseconds=count * each.cpu_milli * seconds,
            borrowed_seconds=gpu_seconds if row["borrowed"] else 0,
            cost_micro=round(charged.micro * count * seconds / 3600),
        )
        if starts and number == 0:
            waited = _second(row["started_at"]) - _second(row["request__since"])
            sums.starts, sums.wait_seconds = 1, max(0, waited)
        found[key].add(sums)


def _price_of(row: Mapping[str, Any], piece: _Piece, each: Amounts, prices: Prices) -> Charged:
    if row["quota__source"] == Source.PREEMPTIBLE:
        return prices.of_spot(piece.at, row["cluster_id"], each)
    return prices.of_spec(piece.at, row["cluster_id"], row["quota__workspace_id"], each)


def _parts(row: Mapping[str, Any]) -> Sequence[tuple[int, Amounts]]:
    """Return the requested replicas with the GPU types that they got, each of one type; what is left as a
    whole where some were given back.
    """
    held = Amounts.from_json(row["amounts"])
    parts = [Part.from_json(part) for part in row["request__parts"]]
    replicas = with_gpu_types([(part.count, part.each) for part in parts], held.gpus)
    if total(each.times(count) for count, each in replicas).to_json() != held.to_json():
        replicas = [(1, held)]
    return [(count, part) for count, each in replicas for part in _by_type(each)]


def with_gpu_types(
    replicas: Sequence[tuple[int, Amounts]], gpus: Mapping[str, int]
) -> list[tuple[int, Amounts]]:
    """Return replicas that ask for GPUs of any type with the types that `gpus` leave for them."""
    left = dict(gpus)
    for count, each in replicas:
        for kind, number in each.gpus.items():
            if kind:
                left[kind] = left.get(kind, 0) - count * number
    found: list[tuple[int, Amounts]] = []
    for count, each in replicas:
        if not each.gpus.get(""):
            found.append((count, each))
            continue
        for _replica in range(count):
            mine = _draw_types(left, each)
            if found and found[-1][1] == mine:
                found[-1] = (found[-1][0] + 1, mine)
            else:
                found.append((1, mine))
    return found


def _draw_types(left: dict[str, int], each: Amounts) -> Amounts:
    """One replica with the types that it draws from what is left, of one type where that is possible."""
    named = {kind: count for kind, count in each.gpus.items() if kind}
    wanted = each.gpus[""]
    for kind in sorted(left, key=lambda kind: (left[kind] < wanted, kind)):
        got = max(0, min(wanted, left[kind]))
        if got:
            left[kind] -= got
            wanted -= got
            named[kind] = named.get(kind, 0) + got
    if wanted:
        named[""] = wanted
    return Amounts(each.cpu_milli, each.memory_mib, named)


def _by_type(each: Amounts) -> list[Amounts]:
    kinds = [(kind, count) for kind, count in sorted(each.gpus.items()) if count]
    if len(kinds) < 2:
        return [each]
    first, *others = kinds
    return [
        Amounts(each.cpu_milli, each.memory_mib, dict([first])),
        *(Amounts(0, 0, {kind: count}) for kind, count in others),
    ]
