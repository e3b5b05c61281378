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


def wrong_cases() -> Iterator[Any]:
    for name in ANSWERED:
        for parameter in OPERATIONS[name].parameters:
            if parameter.location is Location.PATH:
                continue
            for index, value in enumerate([*wrong_values(parameter), *nested_cases(parameter)]):
                yield pytest.param(name, parameter.name, value, id=f"{name}-{parameter.name}-{index}")


@pytest.mark.parametrize(("name", "parameter", "value"), list(wrong_cases()))
def test_service_refuses_wrong_value(people: People, name: str, parameter: str, value: Any) -> None:
    operation = OPERATIONS[name]
    sent = request_of(operation, {parameter: value})
    assert sent.call(Dlc(people.owner), operation.method) == (400, "InvalidParameter")


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        (name, each.name)
        for name in ANSWERED
        for each in OPERATIONS[name].parameters
        if each.required and each.location is not Location.PATH
    ],
)
def test_service_refuses_missing_value(people: People, name: str, parameter: str) -> None:
    operation = OPERATIONS[name]
    sent = request_of(operation, without=parameter)
    assert sent.call(Dlc(people.owner), operation.method) == (400, "InvalidParameter")


@pytest.mark.parametrize("name", REFUSED)
def test_refused_service_says_so(people: People, name: str) -> None:
    operation = OPERATIONS[name]
    sent = request_of(operation)
    answer = Dlc(people.owner).send(operation.method.lower(), sent.path, sent.body, **sent.query)
    assert error_of(answer) == (400, "UnsupportedOperation")
    assert operation.note in json.loads(answer.content)["Message"]


@pytest.mark.parametrize("name", OPERATIONS)
def test_service_needs_a_caller_with_its_scope(people: People, name: str) -> None:
    operation = OPERATIONS[name]
    path = f"/api/v1/{request_of(operation).path}"
    assert error_of(Api().send(operation.method.lower(), path)) == (401, "MissingAuthorization")
    others = [scope for scope in tokens.SCOPES if scope != operation.scope]
    answer = api(people.owner, others).send(operation.method.lower(), path)
    assert error_of(answer) == (403, "NoPermission")


@pytest.mark.parametrize("body", ["[]", "5", "null", '"x"', "{", "[" * 100_000, "\ud800", "{}{}", "NaN"])
@pytest.mark.parametrize("name", [name for name in ANSWERED if has_body(OPERATIONS[name])])
def test_service_refuses_body_that_is_no_object(people: People, name: str, body: str) -> None:
    operation = OPERATIONS[name]
    path = f"/api/v1/{request_of(operation).path}"
    sent = body.encode("utf-8", "surrogatepass")
    answer = api(people.owner).send(operation.method.lower(), path, sent)
    assert error_of(answer) == (400, "InvalidParameter")


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
