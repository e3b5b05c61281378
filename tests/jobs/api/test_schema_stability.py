"""The promise of docs/api.md: nothing that a release described is removed, changed or newly required."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from io import StringIO
from typing import Any, Final

import pytest
from django.core.management import call_command

from console.home import CHECKOUT

LAST_RELEASE: Final = CHECKOUT / "tests" / "data" / "openapi-0.2.json"
METHODS: Final = frozenset({"get", "put", "post", "patch", "delete"})
NULL: Final = "null"
PROBLEM: Final = "#/components/schemas/ProblemDetails"

Schema = Mapping[str, Any]


@pytest.fixture(scope="module")
def released() -> Schema:
    document: Schema = json.loads(LAST_RELEASE.read_text(encoding="utf-8"))
    return document


@pytest.fixture(scope="module")
def current() -> Schema:
    written = StringIO()
    call_command("spectacular", "--format", "openapi-json", stdout=written)
    document: Schema = json.loads(written.getvalue())
    return document


def test_schema_breaks_no_promise_to_clients_of_last_release(released: Schema, current: Schema) -> None:
    assert list(breaches(released, current)) == []


BREAKING: Final = {
    "an operation is removed": lambda schema: schema["paths"].pop("/api/console/v1/jobs"),
    "a parameter is removed": lambda schema: _operation(schema)["parameters"].pop(0),
    "a parameter becomes required": lambda schema: _operation(schema)["parameters"][0].update(required=True),
    "a status is removed": lambda schema: _operation(schema)["responses"].pop("200"),
    "a shape is removed": lambda schema: schema["components"]["schemas"].pop("JobShape"),
    "a field is removed": lambda schema: _fields(schema, "JobShape").pop("name"),
    "a field has another type": lambda schema: _fields(schema, "JobShape").update(name={"type": "integer"}),
    "a field of an answer may be null": lambda schema: _fields(schema, "JobShape").update(
        name={"type": ["string", "null"]}
    ),
    "a field of an answer may be missing": lambda schema: schema["components"]["schemas"]["JobShape"][
        "required"
    ].remove("name"),
    "a request needs a new field": lambda schema: schema["components"]["schemas"]["SubmissionShape"][
        "required"
    ].append("cluster"),
    "a value is removed": lambda schema: schema["components"]["schemas"]["JobState"]["enum"].remove("LOST"),
}


@pytest.mark.parametrize("change", BREAKING.values(), ids=list(BREAKING))
def test_schema_comparison_finds_breaking_change(current: Schema, change: Any) -> None:
    changed = json.loads(json.dumps(current))
    change(changed)
    assert list(breaches(current, changed))


def _operation(schema: Schema) -> Any:
    return schema["paths"]["/api/console/v1/jobs"]["get"]


def _fields(schema: Schema, shape: str) -> Any:
    return schema["components"]["schemas"][shape]["properties"]


# --- the comparison --------------------------------------------------------------------------------------


def breaches(before: Schema, after: Schema) -> Iterator[str]:
    """Yield what a client written for `before` would trip over."""
    for path, methods in before["paths"].items():
        for method in METHODS & methods.keys():
            now = after["paths"].get(path, {}).get(method)
            if now is None:
                yield f"{method} {path} is removed"
            else:
                yield from _operation_breaches(f"{method} {path}", methods[method], now)
    requests = set(_requests(after))
    for name, shape in before["components"]["schemas"].items():
        now = after["components"]["schemas"].get(name)
        if now is None:
            yield f"{name} is removed"
        else:
            yield from _shape_breaches(name, shape, now, is_request=name in requests)


def _operation_breaches(where: str, before: Schema, after: Schema) -> Iterator[str]:
    if before["operationId"] != after["operationId"]:
        yield f"{where} has another operationId"
    earlier = {(each["in"], each["name"]): each for each in before.get("parameters", ())}
    now = {(each["in"], each["name"]): each for each in after.get("parameters", ())}
    yield from (f"{where}: parameter {name} is removed" for _in, name in earlier.keys() - now.keys())
    for key, parameter in now.items():
        if parameter.get("required") and not earlier.get(key, {}).get("required"):
            yield f"{where}: parameter {key[1]} is required"
        if key in earlier and not _accepts(_type(earlier[key]["schema"]), _type(parameter["schema"])):
            yield f"{where}: parameter {key[1]} has another type"
    if _media(before.get("requestBody")) - _media(after.get("requestBody")):
        yield f"{where}: another request body"
    for status, response in before["responses"].items():
        if status not in after["responses"] or _media(response) - _media(after["responses"][status]):
            yield f"{where}: another answer {status}"


def _media(body: Schema | None) -> set[tuple[str, str]]:
    """Return the media types of a body with their schemas; 0.2 named that of problem details wrongly."""
    content = (body or {}).get("content", {})
    found = {(name, json.dumps(_type(each["schema"]), sort_keys=True)) for name, each in content.items()}
    problem = json.dumps(_type({"$ref": PROBLEM}), sort_keys=True)
    return {("application/problem+json" if schema == problem else name, schema) for name, schema in found}


def _shape_breaches(name: str, before: Schema, after: Schema, *, is_request: bool) -> Iterator[str]:
    if missing := set(before.get("enum", ())) - set(after.get("enum", ())) - {None}:
        yield f"{name}: the values {missing} are removed"
    fields, now = before.get("properties", {}), after.get("properties", {})
    yield from (f"{name}.{field} is removed" for field in fields.keys() - now.keys())
    for field in fields.keys() & now.keys():
        old, new = _type(fields[field]), _type(now[field])
        if not (_accepts(old, new) if is_request else old == new):
            yield f"{name}.{field} has another type"
    required, required_now = set(before.get("required", ())), set(after.get("required", ()))
    if is_request and required_now - required:
        yield f"{name}: the fields {required_now - required} are required"
    if not is_request and required - required_now:
        yield f"{name}: the fields {required - required_now} may be missing"


def _accepts(old: Any, new: Any) -> bool:
    """Tell whether a field takes what it took; null may be added."""
    return bool(old == new or (isinstance(new, list) and old in new))


def _type(schema: Schema) -> Any:
    """Return the type of a field, of either version of OpenAPI: a name, a reference, or a list of them."""
    if schema.get("nullable"):
        return _union([_type({name: each for name, each in schema.items() if name != "nullable"}), NULL])
    if "$ref" in schema:
        return NULL if schema["$ref"].endswith("/NullEnum") else schema["$ref"].rpartition("/")[2]
    for word in ("oneOf", "anyOf", "allOf"):
        if word in schema:
            return _union([_type(each) for each in schema[word]])
    kinds = schema.get("type", "any")
    if isinstance(kinds, list):
        return _union([_type({**schema, "type": kind}) for kind in kinds])
    if kinds == "array":
        return ["array of", _type(schema["items"])]
    if kinds == "object" and isinstance(schema.get("additionalProperties"), dict):
        return ["object of", _type(schema["additionalProperties"])]
    return kinds


def _union(parts: list[Any]) -> Any:
    """Return the parts of a union, flat and in one order; a single one alone."""
    flat = [inner for part in parts for inner in (part[1:] if _is_union(part) else [part])]
    unique = sorted({json.dumps(each): each for each in flat}.items())
    return unique[0][1] if len(unique) == 1 else ["one of", *(each for _key, each in unique)]


def _is_union(part: Any) -> bool:
    return isinstance(part, list) and part[0] == "one of"


def _requests(schema: Schema) -> Iterator[str]:
    """Yield the names of shapes that request bodies consist of."""
    waiting = [
        json.dumps(operation["requestBody"])
        for methods in schema["paths"].values()
        for method, operation in methods.items()
        if method in METHODS and "requestBody" in operation
    ]
    known = schema["components"]["schemas"]
    seen: set[str] = set()
    while waiting:
        text = waiting.pop()
        found = {name for name in known if f'"#/components/schemas/{name}"' in text} - seen
        seen |= found
        waiting += [json.dumps(known[name]) for name in found]
    yield from seen
