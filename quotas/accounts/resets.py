"""A one-time link by which somebody sets a password, for when no e-mail reaches them."""

from __future__ import annotations

from allauth.account.forms import default_token_generator
from allauth.account.utils import user_pk_to_url_str
from django.db import transaction
from django.urls import reverse

from quotas import audit
from quotas.models import Action, User


def path_for(user: User) -> str:
    """Return the path where the person sets a password, once, within three days; it is audited."""
    with transaction.atomic():
        audit.log(Action.PASSWORD, user, details={"link": True})
    uid, key = user_pk_to_url_str(user), default_token_generator.make_token(user)
    return reverse("account_reset_password_from_key", kwargs={"uidb36": uid, "key": key})
