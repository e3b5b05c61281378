"""Members of a workspace: who sees and changes what, invitations, service accounts."""

from __future__ import annotations

import re

import pytest
from django.conf import LazySettings
from django.core import mail
from django.test import Client

from quotas.access import may_submit, role_in
from quotas.accounts import tokens
from quotas.models import Invitation, Membership, Role, ServiceAccount, User
from tests.confirmed import confirm
from tests.factories import PASSWORD, make_membership, make_user
from tests.jobs.web.conftest import People, browser, seen

HERE = "/workspaces/vision"


def row(user: User) -> Membership:
    return Membership.objects.get(user=user, workspace__slug="vision")


def link_of(client: Client, role: str = "developer", email: str = "") -> str:
    response = client.post(f"{HERE}/invitations", {"role": role, "email": email}, follow=True)
    return str(response.context["made_link"]).removeprefix("http://testserver")


@pytest.mark.parametrize(
    ("who", "status", "forms"),
    [("owner", 200, False), ("manager", 200, True), ("stranger", 404, False), ("admin", 200, True)],
)
def test_member_list_is_visible_to_members_and_editable_by_managers(
    people: People, who: str, status: int, forms: bool
) -> None:
    response = browser(getattr(people, who)).get(f"{HERE}/members")
    assert response.status_code == status
    assert (b"/workspaces/vision/invitations" in response.content) is forms
    assert Client().get(f"{HERE}/members").status_code == 302


@pytest.mark.parametrize(("who", "link"), [("owner", False), ("manager", False), ("admin", True)])
def test_network_access_is_visible_to_members_and_changed_by_console_admins(
    people: People, who: str, link: bool
) -> None:
    workspace = people.quota.workspace
    workspace.egress = ["192.0.2.0/24:443"]
    workspace.save()
    page = seen(browser(getattr(people, who)).get(f"{HERE}/members"))
    assert '<p class="panel-body">192.0.2.0/24:443</p>' in page
    assert (f"/admin/quotas/workspace/{workspace.pk}/change/" in page) is link


@pytest.mark.parametrize(
    "path", ["/invitations", "/invitations/1/revoke", "/services", "/services/1", "/services/1/tokens"]
)
def test_manager_actions_refuse_other_users(people: People, path: str) -> None:
    assert browser(people.owner).post(HERE + path).status_code == 403
    assert browser(people.stranger).post(HERE + path).status_code == 404
    assert Client().post(HERE + path).status_code == 302


def test_member_role_change_by_manager_takes_effect_at_once(people: People) -> None:
    address = f"{HERE}/members/{row(people.member).pk}"
    assert browser(people.owner).post(address, {"role": "viewer"}).status_code == 403
    browser(people.manager).post(address, {"role": "viewer"})
    assert not may_submit(people.member, people.quota.workspace_id)


def test_operator_cannot_create_or_change_admins(people: People) -> None:
    make_membership(people.member, people.quota.workspace, Role.OPERATOR)
    operator = browser(people.member)
    address = f"{HERE}/members/{row(people.owner).pk}"
    assert operator.post(address, {"role": "admin"}).status_code == 409
    assert operator.post(f"{HERE}/members/{row(people.manager).pk}", {"role": "viewer"}).status_code == 409
    assert operator.post(f"{HERE}/invitations", {"role": "admin"}).status_code == 422
    assert operator.post(address, {"role": "operator"}).status_code == 302
    assert role_in(people.owner, people.quota.workspace_id) is Role.OPERATOR


def test_last_admin_leaves_only_after_confirmation(people: People) -> None:
    mine = row(people.manager)
    client = browser(people.manager)
    response = client.post(f"{HERE}/members/{mine.pk}")
    assert response.status_code == 409
    assert "This would leave nobody to manage the workspace." in seen(response)
    assert client.post(f"{HERE}/members/{mine.pk}", {"sure": mine.pk})["Location"] == "/"
    assert role_in(people.manager, people.quota.workspace_id) is None


def test_member_may_leave_the_workspace(people: People) -> None:
    browser(people.member).post(f"{HERE}/members/{row(people.member).pk}")
    assert role_in(people.member, people.quota.workspace_id) is None


def test_member_of_another_workspace_cannot_be_changed(people: People) -> None:
    theirs = Membership.objects.get(user=people.stranger)
    assert browser(people.manager).post(f"{HERE}/members/{theirs.pk}").status_code == 404


def test_membership_given_by_a_group_cannot_be_changed(people: People) -> None:
    Membership.objects.filter(user=people.member).update(by_groups=True)
    client = browser(people.manager)
    address = f"{HERE}/members/{row(people.member).pk}"
    assert client.post(address, {"role": "viewer"}).status_code == 409
    assert client.post(address).status_code == 409
    assert browser(people.member).post(address).status_code == 409
    assert "via group" in seen(client.get(f"{HERE}/members"))


# --- Invitations ------------------------------------------------------------------------------------------


def test_invitation_link_admits_one_person_once(people: People) -> None:
    link = link_of(browser(people.manager))
    client = browser(people.stranger)
    assert "Vision" in seen(client.get(link))
    assert client.post(link)["Location"] == "/"
    assert role_in(people.stranger, people.quota.workspace_id) is Role.DEVELOPER
    assert browser(make_user("eve")).post(link).status_code == 404


def test_invitation_link_lets_a_new_user_create_an_account(people: People) -> None:
    link = link_of(browser(people.manager), "viewer")
    client = Client()
    assert client.get(link)["Location"] == "/sign-in"
    assert "Vision" in seen(client.get("/sign-in"))
    client.post("/join", {"username": "newcomer", "password1": "a quite long staple 9", "email": ""})
    assert client.get("/").status_code == 200
    assert role_in(User.objects.get(username="newcomer"), people.quota.workspace_id) is Role.VIEWER
    second = {"username": "second", "password1": "a quite long staple 9", "email": ""}
    assert "Invitation required" in seen(Client().post("/join", second))


def test_invitation_link_adds_existing_account_after_sign_in(people: People) -> None:
    link = link_of(browser(people.manager))
    client = Client()
    client.get(link)
    client.post("/sign-in", {"username": "mallory", "password": PASSWORD})
    assert role_in(people.stranger, people.quota.workspace_id) is Role.DEVELOPER


def test_invitation_does_not_lower_an_existing_role(people: People) -> None:
    link = link_of(browser(people.admin), "viewer")
    browser(people.manager).post(link)
    assert role_in(people.manager, people.quota.workspace_id) is Role.ADMIN


@pytest.mark.parametrize("how", ["revoked", "expired", "inviter_left", "inviter_disabled", "guessed"])
def test_invalid_invitation_link_admits_no_users(people: People, how: str) -> None:
    manager = browser(people.manager)
    link = link_of(manager)
    if how == "revoked":
        assert manager.post(f"{HERE}/invitations/{Invitation.objects.get().pk}/revoke").status_code == 302
    elif how == "expired":
        Invitation.objects.update(expires_at="2000-01-01T00:00:00Z")
    elif how == "inviter_left":
        row(people.manager).delete()
    elif how == "inviter_disabled":
        User.objects.filter(pk=people.manager.pk).update(is_active=False)
    else:
        link = link[:-1] + ("A" if link[-1] != "A" else "B")
    assert browser(people.stranger).post(link).status_code == 404
    assert role_in(people.stranger, people.quota.workspace_id) is None


def test_invitation_by_email_sends_the_link_only_to_its_address(
    people: People, settings: LazySettings
) -> None:
    settings.CONSOLE_MAIL = "smtp://mail.example"
    response = browser(people.manager).post(
        f"{HERE}/invitations", {"role": "developer", "email": "new@example.org"}
    )
    assert response.status_code == 302
    [sent] = mail.outbox
    link = re.search(r"http://localhost:8000(/invitations/\S+)", str(sent.body))
    assert sent.to == ["new@example.org"]
    assert link is not None
    assert browser(people.stranger).post(link[1]).status_code == 302


# --- Service accounts -------------------------------------------------------------------------------------


def test_service_account_has_tokens_and_no_password(people: People) -> None:
    client = confirm(browser(people.manager))
    data = {"username": "nightly", "role": "developer", "contact": "Carol", "about": "nightly runs"}
    assert client.post(f"{HERE}/services", data).status_code == 302
    assert client.post(f"{HERE}/services", data).status_code == 422, "the name is taken"
    account = ServiceAccount.objects.get()
    address = f"{HERE}/services/{account.pk}"
    assert client.post(f"{address}/tokens", {"scopes": ["admin"], "days": "30"}).status_code == 422
    said = {"scopes": ["read", "submit"], "days": "30"}
    made = client.post(f"{address}/tokens", said, follow=True).context["made_token"]
    found = tokens.verify(made)
    assert found is not None
    assert may_submit(found.user, people.quota.workspace_id)
    assert not found.user.has_usable_password()
    page = seen(client.get(f"{HERE}/members"))
    assert "Carol" in page
    client.post(address, {"do": "disable"})
    assert tokens.verify(made) is None
    client.post(address, {"do": "enable"})
    assert tokens.verify(made) is not None
    client.post(f"{address}/tokens/{found.pk}/revoke")
    assert tokens.verify(made) is None
    assert made not in seen(client.get(f"{HERE}/members"))


def test_service_account_of_another_workspace_is_not_found(people: People) -> None:
    make_membership(people.stranger, people.stranger.memberships.get().workspace, Role.ADMIN)
    data = {"username": "nightly", "role": "developer", "contact": "Carol"}
    browser(people.manager).post(f"{HERE}/services", data)
    pk = ServiceAccount.objects.get().pk
    elsewhere = f"/workspaces/elsewhere/services/{pk}"
    assert browser(people.stranger).post(elsewhere, {"do": "disable"}).status_code == 404


@pytest.mark.parametrize(
    "address",
    ["invitations", "invitations/1/revoke", "members/1", "services", "services/1/tokens", "services/1"],
)
def test_button_address_opened_directly_redirects_to_member_list(people: People, address: str) -> None:
    page = browser(people.manager).get(f"{HERE}/{address}", headers={"Accept": "text/html"}, follow=True)
    assert page.redirect_chain[-1][0] == f"{HERE}/members"
    assert page.status_code == 200
