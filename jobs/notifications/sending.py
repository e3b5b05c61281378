"""Sending messages until they arrive: lease, call outside any transaction, write down what came of it.

A sender that is killed between the two may have sent it; whoever finds the lease over sends it again, under
the same id.
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
from jobs.live import queue
from jobs.models import Channel, Delivery, Occasion
from jobs.models.kinds import Kind
from jobs.notifications import carriers, composing, times
from jobs.notifications.carriers.outcome import Outcome
from jobs.notifications.message import Message
from jobs.notifications.outbox import tell
from quotas.access import MANAGERS
from quotas.encryption import Unreadable
from quotas.models import User

log = structlog.get_logger(__name__)

LEASE: Final = timedelta(seconds=45)
"""Longer than a batch takes: the egress's time limit twice."""

BATCH: Final = 16
AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class Leased:
    """A delivery that is ours to send, and what it says; `outcome` when it can't be said at all."""

    pk: int
    token: str
    channel: Channel
    address: dict[str, str]
    message: Message | None
    outcome: Outcome | None = None


def send() -> int:
    """Send what is due, some at a time; answers how many tries there were."""
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
        queue.ring_notices()
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
    message = composing.compose(delivery)
    outcome = None if message else Outcome(error="nothing_left")
    return Leased(pk, token, delivery.channel, address, message, outcome)


def _try(leased: Leased) -> Outcome:
    """In a thread of its own, without the database."""
    if leased.outcome is not None or leased.message is None:
        return leased.outcome or Outcome(error="nothing_left")
    fault("notice.before_send")
    with composing.speaking_to(leased.channel):
        outcome = carriers.carry(leased.channel.kind, leased.address, leased.message)
    fault("notice.after_send")
    return outcome


@transaction.atomic
def _apply(leased: Leased, outcome: Outcome) -> None:
    mine = Delivery.objects.filter(pk=leased.pk, lease_token=leased.token, state=Delivery.State.WAITING)
    told = {
        "code": outcome.code,
        "error": outcome.error,
        "detail": outcome.detail[:300],
        "lease_until": None,
        "lease_token": "",
    }
    if not outcome.error:
        if mine.update(state=Delivery.State.SENT, **told):
            Channel.objects.filter(pk=leased.channel.pk).update(failures=0)
        return
    log.info("notice_not_sent", channel=leased.channel.pk, error=outcome.error, code=outcome.code)
    delivery = mine.first()
    if delivery is None:
        return
    if outcome.again and not delivery.test and delivery.attempts < settings.CONSOLE_NOTICE_TRIES:
        pause = max(times.retry(delivery.attempts), timedelta(seconds=outcome.pause_s))
        mine.update(due_at=Now() + pause, **told)
        return
    mine.update(state=Delivery.State.FAILED, **told)
    if not delivery.test and outcome.error != "nothing_left":
        _failed(leased.channel)


def _failed(channel: Channel) -> None:
    """One more that was given up; after some in a row the channel is turned off, and its people told."""
    Channel.objects.filter(pk=channel.pk).update(failures=F("failures") + 1)
    dead = Channel.objects.filter(pk=channel.pk, off="", failures__gte=settings.CONSOLE_NOTICE_FAILURES)
    if not dead.update(off=Channel.Off.FAILED):
        return
    params = {"channel": str(channel), "count": settings.CONSOLE_NOTICE_FAILURES}
    tell(keepers(channel), Kind.CHANNEL_OFF, params)


def keepers(channel: Channel) -> list[User]:
    """Who looks after the channel: its person, or the workspace's admins."""
    if channel.person is not None:
        return [channel.person]
    kept = User.objects.filter(
        memberships__workspace=channel.workspace_id, memberships__role__in=MANAGERS, is_active=True
    )
    return list(kept)


def forget() -> None:
    """Remove what is older than it is kept, but for what still waits to be sent."""
    old = Now() - timedelta(days=settings.CONSOLE_NOTICE_DAYS)
    Delivery.objects.filter(created_at__lt=old).delete()
    Occasion.objects.filter(routed=True, at__lt=old).exclude(
        kind=Kind.WAITS, job__ended_at=None, job__isnull=False
    ).delete()
