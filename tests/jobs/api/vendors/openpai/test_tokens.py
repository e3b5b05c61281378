"""Tokens for passwords, and the tokens of a person."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.conf import LazySettings
from django.test import Client

from quotas.accounts import tokens
from quotas.models import AccessToken, User
from tests.factories import PASSWORD, make_user
from tests.jobs.api.conftest import People, body_of
from tests.jobs.api.vendors.openpai.conftest import PaiOf, error_of

pytestmark = pytest.mark.django_db

WRONG = ("IncorrectPasswordError", "Password is incorrect.")


def login(pai: PaiOf, username: str, password: str = PASSWORD, **fields: Any) -> Any:
    return pai().post("v1/token", {"username": username, "password": password, **fields})


@pytest.mark.parametrize("path", ["v1/token", "v1/authn/basic/login", "v2/authn/basic/login"])
def test_login_issues_token_without_admin_scope(people: People, pai: PaiOf, path: str) -> None:
    answer = pai().post(path, {"username": "olga", "password": PASSWORD, "expiration": 4000})
    body = body_of(answer)
    assert (body["user"], body["admin"], body["hasGitHubPAT"]) == ("olga", False, False)
    row = tokens.verify(body["token"])
    assert row is not None
    assert row.user == people.owner
    assert set(row.scopes) == {"read", "submit", "stop", "exec"}
    assert 3990 < (row.expires_at - row.created_at).total_seconds() <= 4001


def test_login_of_admin_issues_token_without_admin_scope(people: People, pai: PaiOf) -> None:
    body = body_of(login(pai, "root"))
    row = tokens.verify(body["token"])
    assert body["admin"] is True
    assert row is not None
    assert "admin" not in row.scopes


def test_login_by_form_reads_numbers_from_text(people: People, pai: PaiOf) -> None:
    form = "expiration=4000&username=olga&password=" + PASSWORD.replace(" ", "+")
    assert body_of(pai().post("v1/token", form, "application/x-www-form-urlencoded"))["user"] == "olga"


def test_login_failures_have_one_answer(people: People, pai: PaiOf) -> None:
    service = make_user("robot", kind=User.Kind.SERVICE)
    inactive = make_user("left", is_active=False)
    answers = [
        login(pai, "olga", "wrong password"),
        login(pai, "nobody", "wrong password"),
        login(pai, inactive.username),
        login(pai, service.username),
    ]
    assert {error_of(answer, 400) for answer in answers} == {WRONG}
    assert not AccessToken.objects.exists()


def test_login_of_account_with_second_factor_is_refused(people: People, pai: PaiOf) -> None:
    Authenticator.objects.create(user=people.owner, type=Authenticator.Type.TOTP, data={})
    code, message = error_of(login(pai, "olga"), 403)
    assert code == "ForbiddenUserError"
    assert "Create an access token in Settings" in message
    assert error_of(login(pai, "olga", "wrong password"), 400) == WRONG


def test_login_of_account_that_needs_second_factor_is_refused(
    people: People, pai: PaiOf, settings: LazySettings
) -> None:
    settings.CONSOLE_SECOND_FACTOR = "admins"
    assert error_of(login(pai, "root"), 403)[0] == "ForbiddenUserError"
    assert login(pai, "olga").status_code == 200


def test_login_by_local_password_follows_sign_in_setting(
    people: People, pai: PaiOf, settings: LazySettings
) -> None:
    settings.CONSOLE_LOCAL_SIGN_IN = "break-glass"
    assert error_of(login(pai, "olga"), 400) == WRONG


def test_login_is_locked_after_too_many_failures(people: People, pai: PaiOf, settings: LazySettings) -> None:
    settings.AXES_FAILURE_LIMIT = 3
    for status in (400, 400, 429):
        error_of(login(pai, "olga", "wrong password"), status)
    locked = login(pai, "olga")
    assert error_of(locked, 429)[0] == "TooManyRequestsError"
    assert int(locked.headers["Retry-After"]) > 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"password": "secret"}, 'child "username" fails because ["username" is required]'),
        (
            {"username": 1, "password": "secret"},
            'child "username" fails because ["username" must be a string]',
        ),
        (
            {"username": "olga", "password": "secret", "expiration": 59},
            'child "expiration" fails because ["expiration" must be larger than or equal to 60]',
        ),
        (
            {"username": "olga", "password": "secret", "expiration": 604801},
            'child "expiration" fails because ["expiration" must be less than or equal to 604800]',
        ),
        (
            {"username": "olga", "password": "secret", "expiration": "soon"},
            'child "expiration" fails because ["expiration" must be a number]',
        ),
        ([], '"value" must be an object'),
    ],
)
def test_login_refused_says_sentence_of_joi(people: People, pai: PaiOf, fields: Any, message: str) -> None:
    assert error_of(pai().post("v1/token", fields), 400) == ("InvalidParametersError", message)


# --- authentication --------------------------------------------------------------------------------------


def basic(username: str, password: str) -> dict[str, str]:
    credentials = b64encode(f"{username}:{password}".encode()).decode()
    return {"Authorization": f"Basic {credentials}"}


def test_token_in_address_authenticates_its_owner_only(people: People, pai: PaiOf) -> None:
    token = pai(people.owner).token
    client = Client()
    path = "/rest-server/api/v1/jobs"
    assert client.get(path, headers=basic("olga", token)).status_code == 200
    for headers in (
        basic("mei", token),
        basic("olga", PASSWORD),
        basic("", ""),
        {"Authorization": "Basic ?"},
        {},
    ):
        answer = client.get(path, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (401, "UnauthorizedUserError")


# --- a person's tokens -----------------------------------------------------------------------------------


def test_tokens_are_listed_by_prefix_for_their_owner(people: People, pai: PaiOf) -> None:
    client = pai(people.owner)
    pai(people.member)
    created = body_of(client.post("v1/token/application", {}))
    assert created["application"] is True
    assert body_of(client.get("v2/tokens")) == {
        "tokens": ["_".join(client.token.split("_")[:2])],
        "applicationTokens": ["_".join(created["token"].split("_")[:2])],
    }


def test_application_token_has_no_more_than_its_origin(people: People, pai: PaiOf) -> None:
    client = pai(people.owner, ["read", "submit"])
    created = tokens.verify(body_of(client.post("v2/tokens/application", {}))["token"])
    origin = tokens.verify(client.token)
    assert created is not None
    assert origin is not None
    assert created.scopes == origin.scopes
    assert created.expires_at <= origin.expires_at


def test_token_is_revoked_by_owner_only(people: People, pai: PaiOf) -> None:
    client, other = pai(people.owner), pai(people.member)
    assert error_of(other.delete(f"v2/tokens/{client.token}"), 404)[0] == "NoTokenError"
    assert body_of(client.delete(f"v2/tokens/{client.token}")) == {"message": "revoke successfully"}
    assert error_of(client.get("v2/tokens"), 401)[0] == "UnauthorizedUserError"


def test_logout_revokes_token(people: People, pai: PaiOf) -> None:
    client = pai(people.owner)
    assert client.delete("v2/authn/basic/logout").status_code == 200
    assert tokens.verify(client.token) is None


# --- what needs no token ---------------------------------------------------------------------------------


def test_information_needs_no_token(pai: PaiOf) -> None:
    assert body_of(pai().get("v2/info"))["authnMethod"] == "basic"
    assert body_of(pai().get("v1/"))["launcherType"] == "k8s"
    assert body_of(pai().get("v1/authn/info"))["authn_type"] == "basic"


@pytest.mark.parametrize("path", ["v1/nothing", "v3/jobs", "v2/jobs/a/b/c/d?x=1"])
def test_unknown_address_is_no_api(pai: PaiOf, path: str) -> None:
    assert error_of(pai().get(path), 404) == ("NoApiError", f"API /api/{path} is not found.")


def test_unknown_method_is_no_api(pai: PaiOf) -> None:
    assert error_of(pai().delete("v2/info"), 404) == ("NoApiError", "API /api/v2/info is not found.")
