"""Signing in and out, language, theme."""

from __future__ import annotations

import pytest
from django.conf import LazySettings
from django.test import Client

from quotas.models import User
from tests.factories import PASSWORD, make_user
from tests.jobs.web.conftest import browser, seen

pytestmark = pytest.mark.django_db


def sign_in(client: Client, name: str, password: str, where: str = "") -> int:
    return client.post("/sign-in", {"username": name, "password": password, "next": where}).status_code


def test_the_right_password_leads_on() -> None:
    make_user("alice")
    response = Client().post(
        "/sign-in", {"username": "alice", "password": PASSWORD, "next": "/jobs/?state=failed"}
    )
    assert response["Location"] == "/jobs/?state=failed"


def test_nobody_is_led_to_another_site() -> None:
    make_user("alice")
    data = {"username": "alice", "password": PASSWORD, "next": "https://evil.example/"}
    assert Client().post("/sign-in", data)["Location"] == "/"


def test_a_wrong_password_keeps_the_name_that_was_typed() -> None:
    make_user("alice")
    text = seen(Client().post("/sign-in", {"username": "alice", "password": "wrong"}))
    assert 'value="alice"' in text
    assert 'role="alert"' in text
    assert "wrong" not in text


def test_guessing_is_paused_for_this_person_from_here_only(settings: LazySettings) -> None:
    make_user("alice")
    make_user("bob")
    client = Client()
    answers = [sign_in(client, "alice", f"guess {number}") for number in range(settings.AXES_FAILURE_LIMIT)]
    assert answers[-1] == 429
    assert sign_in(client, "alice", PASSWORD) == 429
    assert sign_in(client, "bob", PASSWORD) == 302
    assert sign_in(Client(REMOTE_ADDR="192.0.2.7"), "alice", PASSWORD) == 302


def test_signing_out_takes_a_post() -> None:
    client = browser(make_user("alice"))
    assert client.get("/sign-out").status_code == 405
    assert client.post("/sign-out")["Location"] == "/sign-in"
    assert client.get("/").status_code == 302


def test_a_language_chosen_here_holds_everywhere() -> None:
    user = make_user("alice")
    browser(user).post("/language", {"language": "zh-hans", "next": "/"})
    user.refresh_from_db()
    assert user.language == "zh-hans"
    assert 'lang="zh-hans"' in seen(browser(user).get("/"))


def test_the_accounts_language_comes_before_the_browsers() -> None:
    client = browser(make_user("alice", language="ja"))
    assert 'lang="ja"' in seen(client.get("/", headers={"Accept-Language": "zh-CN"}))


def test_without_a_choice_the_browser_decides() -> None:
    assert 'lang="ja"' in seen(Client().get("/sign-in", headers={"Accept-Language": "ja"}))


def test_a_language_that_there_is_not_changes_nothing() -> None:
    user = make_user("alice")
    browser(user).post("/language", {"language": "tlh", "next": "/"})
    user.refresh_from_db()
    assert user.language == ""


def test_the_theme_is_remembered() -> None:
    user = make_user("alice")
    client = browser(user)
    assert client.post("/theme", {"theme": "dark"}).status_code == 204
    assert client.post("/theme", {"theme": "pink"}).status_code == 400
    user.refresh_from_db()
    assert user.theme == User.Theme.DARK
    assert 'data-bs-theme="dark"' in seen(client.get("/"))


def test_times_are_in_the_persons_zone() -> None:
    user = make_user("alice", time_zone="Asia/Tokyo")
    assert 'data-time-zone="Asia/Tokyo"' in seen(browser(user).get("/"))


def test_a_zone_this_machine_does_not_know_is_no_error() -> None:
    assert browser(make_user("alice", time_zone="Mars/Base")).get("/").status_code == 200
