"""What people do with channels: add, change, try, turn off, remove.  Rights are decided here."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from jobs.live import queue
from jobs.models import Channel, Delivery, Rule
from jobs.models.kinds import SENT
from jobs.notifications import addresses, composing
from quotas.access import role_in, workspaces_of
from quotas.models import Role, User, Workspace

MOST: Final = 20
"""Channels of one person, and of one workspace."""

MOST_RULES: Final = 20
TEST_PAUSE: Final = timedelta(seconds=15)
BOTH: Final = timedelta(hours=24)
"""For so long deliveries are signed with a secret that was exchanged, too."""


class Refused(Exception):
    """It is not done; `code` is one of `jobs.messages.channels`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class Made:
    """A channel and, for a webhook, its secret, which is shown this once."""

    channel: Channel
    secret: str = ""


def of_person(user: User) -> QuerySet[Channel]:
    """The person's own channels, but for their page."""
    return Channel.objects.filter(person=user).exclude(kind=Channel.Kind.PAGE)


def kept_by(user: User) -> QuerySet[Workspace]:
    """The workspaces whose channels the person looks after."""
    if user.is_superuser:
        return workspaces_of(user)
    return workspaces_of(user).filter(memberships__user=user, memberships__role=Role.ADMIN)


def find(user: User, pk: int) -> Channel | None:
    """The channel, if it is the person's own or that of a workspace they keep."""
    rows = Channel.objects.exclude(kind=Channel.Kind.PAGE).select_related("person", "workspace")
    return rows.filter(Q(person=user) | Q(workspace__in=kept_by(user)), pk=pk).first()


def may_keep(user: User, workspace: Workspace) -> bool:
    """Whether the person may change the workspace's channels."""
    return role_in(user, workspace.pk) is Role.ADMIN


@transaction.atomic
def add(
    user: User,
    kind: str,
    values: Mapping[str, str],
    *,
    title: str = "",
    workspace: Workspace | None = None,
    language: str = "",
) -> Made:
    """A new channel with one rule.  Raises addresses.Wrong, Refused.

    An e-mail address is sent a message first, and hears nothing else until it was confirmed.
    """
    entered = addresses.read(kind, values)
    those = workspace.channels if workspace else user.channels
    if those.exclude(kind=Channel.Kind.PAGE).count() >= MOST:
        raise Refused("too_many")
    secret = _new_secret() if kind == Channel.Kind.WEBHOOK else ""
    channel = Channel(
        person=None if workspace else user,
        workspace=workspace,
        kind=kind,
        title=title[:100],
        shown=entered.shown,
        language=language,
        created_by=user,
        verified_at=None if kind == Channel.Kind.EMAIL else timezone.now(),
    )
    channel.put({**entered.address, **({"secret": secret} if secret else {})})
    channel.save()
    scope = Rule.Scope.WORKSPACE if workspace else Rule.Scope.MINE
    Rule.objects.create(channel=channel, events=list(SENT), scope=scope, workspace=workspace)
    if kind == Channel.Kind.EMAIL:
        _send_test(channel)
    return Made(channel, secret)


def _new_secret() -> str:
    return "jcw_" + secrets.token_urlsafe(32)


def rotate(channel: Channel) -> str:
    """Exchange a webhook's secret; for a day deliveries are signed with both.  Raises Refused."""
    if channel.kind != Channel.Kind.WEBHOOK:
        raise Refused("no_secret")
    address = channel.address()
    new = _new_secret()
    until = (timezone.now() + BOTH).timestamp()
    channel.put({**address, "secret": new, "secret_before": address["secret"], "both_until": str(until)})
    channel.save(update_fields=["ciphertext"])
    return new


def switch(channel: Channel, *, on: bool) -> None:
    """Turn it on, with its failures forgiven, or off."""
    off = "" if on else Channel.Off.PERSON
    Channel.objects.filter(pk=channel.pk).update(off=off, failures=0)
    if on:
        transaction.on_commit(queue.ring_notices)


def test(channel: Channel) -> Delivery:
    """Send a test, or an unconfirmed address its message once more.  Raises Refused."""
    recent = Delivery.objects.filter(channel=channel, test=True, created_at__gt=Now() - TEST_PAUSE)
    if recent.exists():
        raise Refused("too_soon")
    return _send_test(channel)


def _send_test(channel: Channel) -> Delivery:
    delivery = Delivery.objects.create(channel=channel, test=True)
    transaction.on_commit(queue.ring_notices)
    return delivery


def again(user: User, public_id: uuid.UUID) -> Delivery | None:
    """Send a message once more, under its old id, if the channel is one of the person's."""
    delivery = Delivery.objects.filter(public_id=public_id).first()
    if delivery is None or find(user, delivery.channel_id) is None:
        return None
    ended = Delivery.objects.filter(pk=delivery.pk).exclude(state=Delivery.State.WAITING)
    if ended.update(state=Delivery.State.WAITING, attempts=0, due_at=Now(), error="", detail="", code=None):
        transaction.on_commit(queue.ring_notices)
    return delivery


def confirm(ticket: str) -> Channel | None:
    """Whoever reads what is sent there wants it; None when the link is no longer good."""
    channel = composing.channel_of(ticket, "on", days=composing.CONFIRM_DAYS)
    if channel is not None:
        Channel.objects.filter(pk=channel.pk, verified_at=None).update(verified_at=Now())
        transaction.on_commit(queue.ring_notices)
    return channel


def unsubscribe(ticket: str) -> Channel | None:
    """Whoever reads what is sent there wants no more of it."""
    channel = composing.channel_of(ticket, "off")
    if channel is not None:
        Channel.objects.filter(pk=channel.pk, off="").update(off=Channel.Off.UNSUBSCRIBED)
    return channel
