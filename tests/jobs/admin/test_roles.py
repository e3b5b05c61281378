"""Roles and their access keys in Django admin, and who else may keep them."""

from __future__ import annotations

from html import unescape

import pytest
from django.test import Client

from jobs.assets import visibility
from jobs.models import RamRole
from quotas.models import AuditEntry, Role, Workspace
from tests.factories import make_membership, make_user, make_workspace

pytestmark = pytest.mark.django_db

ADD = "/admin/jobs/ramrole/add/"


@pytest.fixture
def workspace(db: None) -> Workspace:
    return make_workspace("vision")


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(make_user("root", admin=True))
    return client


def values(workspace: Workspace, **changes: str) -> dict[str, str]:
    return {
        "key": "role-1",
        "name": "trainer",
        "workspace": str(workspace.pk),
        "provider": "alibaba",
        "arn": "acs:ram::1:role/trainer",
        "access_key_id": "LTAIconsole",
        "secret": "the-secret-of-the-key",
        "session_s": "3600",
        **changes,
    }


def save(admin: Client, address: str, sent: dict[str, str]) -> str:
    """Save the form; return its text where it was refused."""
    answer = admin.post(address, sent)
    return "" if answer.status_code == 302 else unescape(answer.content.decode())


def test_access_key_of_role_is_stored_encrypted_audited_and_never_shown(
    admin: Client, workspace: Workspace
) -> None:
    assert save(admin, ADD, values(workspace)) == ""
    row = RamRole.objects.get()
    assert row.reveal() == "the-secret-of-the-key"
    assert "the-secret" not in row.ciphertext
    address = f"/admin/jobs/ramrole/{row.pk}/change/"
    page = admin.get(address).content.decode()
    assert "the-secret" not in page
    assert row.ciphertext not in page
    assert save(admin, address, values(workspace, secret="", policy='{"Version": "1"}')) == ""
    row.refresh_from_db()
    assert (row.reveal(), row.policy) == ("the-secret-of-the-key", '{"Version": "1"}')
    assert save(admin, address, values(workspace, secret="", access_key_id="")) == ""
    row.refresh_from_db()
    assert row.ciphertext == ""
    told = "".join(str(entry.changes) for entry in AuditEntry.objects.all())
    assert "••••" in told
    assert "the-secret" not in told
    assert "gAAAAA" not in told


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"workspace": ""}, "A role with an access key needs a workspace."),
        ({"secret": ""}, "Enter the secret of the access key."),
        ({"arn": "arn:aws:iam::123456789012:role/x"}, "Not the ARN of a role of this provider."),
        ({"policy": "[]"}, "Must be a JSON object."),
        ({"endpoint": "https://169.254.169.254/"}, "on the internal network"),
        ({"endpoint": "http://sts.example.org/"}, "Only https:// is allowed"),
        ({"access_key_id": "", "secret": "", "is_default": "on"}, "A default role needs an access key."),
        ({"session_s": "900"}, "greater than or equal to 2400"),
    ],
)
def test_role_that_can_not_be_assumed_safely_is_refused(
    admin: Client, workspace: Workspace, changes: dict[str, str], problem: str
) -> None:
    assert problem in save(admin, ADD, {**values(workspace), **changes})
    assert not RamRole.objects.exists()


def test_other_endpoint_needs_the_secret_again_and_second_default_is_refused(
    admin: Client, workspace: Workspace
) -> None:
    assert save(admin, ADD, values(workspace, is_default="on")) == ""
    row = RamRole.objects.get()
    moved = values(workspace, secret="", endpoint="https://sts.example.org/", is_default="on")
    page = save(admin, f"/admin/jobs/ramrole/{row.pk}/change/", moved)
    assert "Enter the secret of the access key." in page
    page = save(admin, ADD, values(workspace, key="role-2", is_default="on"))
    assert "This workspace has a default role already." in page


def test_role_with_an_access_key_is_kept_by_admins_of_the_console_alone(
    admin: Client, workspace: Workspace
) -> None:
    keeper, member, stranger = (make_user(name) for name in ("keeper", "member", "stranger"))
    make_membership(keeper, workspace, Role.ADMIN)
    make_membership(member, workspace, Role.DEVELOPER)
    plain = RamRole.objects.create(workspace=workspace, name="plain", arn="acs:ram::1:role/plain")
    assert [visibility.may_keep(each, plain) for each in (keeper, member, stranger)] == [True, False, False]
    assert save(admin, ADD, values(workspace)) == ""
    row = RamRole.objects.get(name="trainer")
    assert not any(visibility.may_keep(each, row) for each in (keeper, member, stranger))
    kind = type(row).KIND
    seen = [visibility.find(each, kind, row.key) for each in (keeper, member, stranger)]
    assert seen == [row, row, None]
    client = Client()
    client.force_login(keeper)
    page = client.get(f"/assets/roles/{row.key}").content.decode()
    assert "LTAIconsole" not in page
    assert row.ciphertext not in page
    assert "trainer" in page
    changed = {"name": "x", "arn": "acs:ram::1:role/admin", "workspace": workspace.pk}
    assert client.post(f"/assets/roles/{row.key}/edit", changed).status_code in {403, 404}
    row.refresh_from_db()
    assert row.arn == "acs:ram::1:role/trainer"
