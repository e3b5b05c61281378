"""Whatever stands in a field of a request, the answer is no 500, and does not repeat it at length."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from io import StringIO
from typing import Any, Final
from urllib.parse import urlencode

import pytest
from django.core.management import call_command
from django.test import Client

from jobs.models import Job
from tests.jobs.api.conftest import People, api, file

HOSTILE: Final[Mapping[str, Any]] = {
    "half a surrogate pair": "\ud800",
    "a null character": "a\0b",
    "much": "x" * 70_000,
    "a list": [["\ud83d"], None],
    "an object": {"\udfff": {"a" * 70_000: "\0"}},
    "a great number": 10**400,
    "a negative number": -1,
    "nothing": None,
}
IN_ADDRESSES: Final = ("%00", "%ED%A0%80", "x" * 3_000, "-1", "9" * 400, "a/../b")
LONGEST_ANSWER: Final = 20_000
VALUES: Final[Mapping[str, Any]] = {
    "string": "x",
    "integer": 1,
    "number": 1,
    "boolean": True,
    "array": [],
    "object": {},
}


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    written = StringIO()
    call_command("spectacular", "--format", "openapi-json", stdout=written)
    document: dict[str, Any] = json.loads(written.getvalue())
    return document


def operations(schema: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Every method and path with what is said of it."""
    for path, methods in schema["paths"].items():
        for method, said in methods.items():
            if method in {"get", "post", "put", "patch", "delete"}:
                yield method, path, said


def properties(schema: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an operation's JSON body."""
    body = said.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    reference = body.get("$ref", "").rpartition("/")[2]
    held: dict[str, Any] = schema["components"]["schemas"].get(reference, body).get("properties", {})
    return held


def filled(path: str, job: Job) -> str:
    """The path with the job's id, and anything for the rest."""
    path = path.replace("{public_id}", job.public_id) if "/jobs/" in path else path
    return re.sub(r"\{\w+\}", "datasets", path)


def plain(name: str, said: Mapping[str, Any]) -> Any:
    """A value that the field may well have."""
    if name == "file":
        return file()
    kind = said.get("type", "string")
    return VALUES.get(kind[0] if isinstance(kind, list) else kind, "x")


def check(answer: Any, what: object) -> None:
    assert answer.status_code != 500, what
    assert answer.status_code < 500 or answer.status_code == 503, what
    if not answer.streaming:
        assert len(answer.content) < LONGEST_ANSWER, what


def test_api_with_hostile_field_value_answers_no_500(
    schema: dict[str, Any], people: People, job: Job
) -> None:
    caller = api(
        people.owner,
    )
    tried = 0
    for method, path, said in operations(schema):
        fields = properties(schema, said)
        address = filled(path, job)
        for name in fields:
            for what, value in HOSTILE.items():
                body = {each: plain(each, about) for each, about in fields.items()} | {name: value}
                check(caller.send(method, address, json.dumps(body)), (method, path, name, what))
                tried += 1
    assert tried > 200


@pytest.mark.parametrize(
    "body", [b'{"file": "\xed\xa0\x80"}', b"\xff", b"[" * 5_000, b'"\\ud800"', b"[1e999]"]
)
def test_api_with_hostile_body_answers_no_500(
    schema: dict[str, Any], people: People, job: Job, body: bytes
) -> None:
    caller = api(
        people.owner,
    )
    for method, path, said in operations(schema):
        if properties(schema, said):
            check(caller.send(method, filled(path, job), body), (method, path))


def test_api_with_hostile_query_answers_no_500(schema: dict[str, Any], people: People, job: Job) -> None:
    caller = api(
        people.owner,
    )
    for method, path, said in operations(schema):
        queries = [each["name"] for each in said.get("parameters", ()) if each["in"] == "query"]
        if method != "get" or path.endswith("/stream"):
            continue
        for name in queries:
            for value in IN_ADDRESSES:
                address = f"{filled(path, job)}?{name}={value}"
                check(caller.send(method, address), (path, name, value[:20]))


FORMS: Final = {
    "/jobs/check": ("text", "dialect", "template", "origin"),
    "/jobs/convert": ("text", "dialect", "to"),
    "/jobs/mend": ("text", "dialect", "fix"),
    "/jobs/form/read": ("text", "dialect", "place", "template"),
    "/jobs/form/difference": ("text", "dialect", "origin"),
}


def test_editor_with_hostile_form_field_answers_no_500(people: People) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(people.owner)
    for path, names in FORMS.items():
        for name in names:
            for value in (
                "%ED%A0%80",
                "%00",
                "x" * 70_000,
                "{}",
                "[]",
                '{"pointer": 1, "value": 2, "key": []}',
            ):
                sent = {each: "openpai-v1" if each in ("dialect", "to") else file() for each in names}
                body = urlencode(sent | {name: ""}).replace(f"{name}=", f"{name}={value}", 1)
                answer = client.post(path, body, content_type="application/x-www-form-urlencoded")
                assert answer.status_code < 500, (path, name, value[:20])
