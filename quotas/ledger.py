"""The ledger: who holds what.  The only writer of requests' states and reservations.

Usage is always the sum of active reservations, read under one lock per cluster; there is no counter
that could drift.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models.functions import Now

from quotas.amounts import Amounts, total
from quotas.models import Cluster, Quota, Request, Reservation, User


@dataclass(frozen=True, slots=True)
class Part:
    """`count` equal replicas."""

    count: int
    each: Amounts


@dataclass(frozen=True, slots=True)
class Held:
    """What is held on a cluster: by quota (amounts and how many holders), and by node."""

    by_quota: Mapping[int, Amounts]
    holders_by_quota: Mapping[int, int]
    by_node: Mapping[str, Amounts]


@contextmanager
def locked(cluster_id: int) -> Iterator[Cluster]:
    """A transaction in which nobody else admits or releases on this cluster.

    PostgreSQL locks the cluster's row; SQLite has one writer anyway (its transactions are IMMEDIATE).
    """
    with transaction.atomic():
        yield Cluster.objects.select_for_update().get(pk=cluster_id)


def ask(
    holder: str,
    *,
    quota: Quota,
    owner: User,
    parts: Sequence[Part],
    priority: int,
    declared_s: int | None,
    not_before: datetime | None = None,
) -> Request:
    """Write the request row of `holder`; belongs into the transaction that makes the holder."""
    return Request.objects.create(
        holder=holder,
        cluster_id=quota.cluster_id,
        quota=quota,
        owner=owner,
        parts=[[part.count, part.each.to_json()] for part in parts],
        priority=priority,
        declared_s=declared_s,
        not_before=not_before,
    )


def ask_again(holder: str, successor: str, *, delay: timedelta) -> None:
    """Write `successor`'s request as `holder`'s was, to be looked at after `delay`."""
    old = Request.objects.get(holder=holder)
    Request.objects.create(
        holder=successor,
        cluster_id=old.cluster_id,
        quota_id=old.quota_id,
        owner_id=old.owner_id,
        parts=old.parts,
        priority=old.priority,
        declared_s=old.declared_s,
        not_before=Now() + delay,
    )


def parts_of(request: Request) -> list[Part]:
    """The request's parts, as asked."""
    return [Part(count, Amounts.from_json(each)) for count, each in request.parts]


def held_on(cluster_id: int) -> Held:
    """Every active reservation of the cluster, summed; call it under `locked` to decide anything."""
    by_quota: dict[int, Amounts] = {}
    holders: dict[int, int] = {}
    by_node: dict[str, Amounts] = {}
    rows = Reservation.objects.filter(cluster_id=cluster_id, active=True)
    for quota_id, amounts, placement in rows.values_list("quota_id", "amounts", "placement"):
        by_quota[quota_id] = by_quota.get(quota_id, Amounts()) + Amounts.from_json(amounts)
        holders[quota_id] = holders.get(quota_id, 0) + 1
        for node, here in placement:
            by_node[node] = by_node.get(node, Amounts()) + Amounts.from_json(here)
    return Held(by_quota, holders, by_node)


def reserve(request: Request, placement: Sequence[tuple[str, Amounts]]) -> None:
    """Turn a waiting request into a reservation; under `locked` only."""
    amounts = total(part.each.times(part.count) for part in parts_of(request))
    Reservation.objects.update_or_create(
        request=request,
        defaults={
            "cluster_id": request.cluster_id,
            "quota_id": request.quota_id,
            "amounts": amounts.to_json(),
            "placement": [[node, here.to_json()] for node, here in placement],
            "active": True,
            "released_at": None,
        },
    )
    Request.objects.filter(pk=request.pk).update(state=Request.State.ADMITTED)


def put_back(holder: str) -> None:
    """Nothing was started: the request waits again, its reservation ends.  Repeating is harmless."""
    Reservation.objects.filter(request__holder=holder, active=True).update(active=False, released_at=Now())
    Request.objects.filter(holder=holder, state=Request.State.ADMITTED).update(state=Request.State.WAITING)


def close(holder: str) -> None:
    """The holder has ended, or never began: nothing is asked or held any more.  Repeating is harmless."""
    Reservation.objects.filter(request__holder=holder, active=True).update(active=False, released_at=Now())
    Request.objects.filter(holder=holder).exclude(state=Request.State.CLOSED).update(
        state=Request.State.CLOSED
    )
