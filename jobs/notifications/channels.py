"""Commands on channels: add, rotate the secret, switch, test and confirm.  Rights are decided here."""

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

from jobs.live import triggers
from jobs.models import Channel, Delivery, NotificationRule
from jobs.models.kinds import SENT
from jobs.notifications import channel_addresses, composition
from quotas.access import role_in, workspaces_of
from quotas.models import Role, User, Workspace

MOST: Final = 20
"""Channels of one person, and of one workspace."""

MOST_RULES: Final = 20
TEST_PAUSE: Final = timedelta(seconds=15)
BOTH: Final = timedelta(hours=24)
"""Time in which deliveries are also signed with the former secret."""


class Refused(Exception):
    """The command is refused; `code` is one of `jobs.messages.deliveries`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class NewChannel:
    """A new channel and, for a webhook, its secret, which is shown once."""

    channel: Channel
    secret: str = ""


def of_person(user: User) -> QuerySet[Channel]:
    """Return the person's own channels, without their page."""
    return Channel.objects.filter(person=user).exclude(kind=Channel.Kind.PAGE)


def find_managed_workspaces(user: User) -> QuerySet[Workspace]:
    """Return the workspaces whose channels the person manages."""
    if user.is_superuser:
        return workspaces_of(user)
    return workspaces_of(user).filter(memberships__user=user, memberships__role=Role.ADMIN)


def find(user: User, pk: int) -> Channel | None:
    """Return the channel, if it is the person's own or one of a workspace that they manage."""
    rows = Channel.objects.exclude(kind=Channel.Kind.PAGE).select_related("person", "workspace")
    return rows.filter(Q(person=user) | Q(workspace__in=find_managed_workspaces(user)), pk=pk).first()


def may_keep(user: User, workspace: Workspace) -> bool:
    """Tell whether the person may change the workspace's channels."""
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
) -> NewChannel:
    """Add a channel with one rule.  Raises addresses.Wrong, Refused.

    An e-mail address gets a message first, and nothing else until it is confirmed.
    """
    entered = channel_addresses.read(kind, values)
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
    channel.encrypt({**entered.address, **({"secret": secret} if secret else {})})
    channel.save()
    scope = NotificationRule.Scope.WORKSPACE if workspace else NotificationRule.Scope.MINE
    NotificationRule.objects.create(channel=channel, events=list(SENT), scope=scope, workspace=workspace)
    if kind == Channel.Kind.EMAIL:
        _send_test(channel)
    return NewChannel(channel, secret)


def _new_secret() -> str:
    return "jcw_" + secrets.token_urlsafe(32)


def rotate(channel: Channel) -> str:
    """Replace a webhook's secret; for a day deliveries are signed with both.  Raises Refused."""
    if channel.kind != Channel.Kind.WEBHOOK:
        raise Refused("no_secret")
    address = channel.address()
    new = _new_secret()
    until = (timezone.now() + BOTH).timestamp()
    channel.encrypt({**address, "secret": new, "secret_before": address["secret"], "both_until": str(until)})
    channel.save(update_fields=["ciphertext"])
    return new


def switch(channel: Channel, *, on: bool) -> None:
    """Turn the channel on, with its failures reset, or off."""
    off = "" if on else Channel.Off.PERSON
    Channel.objects.filter(pk=channel.pk).update(off=off, failures=0)
    if on:
        triggers.trigger_on_commit("notices")


def test(channel: Channel) -> Delivery:
    """Send a test message, or the confirmation message again.  Raises Refused."""
    recent = Delivery.objects.filter(channel=channel, test=True, created_at__gt=Now() - TEST_PAUSE)
    if recent.exists():
        raise Refused("too_soon")
    return _send_test(channel)


def _send_test(channel: Channel) -> Delivery:
    delivery = Delivery.objects.create(channel=channel, test=True)
    triggers.trigger_on_commit("notices")
    return delivery


def again(user: User, public_id: uuid.UUID) -> Delivery | None:
    """Send a message again, under its old id, if the person manages the channel."""
    delivery = Delivery.objects.filter(public_id=public_id).first()
    if delivery is None or find(user, delivery.channel_id) is None:
        return None
    ended = Delivery.objects.filter(pk=delivery.pk).exclude(state=Delivery.State.WAITING)
    if ended.update(state=Delivery.State.WAITING, attempts=0, due_at=Now(), error="", detail="", code=None):
        triggers.trigger_on_commit("notices")
    return delivery


def confirm(ticket: str) -> Channel | None:
    """Confirm the channel of a link's ticket; None when the ticket has expired."""
    channel = composition.channel_of(ticket, "on", days=composition.CONFIRM_DAYS)
    if channel is not None:
        Channel.objects.filter(pk=channel.pk, verified_at=None).update(verified_at=Now())
        triggers.trigger_on_commit("notices")
    return channel


def unsubscribe(ticket: str) -> Channel | None:
    """Turn off the channel of a link's ticket; None when the ticket is wrong."""
    channel = composition.channel_of(ticket, "off")
    if channel is not None:
        Channel.objects.filter(pk=channel.pk, off="").update(off=Channel.Off.UNSUBSCRIBED)
    return channel
