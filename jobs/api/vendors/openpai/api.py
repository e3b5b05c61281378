"""The API of OpenPAI's REST server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from django.http import HttpRequest, HttpResponseBase, JsonResponse

from jobs.api.native.auth import Caller, bearer
from jobs.api.vendors.api import ErrorKind, VendorApi, VendorError
from jobs.api.vendors.authentication import AuthenticationRefused, authenticate_token
from jobs.api.vendors.operations import Operation


class OpenPai(VendorApi):
    """OpenPAI's REST server."""

    name = "OpenPAI"
    version = "v1 and v2"
    prefixes = ("/rest-server/",)
    operations: ClassVar[tuple[Operation, ...]] = ()
    errors: ClassVar[Mapping[ErrorKind, tuple[int, str]]] = {
        ErrorKind.NO_OPERATION: (404, "NoApiError"),
        ErrorKind.MISSING_SCOPE: (403, "ForbiddenUserError"),
        ErrorKind.FORBIDDEN: (403, "ForbiddenUserError"),
        ErrorKind.NOT_FOUND: (404, "NoJobError"),
        ErrorKind.INVALID: (400, "InvalidParametersError"),
        ErrorKind.UNSUPPORTED: (501, "NotImplementedError"),
        ErrorKind.CONFLICT: (409, "ConflictJobError"),
        ErrorKind.TOO_LARGE: (413, "InvalidParametersError"),
        ErrorKind.TOO_MANY: (429, "TooManyRequestsError"),
        ErrorKind.READ_ONLY: (503, "ReadOnlyError"),
        ErrorKind.OUTAGE: (503, "UnknownError"),
        ErrorKind.INTERNAL: (500, "UnknownError"),
    }

    def authenticate(self, request: HttpRequest) -> Caller:
        return authenticate_token(request, bearer(request))

    def describe_authentication(self, refused: AuthenticationRefused) -> VendorError:
        message = "Guest is not allowed to do this operation."
        return VendorError(401, "UnauthorizedUserError", message)

    def render_error(self, request: HttpRequest, error: VendorError, request_id: str) -> HttpResponseBase:
        body = {"code": error.code, "message": error.message}
        return JsonResponse(body, status=error.status, headers=error.headers)
