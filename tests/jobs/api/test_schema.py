"""The OpenAPI document: complete, and made without a complaint."""

from __future__ import annotations

import json
import re
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from jobs.api.native.urls import urlpatterns
from tests.jobs.api.conftest import V1, People, api, body_of, file


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    written = StringIO()
    call_command("spectacular", "--format", "openapi-json", "--validate", "--fail-on-warn", stdout=written)
    document: dict[str, Any] = json.loads(written.getvalue())
    return document


def test_openapi_schema_describes_every_address(schema: dict[str, Any]) -> None:
    described = set(schema["paths"])
    for pattern in urlpatterns:
        path = f"{V1}/" + re.sub(r"<\w+:(\w+)>", r"{\1}", str(pattern.pattern))
        assert path in described or path == f"{V1}/schema"


def test_openapi_schema_is_public(client: Client, db: None) -> None:
    answer = client.get(f"{V1}/schema")
    assert answer.status_code == 200
    assert b"openapi" in answer.content


def test_openapi_schema_is_answered_alike_again_in_each_format(client: Client, db: None) -> None:
    yaml, json_ = "application/vnd.oai.openapi", "application/vnd.oai.openapi+json"
    answers = {
        kind: [client.get(f"{V1}/schema", headers={"Accept": kind}) for _go in "12"] for kind in (yaml, json_)
    }
    for kind, (first, again) in answers.items():
        assert again.headers["Content-Type"] == first.headers["Content-Type"]
        assert again.headers["Content-Type"].startswith(kind)
        assert again.headers["Vary"] == first.headers["Vary"]
        assert again.content == first.content
    assert json.loads(first.content)["openapi"]


@pytest.mark.parametrize("status", [201, 400])
def test_openapi_schema_matches_submit_answers(schema: dict[str, Any], people: People, status: int) -> None:
    answer = api(people.owner).submit(file() if status == 201 else "{}")
    operation = schema["paths"][f"{V1}/jobs"]["post"]
    content = operation["responses"][str(status)]["content"]
    [media] = content.values()
    conforms(body_of(answer, status), media["schema"], schema)


def conforms(value: Any, shape: dict[str, Any], schema: dict[str, Any]) -> None:
    """Whether `value` has the properties that `shape` promises, however deep."""
    for part in shape.get("allOf", []):
        conforms(value, part, schema)
    if "$ref" in shape:
        shape = schema["components"]["schemas"][shape["$ref"].rpartition("/")[2]]
    if value is None:
        return
    if shape.get("type") == "array":
        for row in value:
            conforms(row, shape["items"], schema)
    for name in shape.get("required", []):
        assert name in value
    if shape.get("type") == "object" and "properties" in shape:
        assert set(value) <= set(shape["properties"])
        for name, inner in shape["properties"].items():
            if name in value:
                conforms(value[name], inner, schema)
