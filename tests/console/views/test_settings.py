"""Settings, and a person's own access tokens."""

from __future__ import annotations

import pytest

from console.views.forms import SCOPES
from quotas.accounts import tokens
from quotas.models import AccessToken
from tests.confirmed import confirm
from tests.factories import make_user
from tests.jobs.web.conftest import browser, seen

pytestmark = pytest.mark.django_db

TOKEN = {"name": "laptop", "scopes": ["read", "submit"], "days": "30"}


def test_settings_save_language_zone_and_theme() -> None:
    user = make_user("alice")
    client = browser(user)
    data = {"language": "ja", "time_zone": "Asia/Tokyo", "theme": "dark"}
    assert client.post("/settings", data)["Location"] == "/settings"
    user.refresh_from_db()
    assert (user.language, user.time_zone, user.theme) == ("ja", "Asia/Tokyo", "dark")


def test_settings_page_changes_no_other_account_fields() -> None:
    user = make_user("alice")
    data = {"language": "", "time_zone": "", "theme": "auto", "is_superuser": "on", "username": "root"}
    browser(user).post("/settings", data)
    user.refresh_from_db()
    assert (user.username, user.is_superuser) == ("alice", False)


def test_settings_page_shows_unknown_zone_error_at_its_field() -> None:
    response = browser(make_user("alice")).post("/settings", {"time_zone": "Mars/Base", "theme": "auto"})
    assert response.status_code == 422
    assert response.context["form"].errors["time_zone"]


def test_new_token_is_shown_once_and_works() -> None:
    user = make_user("alice")
    client = confirm(browser(user))
    sent = client.post("/settings/tokens", TOKEN)
    assert sent.headers["Location"] == "/settings/tokens"
    waiting = str(dict(client.session))
    made = client.get("/settings/tokens").context["made"]
    assert made not in waiting, "at rest it is encrypted"
    found = tokens.verify(made)
    assert found is not None
    assert (found.user, found.scopes) == (user, ["read", "submit"])
    later = seen(client.get("/settings/tokens"))
    assert "laptop" in later
    assert made not in later


@pytest.mark.parametrize("wrong", [{"name": ""}, {"scopes": []}, {"scopes": ["root"]}, {"days": "100000"}])
def test_refused_token_form_keeps_typed_values(wrong: dict[str, object]) -> None:
    response = confirm(browser(make_user("alice"))).post("/settings/tokens", TOKEN | wrong)
    assert response.status_code == 422
    assert not AccessToken.objects.exists()
    assert ('value="laptop"' in seen(response)) is ("name" not in wrong)


def test_revoked_token_is_refused() -> None:
    client = confirm(browser(make_user("alice")))
    sent = client.post("/settings/tokens", TOKEN)
    assert sent.headers["Location"] == "/settings/tokens"
    waiting = str(dict(client.session))
    made = client.get("/settings/tokens").context["made"]
    assert made not in waiting, "at rest it is encrypted"
    client.post(f"/settings/tokens/{AccessToken.objects.get().pk}/revoke")
    assert tokens.verify(made) is None
    assert "laptop" not in seen(client.get("/settings/tokens"))


def test_token_of_another_user_is_hidden_and_cannot_be_revoked() -> None:
    made = confirm(browser(make_user("alice"))).post("/settings/tokens", TOKEN, follow=True).context["made"]
    for other in (make_user("bob"), make_user("root", admin=True)):
        client = browser(other)
        assert "laptop" not in seen(client.get("/settings/tokens"))
        assert client.post(f"/settings/tokens/{AccessToken.objects.get().pk}/revoke").status_code == 404
    assert tokens.verify(made)


def test_token_form_offers_all_scopes() -> None:
    assert {value for value, _label in SCOPES} == set(tokens.SCOPES)


def test_settings_without_sign_in_redirect_to_sign_in() -> None:
    assert browser().get("/settings").status_code == 302
    assert browser().post("/settings/tokens", TOKEN).status_code == 302
    assert not AccessToken.objects.exists()
