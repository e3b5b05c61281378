"""Every operation of PAI-DLC's services by its row: authentication, scopes, wrong values, refusals."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pytest

from jobs.api.vendors.operations import Kind, Location, Operation, Parameter, Support
from jobs.api.vendors.pai_dlc import services
from quotas.accounts import tokens
from tests.jobs.api.conftest import Api, People, api
from tests.jobs.api.vendors.pai_dlc.service_calls import Dlc, error_of

OPERATIONS: Final = {each.name: each for each in services.OPERATIONS}
REFUSED: Final = [each.name for each in services.OPERATIONS if each.view is None]
ANSWERED: Final = [each.name for each in services.OPERATIONS if each.view is not None]

WRONG: Final[dict[Kind, tuple[Any, ...]]] = {
    Kind.TEXT: (5, ["x"], {"x": 1}, True, "\0", "\ud800"),
    Kind.INTEGER: ("x", 1.5, True, [], {}, "1e3", 2**60, "٣x"),
    Kind.NUMBER: ("x", True, [], {}, "nan"),
    Kind.BOOLEAN: ("maybe", 5, [], {}),
    Kind.TIME: ("yesterday", 5, [], {}, "0001-01-01T00:00:00+14:00"),
    Kind.OBJECT: ("x", 5, [], True),
    Kind.LIST: ("x", 5, {}, True),
    Kind.MAP: ("x", 5, [], {"x": 1}),
    Kind.ANY: (),
}
"""Values that are not of the type."""

RIGHT: Final[dict[Kind, Any]] = {
    Kind.TEXT: "x",
    Kind.INTEGER: 1,
    Kind.BOOLEAN: True,
    Kind.OBJECT: {},
    Kind.LIST: [],
    Kind.ANY: "x",
}


class Sent(NamedTuple):
    """A request: the path below the root, the query and the body."""

    path: str
    query: dict[str, Any]
    body: dict[str, Any] | None

    def call(self, dlc: Dlc, method: str) -> tuple[int, str]:
        return dlc.refusal(method.lower(), self.path, self.body, **self.query)


def right_value(parameter: Parameter) -> Any:
    return parameter.choices[0] if parameter.choices else RIGHT[parameter.kind]


def request_of(operation: Operation, changed: dict[str, Any] | None = None, without: str = "") -> Sent:
    """A request with what the operation requires, and with changed values."""
    path = re.sub(r"<str:\w+>", "x", operation.path.removeprefix("api/v1/"))
    query: dict[str, Any] = {}
    body: dict[str, Any] = {}
    for each in operation.parameters:
        target = {Location.QUERY: query, Location.BODY: body}.get(each.location)
        if target is None or each.name == without:
            continue
        if changed and each.name in changed:
            target[each.name] = changed[each.name]
        elif each.required:
            target[each.name] = right_value(each)
    return Sent(path, query, body if has_body(operation) else None)


def has_body(operation: Operation) -> bool:
    return any(each.location is Location.BODY for each in operation.parameters)


def wrong_values(parameter: Parameter) -> Iterator[Any]:
    """Values that the parameter's row refuses; those of a query are texts."""
    values = list(WRONG[parameter.kind])
    if parameter.choices:
        values.append("none of them")
    if parameter.least is not None:
        values.append(int(parameter.least) - 1)
    if parameter.most is not None:
        values.append(int(parameter.most) + 1)
    in_query = parameter.location is Location.QUERY
    for value in values:
        is_text = isinstance(value, str)
        if value == "\ud800" and in_query:
            continue  # no client can send it there
        if (
            in_query
            and parameter.kind is Kind.TEXT
            and not (is_text and (parameter.choices or value == "\0"))
        ):
            continue  # whatever stands there is a text
        yield value


def nested_cases(parameter: Parameter) -> Iterator[Any]:
    """Wrong values of the fields of an object or of a list's elements."""
    if parameter.kind is Kind.LIST and parameter.fields:
        yield from ([5], ["x"], [[]])
    for each in parameter.fields:
        for value in wrong_values(Parameter(each.name, each.kind, Location.BODY, choices=each.choices)):
            inner = {each.name: value}
            yield [inner] if parameter.kind is Kind.LIST else inner


def wrong_cases(name: str) -> Iterator[tuple[str, Any]]:
    """Values that the operation refuses, each with the name of its parameter."""
    for parameter in OPERATIONS[name].parameters:
        if parameter.location is not Location.PATH:
            for value in (*wrong_values(parameter), *nested_cases(parameter)):
                yield parameter.name, value


@pytest.mark.parametrize("name", ANSWERED)
def test_service_refuses_wrong_values(people: People, name: str) -> None:
    operation = OPERATIONS[name]
    dlc = Dlc(people.owner)
    answers = [
        (parameter, value, request_of(operation, {parameter: value}).call(dlc, operation.method))
        for parameter, value in wrong_cases(name)
    ]
    assert [each for each in answers if each[2] != (400, "InvalidParameter")] == []


@pytest.mark.once
@pytest.mark.parametrize("name", ANSWERED)
def test_service_refuses_missing_values(people: People, name: str) -> None:
    operation = OPERATIONS[name]
    dlc = Dlc(people.owner)
    required = [
        each.name for each in operation.parameters if each.required and each.location is not Location.PATH
    ]
    answers = {each: request_of(operation, without=each).call(dlc, operation.method) for each in required}
    assert answers == dict.fromkeys(required, (400, "InvalidParameter"))


@pytest.mark.once
def test_refused_services_say_so(people: People) -> None:
    dlc = Dlc(people.owner)
    for name in REFUSED:
        operation = OPERATIONS[name]
        sent = request_of(operation)
        answer = dlc.send(operation.method.lower(), sent.path, sent.body, **sent.query)
        assert error_of(answer) == (400, "UnsupportedOperation"), name
        assert operation.note in json.loads(answer.content)["Message"], name


@pytest.mark.once
@pytest.mark.parametrize("name", OPERATIONS)
def test_service_needs_a_caller_with_its_scope(people: People, name: str) -> None:
    operation = OPERATIONS[name]
    path = f"/api/v1/{request_of(operation).path}"
    assert error_of(Api().send(operation.method.lower(), path)) == (401, "MissingAuthorization")
    others = [scope for scope in tokens.SCOPES if scope != operation.scope]
    answer = api(people.owner, others).send(operation.method.lower(), path)
    assert error_of(answer) == (403, "NoPermission")


@pytest.mark.parametrize("name", [name for name in ANSWERED if has_body(OPERATIONS[name])])
def test_service_refuses_bodies_that_are_no_object(people: People, name: str) -> None:
    operation = OPERATIONS[name]
    path = f"/api/v1/{request_of(operation).path}"
    caller = api(people.owner)
    for body in ("[]", "5", "null", '"x"', "{", "[" * 100_000, "\ud800", "{}{}", "NaN"):
        answer = caller.send(operation.method.lower(), path, body.encode("utf-8", "surrogatepass"))
        assert error_of(answer) == (400, "InvalidParameter"), body[:20]


@pytest.mark.parametrize(("method", "path"), [("put", "ecsspecs"), ("post", "tokens"), ("get", "tags")])
def test_other_method_is_no_operation(people: People, method: str, path: str) -> None:
    assert Dlc(people.owner).refusal(method, path) == (404, "InvalidApi.NotFound")


@pytest.mark.parametrize("name", OPERATIONS)
def test_service_row_says_what_is_not_supported(name: str) -> None:
    operation = OPERATIONS[name]
    rows: list[Operation | Parameter] = [operation, *operation.parameters]
    rows += [field for each in operation.parameters for field in each.fields]
    for row in rows:
        assert row.support is Support.FULL or row.note, row.name
    assert (operation.view is None) == (operation.support is Support.REFUSED)
    names = [(each.name, each.location) for each in operation.parameters]
    assert len(set(names)) == len(names)
    in_path = set(re.findall(r"<str:(\w+)>", operation.path))
    assert in_path == {each.name for each in operation.parameters if each.location is Location.PATH}


def test_services_have_one_row_each() -> None:
    assert len(OPERATIONS) == len(services.OPERATIONS)
    addresses = {(each.method, each.path) for each in services.OPERATIONS}
    assert len(addresses) == len(services.OPERATIONS)
