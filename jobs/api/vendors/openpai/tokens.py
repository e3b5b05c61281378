"""Tokens: sign-in by name and password, and the caller's own tokens."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.contrib.auth import authenticate
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils import timezone

from jobs.api.vendors.api import VendorError
from jobs.api.vendors.openpai import errors
from jobs.api.vendors.operations import Call, JsonObject, Kind, Location, Operation, Parameter, Support
from quotas.access import administers
from quotas.accounts import second_factors, tokens
from quotas.models import AccessToken, User

SCOPES: Final = ("read", "submit", "stop", "exec")
"""A token for a password never has `admin`, whoever it is: an admin makes one in Settings."""

NAME: Final = "OpenPAI"
APPLICATION: Final = "OpenPAI application"
SHORTEST_S: Final = 60
LONGEST_S: Final = 7 * 24 * 3600
DEFAULT_S: Final = 24 * 3600
LOCKED_S: Final = 900
_MARGIN: Final = timedelta(seconds=1)
"""An application's token is issued a moment after its origin was looked at, and never outlives it."""

SECOND_FACTOR: Final = (
    "This account signs in with a second factor. Create an access token in Settings, and use that."
)


def sign_in(call: Call) -> JsonObject:
    """Issue a token for a user name and password.

    A wrong name and a wrong password have one answer, so that nobody learns who has an account.
    """
    user = _check_password(call.request, call.values["username"], call.values["password"])
    if second_factors.needs(user) or second_factors.has(user):
        raise VendorError(403, "ForbiddenUserError", SECOND_FACTOR)
    call.request.user = user  # it is who issues the token in the audit log
    lifetime = timedelta(seconds=call.values["expiration"])
    return {
        "user": user.get_username(),
        "token": tokens.issue(user, name=NAME, scopes=SCOPES, lifetime=lifetime),
        "admin": administers(user),
        "hasGitHubPAT": False,
    }


def _check_password(request: HttpRequest, username: str, password: str) -> User:
    """Return the active account with that password, by the ways in that the settings allow.

    Raises VendorError; too many failures lock the account here as on the sign-in page.
    """
    user = authenticate(request, username=username, password=password)
    if getattr(request, "axes_locked_out", False):
        request.axes_locked_out = False  # type: ignore[attr-defined]  # or a page would replace the answer
        message = "Too many failed sign-ins. Try again later."
        raise VendorError(429, "TooManyRequestsError", message, {"Retry-After": str(LOCKED_S)})
    if not isinstance(user, User) or not user.is_active:
        raise VendorError(400, "IncorrectPasswordError", "Password is incorrect.")
    return user


def list_tokens(call: Call) -> JsonObject:
    """List the caller's tokens by their prefixes: the tokens themselves are stored nowhere."""
    rows = AccessToken.objects.filter(user=call.person, revoked_at=None, expires_at__gt=Now())
    found = list(rows.values_list("prefix", "name"))
    return {
        "tokens": [prefix for prefix, name in found if name != APPLICATION],
        "applicationTokens": [prefix for prefix, name in found if name == APPLICATION],
    }


def create_application_token(call: Call) -> JsonObject:
    """Issue another token for as long and for as much as the one that asks for it."""
    row = _own_token(call)
    lifetime = row.expires_at - timezone.now() - _MARGIN
    token = tokens.issue(call.person, name=APPLICATION, scopes=row.scopes, lifetime=lifetime)
    return {"token": token, "application": True}


def revoke_token(call: Call) -> JsonObject:
    """Revoke a token of the caller, named whole or by its prefix."""
    prefix = "_".join(call.values["token"].split("_")[:2])
    pk = AccessToken.objects.filter(user=call.person, prefix=prefix).values_list("pk", flat=True).first()
    if pk is None or not tokens.revoke(call.person, pk):
        raise errors.no_token()
    return {"message": "revoke successfully"}


def sign_out(call: Call) -> JsonObject:
    """Revoke the token that came with the request."""
    tokens.revoke(call.person, _own_token(call).pk)
    return {"message": "revoke successfully"}


def _own_token(call: Call) -> AccessToken:
    row = getattr(call.request, "auth", None)
    assert isinstance(row, AccessToken)
    return row


def show_authentication(_call: Call) -> JsonObject:
    """Tell how to sign in."""
    return {"authn_type": "basic", "loginURI": "/api/v1/authn/basic/login", "loginURIMethod": "post"}


def show_server(_call: Call) -> JsonObject:
    """Tell which API this is."""
    return {
        "name": "Job Console",
        "version": "v1.8.0",
        "launcherType": "k8s",
        "authnMethod": "basic",
    }


_SIGN_IN: Final = (
    Parameter("username", location=Location.BODY, required=True),
    Parameter("password", location=Location.BODY, required=True),
    Parameter(
        "expiration",
        Kind.INTEGER,
        Location.BODY,
        default=DEFAULT_S,
        least=SHORTEST_S,
        most=LONGEST_S,
    ),
)
_TOKEN: Final = (Parameter("token", location=Location.PATH, required=True),)


def _rows(name: str, method: str, paths: tuple[str, ...], view: Any, **fields: Any) -> list[Operation]:
    return [Operation(name, method, f"rest-server/api/{path}", view, **fields) for path in paths]


OPERATIONS: Final[tuple[Operation, ...]] = (
    *_rows(
        "login",
        "POST",
        ("v1/token", "v1/authn/basic/login", "v2/authn/basic/login"),
        sign_in,
        scope="",
        parameters=_SIGN_IN,
        support=Support.PARTIAL,
        note="One error for a wrong name and a wrong password; accounts with a second factor use a token "
        "from Settings.",
    ),
    *_rows("logout", "DELETE", ("v1/authn/basic/logout", "v2/authn/basic/logout"), sign_out),
    *_rows(
        "getTokens",
        "GET",
        ("v1/token", "v1/tokens", "v2/tokens"),
        list_tokens,
        support=Support.PARTIAL,
        note="Tokens are listed by their prefixes.",
    ),
    *_rows(
        "createApplicationToken",
        "POST",
        ("v1/token/application", "v1/tokens/application", "v2/tokens/application"),
        create_application_token,
        scope="submit",
        support=Support.PARTIAL,
        note="Expires when the token does that it was requested with.",
    ),
    *_rows(
        "deleteToken",
        "DELETE",
        ("v1/token/<str:token>", "v1/tokens/<str:token>", "v2/tokens/<str:token>"),
        revoke_token,
        parameters=_TOKEN,
    ),
    *_rows("getAuthnInfo", "GET", ("v1/authn/info", "v2/authn/info"), show_authentication, scope=""),
    *_rows("getInfo", "GET", ("v1", "v1/", "v2/info"), show_server, scope=""),
    *_rows(
        "oidc",
        "GET",
        ("v1/authn/oidc/<str:step>", "v2/authn/oidc/<str:step>"),
        None,
        scope="",
        parameters=(Parameter("step", location=Location.PATH, required=True),),
        support=Support.REFUSED,
        note="Sign in on the console's own page and create an access token in Settings.",
    ),
)
