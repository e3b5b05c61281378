"""A cluster's rows as admission sees them.  Call it under `ledger.locked` to decide anything."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from quotas.admission import (
    Account,
    Bid,
    Decision,
    HeldResources,
    Limits,
    Machine,
    Price,
    ResourceShape,
    Snapshot,
    Waiting,
    Why,
    Window,
)
from quotas.admission.quota_usage import QuotaUsage
from quotas.amounts import Amounts, Part
from quotas.billing.pricing import in_hours
from quotas.ledger import usage
from quotas.ledger.reports import below
from quotas.limits import job_limits
from quotas.models import (
    Admission,
    Cluster,
    Maintenance,
    Node,
    NodeState,
    Quota,
    Request,
    Reservation,
    Source,
    SpotPrice,
    User,
)
from quotas.models.limits import LEAST_RUNNING_S


def take(
    cluster: Cluster,
    now: datetime | None = None,
    *,
    asking: User | None = None,
    growing: Collection[str] = (),
) -> Snapshot:
    """Everything that admission needs to know of the cluster; a fixed number of queries.

    The limits of one person are those of whoever waits, and of who is `asking`.  `growing` are holders that
    may be restarted with more replicas now.
    """
    now = now or timezone.now()
    shapes = Shapes()
    waiting, apart = _load_waiting(cluster, now, shapes)
    quotas = list(Quota.objects.filter(cluster=cluster))
    owners = {each.owner_id for each in waiting} | ({asking.pk} if asking is not None else set())
    nodes = list(Node.objects.filter(cluster=cluster).order_by("name"))
    return Snapshot(
        now=now.timestamp(),
        accounts=_accounts(quotas, now, job_limits.load_running_limits(quotas, owners)),
        machines=[
            Machine(
                node.name,
                Amounts(node.cpu_milli, node.memory_mib, dict(node.gpus)),
                node.takes_jobs,
                Amounts.from_json(node.others),
                node.state_why if node.state == NodeState.DRAINING else None,
            )
            for node in nodes
        ],
        holdings=_load_holdings(cluster, shapes, quotas),
        waiting=waiting,
        prices=prices_of(cluster, now),
        emptied=frozenset(
            node.name
            for node in nodes
            if node.state == NodeState.DRAINING and node.empty_by is not None and node.empty_by <= now
        ),
        by_engine=cluster.admission == Admission.ENGINE,
        apart=apart,
        frozen=cluster.frozen_why if cluster.frozen_at is not None else None,
        windows=windows_of(cluster, now),
        growing=frozenset(growing),
    )


def windows_of(cluster: Cluster, now: datetime) -> list[Window]:
    """The maintenance of the cluster that is to be free of jobs, the next first."""
    mine = Q(cluster=cluster) | Q(cluster=None)
    rows = Maintenance.objects.filter(mine, keeps_free=True, until_at__gt=now).order_by("from_at")
    return [_window(row) for row in rows]


def _window(row: Maintenance) -> Window:
    return Window(row.from_at.timestamp(), row.until_at.timestamp(), row.lead_hours * 3600.0)


@dataclass(frozen=True, slots=True)
class WindowPreview:
    """The effect a maintenance window would have now, by holders.

    `blocked` wait and may not start before it is over; `overlapping` run, and may still run when it begins.
    """

    blocked: Sequence[str]
    overlapping: Sequence[str]


def preview_window(row: Maintenance, now: datetime | None = None) -> WindowPreview:
    """Return what a maintenance, saved or not, would do to the requests and reservations that are there."""
    now = now or timezone.now()
    here = {} if row.cluster_id is None else {"cluster": row.cluster_id}
    if row.until_at <= now:
        return WindowPreview((), ())
    waiting = Request.objects.filter_waiting().filter(**here).order_by("id")
    window, at = _window(row), now.timestamp()
    blocked = [
        holder
        for holder, declared_s in waiting.values_list("holder", "declared_s")
        if row.keeps_free and window.stops(at, declared_s)
    ]
    held = Reservation.objects.filter(active=True, **here).order_by("id")
    times = held.values_list("request__holder", "request__declared_s", "started_at", "created_at")
    overlapping = [
        holder
        for holder, declared_s, started_at, created_at in times
        if declared_s is None or (started_at or created_at) + timedelta(seconds=declared_s) > row.from_at
    ]
    return WindowPreview(blocked, overlapping)


def restless() -> set[int]:
    """The clusters where something may have to be taken back though nobody waits: a price, a drained node, or
    an elastic holder that has fewer replicas than it wants.
    """
    held = Reservation.objects.filter(active=True)
    priced = held.filter(quota__source=Source.PREEMPTIBLE, cluster__prices__isnull=False)
    drained = Node.objects.filter(state=NodeState.DRAINING, empty_by__lte=Now())
    return {
        *priced.order_by().values_list("cluster_id", flat=True),
        *drained.values_list("cluster_id", flat=True),
        *held.filter(counts__isnull=False).order_by().values_list("cluster_id", flat=True),
    }


class Shapes:
    """Makes equal requests share one shape, so that what is found out of one holds for all of them."""

    def __init__(self) -> None:
        self._made: dict[tuple[Any, ...], ResourceShape] = {}

    def of(self, parts: Iterable[Sequence[Any]]) -> ResourceShape:
        """The shape of a request's stored parts."""
        rows = list(parts)
        key = tuple(
            (
                count,
                each.get("cpu_milli", 0),
                each.get("memory_mib", 0),
                *sorted(each.get("gpus", {}).items()),
                *(
                    (key, tuple(value) if isinstance(value, list) else value)
                    for terms in rest
                    for key, value in sorted(terms.items())
                ),
            )
            for count, each, *rest in rows
        )
        shape = self._made.get(key)
        if shape is None:
            shape = ResourceShape(tuple(Part.from_json(row) for row in rows))
            self._made[key] = shape
        return shape


def _load_waiting(cluster: Cluster, now: datetime, shapes: Shapes) -> tuple[list[Waiting], list[Decision]]:
    rows = (
        Request.objects.filter_waiting()
        .filter(cluster=cluster)
        .values_list(
            "holder",
            "quota_id",
            "owner_id",
            "parts",
            "priority",
            "since",
            "declared_s",
            "idle",
            "bids",
            "cluster_rank",
            "workspace_rank",
            "held",
            "others",
            "not_before",
        )
    )
    line, apart = [], []
    for row in rows:
        holder, quota_id, owner_id, parts, priority, since, declared_s, idle, bids = row[:9]
        cluster_rank, workspace_rank, held, others, at = row[9:]
        aside = apart_of(holder, quota_id, held=held, others=others, not_before=at, now=now.timestamp())
        if aside is not None:
            apart.append(aside)
            continue
        line.append(
            Waiting(
                holder,
                quota_id,
                shapes.of(parts),
                priority,
                since.timestamp(),
                owner_id,
                declared_s,
                idle,
                tuple(Bid(**bid) for bid in bids),
                cluster_rank,
                workspace_rank,
            )
        )
    return line, apart


def apart_of(
    holder: str, quota_id: int, *, held: bool, not_before: datetime | None, now: float, others: bool = False
) -> Decision | None:
    """Return why a request is not in the queue yet: held, dependencies, or an earliest start."""
    if held:
        return Decision(holder, why=Why.HELD, quota_id=quota_id)
    if others:
        return Decision(holder, why=Why.OTHERS, quota_id=quota_id)
    if not_before is not None and not_before.timestamp() > now:
        until = not_before.isoformat(timespec="seconds")
        return Decision(holder, why=Why.NOT_YET, params={"until": until}, quota_id=quota_id)
    return None


def _load_holdings(cluster: Cluster, shapes: Shapes, quotas: Iterable[Quota]) -> list[HeldResources]:
    rows = Reservation.objects.filter(cluster=cluster, active=True).select_related("request").order_by("id")
    least = {quota.pk: quota.least_running_s for quota in quotas}
    return [_to_holding(row, shapes, least.get(row.quota_id, LEAST_RUNNING_S)) for row in rows]


def _to_holding(row: Reservation, shapes: Shapes, least_s: float) -> HeldResources:
    request, begun = row.request, row.started_at or row.created_at
    return HeldResources(
        holder=request.holder,
        quota_id=row.quota_id,
        amounts=Amounts.from_json(row.amounts),
        placement=tuple((node, Amounts.from_json(here)) for node, here in row.placement),
        owner_id=request.owner_id,
        priority=request.priority,
        since=row.created_at.timestamp(),
        borrowed=row.borrowed,
        running=row.started_at is not None,
        coming=row.asked_back_at is not None,
        ends_at=begun.timestamp() + request.declared_s if request.declared_s else None,
        safe_until=begun.timestamp() + least_s,
        shape=shapes.of(request.parts),
        counts=None if row.counts is None else tuple(row.counts),
        bids=tuple(Bid(**bid) for bid in request.bids),
    )


def _accounts(
    quotas: list[Quota], now: datetime, running: Mapping[int, Mapping[int, int]]
) -> dict[int, Account]:
    used_up = _used_up(quotas, now)
    return {
        quota.pk: account_of(
            quota, hours_left=quota.pk not in used_up, running_jobs=running.get(quota.pk, {})
        )
        for quota in quotas
    }


def load_quota_usage(cluster: Cluster) -> QuotaUsage:
    """Return the usage of each quota of the cluster beside its limits, now."""
    types: dict[str, int] = {}
    for gpus in Node.objects.filter(cluster=cluster).values_list("gpus", flat=True):
        for kind, count in gpus.items():
            types[kind] = types.get(kind, 0) + count
    quotas = list(Quota.objects.filter(cluster=cluster))
    accounts = _accounts(quotas, timezone.now(), {})
    return QuotaUsage(accounts, _load_holdings(cluster, Shapes(), quotas), types)


def load_quota_usage_behind(cluster: Cluster, holders: Collection[str]) -> QuotaUsage:
    """The same, beside what is set aside for those of `holders` that wait."""
    quota_usage = load_quota_usage(cluster)
    waiting, _apart = _load_waiting(cluster, timezone.now(), Shapes())
    for request in waiting:
        if request.holder in holders:
            quota_usage.set_aside(request)
    return quota_usage


def limits_of(quota: Quota) -> Limits:
    """The quota's own limits."""
    return Limits(quota.cpu_milli, quota.memory_mib, quota.gpus, dict(quota.gpus_by_type), quota.most_jobs)


def person_limits_of(quota: Quota) -> Limits:
    """The limits of one person in it."""
    return Limits(
        quota.most_cpu_of_one, quota.person_memory_mib, quota.most_gpus_of_one, jobs=quota.person_jobs
    )


def account_of(
    quota: Quota, *, hours_left: bool, running_jobs: Mapping[int, int] = MappingProxyType({})
) -> Account:
    """A quota as admission sees it; `running_jobs` are the limits of people to whom a policy gives others."""
    person = person_limits_of(quota)
    return Account(
        id=quota.pk,
        name=quota.name,
        workspace_id=quota.workspace_id,
        limits=limits_of(quota),
        person=person,
        parent_id=quota.parent_id,
        public=quota.source == Source.PUBLIC,
        preemptible=quota.source == Source.PREEMPTIBLE,
        may_borrow=quota.may_borrow,
        hours_left=hours_left,
        most_pending=quota.most_pending,
        weight=quota.fair_share_weight,
        people={owner_id: replace(person, jobs=most) for owner_id, most in running_jobs.items()},
    )


def _used_up(quotas: list[Quota], now: datetime) -> set[int]:
    """The quotas whose GPU-hours of this period are gone, with all that was held below them."""
    bounded = [quota for quota in quotas if quota.gpu_hours is not None]
    gone = set()
    for quota in bounded:
        family = below(quotas, quota)
        used = usage.gpu_seconds(family, usage.period_start(quota.period, now), now)
        if sum(used.values()) >= (quota.gpu_hours or 0) * 3600:
            gone.add(quota.pk)
    return gone


def hours_are_gone(quota: Quota) -> bool:
    """Whether the GPU-hours of the quota, or of one above it, are used up for now."""
    rows = list(Quota.objects.filter(cluster=quota.cluster_id))
    gone = _used_up(rows, timezone.now())
    above = {row.pk: row.parent_id for row in rows}
    current: int | None = quota.pk
    while current is not None:
        if current in gone:
            return True
        current = above.get(current)
    return False


def prices_of(cluster: Cluster, now: datetime) -> dict[str, Price]:
    """Return current prices of preemptible resources by GPU type; "" is a core."""
    hour = timezone.localtime(now).hour
    prices: dict[str, Price] = {}
    rows = list(SpotPrice.objects.filter(cluster=cluster))
    for row in sorted(rows, key=lambda row: row.from_hour is not None):
        if in_hours(row.from_hour, row.until_hour, hour):
            prices[row.gpu_type] = Price(row.market_micro, row.price_micro)
    return prices
