"""The admin as a whole: its door, its policy, its look."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.factories import make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def root(client: Client) -> Client:
    client.force_login(make_user("root", admin=True, language="ja", theme="dark"))
    return client


def test_one_signs_in_to_the_admin_where_everybody_does(client: Client) -> None:
    answer = client.get("/admin/jobs/job/", follow=True)
    assert answer.redirect_chain[-1][0].startswith("/sign-in?next=")
    assert "/admin/jobs/job/" in answer.redirect_chain[-1][0]
    assert answer.status_code == 200


def test_no_password_is_taken_at_a_door_of_its_own(client: Client) -> None:
    make_user("root", admin=True)
    answer = client.post("/admin/login/", {"username": "root", "password": "correct horse battery staple"})
    assert answer.status_code == 302
    assert answer.headers["Location"].startswith("/sign-in")
    assert client.get("/admin/").status_code == 302


def test_who_is_no_admin_is_told_so_and_not_asked_to_sign_in_again(client: Client) -> None:
    client.force_login(make_user("member"))
    assert client.get("/admin/", follow=True).status_code == 403


def test_the_admin_alone_may_evaluate_and_nobody_may_write_scripts_into_pages(root: Client) -> None:
    policy = root.get("/admin/").headers["Content-Security-Policy"]
    assert "script-src 'self' 'unsafe-eval';" in f"{policy};"
    assert "style-src-attr 'unsafe-inline'" in policy
    assert "default-src 'self'" in policy
    assert "unsafe" not in root.get("/jobs/").headers["Content-Security-Policy"]


def test_no_page_of_the_admin_has_a_style_element_or_an_inline_script(root: Client) -> None:
    text = root.get("/admin/quotas/quota/add/").content.decode()
    assert "<style" not in text
    assert "<script>" not in text


def test_the_admin_follows_the_persons_language_and_theme(root: Client) -> None:
    text = root.get("/admin/").content.decode()
    assert 'lang="ja"' in text
    assert 'class="dark"' in text
