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


def test_correct_password_redirects_to_the_requested_page() -> None:
    make_user("alice")
    response = Client().post(
        "/sign-in", {"username": "alice", "password": PASSWORD, "next": "/jobs/?state=failed"}
    )
    assert response["Location"] == "/jobs/?state=failed"


def test_sign_in_does_not_redirect_to_another_site() -> None:
    make_user("alice")
    data = {"username": "alice", "password": PASSWORD, "next": "https://evil.example/"}
    assert Client().post("/sign-in", data)["Location"] == "/"


def test_wrong_password_keeps_the_typed_name() -> None:
    make_user("alice")
    text = seen(Client().post("/sign-in", {"username": "alice", "password": "wrong"}))
    assert 'value="alice"' in text
    assert 'role="alert"' in text
    assert "wrong" not in text


def test_password_guessing_is_paused_per_user_and_address(settings: LazySettings) -> None:
    make_user("alice")
    make_user("bob")
    client = Client()
    answers = [sign_in(client, "alice", f"guess {number}") for number in range(settings.AXES_FAILURE_LIMIT)]
    assert answers[-1] == 429
    assert sign_in(client, "alice", PASSWORD) == 429
    assert sign_in(client, "bob", PASSWORD) == 302
    assert sign_in(Client(REMOTE_ADDR="192.0.2.7"), "alice", PASSWORD) == 302


def test_sign_out_requires_post() -> None:
    client = browser(make_user("alice"))
    assert client.get("/sign-out").status_code == 405
    assert client.post("/sign-out")["Location"] == "/sign-in"
    assert client.get("/").status_code == 302


def test_chosen_language_applies_in_all_browsers() -> None:
    user = make_user("alice")
    browser(user).post("/language", {"language": "zh-hans", "next": "/"})
    user.refresh_from_db()
    assert user.language == "zh-hans"
    assert 'lang="zh-hans"' in seen(browser(user).get("/"))


def test_account_language_overrides_browser_language() -> None:
    client = browser(make_user("alice", language="ja"))
    assert 'lang="ja"' in seen(client.get("/", headers={"Accept-Language": "zh-CN"}))


def test_browser_language_applies_without_a_choice() -> None:
    assert 'lang="ja"' in seen(Client().get("/sign-in", headers={"Accept-Language": "ja"}))


def test_unknown_language_changes_nothing() -> None:
    user = make_user("alice")
    browser(user).post("/language", {"language": "tlh", "next": "/"})
    user.refresh_from_db()
    assert user.language == ""


def test_theme_choice_is_stored() -> None:
    user = make_user("alice")
    client = browser(user)
    assert client.post("/theme", {"theme": "dark"}).status_code == 204
    assert client.post("/theme", {"theme": "pink"}).status_code == 400
    user.refresh_from_db()
    assert user.theme == User.Theme.DARK
    assert 'data-bs-theme="dark"' in seen(client.get("/"))


def test_times_use_the_zone_of_the_user() -> None:
    user = make_user("alice", time_zone="Asia/Tokyo")
    assert 'data-time-zone="Asia/Tokyo"' in seen(browser(user).get("/"))


def test_unknown_time_zone_causes_no_error() -> None:
    assert browser(make_user("alice", time_zone="Mars/Base")).get("/").status_code == 200
