"""Usage for pages: pure queries, no decision is made from them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Count, Sum
from django.utils import timezone

from quotas.access import Visitor, workspaces_of
from quotas.amounts import Amounts, total
from quotas.ledger import usage
from quotas.models import Cluster, Node, Quota, Reservation, UsageHour, User

MOST_QUOTAS = 50


@dataclass(slots=True)
class QuotaUse:
    """A quota, what is held in it and below it, and by how many holders.

    `held` is what runs and what is reserved for those that do not run yet; `reserved` is the latter alone.
    What the quota's jobs borrow is in neither.
    """

    quota: Quota
    held: Amounts = field(default_factory=Amounts)
    holders: int = 0
    reserved: Amounts = field(default_factory=Amounts)
    borrowed: Amounts = field(default_factory=Amounts)

    @property
    def bars(self) -> list[Bar]:
        """One bar a resource that has a limit or is in use: GPUs, each type of them, CPU, memory."""
        types = sorted({*self.quota.gpus_by_type, *self.held.gpus, *self.borrowed.gpus} - {""})
        of_all = [amounts.gpu_count for amounts in (self.held, self.reserved, self.borrowed)]
        found = [Bar("gpu", self.quota.gpus, *of_all)]
        for kind in types:
            of_type = [amounts.gpus.get(kind, 0) for amounts in (self.held, self.reserved, self.borrowed)]
            found.append(Bar(kind, self.quota.gpus_by_type.get(kind), *of_type))
        for name in ("cpu_milli", "memory_mib"):
            of_it = [getattr(amounts, name) for amounts in (self.held, self.reserved, self.borrowed)]
            found.append(Bar(name, getattr(self.quota, name), *of_it))
        return [bar for bar in found if bar.limit is not None or bar.held or bar.borrowed]


@dataclass(frozen=True, slots=True)
class Bar:
    """One resource of a quota; `held` counts what is `reserved` too."""

    kind: str
    limit: int | None
    held: int
    reserved: int
    borrowed: int

    @property
    def used(self) -> int:
        """Return what runs."""
        return self.held - self.reserved

    @property
    def free(self) -> int | None:
        """Return what the limit leaves; None without one."""
        return None if self.limit is None else max(0, self.limit - self.held)

    def percents(self) -> tuple[int, int, int]:
        """Used, reserved and borrowed as parts of a bar of 100; without a limit there is no whole."""
        if self.limit is None:
            return 0, 0, 0
        whole = max(self.limit, self.held + self.borrowed, 1)
        used, reserved = round(100 * self.used / whole), round(100 * self.reserved / whole)
        return used, min(reserved, 100 - used), min(round(100 * self.borrowed / whole), 100 - used - reserved)

    @property
    def segments(self) -> list[tuple[str, int, int]]:
        """(what, from, width) of each part that there is."""
        found, at = [], 0
        for what, width in zip(("used", "reserved", "borrowed"), self.percents(), strict=True):
            if width > 0:
                found.append((what, at, width))
            at += max(0, width)
        return found


@dataclass(frozen=True, slots=True)
class PersonUse:
    """One person's usage of a quota and below it; without a name, of those in quotas not shown."""

    username: str
    gpus: int
    holders: int


@dataclass(frozen=True, slots=True)
class NodeHolding:
    """One holder's usage of a node; `until` is its declared end, None without one."""

    holder: str
    amounts: Amounts
    until: datetime | None = None


@dataclass(slots=True)
class NodeUse:
    """A node and what is held on it."""

    node: Node
    holdings: list[NodeHolding] = field(default_factory=list)

    @property
    def others(self) -> Amounts:
        """Return usage of the node that the console did not start."""
        return Amounts.from_json(self.node.others)

    @property
    def has_others(self) -> bool:
        """Whether anything is."""
        return self.others != Amounts()

    @property
    def has(self) -> Amounts:
        """All of the node."""
        return Amounts(self.node.cpu_milli, self.node.memory_mib, dict(self.node.gpus))

    @property
    def held(self) -> Amounts:
        """Return usage of the node, from here and from elsewhere."""
        result = self.others
        for holding in self.holdings:
            result = result + holding.amounts
        return result


def quotas_of(user: Visitor) -> list[QuotaUse]:
    """The quotas of the person's workspaces and what is held in each and below it; three queries."""
    rows = Quota.objects.filter(workspace__in=workspaces_of(user), cluster__enabled=True)
    rows = rows.select_related("workspace", "cluster").order_by("workspace__name", "name")
    return _uses(rows[:MOST_QUOTAS])


def quotas_on(user: Visitor, clusters: Iterable[Cluster]) -> list[QuotaUse]:
    """The quotas of the person's workspaces on `clusters`, and what is held in each; three queries."""
    rows = Quota.objects.filter(workspace__in=workspaces_of(user), cluster__in=[each.pk for each in clusters])
    rows = rows.select_related("workspace", "cluster", "parent").order_by("cluster_id", "slug", "id")
    return _uses(rows)


def shares() -> Iterator[tuple[Quota, int, str]]:
    """Of each quota with limits, how much of the fullest one is held, in percent, and of what it is one."""
    rows = list(Quota.objects.filter(cluster__enabled=True).select_related("workspace", "cluster"))
    now = timezone.now()
    for use in _uses(rows):
        quota = use.quota
        found = [(bar.held, bar.limit, bar.kind) for bar in use.bars]
        found.append((use.holders, quota.most_jobs, "jobs"))
        if quota.gpu_hours:
            start = usage.period_start(quota.period, now)
            spent = sum(usage.gpu_seconds(below(rows, quota), start, now).values())
            found.append((spent, 3600 * quota.gpu_hours, "gpu_hours"))
        parts = [(100 * held // limit, kind) for held, limit, kind in found if limit]
        if parts:
            percent, kind = max(parts)
            yield quota, percent, kind


def _uses(rows: Iterable[Quota]) -> list[QuotaUse]:
    uses = {quota.pk: QuotaUse(quota) for quota in rows}
    clusters = {use.quota.cluster_id for use in uses.values()}
    above = dict(Quota.objects.filter(cluster__in=clusters).values_list("pk", "parent_id"))
    held = Reservation.objects.filter(cluster__in=clusters, active=True)
    for quota_id, stored, borrowed, started in held.values_list(
        "quota_id", "amounts", "borrowed", "started_at"
    ):
        amounts = Amounts.from_json(stored)
        for key in _lineage(quota_id, above):
            if (use := uses.get(key)) is not None:
                _count(use, amounts, borrowed=borrowed, running=started is not None)
    return list(uses.values())


def _lineage(quota_id: int, above: Mapping[int, int | None]) -> Iterator[int]:
    seen: set[int] = set()
    at: int | None = quota_id
    while at is not None and at not in seen:
        seen.add(at)
        yield at
        at = above.get(at)


def _count(use: QuotaUse, amounts: Amounts, *, borrowed: bool, running: bool) -> None:
    if borrowed:
        use.borrowed = use.borrowed + amounts
        return
    use.held = use.held + amounts
    use.holders += 1
    if not running:
        use.reserved = use.reserved + amounts


def people_in(quota_ids: Collection[int]) -> dict[int, list[PersonUse]]:
    """Return usage by person in each quota and below it, most GPUs first; two queries.

    Whoever holds something below in a quota that is none of `quota_ids` is not named.  What is borrowed is
    shown in its own quota alone.
    """
    clusters = Quota.objects.filter(pk__in=quota_ids).values("cluster_id")
    above = dict(Quota.objects.filter(cluster__in=clusters).values_list("pk", "parent_id"))
    # By cluster, as the index of active reservations has them: those of a quota are nearly all released.
    rows = Reservation.objects.filter(cluster__in=clusters, active=True)
    sums = rows.values_list("quota_id", "request__owner__username", "borrowed").annotate(
        total=Sum("gpus"), holders=Count("pk")
    )
    counts: dict[int, dict[str, tuple[int, int]]] = {}
    for own, username, borrowed, gpus, holders in sums:
        for key in (own,) if borrowed else _lineage(own, above):
            if key in quota_ids:
                people = counts.setdefault(key, {})
                name = username if own in quota_ids else ""
                before = people.get(name, (0, 0))
                people[name] = (before[0] + gpus, before[1] + holders)
    return {
        key: sorted(
            (PersonUse(name, *sums) for name, sums in people.items()),
            key=lambda each: (-each.gpus, -each.holders, each.username),
        )
        for key, people in counts.items()
    }


def history_of(quota_ids: Collection[int], since: datetime) -> dict[int, dict[str, list[list[float]]]]:
    """GPUs held on average in each whole hour: by quota and type, [time, GPUs]; one query."""
    rows = (
        UsageHour.objects.filter(quota__in=quota_ids, hour__gte=since).exclude(gpu_type="").order_by("hour")
    )
    found: dict[int, dict[str, list[list[float]]]] = {}
    for quota_id, kind, hour, seconds in rows.values_list("quota_id", "gpu_type", "hour", "seconds"):
        points = found.setdefault(quota_id, {}).setdefault(kind, [])
        points.append([hour.timestamp(), round(seconds / 3600, 2)])
    return found


def below(quotas: Iterable[Quota], root: Quota) -> list[int]:
    """The primary keys of `root` and of everything in it, among `quotas`."""
    children: dict[int | None, list[int]] = {}
    for quota in quotas:
        children.setdefault(quota.parent_id, []).append(quota.pk)
    family, more = [root.pk], [root.pk]
    while more:
        more = [child for parent in more for child in children.get(parent, []) if child not in family]
        family += more
    return family


def held_in(quota: Quota) -> tuple[Amounts, int]:
    """Return (amounts, holders) of a quota and those below it, without what is borrowed."""
    family = below(Quota.objects.filter(cluster_id=quota.cluster_id), quota)
    rows = Reservation.objects.filter(cluster=quota.cluster_id, quota__in=family, active=True, borrowed=False)
    held = [Amounts.from_json(amounts) for amounts in rows.values_list("amounts", flat=True)]
    return total(held), len(held)


def clusters_of(user: Visitor) -> Sequence[Cluster]:
    """The clusters where one of the person's workspaces has a quota; all of them for a superuser."""
    if isinstance(user, User) and user.is_superuser:
        return list(Cluster.objects.all())
    mine = Quota.objects.filter(workspace__in=workspaces_of(user))
    return list(Cluster.objects.filter(pk__in=mine.values("cluster_id")))


def nodes_of(clusters: Iterable[Cluster]) -> list[NodeUse]:
    """Every node of `clusters` and who holds what on it; two queries."""
    ids = [cluster.pk for cluster in clusters]
    nodes = Node.objects.filter(cluster_id__in=ids).select_related("state_by").order_by("cluster_id", "name")
    uses = {(node.cluster_id, node.name): NodeUse(node) for node in nodes}
    rows = Reservation.objects.filter(cluster_id__in=ids, active=True).order_by("id")
    columns = ("cluster_id", "request__holder", "placement", "started_at", "request__declared_s")
    for cluster_id, holder, placement, started, declared_s in rows.values_list(*columns):
        until = started + timedelta(seconds=declared_s) if started and declared_s else None
        for name, amounts in placement:
            use = uses.get((cluster_id, name))
            if use is not None:
                use.holdings.append(NodeHolding(holder, Amounts.from_json(amounts), until))
    return list(uses.values())
