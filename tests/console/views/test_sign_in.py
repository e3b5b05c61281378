"""The door: what the sign-in page offers, passwords and their policy, sign-ins that end."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.conf import LazySettings
from django.contrib.sessions.models import Session
from django.core import mail
from django.core.mail.backends.smtp import EmailBackend as SmtpBackend
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from console.configuration.logging import without_secrets
from quotas.accounts import access_keys, sessions, tokens
from quotas.accounts.session_store import reference_of
from quotas.models import AccessKey, AccessToken, Action, AuditEntry, SignIn, User
from tests.confirmed import confirm
from tests.factories import PASSWORD, make_user
from tests.jobs.web.conftest import browser, seen

pytestmark = pytest.mark.django_db

NEW = "a quite different staple 7"


def sign_in(client: Client, name: str, password: str = PASSWORD, **headers: str) -> int:
    return client.post(
        "/sign-in", {"username": name, "password": password}, headers={"User-Agent": "Netscape", **headers}
    ).status_code


def test_sign_in_page_offers_only_configured_methods(settings: LazySettings) -> None:
    text = seen(Client().get("/sign-in"))
    assert "/sign-in/with/" not in text
    assert "/sign-in/reset" not in text
    settings.CONSOLE_OIDC = {"corp": {"label": "Company", "issuer": "https://sso.example", "client_id": "x"}}
    settings.CONSOLE_MAIL = "smtp://mail.example"
    text = seen(Client().get("/sign-in?next=/jobs/"))
    assert 'href="/sign-in/with/corp?next=%2Fjobs%2F"' in text
    assert "/sign-in/reset" in text


def test_sign_up_without_invitation_is_refused() -> None:
    data = {"username": "eve", "password1": PASSWORD, "email": ""}
    assert "Invitation required" in seen(Client().post("/join", data))
    assert not User.objects.exists()


def test_sign_in_error_is_alike_for_wrong_name_and_wrong_password() -> None:
    make_user("alice")
    wrong = seen(Client().post("/sign-in", {"username": "alice", "password": "x"}))
    nobody = seen(Client().post("/sign-in", {"username": "alicf", "password": "x"}))
    token = re.compile(r'name="csrfmiddlewaretoken" value="\w+"')
    assert token.sub("", wrong).replace("alice", "alicf") == token.sub("", nobody)


@pytest.mark.parametrize(
    "where", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:"]
)
def test_sign_in_link_does_not_redirect_to_another_site(where: str) -> None:
    make_user("alice")
    data = {"username": "alice", "password": PASSWORD, "next": where}
    assert Client().post("/sign-in", data)["Location"] == "/"


def test_sign_in_events_are_recorded_in_audit_log() -> None:
    user = make_user("alice")
    client = Client()
    sign_in(client, "alice", "wrong")
    sign_in(client, "alice")
    client.post("/sign-out")
    rows = AuditEntry.objects.filter(person=user).exclude(action=Action.CREATE).order_by("pk")
    assert list(rows.values_list("action", "denied", "remote_addr")) == [
        (Action.SIGN_IN_FAILED, True, "127.0.0.1"),
        (Action.SIGN_IN, False, "127.0.0.1"),
        (Action.SIGN_OUT, False, "127.0.0.1"),
    ]
    assert rows.get(action=Action.SIGN_IN).details == {"by": "password"}


def test_service_account_cannot_sign_in() -> None:
    user = make_user("robot")
    User.objects.filter(pk=user.pk).update(kind=User.Kind.SERVICE)
    client = Client()
    sign_in(client, "robot")
    assert client.get("/").status_code == 302
    client.force_login(user)
    assert client.get("/").status_code == 302, "not even by a session that somebody made for it"


def test_disabled_account_is_revealed_only_after_the_correct_password() -> None:
    make_user("alice", is_active=False)
    wrong = Client().post("/sign-in", {"username": "alice", "password": "wrong"})
    right = Client().post("/sign-in", {"username": "alice", "password": PASSWORD})
    assert wrong.status_code == 200
    assert right["Location"] == "/sign-in/inactive"


# --- Whose password counts --------------------------------------------------------------------------------


def test_password_sign_in_with_sso_is_for_break_glass_accounts_only(settings: LazySettings) -> None:
    settings.CONSOLE_LOCAL_SIGN_IN = "break-glass"
    settings.CONSOLE_OIDC = {"corp": {"issuer": "https://sso.example", "client_id": "x"}}
    make_user("alice")
    make_user("root", admin=True, break_glass=True)
    page = seen(Client().get("/sign-in"))
    assert 'name="password"' not in page
    assert 'name="password"' in seen(Client().get("/sign-in?local=1"))
    assert sign_in(Client(), "alice") == 200
    assert sign_in(Client(), "root") == 302


def test_break_glass_link_works_once_and_only_from_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    make_user("root", admin=True)
    call_command("break_glass", "root")
    path = capsys.readouterr().out.strip().partition("127.0.0.1")[2].partition("/")[2]
    assert Client(REMOTE_ADDR="192.0.2.1").get(f"/{path}").status_code == 404
    assert Client(headers={"X-Forwarded-For": "127.0.0.1"}).get(f"/{path}").status_code == 404
    client = Client()
    assert "root" in seen(client.get(f"/{path}"))
    assert client.post(f"/{path}")["Location"] == "/"
    assert client.get("/").status_code == 200
    assert Client().post(f"/{path}").status_code == 404, "it is used"
    told = AuditEntry.objects.filter(action=Action.BREAK_GLASS).order_by("pk")
    assert list(told.values_list("denied", flat=True)) == [False, True, True, False, True]


def test_break_glass_link_expires(settings: LazySettings, capsys: pytest.CaptureFixture[str]) -> None:
    make_user("root", admin=True)
    call_command("break_glass", "root")
    path = capsys.readouterr().out.strip().partition("127.0.0.1")[2].partition("/")[2]
    settings.CONSOLE_BREAK_GLASS_SECONDS = -1
    assert Client().get(f"/{path}").status_code == 404


def test_break_glass_refuses_non_admins() -> None:
    make_user("alice")
    with pytest.raises(CommandError):
        call_command("break_glass", "alice")


# --- Passwords set anew -----------------------------------------------------------------------------------


def test_reset_link_from_command_sets_a_password_once(capsys: pytest.CaptureFixture[str]) -> None:
    user = make_user("alice")
    elsewhere = browser(user)
    call_command("reset_link", "alice")
    path = capsys.readouterr().out.strip().partition("/sign-in")[2]
    client = Client()
    form = client.get(f"/sign-in{path}")
    done = client.post(form["Location"], {"password1": NEW, "password2": NEW})
    assert done["Location"] == "/sign-in/reset/done"
    assert sign_in(Client(), "alice", NEW) == 302
    assert elsewhere.get("/").status_code == 302, "whoever was signed in is not any more"
    assert "This link is no longer valid" in seen(Client().get(f"/sign-in{path}"))


def test_reset_link_in_admin_requires_a_superuser() -> None:
    user = make_user("alice")
    data = {"action": "make_reset_links", "_selected_action": [user.pk]}
    root = browser(make_user("root", admin=True))
    assert "/sign-in/reset/" in seen(root.post("/admin/quotas/user/", data, follow=True))
    staff = browser(make_user("helper", is_staff=True))
    assert staff.post("/admin/quotas/user/", data).status_code == 403


def test_reset_mail_goes_to_password_accounts_and_answers_are_alike(
    settings: LazySettings,
) -> None:
    settings.CONSOLE_MAIL = "smtp://mail.example"
    make_user("alice", email="alice@example.org")
    bob = make_user("bob", email="bob@example.org")
    bob.set_unusable_password()
    bob.save()
    answers = {
        Client().post("/sign-in/reset", {"email": address})["Location"]
        for address in ("alice@example.org", "bob@example.org", "nobody@example.org")
    }
    assert answers == {"/sign-in/reset/sent"}
    assert [each.to for each in mail.outbox] == [["alice@example.org"]]
    link = re.search(r"/sign-in/reset/\S+", str(mail.outbox[0].body))
    assert link is not None
    assert Client().get(link[0]).status_code == 302


def test_reset_page_without_email_refers_to_an_admin() -> None:
    assert "A console admin can create a link" in seen(Client().get("/sign-in/reset"))
    assert Client().post("/sign-in/reset", {"email": "alice@example.org"}).status_code == 404


def test_changed_password_ends_other_sign_ins() -> None:
    make_user("alice")
    here, there = Client(), Client()
    sign_in(here, "alice")
    sign_in(there, "alice")
    data = {"oldpassword": PASSWORD, "password1": NEW, "password2": NEW}
    assert here.post("/settings/password", data)["Location"] == "/settings/sign-in"
    assert here.get("/").status_code == 200
    assert there.get("/").status_code == 302


@pytest.mark.parametrize("host", ["localhost:6666", "127.0.0.1:22"])
def test_links_in_email_use_the_console_address_under_any_host_header(
    settings: LazySettings, host: str
) -> None:
    settings.CONSOLE_MAIL = "smtp://mail.example"
    settings.CONSOLE_URL = "https://console.example.org"
    settings.ACCOUNT_EMAIL_NOTIFICATIONS = True
    make_user("alice", email="alice@example.org")
    Client(headers={"Host": host}).post("/sign-in/reset", {"email": "alice@example.org"})
    client = confirm(browser(make_user("bob", email="bob@example.org")))
    client.post("/settings/email", {"action_add": "", "email": "new@example.org"}, headers={"Host": host})
    sent = {each.to[0]: str(each.body) for each in mail.outbox}
    assert "https://console.example.org/sign-in/reset/" in sent["alice@example.org"]
    assert "https://console.example.org/sign-in/confirm/" in sent["new@example.org"]
    assert "new@example.org" in sent["bob@example.org"], "the address until now is told"
    assert host not in "".join(str(each.body) for each in mail.outbox)


def test_reset_mail_is_not_sent_to_unconfirmed_addresses(settings: LazySettings) -> None:
    settings.CONSOLE_MAIL = "smtp://mail.example"
    user = make_user("alice", email="given@example.org")
    for address, verified, primary in (
        ("mine@example.org", True, False),
        ("added@example.org", False, False),
        ("evil@example.org", False, True),
    ):
        EmailAddress.objects.create(user=user, email=address, verified=verified, primary=primary)
        Client().post("/sign-in/reset", {"email": address})
    Client().post("/sign-in/reset", {"email": "GIVEN@example.org"})
    assert [each.to for each in mail.outbox] == [["mine@example.org"], ["given@example.org"]]


def test_reset_answers_alike_while_the_mail_server_is_away(
    settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.CONSOLE_MAIL = "smtp+plain://127.0.0.1:1"
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    monkeypatch.setattr(mail, "get_connection", lambda **_options: SmtpBackend(host="127.0.0.1", port=1))
    make_user("alice", email="alice@example.org")
    for address in ("alice@example.org", "nobody@example.org"):
        assert Client().post("/sign-in/reset", {"email": address})["Location"] == "/sign-in/reset/sent"


def test_reset_request_defers_account_lookup(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.CONSOLE_MAIL = "smtp://mail.example"
    make_user("alice", email="alice@example.org")
    waiting: list[object] = []
    monkeypatch.setattr("console.sign_in.outbox.later", waiting.append)
    counts = set()
    for address in ("alice@example.org", "nobody@example.org"):
        with CaptureQueriesContext(connection) as asked:
            Client().post("/sign-in/reset", {"email": address})
        counts.add(len(asked))
    assert len(counts) == 1
    assert len(waiting) == 2
    assert not mail.outbox


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/settings/email", {"action_add": "", "email": "evil@example.org"}),
        ("/settings/tokens", {"name": "t", "scopes": ["read"], "days": "30"}),
        ("/settings/access-keys", {"name": "k", "scopes": ["read"], "days": "0"}),
        ("/settings/keys", {"title": "k", "text": "ssh-ed25519 AAAA"}),
        ("/settings/second-factor/app", {"code": "123456"}),
        ("/settings/sign-in/end", {}),
    ],
)
def test_session_alone_adds_no_other_credentials(path: str, data: dict[str, Any]) -> None:
    alice = make_user("alice")
    client = Client()
    sign_in(client, "alice")
    answer = client.post(path, data)
    assert (answer.status_code, answer["Location"].partition("?")[0]) == (302, "/sign-in/again")
    assert not EmailAddress.objects.filter(email="evil@example.org").exists()
    assert not AccessToken.objects.exists()
    assert not AccessKey.objects.exists()
    alice.set_unusable_password()  # somebody of a directory or a provider
    alice.save()
    client.force_login(alice)
    assert client.post(path, data)["Location"] == "/settings/sign-in"
    assert not AccessToken.objects.exists()
    assert not AccessKey.objects.exists()


def test_password_confirmation_resumes_the_request() -> None:
    make_user("alice")
    client = Client()
    sign_in(client, "alice")
    asked = client.post("/settings/tokens", {"name": "t", "scopes": ["read"], "days": "30"})
    done = client.post(asked["Location"], {"password": PASSWORD})
    assert done["Location"] == "/settings/tokens"
    assert tokens.verify(client.get("/settings/tokens").context["made"]) is not None


# --- Sign-ins -----------------------------------------------------------------------------------------------


def test_sign_ins_are_listed_and_ended_one_by_one() -> None:
    user = make_user("alice")
    here, there = Client(), Client()
    sign_in(here, "alice")
    sign_in(there, "alice")
    page = here.get("/settings/sign-in")
    assert len(page.context["sign_ins"]) == 2
    other = SignIn.objects.exclude(session_key=reference_of(here.session.session_key)).get()
    confirm(here)
    assert here.post(f"/settings/sign-in/{other.pk}/end").status_code == 302
    assert there.get("/").status_code == 302
    assert here.get("/").status_code == 200
    assert sessions.person_of(other.session_key) is None, "streams and terminals ask this"
    assert [each.user for each in sessions.of(user)] == [user]


def test_sign_ins_elsewhere_are_ended_at_once() -> None:
    make_user("alice")
    clients = [Client() for _ in range(3)]
    for client in clients:
        sign_in(client, "alice")
    confirm(clients[0]).post("/settings/sign-in/end")
    assert [client.get("/").status_code for client in clients] == [200, 302, 302]


def test_sign_in_of_another_user_cannot_be_ended() -> None:
    make_user("alice")
    client = Client()
    sign_in(client, "alice")
    pk = SignIn.objects.get().pk
    assert confirm(browser(make_user("mallory"))).post(f"/settings/sign-in/{pk}/end").status_code == 404
    assert client.get("/").status_code == 200


def test_sign_out_deletes_the_sign_in() -> None:
    make_user("alice")
    client = Client()
    sign_in(client, "alice")
    client.post("/sign-out")
    assert not SignIn.objects.exists()


# --- Guesses ------------------------------------------------------------------------------------------------


def test_guesses_count_per_account_in_any_spelling() -> None:
    user = make_user("amy")
    spellings = ["amy", "AMY", "Amy", " amy", "aMy", "amY"]
    answers = [sign_in(Client(), name, "wrong") for name in spellings]
    assert answers == [200, 200, 200, 200, 429, 429]
    rows = AuditEntry.objects.filter(person=user, action=Action.SIGN_IN_FAILED)
    assert rows.count() == len(spellings)
    assert {row.details["known"] for row in rows} == {True}


def test_guesses_from_all_addresses_count_together(settings: LazySettings) -> None:
    settings.CONSOLE_LOGIN_FAILURES_EVERYWHERE = 6
    make_user("amy")
    answers = [sign_in(Client(REMOTE_ADDR=f"192.0.2.{n}"), "amy", "wrong") for n in range(8)]
    assert answers == [200] * 5 + [429] * 3
    assert sign_in(Client(REMOTE_ADDR="198.51.100.1"), "amy") == 429


def test_guesses_count_by_connection_and_ignore_address_headers() -> None:
    make_user("amy")
    spoofed = [{"X-Forwarded-For": f"192.0.2.{n}", "X-Real-IP": f"192.0.2.{n}"} for n in range(6)]
    answers = [sign_in(Client(), "amy", "wrong", **headers) for headers in spoofed]
    assert answers == [200] * 4 + [429] * 2
    rows = AuditEntry.objects.filter(action=Action.SIGN_IN_FAILED)
    assert {row.remote_addr for row in rows} == {"127.0.0.1"}


def test_known_browser_is_paused_only_by_its_own_mistakes() -> None:
    make_user("amy")
    mine = Client()
    assert sign_in(mine, "amy") == 302
    mine.post("/sign-out")
    for _each in range(6):
        sign_in(Client(), "amy", "wrong")
    assert sign_in(Client(), "amy") == 429
    forged = Client()
    forged.cookies["browser"] = "W10:forged:forged"
    assert sign_in(forged, "amy", **{"User-Agent": "known browser 0"}) == 429
    assert sign_in(mine, "amy") == 302
    mine.post("/sign-out")
    assert [sign_in(mine, "amy", "wrong") for _each in range(6)] == [200] * 4 + [429] * 2
    make_user("bob")
    for _each in range(6):
        sign_in(Client(), "bob", "wrong")
    assert sign_in(mine, "bob") == 429, "it is known to one account"


def test_database_copy_contains_no_usable_sign_in() -> None:
    make_user("alice")
    client = Client()
    sign_in(client, "alice")
    key = client.session.session_key
    for table in connection.introspection.table_names():
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            assert str(key) not in str(cursor.fetchall()), table
    thief = Client()
    for stored in (Session.objects.get().pk, SignIn.objects.get().session_key):
        thief.cookies["session"] = stored
        assert thief.get("/").status_code == 302
    assert client.get("/").status_code == 200


def test_new_password_revokes_tokens_only_when_selected() -> None:
    user = make_user("alice")
    client = Client()
    sign_in(client, "alice")
    token = tokens.issue(user, scopes=["read"], lifetime=timedelta(days=1))
    key_id = access_keys.issue(user, scopes=["read"]).row.key_id
    assert (
        "checked" in re.findall(r"<input[^>]*revoke_tokens[^>]*>", seen(client.get("/settings/password")))[0]
    )
    data = {"oldpassword": PASSWORD, "password1": NEW, "password2": NEW}
    client.post("/settings/password", data)
    assert tokens.verify(token) is not None
    assert access_keys.find(key_id) is not None
    again = {"oldpassword": NEW, "password1": PASSWORD, "password2": PASSWORD, "revoke_tokens": "on"}
    client.post("/settings/password", again)
    assert tokens.verify(token) is None
    assert access_keys.find(key_id) is None


@pytest.mark.parametrize("start", ["/sign-in/break-glass/", "/invitations/", "/sign-in/reset/"])
def test_secret_links_appear_in_no_log_or_audit_log(start: str) -> None:
    Client(REMOTE_ADDR="192.0.2.1").get(f"{start}1/s3cret-abc")
    assert without_secrets(f"Not Found: {start}1/s3cret-abc?x=1") == f"Not Found: {start}…?x=1"
    rows = AuditEntry.objects.filter(denied=True)
    assert "s3cret" not in " ".join(f"{row.object_repr} {row.details}" for row in rows)
