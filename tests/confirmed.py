"""A test's browser whose person is signed in, or has just shown once more who they are."""

from __future__ import annotations

import time

from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.test import Client

from quotas.accounts.session_store import SessionStore
from quotas.models import User


def sign_in(client: Client, user: User) -> None:
    """Give `client` a session of `user`, as `Client.force_login` does, without what a sign-in sets off.

    Nobody looks at the time of the last one or counts wrong passwords where this is used, and that takes
    three quarters of the time.
    """
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "console.sign_in.backends.LocalBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    client.cookies[settings.SESSION_COOKIE_NAME] = str(session.session_key)


def confirm(client: Client, valid_for: float = 0) -> Client:
    """Let the signed-in person of `client` change how they sign in, and make keys and tokens.

    `valid_for` seconds are added to the minutes for which that holds.
    """
    session = client.session
    record = {"method": "password", "at": time.time() + valid_for, "reauthenticated": True}
    session[AUTHENTICATION_METHODS_SESSION_KEY] = [record]
    session["account_authentication_methods_user"] = session[SESSION_KEY]
    session.save()
    return client
