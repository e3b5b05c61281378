"""Reports from the usage ledger: use and cost by workspace, person, GPU type, spec, quota, day or month."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Any, Final

from django.db.models import F, Q, QuerySet, Sum
from django.db.models.functions import TruncMonth
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from quotas.access import Visitor, managed_by
from quotas.billing import ledger_days
from quotas.billing.ledger_days import FIGURES, Key, Sums
from quotas.models import Quota, UsageDay, UsageMark, User
from quotas.sheets import lines

DIMENSIONS: Final = {
    "month": _("Month"),
    "day": _("Day"),
    "workspace": _("Workspace"),
    "person": _("User"),
    "quota": _("Resource quota"),
    "source": _("Source"),
    "gpu_type": _("GPU type"),
    "spec": _("Spec"),
}
"""By what a report can be divided."""

_COLUMNS: Final[Mapping[str, Any]] = {
    "month": TruncMonth("day"),
    "workspace": F("quota__workspace__slug"),
    "person": F("person__username"),
    "quota": F("quota__slug"),
    "source": F("quota__source"),
}

FIGURE_NAMES: Final = (
    "gpu_hours",
    "core_hours",
    "borrowed_gpu_hours",
    "starts",
    "mean_wait_seconds",
    "cost",
)

PIECE: Final = 500
BEHIND: Final = timedelta(days=2)
"""So much that is not in the ledger yet is added up for a report; more is left to the worker."""


@dataclass(frozen=True, slots=True)
class ReportQuery:
    """From which day until which, both in it; divided by what; of whom.  What is empty does not matter."""

    since: date
    until: date
    by: tuple[str, ...] = ("person",)
    workspace: str = ""
    person: str = ""
    source: str = ""


@dataclass(slots=True)
class Row:
    """One line: its values of the query's dimensions, and the figures."""

    names: tuple[str, ...]
    sums: Sums = field(default_factory=Sums)

    @property
    def figures(self) -> dict[str, float | int]:
        """Return the figures by FIGURE_NAMES, rounded."""
        sums = self.sums
        return {
            "gpu_hours": round(sums.gpu_seconds / 3600, 2),
            "core_hours": round(sums.core_milliseconds / 3_600_000, 2),
            "borrowed_gpu_hours": round(sums.borrowed_seconds / 3600, 2),
            "starts": sums.starts,
            "mean_wait_seconds": round(sums.wait_seconds / sums.starts) if sums.starts else 0,
            "cost": round(sums.cost_micro / 1_000_000, 2),
        }


@dataclass(frozen=True, slots=True)
class Report:
    """The lines, and all of them together; `as_of` is until when it tells everything."""

    query: ReportQuery
    rows: Sequence[Row]
    total: Row
    as_of: datetime

    def pieces(self) -> Iterator[bytes]:
        """As CSV."""
        yield lines([(*self.query.by, *FIGURE_NAMES)])
        for first in range(0, len(self.rows), PIECE):
            some = self.rows[first : first + PIECE]
            yield lines((*row.names, *row.figures.values()) for row in some)


def today() -> date:
    """Return today's date in the time zone of the ledger."""
    return _day(timezone.now())


def _day(moment: datetime) -> date:
    return timezone.localtime(moment, timezone.get_default_timezone()).date()


def report(user: Visitor, query: ReportQuery, now: datetime | None = None, *, own: bool = False) -> Report:
    """Return usage and cost, or only the user's `own`; a fixed number of queries."""
    now = now or timezone.now()
    found: dict[tuple[str, ...], Sums] = defaultdict(Sums)
    _of_days(found, _rows(user, query, own=own), query.by)
    mark = UsageMark.objects.filter(pk=1).values_list("until", flat=True).first()
    begin = max(mark, now - BEHIND) if mark is not None else now - BEHIND
    if query.until >= _day(begin):
        _since_mark(found, user, query, ledger_days.tally(begin, now), own=own)
    rows = [Row(names, sums) for names, sums in found.items()]
    rows.sort(key=lambda row: (-row.sums.gpu_seconds, -row.sums.core_milliseconds, row.names))
    times = [at for at, name in enumerate(query.by) if name in {"month", "day"}]
    rows.sort(key=lambda row: [row.names[at] for at in times])
    total = Row(())
    for row in rows:
        total.sums.add(row.sums)
    return Report(query, rows, total, now)


def by_day(user: Visitor, query: ReportQuery) -> Report:
    """The same by day and by the query's first dimension that is no time, for a chart."""
    other = [name for name in query.by if name not in {"day", "month"}][:1]
    return report(user, replace(query, by=("day", *other)))


def _open_to(user: Visitor, *, own: bool) -> Q:
    """Of whose use the person may read: their own, and everybody's in the workspaces that they manage."""
    if not isinstance(user, User) or not user.is_active:
        return Q(pk__in=[])
    if own:
        return Q(person=user.pk)
    if user.is_superuser:
        return Q()
    return Q(person=user.pk) | Q(quota__workspace__in=managed_by(user).values_list("pk", flat=True))


def _rows(user: Visitor, query: ReportQuery, *, own: bool) -> QuerySet[UsageDay]:
    rows = UsageDay.objects.filter(_open_to(user, own=own), day__gte=query.since, day__lte=query.until)
    if query.workspace:
        rows = rows.filter(quota__workspace__slug=query.workspace)
    if query.person:
        rows = rows.filter(person__username=query.person)
    if query.source:
        rows = rows.filter(quota__source=query.source)
    return rows.order_by()


def _of_days(found: dict[tuple[str, ...], Sums], rows: QuerySet[UsageDay], by: Sequence[str]) -> None:
    named = {f"by_{name}": _COLUMNS.get(name, F(name)) for name in by}
    sums: QuerySet[UsageDay, dict[str, Any]] = rows.values(**named).annotate(  # type: ignore[assignment]
        **{f"sum_{each}": Sum(each) for each in FIGURES}
    )
    for row in sums.iterator():
        names = tuple(_name(dimension, row[f"by_{dimension}"]) for dimension in by)
        found[names].add(Sums(**{each: row[f"sum_{each}"] or 0 for each in FIGURES}))


def _name(dimension: str, value: Any) -> str:
    if dimension == "month":
        return f"{value:%Y-%m}"
    return value.isoformat() if dimension == "day" else str(value)


def _since_mark(
    found: dict[tuple[str, ...], Sums],
    user: Visitor,
    query: ReportQuery,
    sums: Mapping[Key, Sums],
    *,
    own: bool,
) -> None:
    """Add what the ledger lacks: the current hour, and hours that the worker has not added."""
    inside = {key: each for key, each in sums.items() if query.since <= key.day <= query.until}
    if not inside or not isinstance(user, User) or not user.is_active:
        return
    quotas = Quota.objects.select_related("workspace").in_bulk({key.quota_id for key in inside})
    people = dict(User.objects.filter(pk__in={key.person_id for key in inside}).values_list("pk", "username"))
    managed = set() if own else set(managed_by(user).values_list("pk", flat=True))
    for key, each in inside.items():
        values = _values(key, quotas[key.quota_id], people[key.person_id])
        wanted = all(getattr(query, name) in ("", values[name]) for name in ("workspace", "person", "source"))
        if wanted and (key.person_id == user.pk or quotas[key.quota_id].workspace_id in managed):
            found[tuple(values[name] for name in query.by)].add(each)


def _values(key: Key, quota: Quota, person: str) -> dict[str, str]:
    return {
        "month": f"{key.day:%Y-%m}",
        "day": key.day.isoformat(),
        "workspace": quota.workspace.slug,
        "person": person,
        "quota": quota.slug,
        "source": str(quota.source),
        "gpu_type": key.gpu_type,
        "spec": key.spec,
    }
