"""Sign-ins: whose they are (streams ask that too), which ones a person has, and ending them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.contrib.auth import get_user
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest

from quotas import audit
from quotas.access import is_active
from quotas.accounts.session_store import ReferencedSession, reference_of
from quotas.audit import origin
from quotas.models import Action, SignIn, User


@dataclass(frozen=True, slots=True)
class Came:
    """By which way somebody came: `how` is "password", "ldap", "passkey", "break-glass" or a provider's name.

    The rest is what an OIDC provider calls them and this sign-in.
    """

    how: str
    provider: str = ""
    subject: str = ""
    sid: str = ""


def reference(request: HttpRequest) -> str:
    """Return what may be stored to ask later whether the request's sign-in lasts; "" without a session."""
    return reference_of(request.session.session_key)


def person_of(session: str) -> User | None:
    """Return the user who is signed in now by the session with that reference.

    None after signing out, after the session's end, after a change of password elsewhere, and for an account
    that was disabled.
    """
    request = HttpRequest()
    request.session = ReferencedSession(session)
    user = get_user(request)
    return user if isinstance(user, User) and is_active(user) else None


def remember(request: HttpRequest, user: User, came: Came) -> None:
    """`user` has just signed in with this request's session."""
    mine = SignIn.objects.filter(user=user)
    mine.filter(created_at__lt=Now() - timedelta(seconds=settings.SESSION_COOKIE_AGE)).delete()
    SignIn.objects.update_or_create(
        session_key=reference(request),
        defaults={
            "user": user,
            "how": came.how,
            "provider": came.provider,
            "subject": came.subject,
            "sid": came.sid,
            "address": origin.current().address,
            "browser": request.headers.get("User-Agent", "")[:200],
        },
    )
    with transaction.atomic():
        audit.log(Action.SIGN_IN, user, actor=user, details={"by": came.how})


def of(user: User) -> list[SignIn]:
    """The person's sign-ins that last; those of sessions that are gone are forgotten."""
    rows = list(SignIn.objects.filter(user=user))
    lasting = [row for row in rows if ReferencedSession().exists(row.session_key)]
    SignIn.objects.filter(pk__in={row.pk for row in rows} - {row.pk for row in lasting}).delete()
    return lasting


def forget(session: str) -> None:
    """The session with that reference has ended by itself, or its browser signed out."""
    SignIn.objects.filter(session_key=session).delete()


def end(sign_ins: QuerySet[SignIn], *, why: str) -> int:
    """End the sign-ins now: their next request, and within a minute their streams and terminals; how many."""
    rows = list(sign_ins.select_related("user"))
    for row in rows:
        with transaction.atomic():
            ReferencedSession(row.session_key).delete()
            row.delete()
            audit.log(Action.SIGN_IN_ENDED, row.user, details={"by": row.how, "why": why})
    return len(rows)


def end_all(user: User, *, why: str, but: str = "") -> int:
    """End every sign-in of the person, except the one whose session has the reference `but`."""
    return end(SignIn.objects.filter(user=user).exclude(session_key=but), why=why)
