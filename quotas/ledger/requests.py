"""Requests: who waits for what, and on which terms.  The only writer of requests that wait."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F, Max, Q
from django.db.models.functions import Now
from django.utils import timezone

from quotas.amounts import Part
from quotas.models import Quota, Request, Reservation, User


@dataclass(frozen=True, slots=True)
class Terms:
    """On which terms somebody waits; see `quotas.models.Request`."""

    idle: str = ""
    bids: Sequence[Mapping[str, int]] = ()
    held: bool = False
    others: bool = False
    not_before: datetime | None = None


def ask(
    holder: str,
    *,
    quota: Quota,
    owner: User,
    parts: Sequence[Part],
    priority: int,
    declared_s: int | None,
    terms: Terms = Terms(),
) -> Request:
    """Write the request row of `holder`; belongs into the transaction that makes the holder."""
    return Request.objects.create(
        holder=holder,
        cluster_id=quota.cluster_id,
        quota=quota,
        owner=owner,
        parts=[part.to_json() for part in parts],
        priority=priority,
        declared_s=declared_s,
        not_before=terms.not_before,
        idle=terms.idle,
        bids=[dict(bid) for bid in terms.bids],
        held=terms.held,
        others=terms.others,
    )


def ask_again(holder: str, successor: str, *, delay: timedelta) -> None:
    """Write `successor`'s request as `holder`'s was, to be looked at after `delay`.

    What the earlier one waited counts; what it ran does not.
    """
    old = Request.objects.get(holder=holder)
    admitted = Reservation.objects.filter(request=old).values_list("created_at", flat=True).first()
    Request.objects.create(
        holder=successor,
        cluster_id=old.cluster_id,
        quota_id=old.quota_id,
        owner_id=old.owner_id,
        parts=old.parts,
        priority=old.priority,
        declared_s=old.declared_s,
        not_before=Now() + delay,
        idle=old.idle,
        bids=old.bids,
        since=timezone.now() - ((admitted or timezone.now()) - old.since),
    )


def parts_of(request: Request) -> list[Part]:
    """Return the requested parts."""
    return [Part.from_json(part) for part in request.parts]


def stored_parts(holders: Collection[str]) -> dict[str, list[object]]:
    """Return the stored parts of each request, by holder."""
    return dict(Request.objects.filter(holder__in=holders).values_list("holder", "parts"))


def correct(holder: str, parts: Sequence[Part]) -> bool:
    """Set the parts of a request; return whether they differed."""
    parts_json = [part.to_json() for part in parts]
    row = Request.objects.filter(holder=holder).first()
    if row is None or row.parts == parts_json:
        return False
    return bool(Request.objects.filter(pk=row.pk).update(parts=parts_json))


def hold(holder: str) -> bool:
    """Keep a waiting request from starting; whether it waited and was not held."""
    waiting = Request.objects.filter(holder=holder, state=Request.State.WAITING, held=False)
    return bool(waiting.update(held=True))


def release(holder: str) -> bool:
    """The inverse of `hold`; it keeps the place that its age gives it."""
    return bool(
        Request.objects.filter(holder=holder, state=Request.State.WAITING, held=True).update(held=False)
    )


def hold_for_dependencies(holder: str) -> bool:
    """Let a waiting request stand in line only once others have ended; whether it stood there."""
    waiting = Request.objects.filter(holder=holder, state=Request.State.WAITING, others=False)
    return bool(waiting.update(others=True))


def release_dependent(holder: str) -> bool:
    """The others that a waiting request waited for have ended: it stands in line; whether it had not."""
    waiting = Request.objects.filter(holder=holder, state=Request.State.WAITING, others=True)
    return bool(waiting.update(others=False))


def waiting_for_dependencies(cluster_id: int) -> list[str]:
    """Return the holders that wait for dependencies before they enter the queue."""
    rows = Request.objects.filter_waiting().filter(cluster=cluster_id, others=True)
    return list(rows.values_list("holder", flat=True))


def prioritise(holder: str, priority: int) -> bool:
    """Give a waiting request another priority; whether it waited with a different one."""
    waiting = Request.objects.filter(holder=holder, state=Request.State.WAITING)
    return bool(waiting.exclude(priority=priority).update(priority=priority))


def move(holder: str, quota: Quota) -> bool:
    """Let a waiting request wait in another quota, with its age; whether it waited elsewhere.

    To another cluster under the locks of both, and without the rank that it had.
    """
    waiting = Request.objects.filter(holder=holder, state=Request.State.WAITING).exclude(quota=quota)
    return bool(waiting.update(quota=quota, cluster_id=quota.cluster_id, cluster_rank=0, workspace_rank=0))


def rank(holders: Sequence[str], cluster_id: int, workspace_id: int | None = None) -> None:
    """Order waiting requests of a cluster: these first, as they are listed.

    With a workspace it is the order of its requests alone.
    """
    name = "cluster_rank" if workspace_id is None else "workspace_rank"
    rows = Request.objects.filter_waiting().filter(cluster=cluster_id)
    if workspace_id is not None:
        rows = rows.filter(quota__workspace=workspace_id)
    highest = rows.aggregate(most=Max(name))["most"] or 0
    for number, holder in enumerate(reversed(holders), 1):
        Request.objects.filter(holder=holder, state=Request.State.WAITING).update(**{name: highest + number})


def ranks_of(cluster_id: int, *, of_workspace: bool) -> dict[str, int]:
    """Return the ranks of waiting requests by holder; those without one are absent."""
    name = "workspace_rank" if of_workspace else "cluster_rank"
    rows = Request.objects.filter_waiting().filter(cluster=cluster_id, **{f"{name}__gt": 0})
    return dict(rows.values_list("holder", name))


def clear_rank(holder: str, *, whole_cluster: bool) -> bool:
    """Give a waiting request its usual place; whether it had a rank.

    Its rank on the cluster stays unless `whole_cluster`.
    """
    rows = Request.objects.filter(holder=holder, state=Request.State.WAITING)
    names = ["workspace_rank", *(["cluster_rank"] if whole_cluster else [])]
    ranked = Q()
    for name in names:
        ranked |= Q(**{f"{name}__gt": 0})
    return bool(rows.filter(ranked).update(**dict.fromkeys(names, 0)))


def wait_anew(holder: str) -> bool:
    """Let a waiting request begin to wait now, without a rank; whether it waited."""
    rows = Request.objects.filter(holder=holder, state=Request.State.WAITING)
    return bool(rows.update(since=Now(), cluster_rank=0, workspace_rank=0))


def give(holders: Collection[str], owner: User) -> int:
    """Let requests that wait count as `owner`'s from now on, and return how many do."""
    waiting = Request.objects.filter(holder__in=holders, state=Request.State.WAITING)
    return waiting.update(owner=owner)


def declare_more(holder: str, seconds: int) -> None:
    """Extend the holder's declared running time by `seconds`."""
    Request.objects.filter(holder=holder, declared_s__isnull=False).update(
        declared_s=F("declared_s") + seconds
    )
