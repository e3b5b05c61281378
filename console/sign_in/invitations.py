"""An invitation that a browser holds while its person signs in or makes an account."""

from __future__ import annotations

from django.http import HttpRequest

from quotas.accounts import invitations
from quotas.models import Invitation, User

SESSION_KEY = "invitation"


def hold(request: HttpRequest, secret: str) -> None:
    """Until somebody has signed in by this browser."""
    request.session[SESSION_KEY] = secret


def invitation_of(request: HttpRequest) -> Invitation | None:
    """Return the invitation stored in the browser session, if it can be accepted now."""
    secret = request.session.get(SESSION_KEY)
    return invitations.find(secret) if isinstance(secret, str) else None


def proves(request: HttpRequest, address: str) -> bool:
    """Whether whoever holds the invitation has read the e-mail at that address."""
    invitation = invitation_of(request)
    return bool(invitation and invitation.mailed and invitation.email.lower() == address.lower())


def accept(request: HttpRequest, user: User) -> None:
    """The person has signed in: let them in where they were invited to."""
    invitation = invitation_of(request)
    request.session.pop(SESSION_KEY, None)
    if invitation is not None:
        invitations.accept(invitation, user)
