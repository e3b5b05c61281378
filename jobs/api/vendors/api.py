"""The way of a request through a vendor's API: operation, authentication, scope, values, answer or error."""

from __future__ import annotations

import json
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from http import HTTPStatus
from typing import Any, ClassVar, Final

import structlog
from django.core.exceptions import PermissionDenied, RequestDataTooBig, TooManyFieldsSent
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.urls import URLPattern, path
from django.views.decorators.csrf import csrf_exempt

from jobs import submission
from jobs.api.native import problems
from jobs.api.native.auth import Caller
from jobs.api.vendors.authentication import AuthenticationFailure, AuthenticationRefused
from jobs.api.vendors.operations import (
    Call,
    InvalidParameters,
    JsonObject,
    Location,
    MissingScopeError,
    Operation,
    WrongValue,
    read_values,
)
from jobs.dialects.base import MAX_BYTES, Refused
from jobs.models import outage
from jobs.submission.checks.findings import problems_of
from quotas.access import administers
from quotas.models import ReadOnly

log = structlog.get_logger(__name__)

LONGEST_MESSAGE: Final = 2000
"""Characters of an error's message, which may repeat what was sent."""


VENDOR: Final = "vendor_api"
"""The name of all addresses of vendors' APIs; their tables of operations tell them apart."""


class ErrorKind(Enum):
    """Kinds of errors that every API has, each with a status and code of its own."""

    NO_OPERATION = "no_operation"
    MISSING_SCOPE = "missing_scope"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    INVALID = "invalid"
    UNSUPPORTED = "unsupported"
    CONFLICT = "conflict"
    TOO_LARGE = "too_large"
    TOO_SLOW = "too_slow"
    TOO_MANY = "too_many"
    READ_ONLY = "read_only"
    OUTAGE = "outage"
    INTERNAL = "internal"


class VendorError(Exception):
    """An error in the vendor's own words."""

    def __init__(
        self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message if len(message) <= LONGEST_MESSAGE else f"{message[: LONGEST_MESSAGE - 1]}…"
        self.headers = dict(headers or {})


class VendorApi(ABC):
    """One API of a vendor: its operations, and how it authenticates, answers and refuses.

    `prefixes` begin the addresses that belong to it; `errors` has the status and code of each kind of error,
    `authentication_errors` those of each failure with its message.
    """

    name: ClassVar[str]
    version: ClassVar[str] = ""
    prefixes: ClassVar[tuple[str, ...]]
    operations: ClassVar[tuple[Operation, ...]]
    errors: ClassVar[Mapping[ErrorKind, tuple[int, str]]]
    authentication_errors: ClassVar[Mapping[AuthenticationFailure, tuple[int, str, str]]]

    def owns(self, request: HttpRequest) -> bool:
        """Tell whether the request belongs to this API, by its address."""
        return request.path.startswith(self.prefixes)

    @abstractmethod
    def authenticate(self, request: HttpRequest) -> Caller:
        """Return the caller.  Raises AuthenticationRefused."""

    def describe_authentication(self, refused: AuthenticationRefused) -> VendorError:
        """Return the vendor's error of a request that is not authenticated."""
        status, code, message = self.authentication_errors[refused.failure]
        return VendorError(status, code, message.format(detail=refused.detail))

    @abstractmethod
    def render_error(self, request: HttpRequest, error: VendorError, request_id: str) -> HttpResponse:
        """Return an error as the vendor's clients read it."""

    def render_answer(self, call: Call, answer: JsonObject) -> HttpResponseBase:
        """Return an answer as the vendor's clients read it."""
        return JsonResponse(answer, status=call.operation.status)

    def new_request_id(self) -> str:
        """Return an id for a request."""
        return str(uuid.uuid4()).upper()

    def read_body(self, request: HttpRequest, operation: Operation) -> tuple[str, Mapping[str, Any]]:
        """Return the body as text, and its fields.  Raises InvalidParameters."""
        text = decode_body(request)
        if operation.format or not any(each.location is Location.BODY for each in operation.parameters):
            return text, {}
        return text, parse_object(text) if text.strip() else {}

    def urls(self) -> list[URLPattern]:
        """Return the URLs of all operations."""
        by_path: dict[str, dict[str, Operation]] = {}
        for operation in self.operations:
            by_path.setdefault(operation.path, {})[operation.method] = operation
        return [path(route, self._view(methods), name=VENDOR) for route, methods in by_path.items()]

    def _view(self, methods: Mapping[str, Operation]) -> Callable[..., HttpResponseBase]:
        @csrf_exempt
        def view(request: HttpRequest, **in_path: str) -> HttpResponseBase:
            return self.respond(request, methods.get(request.method or ""), in_path)

        return view

    def respond(
        self, request: HttpRequest, operation: Operation | None, in_path: Mapping[str, str]
    ) -> HttpResponseBase:
        """Return the answer to a request, or its error; never raises."""
        request_id = self.new_request_id()
        try:
            return self._answer(request, operation, in_path, request_id)
        except Exception as error:  # noqa: BLE001 whatever it is, the client reads the vendor's error
            return self.render_error(request, self.describe(error), request_id)

    def _answer(
        self, request: HttpRequest, operation: Operation | None, in_path: Mapping[str, str], request_id: str
    ) -> HttpResponseBase:
        if operation is None:
            raise self.describe_no_operation(request)
        caller = self._admit(request, operation) if operation.scope else None
        if operation.view is None:
            raise self.error(ErrorKind.UNSUPPORTED, f"{operation.name}: {operation.note}")
        text, fields = self.read_body(request, operation)
        sources = {Location.QUERY: read_query(request), Location.BODY: fields, Location.PATH: in_path}
        values = {**in_path, **read_values(operation.parameters, sources)}
        call = Call(request, operation, caller, values, text, request_id)
        answer = operation.view(call)
        return self.render_answer(call, answer) if isinstance(answer, dict) else answer

    def _admit(self, request: HttpRequest, operation: Operation) -> Caller:
        """Return the caller, who has the scope.  Raises what refuses them."""
        caller = self.authenticate(request)
        if caller.scopes is not None and operation.scope not in caller.scopes:
            raise MissingScopeError(operation.scope)
        if operation.scope != "read" and not administers(caller.user):
            mode = ReadOnly.objects.first()
            if mode is not None:
                raise self.error(ErrorKind.READ_ONLY, f"The console is read-only for now: {mode.why}")
        return caller

    def error(self, kind: ErrorKind, message: str, headers: Mapping[str, str] | None = None) -> VendorError:
        """Return the vendor's error of a kind."""
        status, code = self.errors[kind]
        return VendorError(status, code, message, headers)

    def describe(self, error: Exception) -> VendorError:
        """Return the vendor's error for an exception; one that nobody expects is logged."""
        if isinstance(error, VendorError):
            return error
        if isinstance(error, AuthenticationRefused):
            return self.describe_authentication(error)
        if isinstance(error, InvalidParameters):
            return self.describe_wrong_values(error.wrong)
        kind, message, headers = _classify(error)
        if kind is ErrorKind.INTERNAL:
            log.error("vendor_api_failed", api=self.name, exc_info=error)
        return self.error(kind, message, headers)

    def describe_no_operation(self, request: HttpRequest) -> VendorError:
        """Return the vendor's error for an address or a method that the API does not have."""
        return self.error(ErrorKind.NO_OPERATION, f"{request.method} {request.path}")

    def describe_wrong_values(self, wrong: Iterable[WrongValue]) -> VendorError:
        """Return the vendor's error of missing or wrong parameters."""
        return self.error(ErrorKind.INVALID, " ".join(_sentence(each) for each in wrong))

    def describe_status(self, status: int, message: str) -> VendorError:
        """Return the vendor's error for a plain HTTP status, of what happened before its operation began."""
        return self.error(_KINDS_BY_STATUS.get(status, ErrorKind.INTERNAL), message)


def read_query(request: HttpRequest) -> dict[str, Any]:
    """Return the values of a query.  Raises InvalidParameters."""
    try:
        return request.GET.dict()
    except TooManyFieldsSent as error:
        raise InvalidParameters([WrongValue("query", "fewer values")]) from error


def decode_body(request: HttpRequest) -> str:
    """Return a body as text.  Raises InvalidParameters, RequestDataTooBig."""
    body = request.body
    if len(body) > MAX_BYTES:
        raise RequestDataTooBig(f"The request is larger than {MAX_BYTES >> 20} MiB.")
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidParameters([WrongValue("body", "text in UTF-8")]) from error


def parse_object(text: str) -> dict[str, Any]:
    """Return the JSON object that a text is.  Raises InvalidParameters."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidParameters([WrongValue("body", "JSON")]) from error
    if not isinstance(value, dict):
        raise InvalidParameters([WrongValue("body", "JSON object")])
    return value


def sentences_of(refused: Refused, text: str = "") -> list[str]:
    """Return the sentences of a refused job file, each behind its JSON pointer."""
    found = problems_of(text, refused.problems)
    return [f"{each.pointer}: {each.message}" if each.pointer else each.message for each in found]


def _sentence(wrong: WrongValue) -> str:
    if wrong.missing:
        return f"{wrong.path} is required."
    return f"{wrong.path} must be: {wrong.expected}."


_KINDS: Final[tuple[tuple[tuple[type[Exception], ...], ErrorKind], ...]] = (
    ((Http404,), ErrorKind.NOT_FOUND),
    ((PermissionDenied, submission.Forbidden), ErrorKind.FORBIDDEN),
    (
        (submission.Conflict, submission.StillRunning, submission.NotEnded, submission.NotWaiting),
        ErrorKind.CONFLICT,
    ),
    ((RequestDataTooBig,), ErrorKind.TOO_LARGE),
)
_KINDS_BY_STATUS: Final[Mapping[int, ErrorKind]] = {
    HTTPStatus.BAD_REQUEST: ErrorKind.INVALID,
    HTTPStatus.FORBIDDEN: ErrorKind.FORBIDDEN,
    HTTPStatus.NOT_FOUND: ErrorKind.NO_OPERATION,
    HTTPStatus.REQUEST_TIMEOUT: ErrorKind.TOO_SLOW,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: ErrorKind.TOO_LARGE,
    HTTPStatus.TOO_MANY_REQUESTS: ErrorKind.TOO_MANY,
    HTTPStatus.SERVICE_UNAVAILABLE: ErrorKind.OUTAGE,
}


def _classify(error: Exception) -> tuple[ErrorKind, str, dict[str, str]]:
    """Return the kind of an exception, its sentence and headers."""
    if isinstance(error, MissingScopeError):
        return ErrorKind.MISSING_SCOPE, f"The key or token lacks the scope “{error.scope}”.", {}
    if isinstance(error, Refused):
        return ErrorKind.INVALID, " ".join(sentences_of(error)), {}
    if outage.is_outage(error):
        return ErrorKind.OUTAGE, problems.outage_sentence(), {"Retry-After": str(outage.RETRY_AFTER_S)}
    for types, kind in _KINDS:
        if isinstance(error, types):
            return kind, problems.describe(error)[1] if kind is not ErrorKind.TOO_LARGE else str(error), {}
    return ErrorKind.INTERNAL, problems.internal_error_sentence(), {}
