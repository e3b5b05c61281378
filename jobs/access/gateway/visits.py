"""Access to endpoints: tickets, visits, and the rights behind them.  Everything here blocks.

The console gives a ticket to somebody who is signed in and may enter; the endpoint's host takes it, once,
within `TICKET_SECONDS`, from the browser that began, and gives a cookie for it.  What the cookie is worth is
decided anew each time: the sign-in has to last, and the right.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Final

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from jobs.access.gateway.cookies import digest, new_secret
from jobs.models import Endpoint, EndpointVisit, Replica
from jobs.states import REPLICA_TERMINAL, TERMINAL, ReplicaState, State
from quotas import audit, encryption
from quotas.access import Verb, can
from quotas.accounts.sessions import person_of
from quotas.audit import origin
from quotas.audit.origin import Origin
from quotas.models import Action, User, Way

log = structlog.get_logger(__name__)

TICKET_SECONDS: Final = 30
USED_SECONDS: Final = 60

TOKEN_NAME: Final = "token"  # noqa: S105 a name
"""Jupyter's, under which the link's token goes where the job names no other."""


class EndpointState(StrEnum):
    """The state of an endpoint for a visitor."""

    OPEN = "open"
    STARTING = "starting"
    ENDED = "ended"
    FORBIDDEN = "forbidden"
    STRANGER = "stranger"
    NOWHERE = "nowhere"


@dataclass(frozen=True, slots=True)
class EndpointAccess:
    """The state, and, once the visitor is known, their language and the address behind the endpoint.

    `host` and `port` of `replica` (a primary key) are what the backend told, and nothing else is
    ever connected to.
    """

    state: EndpointState
    person: int = 0
    language: str = field(default="", compare=False)
    replica: int = 0
    host: str = ""
    port: int = 0


@dataclass(frozen=True, slots=True)
class Entered:
    """The cookie's value, and the token that what listens may ask for, under which name in the query."""

    secret: str
    token: str
    token_name: str


def give_ticket(user: User, session_key: str, endpoint: Endpoint, browser: str) -> str:
    """A ticket to `endpoint` for the browser whose secret has the digest `browser`.

    The right is the caller's to check.  Visits that are worth nothing any more are forgotten.
    """
    mine = EndpointVisit.objects.filter(user=user)
    mine.filter(created_at__lt=Now() - timedelta(seconds=settings.SESSION_COOKIE_AGE)).delete()
    mine.filter(created_at__lt=Now() - timedelta(seconds=TICKET_SECONDS), entered_at=None).delete()
    ticket = new_secret()
    EndpointVisit.objects.create(
        endpoint=endpoint, user=user, session_key=session_key, browser=browser, secret=digest(ticket)
    )
    return ticket


def enter(slug: str, ticket: str, browsers: Collection[str], client: str = "") -> Entered | None:
    """Redeem a ticket; None when it was used, is too old, or is another endpoint's or browser's.

    `browsers` are the secrets that the browser holds, `client` is where it is.
    """
    visit = (
        EndpointVisit.objects.filter(
            endpoint__slug=slug,
            secret=digest(ticket),
            browser__in=[digest(secret) for secret in browsers],
            entered_at=None,
            created_at__gt=Now() - timedelta(seconds=TICKET_SECONDS),
        )
        .select_related("user", "endpoint__replica__attempt__job")
        .first()
    )
    if visit is None:
        return None
    secret = new_secret()
    first = EndpointVisit.objects.filter(pk=visit.pk, entered_at=None).update(
        secret=digest(secret), entered_at=Now()
    )
    if not first or find_access(slug, [secret]).state in {EndpointState.STRANGER, EndpointState.FORBIDDEN}:
        return None
    attempt = visit.endpoint.replica.attempt
    came = Origin(Way.ENDPOINT, address=client, user=visit.user)
    with origin.of(came), transaction.atomic():
        audit.log(Action.ENTER, attempt.job, details={"endpoint": slug}, name=attempt.job.public_id)
    log.info("endpoint_entered", job=attempt.job.public_id, endpoint=slug, person=visit.user.get_username())
    return Entered(secret, _token(attempt.endpoint_token), visit.endpoint.token_name or TOKEN_NAME)


def record_refusal(slug: str, client: str, person: int = 0) -> None:
    """Record in the audit trail that a visitor was refused, or brought an invalid ticket."""
    user = User.objects.filter(pk=person).first() if person else None
    came = Origin(Way.ENDPOINT, name="", address=client, user=user)
    audit.log_refusal(slug, action=Action.ENTER, request_origin=came)


def _token(encrypted: str) -> str:
    try:
        return encryption.decrypt(encrypted) if encrypted else ""
    except encryption.Unreadable:
        log.warning("endpoint_token_unreadable")
        return ""


def find_access(slug: str, secrets: Collection[str]) -> EndpointAccess:
    """Return how a browser with the cookies `secrets` may use the endpoint."""
    visits = (
        EndpointVisit.objects.filter(
            endpoint__slug=slug,
            secret__in=[digest(secret) for secret in secrets],
            entered_at__isnull=False,
        ).select_related("endpoint__replica__attempt__job")
        if secrets
        else ()
    )
    for visit in visits:
        user = person_of(visit.session_key)
        if user is not None and user.pk == visit.user_id:
            _mark_used(visit)
            return _access_of(user, visit.endpoint)
    exists = Endpoint.objects.filter(slug=slug, replica__attempt__job__deleted_at=None).exists()
    return EndpointAccess(EndpointState.STRANGER if exists else EndpointState.NOWHERE)


def _mark_used(visit: EndpointVisit) -> None:
    """Record the use of an endpoint, once in a while."""
    if visit.seen_at is None or visit.seen_at < timezone.now() - timedelta(seconds=USED_SECONDS):
        EndpointVisit.objects.filter(pk=visit.pk).update(seen_at=Now())


def _access_of(user: User, endpoint: Endpoint) -> EndpointAccess:
    job = endpoint.replica.attempt.job
    if job.deleted_at is not None:
        return EndpointAccess(EndpointState.NOWHERE)
    if not can(user, Verb.ENTER, job):
        return EndpointAccess(EndpointState.FORBIDDEN, user.pk, user.language)
    state = _state_of(endpoint)
    return EndpointAccess(state, user.pk, user.language, endpoint.replica_id, endpoint.host, endpoint.port)


def _state_of(endpoint: Endpoint) -> EndpointState:
    """Only what is known to listen now is connected to: its port may be somebody else's tomorrow."""
    replica: Replica = endpoint.replica
    job = replica.attempt.job
    current = (replica.attempt.number, replica.run) == (job.attempt_number, job.run_number)
    if not current or State(job.state) in TERMINAL or ReplicaState(replica.state) in REPLICA_TERMINAL:
        return EndpointState.ENDED
    return (
        EndpointState.OPEN
        if endpoint.ready and replica.state == ReplicaState.RUNNING
        else EndpointState.STARTING
    )
