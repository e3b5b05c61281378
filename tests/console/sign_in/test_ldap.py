"""Signing in by a real OpenLDAP: passwords, groups, and what happens when somebody is gone from there."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.test import Client

from console import tasks
from quotas.access import may_submit, role_in
from quotas.accounts import sessions, tokens
from quotas.accounts.session_store import reference_of
from quotas.models import Action, AuditEntry, GroupMapping, Membership, Role, SignIn, User
from tests.console.sign_in import slapd
from tests.console.sign_in.slapd import Slapd
from tests.factories import PASSWORD, make_membership, make_user, make_workspace

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(bool(slapd.missing()), reason=slapd.missing() or "there is one"),
]

SECRET = "in the directory 7"
BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "console.sign_in.backends.LocalBackend",
    "console.sign_in.directory.Directory",
]


@pytest.fixture(scope="module")
def server() -> Iterator[Slapd]:
    with slapd.running() as started:
        yield started


@pytest.fixture
def directory(server: Slapd, settings: LazySettings) -> Slapd:
    """Alice and Bob are there, in no group."""
    settings.CONSOLE_LDAP = server.settings
    settings.CONSOLE_LDAP_PASSWORD = slapd.SECRET
    settings.AUTHENTICATION_BACKENDS = BACKENDS
    server.person("alice", SECRET)
    server.person("bob", SECRET)
    for name in ("vision", "speech", "root"):
        server.remove(f"cn={name},ou=groups,{slapd.BASE}")
    return server


def dn(uid: str) -> str:
    return f"uid={uid},ou=people,{slapd.BASE}"


def sign_in(name: str, password: str = SECRET) -> Client:
    client = Client()
    client.post("/sign-in", {"username": name, "password": password})
    return client


def is_in(client: Client) -> bool:
    return client.get("/").status_code == 200


def test_ldap_password_creates_an_account(directory: Slapd) -> None:
    client = sign_in("alice")
    assert is_in(client)
    user = User.objects.get(username="alice")
    assert (user.email, user.last_name, user.directory_dn) == ("alice@example.org", "Example", dn("alice"))
    assert not user.has_usable_password()
    assert SignIn.objects.get(user=user).how == "ldap"


@pytest.mark.parametrize("password", ["wrong", "", " "])
def test_ldap_sign_in_with_wrong_password_is_refused(directory: Slapd, password: str) -> None:
    assert not is_in(sign_in("alice", password))
    assert not User.objects.exists()


@pytest.mark.parametrize("name", ["*", "al*", "alice)(uid=*", "alice\\2a", "*)(|(uid=*"])
def test_ldap_sign_in_escapes_filter_characters_in_names(directory: Slapd, name: str) -> None:
    assert not is_in(sign_in(name))
    assert not User.objects.exists()


def test_local_account_with_same_name_is_linked_by_admin_only(directory: Slapd) -> None:
    user = make_user("alice", admin=True)
    assert not is_in(sign_in("alice"))
    assert is_in(sign_in("alice", PASSWORD))
    User.objects.filter(pk=user.pk).update(directory_dn=dn("alice"))
    assert is_in(sign_in("alice")), "an admin has linked the two"


def test_local_password_works_beside_ldap(directory: Slapd) -> None:
    make_user("carol")
    assert is_in(sign_in("carol", PASSWORD))


def test_person_excluded_by_the_filter_cannot_sign_in(directory: Slapd) -> None:
    directory.person("alice", SECRET, employeeType="gone")
    assert not is_in(sign_in("alice"))


def test_wrong_ldap_passwords_lead_to_a_pause(directory: Slapd, settings: LazySettings) -> None:
    client = Client()
    data = {"username": "alice", "password": "wrong"}
    answers = [client.post("/sign-in", data).status_code for _ in range(settings.AXES_FAILURE_LIMIT)]
    assert answers[-1] == 429
    assert client.post("/sign-in", {"username": "alice", "password": SECRET}).status_code == 429


@pytest.mark.parametrize("kind", ["groupOfNames", "groupOfUniqueNames", "posixGroup"])
@pytest.mark.parametrize("named", ["cn", "dn"])
def test_ldap_group_gives_a_role_in_a_workspace(directory: Slapd, kind: str, named: str) -> None:
    workspace = make_workspace("vision")
    group = "Vision" if named == "cn" else f"CN=vision,ou=groups,{slapd.BASE}"
    GroupMapping.objects.create(source="ldap", group=group, workspace=workspace, role=Role.OPERATOR)
    directory.group("vision", "alice" if kind == "posixGroup" else dn("alice"), kind=kind)
    sign_in("alice")
    sign_in("bob")
    assert role_in(User.objects.get(username="alice"), workspace.pk) is Role.OPERATOR
    assert role_in(User.objects.get(username="bob"), workspace.pk) is None


def test_highest_group_role_counts_and_only_flagged_groups_give_superuser(
    directory: Slapd,
) -> None:
    workspace = make_workspace("vision")
    for group, role in (("vision", Role.VIEWER), ("speech", Role.ADMIN)):
        GroupMapping.objects.create(source="ldap", group=group, workspace=workspace, role=role)
        directory.group(group, dn("alice"))
    GroupMapping.objects.create(source="ldap", group="root", superuser=True)
    directory.group("root", dn("bob"))
    sign_in("alice")
    sign_in("bob")
    alice, bob = User.objects.get(username="alice"), User.objects.get(username="bob")
    assert role_in(alice, workspace.pk) is Role.ADMIN
    assert (alice.is_superuser, bob.is_superuser, bob.is_staff) == (False, True, True)
    directory.remove(f"cn=root,ou=groups,{slapd.BASE}")
    tasks.ask_directory()
    bob.refresh_from_db()
    assert (bob.is_superuser, bob.is_staff) == (False, False)


def test_role_of_a_left_group_ends_and_manual_membership_stays(directory: Slapd) -> None:
    vision, speech = make_workspace("vision"), make_workspace("speech")
    GroupMapping.objects.create(source="ldap", group="vision", workspace=vision)
    directory.group("vision", dn("alice"))
    client = sign_in("alice")
    alice = User.objects.get(username="alice")
    make_membership(alice, speech)
    assert may_submit(alice, vision.pk)
    directory.group("vision", dn("bob"))
    tasks.ask_directory()
    assert not may_submit(alice, vision.pk)
    assert may_submit(alice, speech.pk)
    assert is_in(client), "somebody without a workspace is still somebody"


def test_manual_membership_is_not_changed_by_a_group(directory: Slapd) -> None:
    vision = make_workspace("vision")
    GroupMapping.objects.create(source="ldap", group="vision", workspace=vision, role=Role.ADMIN)
    sign_in("alice")
    alice = User.objects.get(username="alice")
    make_membership(alice, vision, Role.VIEWER)
    directory.group("vision", dn("alice"))
    tasks.ask_directory()
    assert role_in(alice, vision.pk) is Role.VIEWER
    directory.group("vision", dn("bob"))
    tasks.ask_directory()
    assert role_in(alice, vision.pk) is Role.VIEWER


@pytest.mark.parametrize("how", ["removed", "marked"])
def test_person_removed_from_directory_loses_access(directory: Slapd, how: str) -> None:
    client = sign_in("alice")
    alice = User.objects.get(username="alice")
    key = reference_of(client.session.session_key)
    assert sessions.person_of(key) == alice
    token = tokens.issue(alice, scopes=["read"], lifetime=timedelta(days=1))
    if how == "removed":
        directory.remove(dn("alice"))
    else:
        directory.person("alice", SECRET, employeeType="gone")
    tasks.ask_directory()
    assert not is_in(client)
    assert sessions.person_of(key) is None, "streams, visits and terminals ask this"
    assert tokens.verify(token) is None
    directory.person("alice", SECRET)
    tasks.ask_directory()
    comes_back = how == "marked"  # an entry that was removed and made anew is somebody else's
    assert (tokens.verify(token) is not None) is comes_back
    assert is_in(sign_in("alice")) is comes_back


def test_account_disabled_by_admin_stays_disabled_after_sync(directory: Slapd) -> None:
    sign_in("alice")
    User.objects.filter(username="alice").update(is_active=False)
    tasks.ask_directory()
    assert not User.objects.get(username="alice").is_active


def test_unreachable_directory_disables_no_accounts(directory: Slapd) -> None:
    import ldap  # noqa: PLC0415

    client = sign_in("alice")
    directory.stop()
    try:
        with pytest.raises(ldap.LDAPError):
            tasks.ask_directory()
        assert is_in(client)
        assert not is_in(sign_in("bob"))
    finally:
        directory.start()


def test_unreachable_directory_does_not_count_as_wrong_password(directory: Slapd) -> None:
    assert is_in(sign_in("alice"))
    make_user("root", admin=True)
    directory.stop()
    try:
        for _each in range(7):
            answer = Client().post("/sign-in", {"username": "alice", "password": SECRET})
            assert (answer.status_code, "The directory is not reachable" in answer.content.decode()) == (
                200,
                True,
            )
        wrong = [
            Client().post("/sign-in", {"username": "root", "password": "x"}).status_code for _ in range(5)
        ]
        assert wrong == [200] * 4 + [429], "a password of the console's own is wrong without a directory too"
        assert not AuditEntry.objects.filter(action=Action.SIGN_IN_FAILED, person__username="alice").exists()
    finally:
        directory.start()
    assert is_in(sign_in("alice"))


def test_reused_directory_name_does_not_open_the_old_account(directory: Slapd) -> None:
    client = sign_in("bob")
    old = User.objects.get(username="bob")
    assert old.directory_id
    directory.remove(dn("bob"))
    directory.person("bob", SECRET)
    assert not is_in(sign_in("bob"))
    tasks.ask_directory()
    old.refresh_from_db()
    assert not old.is_active
    assert not is_in(client)


def test_directory_without_any_people_disables_no_accounts(directory: Slapd, settings: LazySettings) -> None:
    from console.sign_in.directory import Unlikely  # noqa: PLC0415

    client = sign_in("alice")
    settings.CONSOLE_LDAP = {**directory.settings, "people_filter": "(objectClass=nothing)"}
    with pytest.raises(Unlikely):
        tasks.ask_directory()
    assert is_in(client)


def test_passwords_are_not_sent_to_an_unverified_server(directory: Slapd, settings: LazySettings) -> None:
    settings.CONSOLE_LDAP = {k: v for k, v in directory.settings.items() if k != "ca"}
    assert not is_in(sign_in("alice"))
    settings.CONSOLE_LDAP = {**directory.settings, "starttls": False}
    assert not is_in(sign_in("alice")), "this server takes no password in the clear"


def test_group_membership_is_marked_as_given_by_groups(directory: Slapd) -> None:
    GroupMapping.objects.create(source="ldap", group="vision", workspace=make_workspace("vision"))
    directory.group("vision", dn("alice"))
    sign_in("alice")
    assert Membership.objects.get(user__username="alice").by_groups


def test_directory_attribute_sets_the_unix_name(directory: Slapd, settings: LazySettings) -> None:
    settings.CONSOLE_LDAP = {**directory.settings, "unix_name": "employeeType"}
    directory.person("alice", SECRET, employeeType="asmith")
    sign_in("alice")
    user = User.objects.get(username="alice")
    assert (user.unix_name, user.unix_name_from) == ("asmith", "ldap")
    directory.person("alice", SECRET, employeeType="root")
    sign_in("alice")
    user.refresh_from_db()
    assert user.unix_name == ""


def test_directory_without_unix_name_setting_sets_none(directory: Slapd) -> None:
    sign_in("alice")
    assert User.objects.get(username="alice").unix_name == ""
