"""Authentication of OpenPAI's clients: by a bearer token, or by a token in the server's address.

OpenPAI v0.14 answered reading requests without a token, and clients of that time send none.  Such a client
gets its token from the address that it is pointed at, `http://USER:TOKEN@HOST/rest-server`: HTTP libraries
send it as Basic authentication.  A password is never accepted so, and nothing is answered to strangers.
"""

from __future__ import annotations

import binascii
from base64 import b64decode

from django.http import HttpRequest

from jobs.api.native.auth import Caller, bearer
from jobs.api.vendors.authentication import (
    AuthenticationFailure,
    AuthenticationRefused,
    authenticate_token,
)


def authenticate(request: HttpRequest) -> Caller:
    """Return the caller.  Raises AuthenticationRefused."""
    scheme, _blank, credentials = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return authenticate_token(request, bearer(request))
    username, token = _parse_basic(credentials)
    caller = authenticate_token(request, token)
    if caller.user.get_username() != username:
        raise AuthenticationRefused(AuthenticationFailure.INVALID_TOKEN)
    return caller


def _parse_basic(credentials: str) -> tuple[str, str]:
    """Return user name and password (RFC 7617).  Raises AuthenticationRefused."""
    try:
        text = b64decode(credentials.strip(), validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise AuthenticationRefused(AuthenticationFailure.MALFORMED) from error
    username, _colon, password = text.partition(":")
    return username, password
