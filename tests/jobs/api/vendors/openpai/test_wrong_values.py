"""Every parameter of every operation with values of wrong types: refused in OpenPAI's shape, or answered."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import pytest

from jobs.api.vendors.openpai.api import OpenPai
from jobs.api.vendors.operations import Location, Operation, Support
from jobs.models import Job
from quotas.accounts import tokens
from tests.jobs.api.conftest import People
from tests.jobs.api.vendors.openpai.conftest import PaiOf

pytestmark = pytest.mark.django_db

OPERATIONS: Final = OpenPai.operations
DISTINCT: Final = tuple({(row.name, row.method, row.view): row for row in OPERATIONS}.values())
"""Each once, though it has several addresses."""

WRONG: Final[tuple[Any, ...]] = (
    None,
    0,
    -1,
    1.5,
    10**30,
    True,
    "",
    "x",
    "\0",
    "\ud800",
    "x" * 70_000,
    [],
    {},
    [{}],
)
IN_PATH: Final = ("0", "-1", "x", "%00", "%ED%A0%80", "9" * 40, "~", "a~b", "%F0%9F%92%A9", "%2e%2e")
GOOD: Final = {"username": "olga", "job": "olga~hello", "role": "main", "virtualCluster": "default"}


def address(operation: Operation, **changes: str) -> str:
    def fill(match: re.Match[str]) -> str:
        name = match[1]
        return changes.get(name, GOOD.get(name, "0"))

    return "/" + re.sub(r"<\w+:(\w+)>", fill, operation.path)


def name_of(value: object) -> str:
    return f"{value.method} {value.path}" if isinstance(value, Operation) else str(getattr(value, "name", ""))


def check(answer: Any) -> None:
    assert answer.status_code < 500 or answer.status_code == 501, answer.content
    assert "html" not in answer.headers.get("Content-Type", "")
    if answer.status_code >= 400:
        assert set(json.loads(answer.content)) == {"code", "message"}


@pytest.mark.parametrize("operation", DISTINCT, ids=name_of)
def test_operation_refuses_wrong_values(people: People, job: Job, pai: PaiOf, operation: Operation) -> None:
    client = pai(people.owner, tokens.SCOPES)
    for parameter in operation.parameters:
        if parameter.location is Location.PATH:
            for text in IN_PATH:
                check(client.send(operation.method, address(operation, **{parameter.name: text})))
            continue
        for value in WRONG:
            if parameter.location is Location.BODY:
                body = json.dumps({parameter.name: value})
                check(client.send(operation.method, address(operation), body))
            elif isinstance(value, str) and value not in {"\0", "\ud800"}:
                query = f"?{parameter.name}={value[:2000]}"
                check(client.send(operation.method, address(operation) + query))
    for body in ("", "{", "[]", "1", "null", '"x"', "\0", '{"value":"\\ud800"}'):
        check(client.send(operation.method, address(operation), body))


def test_operations_need_token_unless_they_say_otherwise(people: People, job: Job, pai: PaiOf) -> None:
    stranger = pai()
    for operation in OPERATIONS:
        answer = stranger.send(operation.method, address(operation), "{}")
        if operation.scope:
            assert answer.status_code == 401, name_of(operation)
            assert json.loads(answer.content)["code"] == "UnauthorizedUserError"
        else:
            assert answer.status_code in {200, 400, 404, 501}, name_of(operation)


def test_operations_need_their_scope(people: People, job: Job, pai: PaiOf) -> None:
    clients = {scope: pai(people.owner, set(tokens.SCOPES) - {scope}) for scope in tokens.SCOPES}
    for operation in OPERATIONS:
        if operation.scope:
            answer = clients[operation.scope].send(operation.method, address(operation), "{}")
            assert answer.status_code == 403, name_of(operation)
            assert operation.scope in json.loads(answer.content)["message"]


def test_operations_say_how_far_they_are_supported() -> None:
    for operation in OPERATIONS:
        assert (operation.view is None) is (operation.support is Support.REFUSED)
        assert operation.note or operation.support is Support.FULL, name_of(operation)
        for parameter in operation.parameters:
            assert parameter.note or parameter.support is Support.FULL, parameter.name
