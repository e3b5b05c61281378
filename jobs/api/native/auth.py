"""Authentication of API callers, and their scopes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import APIException, AuthenticationFailed, NotAuthenticated
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from jobs.api.native.problems import REALM
from quotas.accounts import sessions, tokens
from quotas.models import AccessToken, User


class MissingScope(APIException):
    """The token does not have the scope that this needs."""

    status_code = 403

    def __init__(self, scope: str) -> None:
        super().__init__(_("The token lacks the scope “%(scope)s”.") % {"scope": scope})
        # As RFC 6750 section 3.1 has it.
        self.auth_header = f'{REALM}, error="insufficient_scope", scope="{scope}"'


def bearer(request: HttpRequest | Request) -> str:
    """The token of `Authorization: Bearer …`, or nothing."""
    scheme, _blank, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _verify(token: str) -> AccessToken:
    row = tokens.verify(token)
    if row is None:
        raise AuthenticationFailed(_("Invalid token: incorrect, revoked or expired."))
    return row


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer <token>`; comes before the session, and a wrong token is not forgiven."""

    def authenticate(self, request: Request) -> tuple[User, AccessToken] | None:
        token = bearer(request)
        if not token:
            return None
        row = _verify(token)
        return row.user, row

    def authenticate_header(self, request: Request) -> str:
        return REALM


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the schema describes TokenAuthentication."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}


class Scope(BasePermission):
    """A token needs the scope that the view names for the method; a session needs none."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        if not isinstance(request.user, User) or not request.user.is_active:
            return False
        wanted: str = getattr(view, "scopes", {}).get(request.method, "read")
        if isinstance(request.auth, AccessToken) and wanted not in request.auth.scopes:
            raise MissingScope(wanted)
        return True


@dataclass(frozen=True, slots=True)
class Caller:
    """The reader of a stream, their scopes (None: all), and how to find them again while they may read."""

    user: User
    scopes: frozenset[str] | None
    still: Callable[[], User | None]


def caller(request: HttpRequest) -> Caller:
    """The person behind a token that may read, or behind a session, for views that are plain Django.

    Raises the exceptions that `problems.handle` tells.
    """
    token = bearer(request)
    if token:
        row = _verify(token)
        if "read" not in row.scopes:
            raise MissingScope("read")
        return Caller(row.user, frozenset(row.scopes), partial(_still, token))
    if not isinstance(request.user, User) and not request.user.is_authenticated:
        raise NotAuthenticated
    return Caller(request.user, None, partial(sessions.person_of, sessions.reference(request)))


def _still(token: str) -> User | None:
    row = tokens.verify(token)
    return row.user if row is not None else None
