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


def test_admin_without_sign_in_redirects_to_the_common_sign_in_page(client: Client) -> None:
    answer = client.get("/admin/jobs/job/", follow=True)
    assert answer.redirect_chain[-1][0].startswith("/sign-in?next=")
    assert "/admin/jobs/job/" in answer.redirect_chain[-1][0]
    assert answer.status_code == 200


def test_admin_login_page_accepts_no_password(client: Client) -> None:
    make_user("root", admin=True)
    answer = client.post("/admin/login/", {"username": "root", "password": "correct horse battery staple"})
    assert answer.status_code == 302
    assert answer.headers["Location"].startswith("/sign-in")
    assert client.get("/admin/").status_code == 302


def test_admin_refuses_signed_in_non_admin_without_another_sign_in(client: Client) -> None:
    client.force_login(make_user("member"))
    assert client.get("/admin/", follow=True).status_code == 403


def test_content_policy_allows_eval_in_admin_only(root: Client) -> None:
    policy = root.get("/admin/").headers["Content-Security-Policy"]
    assert "script-src 'self' 'unsafe-eval';" in f"{policy};"
    assert "style-src-attr 'unsafe-inline'" in policy
    assert "default-src 'self'" in policy
    assert "unsafe" not in root.get("/jobs/").headers["Content-Security-Policy"]


def test_admin_pages_have_no_style_element_or_inline_script(root: Client) -> None:
    text = root.get("/admin/quotas/quota/add/").content.decode()
    assert "<style" not in text
    assert "<script>" not in text


def test_admin_uses_language_and_theme_of_the_user(root: Client) -> None:
    text = root.get("/admin/").content.decode()
    assert 'lang="ja"' in text
    assert 'class="dark"' in text
