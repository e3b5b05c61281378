"""A file in another dialect, as the editor asks for it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from tests.jobs.web.conftest import People, browser
from tests.jobs.web.test_new import HELLO


def convert(client: Client, text: str, to: str, **fields: str) -> Any:
    return json.loads(client.post("/jobs/convert", {"text": text, "to": to, **fields}).content)


@pytest.mark.parametrize("who", ["owner", "member", "stranger", "admin"])
def test_it_comes_with_its_losses_and_a_name_to_keep_it_under(people: People, who: str) -> None:
    told = convert(browser(getattr(people, who)), HELLO, "dlc-params")
    assert told["dialect"] == "openpai-v1"
    assert told["file"].endswith(".params")
    assert told["syntax"] == "properties"
    assert {(note["code"], note["pointer"]) for note in told["notes"]} >= {
        ("lost", "/roles/0/resources/disk_mib"),
        ("not_carried", "/tmp"),
    }


def test_whoever_typed_a_secret_goes_on_writing_with_it(people: People) -> None:
    text = json.dumps(json.loads(HELLO) | {"jobEnvs": {"API_TOKEN": 'hunter2-"quoted"'}})
    told = convert(browser(people.owner), text, "dlc")
    assert json.loads(told["text"])["Envs"]["API_TOKEN"] == "$SECRET:API_TOKEN"
    assert json.loads(told["filled"])["Envs"]["API_TOKEN"] == 'hunter2-"quoted"'


def test_what_can_not_be_read_has_problems(people: People) -> None:
    told = convert(browser(people.owner), "{", "dlc")
    assert told["text"] is None
    assert told["filled"] is None
    assert told["problems"]


@pytest.mark.parametrize("fields", [{"to": "word"}, {"to": "dlc", "dialect": "word"}])
def test_unknown_dialects_are_bad_requests(people: People, fields: dict[str, str]) -> None:
    assert browser(people.owner).post("/jobs/convert", {"text": HELLO, **fields}).status_code == 400


def test_nobody_converts_without_signing_in(db: None) -> None:
    response = browser().post("/jobs/convert", {"text": HELLO, "to": "dlc"})
    assert response.status_code == 302
