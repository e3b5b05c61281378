"""The day of each cluster: what is in use, what waits and why, what went wrong, and where to act.

A fixed number of queries, however many clusters, jobs and nodes there are.
"""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.contrib import admin
from django.db.models import Count, Min, Sum
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from console.monitoring import health
from jobs import clusters, messages
from jobs.lifecycle import pending_reasons
from jobs.models import Attempt, Job
from jobs.models.jobs import is_unfinished
from jobs.states import State
from quotas.audit import action_record
from quotas.ledger.usage import CORES, HOUR
from quotas.models import Cluster, Node, NodeState, Quota, Reservation, UsageHour
from quotas.models.expressions import Literal

HOURS: Final = 24
SILENT: Final = timedelta(minutes=10)
"""A cluster without an answer for so long is listed."""

NEARLY: Final = 90
"""A quota is nearly used from so many percent on."""

MOST: Final = 5
MOST_NODES: Final = 20


@dataclass(frozen=True, slots=True)
class Hour:
    """GPUs on average in one hour: `used` with what is `borrowed`, both as parts of a column of 100."""

    begins: datetime
    gpus: float
    borrowed: float
    used_part: int
    borrowed_part: int
    at: int


@dataclass(frozen=True, slots=True)
class Near:
    """A quota that is nearly used."""

    quota: Quota
    used: int
    limit: int
    percent: int


@dataclass(slots=True)
class Day:
    """One cluster."""

    cluster: Cluster
    gpus: int = 0
    used: int = 0
    borrowed: int = 0
    states: dict[str, int] = field(default_factory=dict)
    failed: int = 0
    oldest: Job | None = None
    why: str = ""
    wrong_settings: Sequence[str] = ()
    nodes: int = 0
    off: list[Node] = field(default_factory=list)
    hours: Sequence[Hour] = ()
    near: list[Near] = field(default_factory=list)
    people: list[tuple[str, int, int]] = field(default_factory=list)

    @property
    def free(self) -> int:
        """GPUs that nobody holds."""
        return max(0, self.gpus - self.used)

    @property
    def running(self) -> int:
        """Jobs that run, or are being started."""
        return sum(self.states.get(state, 0) for state in (State.RUNNING, State.PENDING, State.SUBMITTING))

    @property
    def waiting(self) -> int:
        """Jobs that wait here."""
        return self.states.get(State.QUEUED, 0)

    @property
    def lost(self) -> int:
        """Jobs that an admin may have to settle."""
        return self.states.get(State.LOST, 0)

    @property
    def silent(self) -> bool:
        """Whether it has not answered for long, though it takes jobs."""
        answered = self.cluster.answered_at
        return self.cluster.enabled and (answered is None or answered < timezone.now() - SILENT)


def page(request: HttpRequest) -> TemplateResponse:
    """The first page of the admin."""
    action_record.actor_of(request)
    context = {
        **admin.site.each_context(request),
        "title": _("Overview"),
        "days": days(timezone.now()),
        "disk": _disk(),
        "to_tidy": Attempt.objects.filter(ended_at__isnull=False, forgotten_at=None).count(),
    }
    return TemplateResponse(request, "administration/day.html", context)


@require_safe
def health_parts(request: HttpRequest) -> HttpResponse:
    """Whether every part answers, as a fragment: it may take a second."""
    action_record.actor_of(request)
    return TemplateResponse(request, "administration/health.html", {"parts": health.parts()})


def days(now: datetime) -> list[Day]:
    """Every cluster, those that take jobs first."""
    rows = Cluster.objects.order_by("-enabled", "name")
    found = {row.pk: Day(row, wrong_settings=clusters.describe_settings_problems(row)) for row in rows}
    _nodes(found)
    _resources_in_use(found)
    _jobs(found, now)
    _oldest(found)
    _near(found)
    _hours(found, now)
    return list(found.values())


def _nodes(found: Mapping[int, Day]) -> None:
    for node in Node.objects.order_by("name").defer("gpu_list").iterator():
        day = found[node.cluster_id]
        day.nodes += 1
        day.gpus += sum(node.gpus.values())
        if node.state != NodeState.SCHEDULABLE or not node.schedulable:
            day.off.append(node)


def _resources_in_use(found: Mapping[int, Day]) -> None:
    """Return the resources in use, and the largest users."""
    rows = Reservation.objects.filter(active=True).order_by()
    sums = rows.values_list("cluster_id", "borrowed").annotate(Sum("gpus"))
    for cluster_id, borrowed, gpus in sums:
        found[cluster_id].used += gpus
        found[cluster_id].borrowed += gpus if borrowed else 0
    people = rows.values_list("cluster_id", "request__owner__username").annotate(Sum("gpus"), Count("pk"))
    for cluster_id, name, gpus, count in sorted(people, key=lambda row: (-row[2], -row[3], row[1])):
        if len(found[cluster_id].people) < MOST:
            found[cluster_id].people.append((name, gpus, count))


def _jobs(found: Mapping[int, Day], now: datetime) -> None:
    counts = (
        Job.objects.filter(is_unfinished(), deleted_at=None).order_by().values_list("cluster_id", "state")
    )
    for cluster_id, state, count in counts.annotate(Count("pk")):
        found[cluster_id].states[state] = count
    since = now - HOURS * HOUR
    failed = Job.objects.filter(state=Literal(State.FAILED), ended_at__gt=since, deleted_at=None).order_by()
    for cluster_id, count in Counter(failed.values_list("cluster_id", flat=True)).items():
        found[cluster_id].failed = count


def _oldest(found: Mapping[int, Day]) -> None:
    """Return the longest wait on each cluster, and why."""
    rows = Job.objects.filter(is_unfinished(), state=State.QUEUED, deleted_at=None).order_by()
    first = rows.values_list("cluster_id").annotate(Min("pk")).values_list("pk__min", flat=True)
    jobs = list(Job.objects.filter(pk__in=list(first)).select_related("owner", "cluster"))
    pending_reasons.load_reasons(jobs)
    for job in jobs:
        reason = pending_reasons.reason_of(job)
        found[job.cluster_id].oldest = job
        found[job.cluster_id].why = messages.reason_message(reason.code, reason.params)


def _near(found: Mapping[int, Day]) -> None:
    """The quotas of which hardly any GPU or job is left."""
    quotas = {row.pk: row for row in Quota.objects.select_related("workspace")}
    used: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    rows = Reservation.objects.filter(active=True, borrowed=False).order_by()
    # The cluster comes first, as in the index of active reservations.
    sums = rows.values_list("cluster_id", "quota_id").annotate(Sum("gpus"), Count("pk"))
    for _cluster, quota_id, gpus, count in sums:
        for key in _lineage(quota_id, quotas):
            used[key][0] += gpus
            used[key][1] += count
    for key, (gpus, jobs) in used.items():
        quota = quotas[key]
        pairs = [(gpus, quota.gpus), (jobs, quota.most_jobs)]
        for has, most in pairs:
            if most and 100 * has >= NEARLY * most:
                found[quota.cluster_id].near.append(Near(quota, has, most, round(100 * has / most)))
                break
    for day in found.values():
        day.near = sorted(day.near, key=lambda near: -near.percent)[:MOST]


def _lineage(quota_id: int, quotas: Mapping[int, Quota]) -> Iterable[int]:
    seen: set[int] = set()
    at: int | None = quota_id
    while at is not None and at in quotas and at not in seen:
        seen.add(at)
        yield at
        at = quotas[at].parent_id


def _hours(found: Mapping[int, Day], now: datetime) -> None:
    """GPUs held in each whole hour of the last 24."""
    last = now.replace(minute=0, second=0, microsecond=0)
    first = last - HOURS * HOUR
    rows = UsageHour.objects.filter(hour__gte=first).exclude(gpu_type=CORES).order_by()
    sums: dict[int, dict[datetime, tuple[float, float]]] = defaultdict(dict)
    totals = rows.values_list("quota__cluster_id", "hour").annotate(Sum("seconds"), Sum("borrowed_seconds"))
    for cluster_id, hour, seconds, borrowed in totals:
        sums[cluster_id][hour] = (seconds / 3600, borrowed / 3600)
    for key, day in found.items():
        most = max([day.gpus, 1, *(gpus for gpus, _borrowed in sums[key].values())])
        day.hours = [
            _hour(first + at * HOUR, sums[key].get(first + at * HOUR, (0.0, 0.0)), most, at)
            for at in range(HOURS)
        ]


def _hour(begins: datetime, held: tuple[float, float], most: float, at: int) -> Hour:
    gpus, borrowed = held
    used_part, borrowed_part = round(100 * gpus / most), round(100 * borrowed / most)
    return Hour(begins, round(gpus, 1), round(borrowed, 1), used_part, borrowed_part, at)


def _disk() -> dict[str, Any]:
    """The disk on which the console keeps its own things."""
    usage = shutil.disk_usage(settings.CONSOLE_HOME)
    percent = round(100 * usage.used / max(1, usage.used + usage.free))  # of what may be used
    return {"free": usage.free, "percent": percent, "full": percent >= NEARLY}
