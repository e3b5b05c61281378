"""Tickets to terminals, for clients that come with an access key or token.  Everything here blocks.

A ticket opens one terminal of one replica, once, within `TICKET_SECONDS`.  The terminal lasts no longer than
the key or token that the ticket was given for, and its owner's right.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.db.models.functions import Now

from jobs.access import sessions
from jobs.access.gateway.cookies import digest, new_secret
from jobs.access.sessions import EntryOrigin, EntryRefused
from jobs.models import AccessSession, Replica, TerminalTicket
from quotas.models import AccessKey, AccessToken, User

TICKET_SECONDS: Final = 30


def issue(user: User, replica: Replica, credential: AccessKey | AccessToken) -> str:
    """Return a ticket to a terminal of the replica.  Raises EntryRefused."""
    if not sessions.may_enter(user, replica):
        raise EntryRefused("nowhere")
    if not sessions.is_running(replica):
        raise EntryRefused("not_running")
    TerminalTicket.objects.filter(created_at__lte=Now() - timedelta(seconds=TICKET_SECONDS)).delete()
    ticket = new_secret()
    TerminalTicket.objects.create(
        digest=digest(ticket),
        user=user,
        replica=replica,
        access_key=credential if isinstance(credential, AccessKey) else None,
        access_token=credential if isinstance(credential, AccessToken) else None,
    )
    return ticket


def redeem(ticket: str, address: str) -> AccessSession:
    """Begin the terminal that a ticket is for; `address` is where the client is.  Raises EntryRefused."""
    row = (
        TerminalTicket.objects.filter(
            digest=digest(ticket), created_at__gt=Now() - timedelta(seconds=TICKET_SECONDS)
        )
        .select_related("user", "access_key", "access_token", "replica__attempt__job__owner")
        .first()
    )
    if row is None:
        raise EntryRefused("nowhere")
    used, _by_model = TerminalTicket.objects.filter(pk=row.pk).delete()
    holder = sessions.holder_of(row)
    if not used or holder is None or holder.pk != row.user_id:
        raise EntryRefused("nowhere")
    origin = EntryOrigin(
        AccessSession.Kind.TERMINAL,
        address=address,
        access_key=row.access_key,
        access_token=row.access_token,
    )
    return sessions.begin(row.user, row.replica, origin)
