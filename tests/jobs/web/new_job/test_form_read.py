"""The text was changed: the form is made anew from it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from tests.jobs.web.conftest import People, browser
from tests.jobs.web.new_job.test_form_change import DLC, LOCKED, form_of
from tests.jobs.web.test_new import HELLO


def read(client: Client, text: str, **fields: str) -> Any:
    return json.loads(client.post("/jobs/form/read", {"text": text, **fields}).content)


def test_form_shows_values_of_text(people: People) -> None:
    answer = read(browser(people.owner), DLC)
    form = form_of(answer)
    assert answer["text"] == DLC
    assert 'name="name" value="train"' in form
    assert 'name="roles-0-cpu" value="4"' in form
    assert 'name="roles-0-memory" value="16"' in form
    assert "python train.py</textarea>" in form


def test_form_read_answers_same_as_check(people: People) -> None:
    client = browser(people.owner)
    answer = read(client, HELLO)
    checked = json.loads(client.post("/jobs/check", {"text": HELLO}).content)
    assert {key: answer[key] for key in checked} == checked


def test_form_read_ignores_submitted_fields(people: People) -> None:
    assert read(browser(people.owner), DLC, name="other", **{"form-shown": "{}"})["text"] == DLC


def test_form_lists_settings_without_field(people: People) -> None:
    form = form_of(read(browser(people.owner), DLC))
    assert "1 setting has no form field" in form
    assert "/Mine" in form


@pytest.mark.parametrize("text", ["", "{", "hello", "\x00", "{" * 100_000])
def test_form_of_unreadable_text_is_read_only_with_reason(people: People, text: str) -> None:
    answer = read(browser(people.owner), text)
    assert answer["text"] == text
    assert "data-read-only" in answer["form"]
    assert "Waiting for a valid job file" in form_of(answer)
    assert "disabled" in answer["form"]


def test_form_counts_values_in_folded_groups(people: People) -> None:
    tagged = DLC.replace('"UserCommand"', '"Envs": {"A": "1", "B": "2", "C": "3"}, "UserCommand"')
    assert "3 set" in form_of(read(browser(people.owner), tagged))


def test_form_hides_password_in_file(people: People) -> None:
    answer = read(browser(people.owner), LOCKED)
    assert "canary-51f0" in answer["text"]
    assert "canary-51f0" not in answer["form"]


def test_form_escapes_markup_of_file(people: People) -> None:
    answer = read(browser(people.owner), DLC.replace("train.py", "<script>alert(1)</script>"))
    assert "<script>alert" not in answer["form"]


def test_form_read_with_unknown_dialect_is_bad_request(people: People) -> None:
    response = browser(people.owner).post("/jobs/form/read", {"text": DLC, "dialect": "nonsense"})
    assert response.status_code == 400


@pytest.mark.parametrize("who", ["owner", "member", "stranger", "admin"])
def test_form_read_is_open_to_every_signed_in_user(people: People, who: str) -> None:
    assert read(browser(getattr(people, who)), DLC)["dialect"] == "dlc"


def test_form_read_without_sign_in_is_refused(db: None) -> None:
    headers = {"Accept": "application/json"}
    assert browser().post("/jobs/form/read", {"text": DLC}, headers=headers).status_code == 401
    assert browser().post("/jobs/form/read", {"text": DLC}).status_code == 302


def test_form_read_without_csrf_token_is_refused(people: People) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(people.owner)
    assert client.post("/jobs/form/read", {"text": DLC}).status_code == 403
