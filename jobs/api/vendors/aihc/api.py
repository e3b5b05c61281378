"""The two versions of the AIHC API."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping
from typing import ClassVar, Final

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.urls import URLPattern

from jobs.api.native.auth import Caller
from jobs.api.vendors.aihc import v1, v2
from jobs.api.vendors.api import ErrorKind, VendorApi, VendorError
from jobs.api.vendors.authentication import (
    AuthenticationFailure,
    authenticate_baidu,
)
from jobs.api.vendors.operations import Call, JsonObject, Operation, WrongValue

_AUTHENTICATION: Final[Mapping[AuthenticationFailure, tuple[int, str, str]]] = {
    AuthenticationFailure.MISSING: (403, "AccessDenied", "The request is not signed."),
    AuthenticationFailure.MALFORMED: (
        400,
        "InvalidHTTPAuthHeader",
        "The HTTP authorization header is invalid.",
    ),
    AuthenticationFailure.UNSUPPORTED: (400, "InvalidHTTPAuthHeader", "Use bce-auth-v1."),
    AuthenticationFailure.UNKNOWN_KEY: (403, "InvalidAccessKeyId", "The access key ID does not exist."),
    AuthenticationFailure.MISMATCH: (
        400,
        "SignatureDoesNotMatch",
        "The request signature we calculated does not match the signature you provided.",
    ),
    # Not RequestExpired: the SDK would repeat the request, with the same clock.
    AuthenticationFailure.STALE: (403, "RequestTimeTooSkewed", "The request is expired: {detail}."),
    AuthenticationFailure.REPLAYED: (403, "AccessDenied", "The request was sent before."),
    AuthenticationFailure.INVALID_TOKEN: (403, "AccessDenied", "The token is invalid."),
}


_ACTION: Final = re.compile(r"(?:^|&)action(?:=|&|$)")
"""The name of an operation in a query, which is not read whole: it may have too many values to be read."""

_REQUEST_ID: Final = "x-bce-request-id"


class AihcApi(VendorApi):
    """An API of Baidu AIHC."""

    authentication_errors = _AUTHENTICATION
    errors: ClassVar[Mapping[ErrorKind, tuple[int, str]]] = {
        ErrorKind.NO_OPERATION: (404, "NoSuchAction"),
        ErrorKind.MISSING_SCOPE: (403, "AccessDenied"),
        ErrorKind.FORBIDDEN: (403, "AccessDenied"),
        ErrorKind.NOT_FOUND: (404, "ResourceNotFound"),
        ErrorKind.INVALID: (400, "InvalidParam"),
        ErrorKind.UNSUPPORTED: (400, "UnsupportedOperation"),
        ErrorKind.CONFLICT: (409, "OperationConflict"),
        ErrorKind.TOO_LARGE: (413, "EntityTooLarge"),
        ErrorKind.TOO_SLOW: (408, "RequestTimeout"),
        ErrorKind.TOO_MANY: (429, "RequestLimitExceeded"),
        # The SDK repeats a request after 500 and 503: both only where nothing was done.
        ErrorKind.READ_ONLY: (403, "ServiceReadOnly"),
        ErrorKind.OUTAGE: (503, "ServiceUnavailable"),
        ErrorKind.INTERNAL: (500, "InternalError"),
    }

    def authenticate(self, request: HttpRequest) -> Caller:
        return authenticate_baidu(request)

    def new_request_id(self) -> str:
        return str(uuid.uuid4())

    def describe_wrong_values(self, wrong: Iterable[WrongValue]) -> VendorError:
        every = list(wrong)
        error = super().describe_wrong_values(every)
        is_body = any(each.path == "body" for each in every)
        return VendorError(error.status, "MalformedJSON", error.message) if is_body else error

    def render_error(self, request: HttpRequest, error: VendorError, request_id: str) -> HttpResponse:
        body = {"code": error.code, "message": error.message, "requestId": request_id}
        headers = {**error.headers, _REQUEST_ID: request_id}
        return JsonResponse(body, status=error.status, headers=headers)

    def render_answer(self, call: Call, answer: JsonObject) -> HttpResponseBase:
        body = self.wrap(call.request_id, answer)
        return JsonResponse(body, status=call.operation.status, headers={_REQUEST_ID: call.request_id})

    def wrap(self, request_id: str, answer: JsonObject) -> JsonObject:
        """Return an answer in its envelope."""
        return {"requestId": request_id, **answer}


class AihcV1(AihcApi):
    """AIHC version 1."""

    name = "AIHC"
    version = "v1"
    prefixes = ("/api/v1/aijobs", "/api/v1/resourcepools")
    operations: ClassVar[tuple[Operation, ...]] = v1.OPERATIONS

    def wrap(self, request_id: str, answer: JsonObject) -> JsonObject:
        return {"requestId": request_id, "result": answer}


class AihcV2(AihcApi):
    """AIHC version 2: all operations have the address `/`, and their names in the query.

    That is the console's home page too, whose view hands over what this API owns.
    """

    name = "AIHC"
    version = "v2"
    prefixes = ()
    operations: ClassVar[tuple[Operation, ...]] = v2.OPERATIONS

    def owns(self, request: HttpRequest) -> bool:
        is_signed = "X-API-Version" in request.headers or request.headers.get("Authorization", "").startswith(
            "bce-"
        )
        query = request.META.get("QUERY_STRING", "")
        return request.path == "/" and is_signed and _ACTION.search(query) is not None

    def urls(self) -> list[URLPattern]:
        return []

    def answer(self, request: HttpRequest) -> HttpResponseBase:
        """Return the answer to a request for `/`."""
        action = request.GET.get("action", "")
        found = (each for each in self.operations if (each.name, each.method) == (action, request.method))
        return self.respond(request, next(found, None), {})
