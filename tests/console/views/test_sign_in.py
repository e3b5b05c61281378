"""The door: what the sign-in page offers, passwords and their policy, sign-ins that end."""

from __future__ import annotations

import re

import pytest
from django.conf import LazySettings
from django.core import mail
from django.core.management import CommandError, call_command
from django.test import Client

from quotas import sessions
from quotas.models import Action, AuditEntry, SignIn, User
from tests.factories import PASSWORD, make_user
from tests.jobs.views.conftest import browser, seen

pytestmark = pytest.mark.django_db

NEW = "a quite different staple 7"


def sign_in(client: Client, name: str, password: str = PASSWORD, **headers: str) -> int:
    return client.post(
        "/sign-in", {"username": name, "password": password}, headers={"User-Agent": "Netscape", **headers}
    ).status_code


def test_only_what_is_configured_is_offered(settings: LazySettings) -> None:
    text = seen(Client().get("/sign-in"))
    assert "/sign-in/with/" not in text
    assert "/sign-in/reset" not in text
    settings.CONSOLE_OIDC = {"corp": {"label": "Company", "issuer": "https://sso.example", "client_id": "x"}}
    settings.CONSOLE_MAIL = "smtp://mail.example"
    text = seen(Client().get("/sign-in?next=/jobs/"))
    assert 'href="/sign-in/with/corp?next=%2Fjobs%2F"' in text
    assert "/sign-in/reset" in text


def test_nobody_makes_an_account_uninvited() -> None:
    data = {"username": "eve", "password1": PASSWORD, "email": ""}
    assert "You need an invitation" in seen(Client().post("/join", data))
    assert not User.objects.exists()


def test_a_wrong_name_and_a_wrong_password_read_alike() -> None:
    make_user("alice")
    wrong = seen(Client().post("/sign-in", {"username": "alice", "password": "x"}))
    nobody = seen(Client().post("/sign-in", {"username": "alicf", "password": "x"}))
    token = re.compile(r'name="csrfmiddlewaretoken" value="\w+"')
    assert token.sub("", wrong).replace("alice", "alicf") == token.sub("", nobody)


@pytest.mark.parametrize(
    "where", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:"]
)
def test_a_link_leads_to_no_other_site(where: str) -> None:
    make_user("alice")
    data = {"username": "alice", "password": PASSWORD, "next": where}
    assert Client().post("/sign-in", data)["Location"] == "/"


def test_what_happens_at_the_door_is_written_down() -> None:
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


def test_a_service_account_does_not_sign_in() -> None:
    user = make_user("robot")
    User.objects.filter(pk=user.pk).update(kind=User.Kind.SERVICE)
    client = Client()
    sign_in(client, "robot")
    assert client.get("/").status_code == 302
    client.force_login(user)
    assert client.get("/").status_code == 302, "not even by a session that somebody made for it"


def test_a_disabled_account_is_told_so_only_with_the_right_password() -> None:
    make_user("alice", is_active=False)
    wrong = Client().post("/sign-in", {"username": "alice", "password": "wrong"})
    right = Client().post("/sign-in", {"username": "alice", "password": PASSWORD})
    assert wrong.status_code == 200
    assert right["Location"] == "/sign-in/inactive"


# --- Whose password counts --------------------------------------------------------------------------------


def test_with_sso_only_break_glass_accounts_have_passwords(settings: LazySettings) -> None:
    settings.CONSOLE_LOCAL_SIGN_IN = "break-glass"
    settings.CONSOLE_OIDC = {"corp": {"issuer": "https://sso.example", "client_id": "x"}}
    make_user("alice")
    make_user("root", admin=True, break_glass=True)
    page = seen(Client().get("/sign-in"))
    assert 'name="password"' not in page
    assert 'name="password"' in seen(Client().get("/sign-in?local=1"))
    assert sign_in(Client(), "alice") == 200
    assert sign_in(Client(), "root") == 302


def test_break_glass_lets_one_in_once_from_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
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


def test_a_break_glass_link_soon_ends(settings: LazySettings, capsys: pytest.CaptureFixture[str]) -> None:
    make_user("root", admin=True)
    call_command("break_glass", "root")
    path = capsys.readouterr().out.strip().partition("127.0.0.1")[2].partition("/")[2]
    settings.CONSOLE_BREAK_GLASS_SECONDS = -1
    assert Client().get(f"/{path}").status_code == 404


def test_break_glass_is_not_for_everybody() -> None:
    make_user("alice")
    with pytest.raises(CommandError):
        call_command("break_glass", "alice")


# --- Passwords set anew -----------------------------------------------------------------------------------


def test_a_link_of_an_admin_sets_a_password_once(capsys: pytest.CaptureFixture[str]) -> None:
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
    assert "does not work any more" in seen(Client().get(f"/sign-in{path}"))


def test_only_a_superuser_makes_such_links_in_the_admin() -> None:
    user = make_user("alice")
    data = {"action": "make_reset_links", "_selected_action": [user.pk]}
    root = browser(make_user("root", admin=True))
    assert "/sign-in/reset/" in seen(root.post("/admin/quotas/user/", data, follow=True))
    staff = browser(make_user("helper", is_staff=True))
    assert staff.post("/admin/quotas/user/", data).status_code == 403


def test_a_link_is_sent_to_whoever_has_a_password_and_the_page_says_the_same_to_all(
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


def test_without_e_mail_the_page_says_whom_to_ask() -> None:
    assert "An admin of the console can make a link" in seen(Client().get("/sign-in/reset"))
    assert Client().post("/sign-in/reset", {"email": "alice@example.org"}).status_code == 404


def test_a_changed_password_signs_out_the_others() -> None:
    make_user("alice")
    here, there = Client(), Client()
    sign_in(here, "alice")
    sign_in(there, "alice")
    data = {"oldpassword": PASSWORD, "password1": NEW, "password2": NEW}
    assert here.post("/settings/password", data)["Location"] == "/settings/sign-in"
    assert here.get("/").status_code == 200
    assert there.get("/").status_code == 302


# --- Sign-ins -----------------------------------------------------------------------------------------------


def test_sign_ins_are_listed_and_ended_one_by_one() -> None:
    user = make_user("alice")
    here, there = Client(), Client()
    sign_in(here, "alice")
    sign_in(there, "alice")
    page = here.get("/settings/sign-in")
    assert len(page.context["sign_ins"]) == 2
    other = SignIn.objects.exclude(session_key=here.session.session_key).get()
    assert here.post(f"/settings/sign-in/{other.pk}/end").status_code == 302
    assert there.get("/").status_code == 302
    assert here.get("/").status_code == 200
    assert sessions.person_of(other.session_key) is None, "streams and terminals ask this"
    assert [each.user for each in sessions.of(user)] == [user]


def test_all_others_are_ended_at_once() -> None:
    make_user("alice")
    clients = [Client() for _ in range(3)]
    for client in clients:
        sign_in(client, "alice")
    clients[0].post("/settings/sign-in/end")
    assert [client.get("/").status_code for client in clients] == [200, 302, 302]


def test_nobody_ends_somebody_elses() -> None:
    make_user("alice")
    client = Client()
    sign_in(client, "alice")
    pk = SignIn.objects.get().pk
    assert browser(make_user("mallory")).post(f"/settings/sign-in/{pk}/end").status_code == 404
    assert client.get("/").status_code == 200


def test_signing_out_forgets_the_sign_in() -> None:
    make_user("alice")
    client = Client()
    sign_in(client, "alice")
    client.post("/sign-out")
    assert not SignIn.objects.exists()
