"""Who holds what, for people to look at: pure queries, no decision is made from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from quotas.access import Visitor, workspaces_of
from quotas.amounts import Amounts, total
from quotas.models import Cluster, Node, Quota, Reservation, User

MOST_QUOTAS = 50


@dataclass(slots=True)
class QuotaUse:
    """A quota, what is held under it, and by how many holders."""

    quota: Quota
    held: Amounts = field(default_factory=Amounts)
    holders: int = 0


@dataclass(frozen=True, slots=True)
class Holding:
    """What one holder holds on one node."""

    holder: str
    amounts: Amounts


@dataclass(slots=True)
class NodeUse:
    """A node and what is held on it."""

    node: Node
    holdings: list[Holding] = field(default_factory=list)

    @property
    def has(self) -> Amounts:
        """All of the node."""
        return Amounts(self.node.cpu_milli, self.node.memory_mib, dict(self.node.gpus))

    @property
    def held(self) -> Amounts:
        """What is held of it."""
        result = Amounts()
        for holding in self.holdings:
            result = result + holding.amounts
        return result


def quotas_of(user: Visitor) -> list[QuotaUse]:
    """The quotas of the person's workspaces and what is held under each; two queries."""
    rows = Quota.objects.filter(workspace__in=workspaces_of(user), cluster__enabled=True)
    rows = rows.select_related("workspace", "cluster").order_by("workspace__name", "name")
    uses = {quota.pk: QuotaUse(quota) for quota in rows[:MOST_QUOTAS]}
    held = Reservation.objects.filter(quota__in=list(uses), active=True).values_list("quota_id", "amounts")
    for quota_id, amounts in held:
        use = uses[quota_id]
        use.held = use.held + Amounts.from_json(amounts)
        use.holders += 1
    return list(uses.values())


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
    """What is held in a quota and in everything below it, without what is borrowed; and by how many."""
    family = below(Quota.objects.filter(cluster_id=quota.cluster_id), quota)
    rows = Reservation.objects.filter(quota__in=family, active=True, borrowed=False)
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
    nodes = Node.objects.filter(cluster_id__in=ids).order_by("cluster_id", "name")
    uses = {(node.cluster_id, node.name): NodeUse(node) for node in nodes}
    rows = Reservation.objects.filter(cluster_id__in=ids, active=True).order_by("id")
    for cluster_id, holder, placement in rows.values_list("cluster_id", "request__holder", "placement"):
        for name, amounts in placement:
            use = uses.get((cluster_id, name))
            if use is not None:
                use.holdings.append(Holding(holder, Amounts.from_json(amounts)))
    return list(uses.values())
