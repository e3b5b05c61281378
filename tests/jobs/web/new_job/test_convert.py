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
def test_convert_returns_notes_of_losses_and_file_name(people: People, who: str) -> None:
    told = convert(browser(getattr(people, who)), HELLO, "dlc-params")
    assert told["dialect"] == "openpai-v1"
    assert told["file"].endswith(".params")
    assert told["syntax"] == "properties"
    assert {(note["code"], note["pointer"]) for note in told["notes"]} >= {
        ("lost", "/roles/0/resources/disk_mib"),
        ("not_carried", "/tmp"),
    }


def test_convert_masks_secret_and_returns_filled_text(people: People) -> None:
    text = json.dumps(json.loads(HELLO) | {"jobEnvs": {"API_TOKEN": 'hunter2-"quoted"'}})
    told = convert(browser(people.owner), text, "dlc")
    assert json.loads(told["text"])["Envs"]["API_TOKEN"] == "$SECRET:API_TOKEN"
    assert json.loads(told["filled"])["Envs"]["API_TOKEN"] == 'hunter2-"quoted"'


def test_convert_of_unreadable_text_returns_problems(people: People) -> None:
    told = convert(browser(people.owner), "{", "dlc")
    assert told["text"] is None
    assert told["filled"] is None
    assert told["problems"]


@pytest.mark.parametrize("fields", [{"to": "word"}, {"to": "dlc", "dialect": "word"}])
def test_convert_with_unknown_dialect_is_bad_request(people: People, fields: dict[str, str]) -> None:
    assert browser(people.owner).post("/jobs/convert", {"text": HELLO, **fields}).status_code == 400


def test_convert_without_sign_in_is_redirected(db: None) -> None:
    response = browser().post("/jobs/convert", {"text": HELLO, "to": "dlc"})
    assert response.status_code == 302
