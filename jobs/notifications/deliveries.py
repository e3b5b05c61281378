"""Deliveries: one message of what is due for a channel, sent until it arrives or is given up.

A worker leases a delivery, sends it outside any transaction, and records the outcome.  A worker that is
killed in between may have sent it; the next one to find the lease expired sends it again, under the same id.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils.crypto import get_random_string

from jobs.faults import fault
from jobs.live import triggers
from jobs.models import Channel, Delivery, DeliveryItem, NotificationEvent
from jobs.models.kinds import Kind
from jobs.notifications import composition, routing, times, transports
from jobs.notifications.message import Message
from jobs.notifications.outbox import tell
from jobs.notifications.transports.outcome import Outcome
from quotas.access import MANAGERS
from quotas.encryption import Unreadable
from quotas.models import User

CHANNELS: Final = 200
MOST: Final = 1000
"""Items of one message; further ones come with the next."""


def pack() -> int:
    """Make one message of the due items of each channel that may have one now; return how many."""
    due = DeliveryItem.objects.filter(delivery=None, due_at__lte=_gather_time()).values("channel_id")
    ready = Channel.objects.filter(pk__in=due, off="", verified_at__isnull=False)
    rested = ready.filter(Q(next_at=None) | Q(next_at__lte=Now())).order_by("next_at", "id")
    return sum(_pack(pk) for pk in list(rested.values_list("pk", flat=True)[:CHANNELS]))


def _gather_time() -> object:
    """Return the database's time, less the time in which simultaneous events are gathered."""
    return Now() - timedelta(seconds=settings.CONSOLE_NOTICE_GATHER_SECONDS)


@transaction.atomic
def _pack(channel_id: int) -> bool:
    mine = Channel.objects.filter(Q(next_at=None) | Q(next_at__lte=Now()), pk=channel_id).update(
        next_at=Now() + timedelta(seconds=settings.CONSOLE_NOTICE_GAP_SECONDS)
    )
    if not mine:
        return False
    channel = Channel.objects.select_related("person", "workspace").get(pk=channel_id)
    rows = DeliveryItem.objects.filter(channel=channel, delivery=None, due_at__lte=_gather_time())
    items = list(rows.select_related("event").order_by("id")[:MOST])
    allowed = {item.pk for item in items if routing.may_know(channel, item.event)}
    DeliveryItem.objects.filter(pk__in=[item.pk for item in items if item.pk not in allowed]).delete()
    if not allowed:
        return False
    delivery = Delivery.objects.create(channel=channel)
    DeliveryItem.objects.filter(pk__in=allowed).update(delivery=delivery)
    return True


log = structlog.get_logger(__name__)

LEASE: Final = timedelta(seconds=45)
"""Longer than a batch takes: twice the time limit of a request."""

BATCH: Final = 16
AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class Leased:
    """A leased delivery and its message; `outcome` when it can't be sent at all."""

    pk: int
    token: str
    channel: Channel
    address: dict[str, str]
    message: Message | None
    outcome: Outcome | None = None


def send() -> int:
    """Send the due deliveries, a batch at a time; return the number of tries."""
    due = Delivery.objects.filter(state=Delivery.State.WAITING, due_at__lte=Now())
    free = due.filter(Q(lease_until=None) | Q(lease_until__lt=Now()))
    ready = free.filter(Q(test=True) | Q(channel__off="", channel__verified_at__isnull=False))
    found = list(ready.order_by("due_at", "id").values_list("pk", "lease_token")[: BATCH + 1])
    leased = [each for pk, token in found[:BATCH] if (each := _lease(pk, token))]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        outcomes = list(pool.map(_try, leased))
    for each, outcome in zip(leased, outcomes, strict=True):
        _apply(each, outcome)
    if len(found) > BATCH:
        triggers.trigger("notices")
    return len(leased)


def _lease(pk: int, before: str) -> Leased | None:
    token = get_random_string(16)
    taken = (
        Delivery.objects.filter(pk=pk, lease_token=before, state=Delivery.State.WAITING)
        .filter(Q(lease_until=None) | Q(lease_until__lt=Now()))
        .update(lease_token=token, lease_until=Now() + LEASE, attempts=F("attempts") + 1, tried_at=Now())
    )
    if not taken:
        return None
    delivery = Delivery.objects.select_related("channel__person", "channel__workspace").get(pk=pk)
    try:
        address = delivery.channel.address()
    except Unreadable:
        return Leased(pk, token, delivery.channel, {}, None, Outcome(error="unreadable"))
    message = composition.compose(delivery)
    outcome = None if message else Outcome(error="nothing_left")
    return Leased(pk, token, delivery.channel, address, message, outcome)


def _try(leased: Leased) -> Outcome:
    """Send one message, in a thread of its own, without the database."""
    if leased.outcome is not None or leased.message is None:
        return leased.outcome or Outcome(error="nothing_left")
    fault("notification.before_send")
    with composition.speaking_to(leased.channel):
        outcome = transports.send(leased.channel.kind, leased.address, leased.message)
    fault("notification.after_send")
    return outcome


@transaction.atomic
def _apply(leased: Leased, outcome: Outcome) -> None:
    mine = Delivery.objects.filter(pk=leased.pk, lease_token=leased.token, state=Delivery.State.WAITING)
    result = {
        "code": outcome.code,
        "error": outcome.error,
        "detail": outcome.detail[:300],
        "lease_until": None,
        "lease_token": "",
    }
    if not outcome.error:
        if mine.update(state=Delivery.State.SENT, **result):
            Channel.objects.filter(pk=leased.channel.pk).update(failures=0)
        return
    log.info("notification_not_sent", channel=leased.channel.pk, error=outcome.error, code=outcome.code)
    delivery = mine.first()
    if delivery is None:
        return
    if outcome.again and not delivery.test and delivery.attempts < settings.CONSOLE_NOTICE_TRIES:
        pause = max(times.retry(delivery.attempts), timedelta(seconds=outcome.pause_s))
        mine.update(due_at=Now() + pause, **result)
        return
    mine.update(state=Delivery.State.FAILED, **result)
    if not delivery.test and outcome.error != "nothing_left":
        _count_failure(leased.channel)


def _count_failure(channel: Channel) -> None:
    """Count a failed delivery; after some in a row turn the channel off and notify its managers."""
    Channel.objects.filter(pk=channel.pk).update(failures=F("failures") + 1)
    dead = Channel.objects.filter(pk=channel.pk, off="", failures__gte=settings.CONSOLE_NOTICE_FAILURES)
    if not dead.update(off=Channel.Off.FAILED):
        return
    params = {"channel": str(channel), "count": settings.CONSOLE_NOTICE_FAILURES}
    tell(find_managers(channel), Kind.CHANNEL_OFF, params)


def find_managers(channel: Channel) -> list[User]:
    """Return the channel's managers: its person, or the workspace's admins."""
    if channel.person is not None:
        return [channel.person]
    kept = User.objects.filter(
        memberships__workspace=channel.workspace_id, memberships__role__in=MANAGERS, is_active=True
    )
    return list(kept)


def forget() -> None:
    """Delete deliveries and events past their retention; a waiting job's event stays."""
    old = Now() - timedelta(days=settings.CONSOLE_NOTICE_DAYS)
    Delivery.objects.filter(created_at__lt=old).delete()
    NotificationEvent.objects.filter(routed=True, at__lt=old).exclude(
        kind=Kind.WAITS, job__ended_at=None, job__isnull=False
    ).delete()
