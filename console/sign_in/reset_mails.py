"""E-mail with a link by which somebody sets a new password."""

from __future__ import annotations

from allauth.account.adapter import get_adapter
from allauth.account.forms import default_token_generator
from allauth.account.models import EmailAddress
from allauth.account.utils import user_pk_to_url_str
from django.db.models import QuerySet
from django.utils import translation

from quotas.models import User


def send(email: str, language: str) -> None:
    """Send a link to `email` for each account that it is the address of."""
    adapter = get_adapter()
    with translation.override(language):
        for user in owners(email):
            key = f"{user_pk_to_url_str(user)}-{default_token_generator.make_token(user)}"
            url = adapter.get_reset_password_from_key_url(key)
            about = {"user": user, "username": user.get_username(), "password_reset_url": url}
            adapter.send_password_reset_mail(user, email, about)


def owners(email: str) -> QuerySet[User]:
    """Return the active people whose address it is: they confirmed it, or an admin wrote it.

    An address that somebody made their own and never confirmed may be anybody's.
    """
    confirmed = EmailAddress.objects.filter(email__iexact=email, verified=True).values("user")
    unconfirmed = EmailAddress.objects.filter(email__iexact=email, verified=False, primary=True).values(
        "user"
    )
    given = User.objects.filter(email__iexact=email).exclude(pk__in=unconfirmed)
    return User.objects.filter(is_active=True, pk__in=confirmed).union(given.filter(is_active=True))
