"""The common part of Alibaba's APIs: ROA requests in JSON, their signatures and errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse

from jobs.api.native.auth import Caller
from jobs.api.vendors.api import ErrorKind, VendorApi, VendorError
from jobs.api.vendors.authentication import (
    AuthenticationFailure,
    authenticate_alibaba,
)
from jobs.api.vendors.operations import Call, JsonObject

_AUTHENTICATION: Final[Mapping[AuthenticationFailure, tuple[int, str, str]]] = {
    AuthenticationFailure.MISSING: (401, "MissingAuthorization", "The request is not signed."),
    AuthenticationFailure.MALFORMED: (400, "IncompleteSignature", "The signature is incomplete: {detail}."),
    AuthenticationFailure.UNSUPPORTED: (
        400,
        "InvalidSignatureMethod",
        "The signature scheme {detail} is not supported; use ACS3-HMAC-SHA256 or HMAC-SHA1.",
    ),
    AuthenticationFailure.UNKNOWN_KEY: (
        404,
        "InvalidAccessKeyId.NotFound",
        "Specified access key is not found.",
    ),
    AuthenticationFailure.MISMATCH: (
        400,
        "SignatureDoesNotMatch",
        "Specified signature is not matched with our calculation.",
    ),
    AuthenticationFailure.STALE: (
        400,
        "InvalidTimeStamp.Expired",
        "Specified time stamp or date value is expired: {detail}.",
    ),
    AuthenticationFailure.REPLAYED: (
        400,
        "SignatureNonceUsed",
        "Specified signature nonce was used already.",
    ),
    AuthenticationFailure.INVALID_TOKEN: (
        401,
        "InvalidBearerToken",
        "The bearer token is incorrect, revoked or expired.",
    ),
}


def page_slice(call: Call) -> slice:
    """Return the part of a list that the call's page number and size name."""
    size: int = call.values["PageSize"]
    first = (call.values["PageNumber"] - 1) * size
    return slice(first, first + size)


class AlibabaApi(VendorApi):
    """An API of Alibaba Cloud in the ROA style."""

    authentication_errors = _AUTHENTICATION
    errors: ClassVar[Mapping[ErrorKind, tuple[int, str]]] = {
        ErrorKind.NO_OPERATION: (404, "InvalidApi.NotFound"),
        ErrorKind.MISSING_SCOPE: (403, "NoPermission"),
        ErrorKind.FORBIDDEN: (403, "NoPermission"),
        ErrorKind.NOT_FOUND: (404, "ResourceNotFound"),
        ErrorKind.INVALID: (400, "InvalidParameter"),
        ErrorKind.UNSUPPORTED: (400, "UnsupportedOperation"),
        ErrorKind.CONFLICT: (409, "OperationConflict"),
        ErrorKind.TOO_LARGE: (413, "RequestEntityTooLarge"),
        ErrorKind.TOO_SLOW: (408, "RequestTimeout"),
        ErrorKind.TOO_MANY: (429, "Throttling.User"),
        ErrorKind.READ_ONLY: (503, "ServiceUnavailable"),
        ErrorKind.OUTAGE: (503, "ServiceUnavailable"),
        ErrorKind.INTERNAL: (500, "InternalError"),
    }

    def authenticate(self, request: HttpRequest) -> Caller:
        return authenticate_alibaba(request)

    def render_error(self, request: HttpRequest, error: VendorError, request_id: str) -> HttpResponse:
        body = {
            "RequestId": request_id,
            "Code": error.code,
            "Message": error.message,
            "HostId": request.headers.get("Host", ""),
        }
        return JsonResponse(body, status=error.status, headers=error.headers)

    def render_answer(self, call: Call, answer: JsonObject) -> HttpResponseBase:
        return JsonResponse(
            {"RequestId": call.request_id, **answer},
            status=call.operation.status,
            headers={"x-acs-request-id": call.request_id},
        )
