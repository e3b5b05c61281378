"""Reservations: who holds what.  The only writer of them, and of what becomes of their requests."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from quotas.amounts import Amounts, total
from quotas.clusters import gputypes
from quotas.ledger.requests import parts_of
from quotas.models import Cluster, Node, Request, Reservation

RESERVED_AT_ONCE: Final = 500


@contextmanager
def lock_cluster(cluster_id: int) -> Iterator[Cluster]:
    """A transaction in which nobody else admits or releases on this cluster.

    PostgreSQL locks the cluster's row, but not its key: whoever writes a row that names the cluster, and has
    a job that a pass waits for, goes on.  SQLite has one writer anyway (its transactions are IMMEDIATE).
    """
    with transaction.atomic():
        yield Cluster.objects.select_for_update(no_key=True).get(pk=cluster_id)


@dataclass(frozen=True, slots=True)
class Granted:
    """A reservation to make: a waiting request, and what it gets where.

    `counts` are the replicas of each of its parts, None for all of them.
    """

    request: Request
    placement: Sequence[tuple[str, Amounts]] = ()
    borrowed: bool = False
    counts: Sequence[int] | None = None


def reserve(request: Request, placement: Sequence[tuple[str, Amounts]], *, borrowed: bool = False) -> None:
    """Turn a waiting request into a reservation; under `lock_cluster` only."""
    reserve_all([Granted(request, placement, borrowed)])


def reserve_all(granted: Sequence[Granted]) -> None:
    """The same for several, by a few queries however many they are."""
    rows = [
        _reservation(each, devices) for each, devices in zip(granted, _free_devices(granted), strict=True)
    ]
    Reservation.objects.bulk_create(
        rows, RESERVED_AT_ONCE, update_conflicts=True, unique_fields=["request"], update_fields=_ANEW
    )
    for first in range(0, len(granted), RESERVED_AT_ONCE):
        some = [each.request.pk for each in granted[first : first + RESERVED_AT_ONCE]]
        Request.objects.filter(pk__in=some).update(state=Request.State.ADMITTED)


_ANEW: Final = (
    "cluster",
    "quota",
    "active",
    "borrowed",
    "created_at",
    "started_at",
    "asked_back_at",
    "released_at",
    "amounts",
    "gpus",
    "placement",
    "devices",
    "counts",
)
"""What is another one when somebody is admitted again."""


def _free_devices(granted: Sequence[Granted]) -> list[dict[str, list[int]]]:
    """Choose GPUs by index for those who start, of the types that each gets, none that another one has."""
    names = {node for each in granted for node, here in each.placement if here.gpu_count}
    if not names:
        return [{} for _each in granted]
    cluster = granted[0].request.cluster_id
    known = gputypes.names()
    free: dict[str, list[tuple[int, str]]] = {
        name: sorted((gpu["index"], gputypes.canonical(str(gpu["type"]), known)) for gpu in gpus)
        for name, gpus in Node.objects.filter(cluster=cluster, name__in=names).values_list("name", "gpu_list")
    }
    for taken in Reservation.objects.filter(cluster=cluster, active=True).values_list("devices", flat=True):
        for name, indexes in taken.items():
            free[name] = [gpu for gpu in free.get(name, []) if gpu[0] not in indexes]
    found = []
    for each in granted:
        devices: dict[str, list[int]] = {}
        for name, here in each.placement:
            for kind, count in here.gpus.items():
                mine = [gpu for gpu in free.get(name, []) if gpu[1] == kind][:count]
                free[name] = [gpu for gpu in free.get(name, []) if gpu not in mine]
                devices.setdefault(name, []).extend(index for index, _kind in mine)
        found.append({name: sorted(indexes) for name, indexes in devices.items() if indexes})
    return found


def _reservation(granted: Granted, devices: Mapping[str, Sequence[int]]) -> Reservation:
    request, placement = granted.request, granted.placement
    amounts = total(here for _node, here in placement)
    if not placement:
        amounts = total(part.each.times(part.count) for part in parts_of(request))
    return Reservation(
        request=request,
        cluster_id=request.cluster_id,
        quota_id=request.quota_id,
        borrowed=granted.borrowed,
        devices=dict(devices),
        counts=None if granted.counts is None else list(granted.counts),
        **_reservation_columns(amounts, placement),
    )


def _reservation_columns(amounts: Amounts, placement: Sequence[tuple[str, Amounts]]) -> dict[str, Any]:
    return {
        "amounts": amounts.to_json(),
        "gpus": amounts.gpu_count,
        "placement": [[node, here.to_json()] for node, here in placement],
    }


def record_start(holder: str, at: datetime | None = None) -> None:
    """Record that what was reserved is in use, since `at` by the engine's clock.  Repeating is harmless."""
    row = Reservation.objects.filter(request__holder=holder, active=True, started_at=None).first()
    if row is not None:
        Reservation.objects.filter(pk=row.pk).update(started_at=_clamp(row, at))


def _clamp(row: Reservation, at: datetime | None) -> datetime:
    """Return the moment that an engine's clock named, between the reservation's start and now."""
    now = timezone.now()
    return now if at is None else min(now, max(row.created_at, row.started_at or row.created_at, at))


def held_since(holder: str) -> datetime | None:
    """Return when the holder's resources were reserved; None where they are not."""
    rows = Reservation.objects.filter(request__holder=holder, active=True)
    return rows.values_list("created_at", flat=True).first()


def ask_back(holder: str) -> None:
    """Mark that the holder was requested to end: what it holds is coming.  Repeating is harmless."""
    Reservation.objects.filter(request__holder=holder, active=True, asked_back_at=None).update(
        asked_back_at=Now()
    )


def record_placement(holder: str, placement: Sequence[tuple[str, Amounts]]) -> None:
    """The engine has put the holder there; nowhere while it waits.  What it holds stays the same."""
    placement_json = [[node, here.to_json()] for node, here in placement]
    Reservation.objects.filter(request__holder=holder, active=True).exclude(placement=placement_json).update(
        placement=placement_json
    )


@dataclass(frozen=True, slots=True)
class Share:
    """A holder's amounts on one node; `indexes` are its GPUs there, as far as they were chosen."""

    node: str
    amounts: Amounts
    indexes: Sequence[int] = ()


def shares(holders: Collection[str]) -> dict[str, list[Share]]:
    """Return what each of them has where; one query."""
    rows = Reservation.objects.filter(request__holder__in=holders, active=True)
    return {
        holder: [Share(node, Amounts.from_json(here), devices.get(node, ())) for node, here in placement]
        for holder, placement, devices in rows.values_list("request__holder", "placement", "devices")
    }


def granted_counts(holders: Collection[str]) -> dict[str, Sequence[int]]:
    """Return the replicas of each part, of those holders that have, or had, fewer than they asked for."""
    rows = Reservation.objects.filter(request__holder__in=holders, counts__isnull=False)
    return {holder: counts or () for holder, counts in rows.values_list("request__holder", "counts")}


def short_holders(cluster_id: int) -> list[str]:
    """Return the running holders on a cluster that have fewer replicas than they asked for."""
    rows = Reservation.objects.filter(cluster=cluster_id, active=True, counts__isnull=False)
    running = rows.filter(started_at__isnull=False, asked_back_at=None)
    return list(running.values_list("request__holder", flat=True))


def rebook(holder: str, devices: Mapping[str, Sequence[int]]) -> None:
    """Book the GPUs that the holder really has, by node and index, with their types."""
    row = Reservation.objects.filter(request__holder=holder, active=True).first()
    devices_json = {node: sorted(indexes) for node, indexes in devices.items()}
    if row is None or row.devices == devices_json:
        return
    known = gputypes.names()
    nodes = Node.objects.filter(cluster=row.cluster_id, name__in=devices_json).values_list("name", "gpu_list")
    kinds = {
        (name, gpu["index"]): gputypes.canonical(str(gpu["type"]), known)
        for name, gpus in nodes
        for gpu in gpus
    }
    placement = []
    for node, here in ((node, Amounts.from_json(stored)) for node, stored in row.placement):
        found: dict[str, int] = {}
        for index in devices_json.get(node, ()):
            kind = kinds.get((node, index), "")
            found[kind] = found.get(kind, 0) + 1
        if "" in found or sum(found.values()) != here.gpu_count:
            found = dict(here.gpus)
        placement.append((node, Amounts(here.cpu_milli, here.memory_mib, found)))
    amounts = total(here for _node, here in placement)
    Reservation.objects.filter(pk=row.pk).update(
        devices=devices_json, **_reservation_columns(amounts, placement)
    )


def holders_without_types(cluster_id: int) -> list[str]:
    """Return who holds GPUs whose type is not known."""
    rows = Reservation.objects.filter(cluster=cluster_id, active=True, gpus__gt=0)
    pairs = rows.values_list("request__holder", "amounts")
    return [holder for holder, amounts in pairs if "" in amounts.get("gpus", {})]


def rebook_types(holder: str, gpus: Mapping[str, int]) -> None:
    """Book the types of GPUs that an engine has given the holder, where it asked for any."""
    row = Reservation.objects.filter(request__holder=holder, active=True).first()
    if row is None or "" not in row.amounts.get("gpus", {}) or sum(gpus.values()) != row.gpus:
        return
    placement = [(node, of_type(Amounts.from_json(here), gpus)) for node, here in row.placement]
    held = Amounts.from_json(row.amounts)
    amounts = Amounts(held.cpu_milli, held.memory_mib, dict(gpus))
    Reservation.objects.filter(pk=row.pk).update(**_reservation_columns(amounts, placement))


def types_of(holder: str) -> Mapping[str, int]:
    """Return how many GPUs of each type the holder has."""
    stored = Reservation.objects.filter(request__holder=holder, active=True).values_list("amounts", flat=True)
    return Amounts.from_json(stored.first() or {}).gpus


def of_type(here: Amounts, gpus: Mapping[str, int]) -> Amounts:
    """Return the same with GPUs of any type named, where all of `gpus` are of one type."""
    kinds = [kind for kind, count in gpus.items() if count]
    if "" not in here.gpus or len(kinds) != 1:
        return here
    return Amounts(here.cpu_milli, here.memory_mib, {kinds[0]: here.gpu_count})


def shrink(holder: str, placement: Sequence[tuple[str, Amounts]]) -> None:
    """The holder needs only `placement` from now on.  ValueError when that is more than it has anywhere."""
    with transaction.atomic():
        row = Reservation.objects.select_for_update().filter(request__holder=holder, active=True).first()
        if row is None:
            return
        has = {node: Amounts.from_json(here) for node, here in row.placement}
        for node, here in placement:
            left = has.get(node, Amounts()) - here
            if min(left.cpu_milli, left.memory_mib, *left.gpus.values()) < 0:
                raise ValueError(node)
        amounts = total(here for _node, here in placement)
        Reservation.objects.filter(pk=row.pk).update(**_reservation_columns(amounts, placement))


def put_back(holder: str) -> None:
    """Nothing was started: the request waits again, its reservation ends.  Repeating is harmless."""
    Reservation.objects.filter(request__holder=holder, active=True).update(active=False, released_at=Now())
    Request.objects.filter(holder=holder, state=Request.State.ADMITTED).update(state=Request.State.WAITING)


def close(holder: str, at: datetime | None = None) -> None:
    """End the holder's request and its reservation, that one as of `at` by the engine's clock, or now.

    Repeating is harmless.
    """
    for row in Reservation.objects.filter(request__holder=holder, active=True):
        Reservation.objects.filter(pk=row.pk, active=True).update(active=False, released_at=_clamp(row, at))
    Request.objects.filter(holder=holder).exclude(state=Request.State.CLOSED).update(
        state=Request.State.CLOSED
    )
