"""Signing in by a real OIDC provider: accounts, groups, what ends there, and what is not believed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from allauth.socialaccount.models import SocialAccount
from django.conf import LazySettings
from django.test import Client
from django.utils import timezone

from console import tasks
from quotas.access import role_in
from quotas.accounts import sessions
from quotas.models import Action, AuditEntry, Grant, GroupMapping, Role, SignIn, User
from tests.console.sign_in import glewlwyd
from tests.console.sign_in.glewlwyd import CLIENT, Provider
from tests.factories import PASSWORD, make_user, make_workspace
from tests.jobs.web.conftest import browser, seen

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(bool(glewlwyd.missing()), reason=glewlwyd.missing() or "there is one"),
]

BACK = "/sign-in/with/corp/back"
LOGOUT = "http://schemas.openid.net/event/backchannel-logout"


@pytest.fixture(scope="module")
def running() -> Iterator[Provider]:
    with glewlwyd.running(f"http://testserver{BACK}") as started:
        yield started


@pytest.fixture
def provider(running: Provider, settings: LazySettings) -> Provider:
    """Alice is there, in the group “vision”."""
    settings.CONSOLE_OIDC = running.settings
    settings.CONSOLE_OIDC_SECRETS = {"corp": glewlwyd.SECRET}
    running.person("alice", "vision")
    return running


def question(client: Client, where: str = "/sign-in/with/corp") -> str:
    response = client.get(where)
    assert response.status_code == 302, response.content
    return str(response["Location"])


def sign_in(provider: Provider, name: str = "alice", client: Client | None = None, where: str = "") -> Client:
    client = client or Client()
    back = provider.back(name, question(client, where or "/sign-in/with/corp"))
    client.get(f"{BACK}?{urlsplit(back).query}")
    return client


def is_in(client: Client) -> bool:
    return client.get("/").status_code == 200


def ask_again() -> None:
    """As beat does, some time later."""
    Grant.objects.update(checked_at=timezone.now() - timedelta(minutes=5))
    tasks.ask_providers()


def test_oidc_sign_in_creates_and_later_finds_the_account(provider: Provider) -> None:
    client = sign_in(provider)
    assert is_in(client)
    user = User.objects.get()
    assert (user.username, user.email, user.first_name) == ("alice", "alice@example.org", "Alice")
    assert not user.has_usable_password()
    assert SignIn.objects.get().how == "corp"
    client.post("/sign-out")
    assert is_in(sign_in(provider))
    assert User.objects.count() == 1, "known again by issuer and subject"


def test_oidc_request_has_state_nonce_and_pkce(provider: Provider) -> None:
    asked = parse_qs(
        urlsplit(question(Client(), "/sign-in/with/corp?scope=admin&auth_params=prompt%3Dnone")).query
    )
    assert {"state", "nonce", "code_challenge"} <= set(asked)
    assert asked["code_challenge_method"] == ["S256"]
    assert asked["scope"] == ["openid"], "a link does not decide what is asked"
    assert "prompt" not in asked


def test_oidc_answer_is_valid_once_and_only_in_the_same_browser(provider: Provider) -> None:
    client = Client()
    back = provider.back("alice", question(client))
    path = f"{BACK}?{urlsplit(back).query}"
    assert Client().get(path).status_code == 401
    client.get(path)
    assert is_in(client)
    client.post("/sign-out")
    assert client.get(path).status_code == 401
    assert not is_in(client)


def test_oidc_answer_to_another_request_is_refused(provider: Provider) -> None:
    """Somebody slips the code of their own sign-in into a browser that is in the middle of its own."""
    mine, theirs = Client(), Client()
    code = parse_qs(urlsplit(provider.back("alice", question(theirs))).query)["code"][0]
    state = parse_qs(urlsplit(question(mine)).query)["state"][0]
    assert mine.get(BACK, {"code": code, "state": state}).status_code == 401
    assert not is_in(mine)
    assert AuditEntry.objects.filter(action=Action.SIGN_IN_FAILED, denied=True, object_repr="corp").exists()


def test_oidc_sign_in_takes_over_no_account_by_address_or_name(provider: Provider) -> None:
    taken = make_user("alice", email="alice@example.org", admin=True)
    client = sign_in(provider)
    assert is_in(client)
    new = User.objects.exclude(pk=taken.pk).get()
    assert (new.is_superuser, new.email) == (False, ""), "this provider does not vouch for addresses"
    assert new.username.startswith("alice")


def test_provider_without_sign_up_admits_connected_accounts_only(
    provider: Provider, settings: LazySettings
) -> None:
    settings.CONSOLE_OIDC = {"corp": {**provider.settings["corp"], "sign_up": False}}
    assert not is_in(sign_in(provider))
    assert not User.objects.exists()
    client = Client()
    make_user("carol")
    client.post("/sign-in", {"username": "carol", "password": PASSWORD})
    link = client.get("/settings/sign-in").context["connectable"][0]["url"]
    again = client.get(link)
    assert again["Location"].startswith("/sign-in/again"), "first they show who they are"
    client.post(again["Location"], {"password": PASSWORD, "next": link})
    sign_in(provider, client=client, where=link)
    client.post("/sign-out")
    assert is_in(sign_in(provider))
    assert SignIn.objects.get().user.username == "carol"


def test_connect_link_without_a_valid_key_is_not_found(provider: Provider) -> None:
    client = browser(make_user("carol"))
    assert client.get("/sign-in/with/corp?process=connect").status_code == 404
    assert client.get("/sign-in/with/corp?process=connect&key=0").status_code == 404
    assert client.get("/sign-in/with/nobody").status_code == 404


def test_disabled_account_cannot_sign_in_by_oidc(provider: Provider) -> None:
    sign_in(provider)
    User.objects.update(is_active=False)
    assert not is_in(sign_in(provider))


@pytest.mark.parametrize("where", ["https://evil.example/", "//evil.example"])
def test_oidc_sign_in_does_not_redirect_to_another_site(provider: Provider, where: str) -> None:
    client = Client()
    back = provider.back("alice", question(client, f"/sign-in/with/corp?next={where}"))
    assert client.get(f"{BACK}?{urlsplit(back).query}")["Location"] == "/"


# --- Groups, and what ends there --------------------------------------------------------------------------


def test_oidc_group_gives_a_role_until_membership_or_mapping_ends(provider: Provider) -> None:
    workspace = make_workspace("vision")
    mapping = GroupMapping.objects.create(source="corp", group="vision", workspace=workspace, role=Role.ADMIN)
    client = sign_in(provider)
    user = User.objects.get()
    assert role_in(user, workspace.pk) is Role.ADMIN
    provider.regroup("alice", "speech")
    ask_again()
    assert role_in(user, workspace.pk) is None
    assert is_in(client)
    provider.regroup("alice", "vision")
    ask_again()
    assert role_in(user, workspace.pk) is Role.ADMIN
    root = browser(make_user("root", admin=True))
    root.post(f"/admin/quotas/groupmapping/{mapping.pk}/delete/", {"post": "yes"})
    assert role_in(user, workspace.pk) is None, "a mapping that is gone gives nothing, at once"


def test_same_group_of_another_source_gives_no_role(provider: Provider) -> None:
    workspace = make_workspace("vision")
    GroupMapping.objects.create(source="ldap", group="vision", workspace=workspace)
    sign_in(provider)
    assert role_in(User.objects.get(), workspace.pk) is None


def test_person_removed_at_the_provider_loses_access(provider: Provider, settings: LazySettings) -> None:
    scopes = {"corp": {**provider.settings["corp"], "scopes": ["openid", "offline_access"]}}
    workspace = make_workspace("vision")
    GroupMapping.objects.create(source="corp", group="vision", workspace=workspace)
    client = sign_in(provider)
    settings.CONSOLE_OIDC = scopes
    user = User.objects.get()
    key = client.session.session_key or ""
    provider.remove("alice")
    ask_again()
    assert not is_in(client)
    assert sessions.person_of(key) is None, "streams, visits and terminals ask this"
    assert role_in(user, workspace.pk) is None


def test_unreachable_provider_ends_no_sign_ins(provider: Provider, settings: LazySettings) -> None:
    client = sign_in(provider)
    settings.CONSOLE_OIDC = {"corp": {**provider.settings["corp"], "issuer": "http://127.0.0.1:1/api/oidc"}}
    ask_again()
    assert is_in(client)
    assert Client().get("/sign-in/with/corp").status_code == 401
    assert "Sign-in failed" in seen(Client().get("/sign-in/with/corp"))


def test_refresh_tokens_are_stored_encrypted(provider: Provider) -> None:
    sign_in(provider)
    assert Grant.objects.get().refresh_token.startswith("gAAAA")


# --- Back-channel logout ----------------------------------------------------------------------------------


def logout_token(provider: Provider, key: str = "", **changes: Any) -> str:
    subject = SocialAccount.objects.get().extra_data["subject"]
    claims = {
        "iss": provider.issuer,
        "aud": CLIENT,
        "iat": int(time.time()),
        "jti": f"{time.monotonic_ns()}",
        "sub": subject,
        "events": {LOGOUT: {}},
        **changes,
    }
    claims = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(claims, key or provider.key, algorithm="RS256")


def tell(token: str) -> int:
    return Client().post("/sign-in/with/corp/ended", {"logout_token": token}).status_code


def test_logout_token_ends_all_sign_ins_of_its_user_once(provider: Provider) -> None:
    here, there = sign_in(provider), sign_in(provider)
    other = browser(make_user("carol"))
    token = logout_token(provider)
    assert tell(token) == 200
    assert (is_in(here), is_in(there), is_in(other)) == (False, False, True)
    assert tell(token) == 400, "once"


def test_logout_token_with_wrong_claims_ends_nothing(provider: Provider) -> None:
    client = sign_in(provider)
    wrong: tuple[dict[str, Any], ...] = (
        {"aud": "another"},
        {"iss": "http://evil.example"},
        {"events": {}},
        {"events": None},
        {"nonce": "n"},
        {"sub": None},
        {"iat": 1_000_000_000},
        {"jti": None},
    )
    for changes in wrong:
        assert tell(logout_token(provider, **changes)) == 400, changes
        assert is_in(client), changes


def test_logout_token_with_a_foreign_key_ends_nothing(provider: Provider) -> None:
    client = sign_in(provider)
    assert tell(logout_token(provider, glewlwyd._run("openssl", "genrsa", "2048"))) == 400
    unsigned = jwt.encode(
        {"iss": provider.issuer, "aud": CLIENT, "events": {LOGOUT: {}}}, "", algorithm="none"
    )
    assert tell(unsigned) == 400
    assert tell("nonsense") == 400
    assert tell("") == 400
    assert is_in(client)


def test_oidc_claim_sets_the_unix_name_when_configured(provider: Provider, settings: LazySettings) -> None:
    sign_in(provider)
    assert User.objects.get().unix_name == ""
    settings.CONSOLE_OIDC = {"corp": {**provider.settings["corp"], "unix_name_claim": "preferred_username"}}
    sign_in(provider)
    user = User.objects.get()
    assert (user.unix_name, user.unix_name_from) == ("alice", "corp")
