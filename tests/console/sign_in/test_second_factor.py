"""The second factor: codes of an app, recovery codes, and who has to have one."""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct
import time
from datetime import timedelta

import pytest
from allauth.mfa.models import Authenticator
from django.conf import LazySettings
from django.test import Client

from quotas.accounts import tokens
from tests.factories import PASSWORD, make_user
from tests.jobs.web.conftest import browser

pytestmark = pytest.mark.django_db
APP = "/settings/second-factor/app"
HTML = {"Accept": "text/html"}


def code_of(secret: str, steps: int = 0) -> str:
    """RFC 6238, as an app does it; `steps` of 30 seconds from now."""
    key = base64.b32decode(secret + "=" * (-len(secret) % 8))
    counter = struct.pack(">Q", int(time.time()) // 30 + steps)
    digest = hmac.new(key, counter, hashlib.sha1).digest()
    place = digest[-1] & 15
    return f"{(struct.unpack('>I', digest[place : place + 4])[0] & 0x7FFFFFFF) % 1_000_000:06}"


def set_up(name: str = "alice") -> tuple[Client, str, list[str]]:
    """Somebody with an app: their browser, the secret, and the recovery codes."""
    client = Client()
    client.post("/sign-in", {"username": name, "password": PASSWORD})
    again = client.get(APP)
    assert again["Location"].startswith("/sign-in/again"), "first they show who they are"
    client.post(again["Location"], {"password": PASSWORD, "next": APP})
    secret = client.get(APP).context["form"].secret
    assert client.post(APP, {"code": "000000"}).status_code == 200
    done = client.post(APP, {"code": code_of(secret)})
    codes = client.get(done["Location"]).context["unused_codes"]
    return client, secret, codes


def half_in(name: str = "alice") -> Client:
    client = Client()
    response = client.post("/sign-in", {"username": name, "password": PASSWORD})
    assert response["Location"] == "/sign-in/code"
    return client


def is_in(client: Client) -> bool:
    return client.get("/").status_code == 200


def test_password_without_second_factor_does_not_sign_in() -> None:
    make_user("alice")
    _client, secret, _codes = set_up()
    client = half_in()
    assert not is_in(client)
    assert client.post("/sign-in/code", {"code": "000000"}).status_code == 200
    assert not is_in(client)
    client.post("/sign-in/code", {"code": code_of(secret, 1)})
    assert is_in(client)


def test_recovery_code_works_once() -> None:
    make_user("alice")
    _client, _secret, codes = set_up()
    client = half_in()
    client.post("/sign-in/code", {"code": codes[0]})
    assert is_in(client)
    client = half_in()
    client.post("/sign-in/code", {"code": codes[0]})
    assert not is_in(client)


def test_code_guessing_is_paused() -> None:
    make_user("alice")
    _client, secret, _codes = set_up()
    client = half_in()
    for number in range(12):
        client.post("/sign-in/code", {"code": f"{number:06}"})
    client.post("/sign-in/code", {"code": code_of(secret, 1)})
    assert not is_in(client), "too many tries pause even the right code"


def test_totp_secret_is_stored_encrypted() -> None:
    make_user("alice")
    _client, secret, _codes = set_up()
    stored = Authenticator.objects.get(type=Authenticator.Type.TOTP).data["secret"]
    assert secret not in stored
    assert stored.startswith("gAAAA")


def test_second_factor_of_another_user_is_not_accessible() -> None:
    make_user("alice")
    set_up()
    key = Authenticator.objects.filter(type=Authenticator.Type.TOTP).get()
    mallory = browser(make_user("mallory"))
    for path in ("keys/{}", "keys/{}/remove", "app/remove", "codes", "codes/file"):
        assert mallory.get(f"/settings/second-factor/{path.format(key.pk)}").status_code in {302, 404}
    assert Authenticator.objects.filter(pk=key.pk).exists()


@pytest.mark.parametrize(
    ("who", "admin", "asked"),
    [("everybody", False, True), ("admins", False, False), ("admins", True, True), ("optional", True, False)],
)
def test_second_factor_setting_decides_which_users_need_one(
    settings: LazySettings, who: str, admin: bool, asked: bool
) -> None:
    settings.CONSOLE_SECOND_FACTOR = who
    user = make_user("alice", admin=admin)
    client = browser(user)
    response = client.get("/jobs/", headers=HTML)
    assert (response.status_code == 302) is asked
    if asked:
        assert response["Location"] == "/settings/sign-in"
        assert client.get(response["Location"]).status_code == 200
        assert client.post("/theme", {"theme": "dark"}).status_code == 204
        assert client.post("/jobs/stop").status_code == 403
        assert client.get("/api/console/v1/jobs").status_code == 403, "a session is no way around it"
    token = tokens.issue(user, scopes=["read"], lifetime=timedelta(days=1))
    script = Client(headers={"Authorization": f"Bearer {token}"})
    assert script.get("/api/console/v1/jobs").status_code == 200


def test_user_with_second_factor_is_not_redirected(settings: LazySettings) -> None:
    make_user("alice")
    client, _secret, _codes = set_up()
    settings.CONSOLE_SECOND_FACTOR = "everybody"
    assert client.get("/", headers=HTML).status_code == 200
