"""Nodes: free and held resources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby

from django.http import HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_safe

from jobs import submission
from jobs.models import Attempt, Job
from jobs.web.http import SignedIn, live, page, signed_in
from quotas.ledger import reports
from quotas.models import Cluster, User


@dataclass(frozen=True, slots=True)
class Square:
    """One GPU.  `job` is who holds it, where the person may know; held by a stranger's job, it is None.

    `until` is when it is declared to be free again.
    """

    type: str
    held: bool = False
    job: Job | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class NodeReservation:
    """A reservation of a node in the engine, for others or for maintenance."""

    name: str
    since: datetime
    until: datetime | None
    whom: Sequence[str]
    maintenance: bool


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node with one square a GPU, and the jobs on it that the person may know of."""

    use: reports.NodeUse
    squares: Sequence[Square]
    jobs: Sequence[Job]
    others: int
    set_aside: Sequence[NodeReservation] = ()

    @property
    def free_gpus(self) -> int:
        """The number of free GPUs."""
        return sum(not square.held for square in self.squares)


@dataclass(frozen=True, slots=True)
class ClusterNodes:
    """A cluster and its nodes; `start_in` is a place of the person's there, where they may start jobs."""

    cluster: Cluster
    nodes: Sequence[NodeRow]
    start_in: str = ""


@require_safe
@signed_in
def nodes(request: SignedIn) -> HttpResponseBase:
    """Every node of the clusters that the person's workspaces may use."""
    context = {**live(request), "clusters": _clusters(request.user)}
    return page(request, "jobs/nodes.html", context, fragments={"nodes-list": "jobs/nodes/list.html"})


def _clusters(user: User) -> list[ClusterNodes]:
    clusters = reports.clusters_of(user)
    uses = reports.nodes_of(clusters)
    known = _jobs_by_holder(user, {holding.holder for use in uses for holding in use.holdings})
    aside = {cluster.pk: _list_reservations(cluster) for cluster in clusters}
    by_cluster = {
        cluster_id: [_node_row(use, known, aside[cluster_id].get(use.node.name, ())) for use in rows]
        for cluster_id, rows in groupby(uses, key=lambda use: use.node.cluster_id)
    }
    mine = {
        quota.cluster_id: submission.target_address(quota)
        for quota in submission.quotas_open_to(user).reverse()
    }
    return [
        ClusterNodes(cluster, by_cluster.get(cluster.pk, []), mine.get(cluster.pk, ""))
        for cluster in clusters
    ]


def _jobs_by_holder(user: User, holders: set[str]) -> dict[str, Job]:
    """The jobs behind those names in the ledger, as far as the person may know of them."""
    attempts = Attempt.objects.filter(key__in=holders).values_list("key", "job_id")
    job_ids = dict(attempts)
    visible = Job.objects.visible_to(user).filter(pk__in=set(job_ids.values())).select_related("owner")
    jobs = {job.pk: job for job in visible}
    return {key: jobs[job_id] for key, job_id in job_ids.items() if job_id in jobs}


def _list_reservations(cluster: Cluster) -> dict[str, list[NodeReservation]]:
    """Return current and future reservations by node name."""
    found: dict[str, list[NodeReservation]] = {}
    for each in sorted(cluster.set_aside, key=lambda each: float(each["since"])):
        until = datetime.fromtimestamp(each["until"], UTC) if each["until"] else None
        if until is None or until > timezone.now():
            since = datetime.fromtimestamp(each["since"], UTC)
            aside = NodeReservation(each["name"], since, until, each["whom"], each["maintenance"])
            for node in each["nodes"]:
                found.setdefault(node, []).append(aside)
    return found


def _node_row(use: reports.NodeUse, known: Mapping[str, Job], aside: Sequence[NodeReservation]) -> NodeRow:
    jobs = {
        known[holding.holder].pk: known[holding.holder] for holding in use.holdings if holding.holder in known
    }
    others = sum(holding.holder not in known for holding in use.holdings)
    return NodeRow(use, _squares(use, known), list(jobs.values()), others, aside)


def _squares(use: reports.NodeUse, known: Mapping[str, Job]) -> list[Square]:
    """Held ones first, each type by itself: the ledger counts GPUs, it does not number them."""
    squares: list[Square] = []
    for kind, count in sorted(use.node.gpus.items()):
        held = [
            Square(kind, held=True, job=known.get(holding.holder), until=holding.until)
            for holding in use.holdings
            for _each in range(holding.amounts.gpus.get(kind, 0))
        ]
        held += [Square(kind, held=True)] * use.others.gpus.get(kind, 0)
        squares += [*held[:count], *[Square(kind)] * (count - len(held))]
    return squares
