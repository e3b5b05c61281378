"""GET /schemas/<dialect>.json: what a dialect's keys mean, for editors."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from django.test import Client
from django.utils import translation

from jobs import dialects
from jobs.api import schemas
from tests.jobs.api.conftest import People
from tests.jobs.web.conftest import browser


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    """Nothing remembered from before, and no language left behind."""
    schemas._render.cache_clear()
    with translation.override("en"):
        yield
    schemas._render.cache_clear()


@pytest.mark.parametrize("name", dialects.NAMES)
def test_dialect_schema_exists_for_every_dialect(client: Client, name: str) -> None:
    answer = client.get(f"/schemas/{name}.json")
    assert answer.headers["Content-Type"] == "application/schema+json; charset=utf-8"
    schema = json.loads(answer.content)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"]


@pytest.mark.parametrize("who", ["owner", "member", "stranger", "admin", None])
def test_dialect_schema_is_public_and_the_same_for_all(people: People, who: str | None) -> None:
    told = browser(getattr(people, who) if who else None).get("/schemas/dlc.json")
    assert (told.status_code, told.content) == (200, Client().get("/schemas/dlc.json").content)


@pytest.mark.parametrize("name", ["word.json", "a.b.json", "a/b.json", "word", ""])
def test_dialect_schema_of_an_unknown_name_is_a_problem_in_json(client: Client, name: str) -> None:
    answer = client.get(f"/schemas/{name}")
    assert (answer.status_code, answer.headers["Content-Type"]) == (404, "application/problem+json")
    assert json.loads(answer.content)["status"] == 404


def test_dialect_schema_is_cached_and_revalidated_by_its_tag(client: Client) -> None:
    first = client.get("/schemas/dlc.json")
    assert first.headers["Cache-Control"] == "public, max-age=3600"
    assert "Accept-Language" in first.headers["Vary"]
    again = client.get("/schemas/dlc.json", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    other = client.get("/schemas/aihc.json", headers={"If-None-Match": first.headers["ETag"]})
    assert other.status_code == 200


@pytest.mark.parametrize(
    ("query", "header", "language"),
    [
        ("", "", "en"),
        ("", "ja;q=0.9, en;q=0.8", "ja"),
        ("", "fr, zh-CN", "zh-hans"),
        ("?lang=ja", "zh-hans", "ja"),
        ("?lang=tlh", "ja", "en"),
    ],
)
def test_dialect_schema_descriptions_are_in_the_language_of_the_reader(
    client: Client, monkeypatch: pytest.MonkeyPatch, query: str, header: str, language: str
) -> None:
    monkeypatch.setattr(schemas, "gettext", lambda text: f"{translation.get_language()}: {text}")
    answer = client.get(f"/schemas/openpai-v1.json{query}", headers={"Accept-Language": header})
    schema = json.loads(answer.content)
    assert schema["properties"]["jobName"]["description"].startswith(f"{language}: Name of the job")
    assert schema["properties"]["jobName"]["type"] == "string"
