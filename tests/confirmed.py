"""A test's browser whose person has just shown once more who they are."""

from __future__ import annotations

import time

from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY
from django.contrib.auth import SESSION_KEY
from django.test import Client


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
