"""What goes to the same channel at the same time becomes one message, however much it is."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from jobs.models import Channel, Delivery, DeliveryItem
from jobs.notifications import routing

CHANNELS: Final = 200
MOST: Final = 1000
"""Items of one message; what is more comes with the next."""


def pack() -> int:
    """Make a message of what is due, for each channel whose last one is long enough ago; how many."""
    due = DeliveryItem.objects.filter(delivery=None, due_at__lte=_gathered()).values("channel_id")
    ready = Channel.objects.filter(pk__in=due, off="", verified_at__isnull=False)
    rested = ready.filter(Q(next_at=None) | Q(next_at__lte=Now())).order_by("next_at", "id")
    return sum(_pack(pk) for pk in list(rested.values_list("pk", flat=True)[:CHANNELS]))


def _gathered() -> object:
    """The database's time, less what it takes for things that happen together to be written."""
    return Now() - timedelta(seconds=settings.CONSOLE_NOTICE_GATHER_SECONDS)


@transaction.atomic
def _pack(channel_id: int) -> bool:
    mine = Channel.objects.filter(Q(next_at=None) | Q(next_at__lte=Now()), pk=channel_id).update(
        next_at=Now() + timedelta(seconds=settings.CONSOLE_NOTICE_GAP_SECONDS)
    )
    if not mine:
        return False
    channel = Channel.objects.select_related("person", "workspace").get(pk=channel_id)
    rows = DeliveryItem.objects.filter(channel=channel, delivery=None, due_at__lte=_gathered())
    items = list(rows.select_related("occasion").order_by("id")[:MOST])
    untold = [item.pk for item in items if not routing.may_know(channel, item.occasion)]
    DeliveryItem.objects.filter(pk__in=untold).delete()
    told = [item.pk for item in items if item.pk not in set(untold)]
    if not told:
        return False
    delivery = Delivery.objects.create(channel=channel)
    DeliveryItem.objects.filter(pk__in=told).update(delivery=delivery)
    return True
