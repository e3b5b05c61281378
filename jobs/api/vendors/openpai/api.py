"""The API of OpenPAI's REST server."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import URLPattern, path

from jobs.api.native.auth import Caller
from jobs.api.vendors.api import VENDOR, ErrorKind, VendorApi, VendorError, decode_body
from jobs.api.vendors.authentication import AuthenticationRefused
from jobs.api.vendors.openpai import authentication, bodies, errors, jobs, tokens, users, virtual_clusters
from jobs.api.vendors.operations import Location, Operation, WrongValue

MOUNT: Final = "rest-server/"


class OpenPai(VendorApi):
    """OpenPAI's REST server."""

    name = "OpenPAI"
    version = "v1 and v2"
    prefixes = (f"/{MOUNT}",)
    operations: ClassVar[tuple[Operation, ...]] = (
        *tokens.OPERATIONS,
        *jobs.OPERATIONS,
        *users.OPERATIONS,
        *virtual_clusters.OPERATIONS,
    )
    errors: ClassVar[Mapping[ErrorKind, tuple[int, str]]] = {
        ErrorKind.NO_OPERATION: (404, "NoApiError"),
        ErrorKind.MISSING_SCOPE: (403, "ForbiddenUserError"),
        ErrorKind.FORBIDDEN: (403, "ForbiddenUserError"),
        ErrorKind.NOT_FOUND: (404, "NoJobError"),
        ErrorKind.INVALID: (400, "InvalidParametersError"),
        ErrorKind.UNSUPPORTED: (501, "NotImplementedError"),
        ErrorKind.CONFLICT: (409, "ConflictJobError"),
        ErrorKind.TOO_LARGE: (413, "InvalidParametersError"),
        ErrorKind.TOO_SLOW: (408, "RequestTimeoutError"),
        ErrorKind.TOO_MANY: (429, "TooManyRequestsError"),
        ErrorKind.READ_ONLY: (503, "ReadOnlyError"),
        ErrorKind.OUTAGE: (503, "UnknownError"),
        ErrorKind.INTERNAL: (500, "UnknownError"),
    }

    def urls(self) -> list[URLPattern]:
        """Return the URLs of all operations, and one for every other address below the mount."""
        nothing = path(f"{MOUNT}<path:rest>", self._view({}), name=VENDOR)
        return [*super().urls(), nothing]

    def authenticate(self, request: HttpRequest) -> Caller:
        return authentication.authenticate(request)

    def read_body(self, request: HttpRequest, operation: Operation) -> tuple[str, Mapping[str, Any]]:
        has_fields = any(each.location is Location.BODY for each in operation.parameters)
        if has_fields and bodies.is_form(request):
            text = decode_body(request)
            return text, bodies.parse_form(text)
        return super().read_body(request, operation)

    def describe_authentication(self, refused: AuthenticationRefused) -> VendorError:
        message = "Guest is not allowed to do this operation."
        return VendorError(401, "UnauthorizedUserError", message)

    def describe_no_operation(self, request: HttpRequest) -> VendorError:
        address = request.get_full_path().removeprefix("/rest-server")
        return self.error(ErrorKind.NO_OPERATION, f"API {address} is not found.")

    def describe_wrong_values(self, wrong: Iterable[WrongValue]) -> VendorError:
        """Return Joi's sentence for the first one, which is where it stops."""
        return errors.invalid_parameters(_joi_sentence(next(iter(wrong))))

    def render_error(self, request: HttpRequest, error: VendorError, request_id: str) -> HttpResponse:
        body = {"code": error.code, "message": error.message}
        return JsonResponse(body, status=error.status, headers=error.headers)


_EXPECTED: Final = {
    "string": "must be a string",
    "integer": "must be a number",
    "number": "must be a number",
    "boolean": "must be a boolean",
    "object": "must be an object",
    "list": "must be an array",
    "JSON object": "must be an object",
}
_BOUND: Final = re.compile(r"\w+ of (?P<side>at least|at most) (?P<bound>\S+)")
_SIDES: Final = {"at least": "larger than or equal to", "at most": "less than or equal to"}


def _joi_sentence(wrong: WrongValue) -> str:
    if wrong.path == "body":
        return f'"value" {_EXPECTED.get(wrong.expected, f"must be {wrong.expected}")}'
    return f'child "{wrong.path}" fails because ["{wrong.path}" {_joi_rule(wrong)}]'


def _joi_rule(wrong: WrongValue) -> str:
    if wrong.missing:
        return "is required"
    if match := _BOUND.fullmatch(wrong.expected):
        return f"must be {_SIDES[match['side']]} {match['bound']}"
    if " | " in wrong.expected:
        return f"must be one of [{', '.join(wrong.expected.split(' | '))}]"
    return _EXPECTED.get(wrong.expected, f"must be {wrong.expected}")
