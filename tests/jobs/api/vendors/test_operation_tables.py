"""All vendors' APIs by their tables: what is said of an operation is so, and nothing else is answered."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pytest
from django.core.cache import cache
from django.db import transaction
from django.test import RequestFactory

from jobs import dialects
from jobs.api.vendors import registry
from jobs.api.vendors.api import ErrorKind, VendorApi, VendorError
from jobs.api.vendors.authentication import AuthenticationFailure, AuthenticationRefused
from jobs.api.vendors.operations import (
    Kind,
    Location,
    MissingScopeError,
    Operation,
    Parameter,
    Support,
    WrongValue,
)
from quotas.accounts import tokens
from tests.factories import make_user
from tests.jobs.api.vendors.clients import (
    VendorClient,
    read_error,
    read_json,
    signed_client,
    wrongly_signed_client,
)

pytestmark = pytest.mark.django_db


def _title(api: VendorApi) -> str:
    return f"{api.name} {api.version}".strip()


EACH_API: Final = pytest.mark.parametrize("api", [api for api in registry.APIS if api.operations], ids=_title)
METHODS: Final = ("PATCH", "PUT", "DELETE", "POST", "GET")


def failures(operations: Iterable[Operation], check: Callable[[Operation], None]) -> dict[str, str]:
    """Run a check for each operation; return the error of each that fails.

    One test for each of some hundred operations would take longer to begin than to run. None sees what
    another left, nor is one refused for the refusals of another.
    """
    found: dict[str, str] = {}
    for operation in operations:
        cache.clear()
        with transaction.atomic():
            try:
                check(operation)
            except Exception as error:  # noqa: BLE001  # one of them fails, the others are still looked at
                found[f"{operation.method} {operation.name}"] = repr(error)
            transaction.set_rollback(True)
    return found


def address_of(api: VendorApi, operation: Operation) -> str:
    """Return an address of an operation; an API without prefixes has them in the query."""
    if not api.prefixes:
        return f"/?action={operation.name}"
    numbers = {one.name for one in operation.parameters if one.kind is Kind.INTEGER}

    def fill(match: re.Match[str]) -> str:
        return "1" if match[1] == "int" or match[2] in numbers else "x"

    return "/" + re.sub(r"<(?:(\w+):)?(\w+)>", fill, operation.path)


def error(api: VendorApi, kind: ErrorKind) -> tuple[int, str]:
    """Return status and code of an API's error of a kind."""
    return api.errors[kind]


def status_and_code(found: VendorError) -> tuple[int, str]:
    return found.status, found.code


# --- what the tables say -----------------------------------------------------------------------------------


@EACH_API
def test_operation_addresses_are_unique(api: VendorApi) -> None:
    count = Counter((operation.method, address_of(api, operation)) for operation in api.operations)
    assert [address for address, number in count.items() if number > 1] == []


@EACH_API
def test_operation_addresses_belong_to_their_api(api: VendorApi) -> None:
    factory = RequestFactory(headers={"X-API-Version": "v2"})
    for operation in api.operations:
        assert registry.find(factory.generic(operation.method, address_of(api, operation))) is api


@pytest.mark.once
@EACH_API
def test_operation_rows_are_complete(api: VendorApi) -> None:
    def check(operation: Operation) -> None:
        assert operation.method in METHODS
        assert operation.scope in {"", *tokens.SCOPES}
        assert not operation.format or operation.format in dialects.NAMES
        assert (operation.view is None) == (operation.support is Support.REFUSED)
        assert operation.note or operation.support is Support.FULL
        unexplained = [
            path
            for path, one in walk(operation.parameters)
            if one.support is not Support.FULL and not one.note
        ]
        assert unexplained == []

    assert failures(api.operations, check) == {}


def walk(parameters: tuple[Parameter, ...], around: str = "") -> Iterator[tuple[str, Parameter]]:
    """Yield all parameters and their fields, each with its path."""
    for one in parameters:
        path = f"{around}.{one.name}" if around else one.name
        yield path, one
        yield from walk(one.fields, path)


# --- who may call ------------------------------------------------------------------------------------------


def authenticated(api: VendorApi) -> list[Operation]:
    """Return the operations that need a caller."""
    return [operation for operation in api.operations if operation.scope]


@pytest.mark.once
@EACH_API
def test_unsigned_call_is_refused(api: VendorApi) -> None:
    refused = api.describe_authentication(AuthenticationRefused(AuthenticationFailure.MISSING))

    def check(operation: Operation) -> None:
        answer = VendorClient(api).send(operation.method, address_of(api, operation))
        assert read_error(api, answer)[:2] == status_and_code(refused)

    assert failures(authenticated(api), check) == {}


@pytest.mark.once
@EACH_API
def test_wrongly_signed_call_is_refused(api: VendorApi) -> None:
    client = wrongly_signed_client(api, make_user("olga", admin=True))
    kinds = (AuthenticationFailure.MISMATCH, AuthenticationFailure.INVALID_TOKEN)
    refusals = [api.describe_authentication(AuthenticationRefused(kind)) for kind in kinds]
    expected = [status_and_code(refusal) for refusal in refusals]

    def check(operation: Operation) -> None:
        assert client.refusal(operation.method, address_of(api, operation)) in expected

    assert failures(authenticated(api), check) == {}


@pytest.mark.once
@EACH_API
def test_call_without_scope_is_refused(api: VendorApi) -> None:
    user = make_user("olga", admin=True)

    def check(operation: Operation) -> None:
        client = signed_client(api, user, set(tokens.SCOPES) - {operation.scope})
        expected = api.describe(MissingScopeError(operation.scope))
        assert client.refusal(operation.method, address_of(api, operation)) == status_and_code(expected)

    assert failures(authenticated(api), check) == {}


# --- what is answered --------------------------------------------------------------------------------------


@pytest.mark.once
@EACH_API
def test_refused_operation_answers_with_its_note(api: VendorApi) -> None:
    client = signed_client(api, make_user("olga", admin=True))

    def check(operation: Operation) -> None:
        answer = client.send(operation.method, address_of(api, operation))
        status, code, message = read_error(api, answer)
        assert (status, code) == error(api, ErrorKind.UNSUPPORTED)
        assert operation.note in message

    refused = [operation for operation in api.operations if operation.support is Support.REFUSED]
    assert failures(refused, check) == {}


@EACH_API
def test_unknown_address_is_refused_in_shape_of_vendor(api: VendorApi) -> None:
    addresses = [f"{prefix.rstrip('/')}/x/y/z/none/such" for prefix in api.prefixes] or ["/?action=NoSuch"]
    for address in addresses:
        for method in METHODS:
            assert VendorClient(api).refusal(method, address) == error(api, ErrorKind.NO_OPERATION)


@EACH_API
def test_unknown_method_is_refused_in_shape_of_vendor(api: VendorApi) -> None:
    methods: dict[str, set[str]] = {}
    for operation in api.operations:
        methods.setdefault(address_of(api, operation), set()).add(operation.method)
    for address, known in methods.items():
        unknown = next(method for method in METHODS if method not in known)
        assert VendorClient(api).refusal(unknown, address) == error(api, ErrorKind.NO_OPERATION)


# --- wrong values ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WrongRequest:
    """Values of a request of which one is wrong, and the name of that one."""

    name: str
    query: dict[str, Any]
    body: dict[str, Any]


WRONG_TEXTS: Final = {
    Kind.INTEGER: ("x", "1.5", "9" * 30),
    Kind.NUMBER: ("x", "nan", "inf"),
    Kind.BOOLEAN: ("maybe",),
    Kind.TIME: ("yesterday",),
    Kind.MAP: ("[1]", "{"),
    Kind.OBJECT: ("x",),
    Kind.LIST: ("x",),
}
WRONG_VALUES: Final[dict[Kind, tuple[Any, ...]]] = {
    Kind.TEXT: (7, True, [], {}, "\0", "\ud800"),
    Kind.INTEGER: ("x", True, 1.5, [], {}, 10**30),
    Kind.NUMBER: ("x", True, [], {}),
    Kind.BOOLEAN: (7, "maybe", [], {}),
    Kind.TIME: (7, "yesterday", [], {}),
    Kind.MAP: (7, [], {"a": 1}),
    Kind.OBJECT: (7, "x", []),
    Kind.LIST: (7, "x", {}),
}
RIGHT_VALUES: Final[dict[Kind, Any]] = {
    Kind.TEXT: "x",
    Kind.INTEGER: 1,
    Kind.NUMBER: 1,
    Kind.BOOLEAN: True,
    Kind.TIME: "2026-01-01T00:00:00Z",
    Kind.MAP: {},
    Kind.LIST: [],
    Kind.ANY: "x",
}


def right_value(parameter: Parameter) -> Any:
    """Return a value that the table accepts."""
    if parameter.choices:
        return parameter.choices[0]
    if parameter.kind is Kind.OBJECT:
        return {each.name: right_value(each) for each in parameter.fields if each.required}
    return parameter.least if parameter.least is not None else RIGHT_VALUES[parameter.kind]


def wrong_values(parameter: Parameter) -> Iterator[Any]:
    """Yield values that the table does not accept."""
    in_query = parameter.location is Location.QUERY
    yield from (WRONG_TEXTS if in_query else WRONG_VALUES).get(parameter.kind, ())
    if parameter.choices and parameter.kind is Kind.TEXT:
        yield "no such choice"
    if parameter.least is not None:
        yield parameter.least - 1
    if parameter.most is not None:
        yield parameter.most + 1
    yield from wrong_fields(parameter)


def wrong_fields(parameter: Parameter) -> Iterator[Any]:
    """Yield values with one wrong field or element."""
    for one in parameter.fields:
        others = {each.name: right_value(each) for each in parameter.fields if each.required}
        for value in wrong_values(_in_body(one)):
            fields = {**others, one.name: value}
            yield [fields] if parameter.kind is Kind.LIST else fields
    if parameter.kind is Kind.LIST and not parameter.fields:
        for value in WRONG_VALUES.get(parameter.element, ()):
            yield [value]


def _in_body(parameter: Parameter) -> Parameter:
    return Parameter(
        parameter.name,
        parameter.kind,
        Location.BODY,
        choices=parameter.choices,
        least=parameter.least,
        most=parameter.most,
        fields=parameter.fields,
        element=parameter.element,
    )


def wrong_requests(operation: Operation) -> Iterator[WrongRequest]:
    """Yield requests of which one value is wrong; a body in the format of a dialect is not ours to spoil."""
    places = {Location.QUERY} if operation.format else {Location.QUERY, Location.BODY}
    required = [each for each in operation.parameters if each.required]
    for one in operation.parameters:
        if one.location not in places:
            continue
        for value in wrong_values(one):
            query = {each.name: right_value(each) for each in required if each.location is Location.QUERY}
            body = {each.name: right_value(each) for each in required if each.location is Location.BODY}
            (query if one.location is Location.QUERY else body)[one.name] = value
            yield WrongRequest(one.name, query, body)


@EACH_API
def test_value_of_wrong_type_is_refused_in_shape_of_vendor(api: VendorApi) -> None:
    client = signed_client(api, make_user("olga", admin=True))
    expected = status_and_code(api.describe_wrong_values([WrongValue("x", "string")]))

    def check(operation: Operation) -> None:
        for wrong in wrong_requests(operation):
            body = wrong.body if operation.method in {"POST", "PUT", "PATCH", "DELETE"} else None
            answer = client.send(operation.method, address_of(api, operation), body, **wrong.query)
            status, code, message = read_error(api, answer)
            assert ((status, code), wrong.name in message) == (expected, True), (wrong, answer.content)

    assert failures([each for each in answered(api) if each.parameters], check) == {}


def answered(api: VendorApi) -> list[Operation]:
    """Return the operations that do something."""
    return [operation for operation in api.operations if operation.view is not None]


@EACH_API
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b"null", b'"x"', b"[" * 100_000], ids=repr)
def test_body_that_is_no_object_never_fails(api: VendorApi, body: bytes) -> None:
    client = signed_client(api, make_user("olga", admin=True))

    def check(operation: Operation) -> None:
        answer = client.send(operation.method, address_of(api, operation), body)
        assert answer.status_code < 500
        read_json(answer)

    assert failures([each for each in answered(api) if each.method != "GET"], check) == {}
