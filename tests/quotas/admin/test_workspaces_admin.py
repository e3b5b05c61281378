"""The form of a workspace in Django admin: its egress policy as a kind and rules."""

from __future__ import annotations

from html import unescape

import pytest
from django.test import Client

from quotas.models import AuditEntry, Workspace
from tests.factories import make_user, make_workspace

pytestmark = pytest.mark.django_db


def save(client: Client, workspace: Workspace, kind: str, rules: str = "") -> str:
    """Send the form; return the page with its problems, or "" where it was saved."""
    data = {
        "name": workspace.name,
        "slug": workspace.slug,
        "egress_kind": kind,
        "egress_rules": rules,
        **{
            f"{part}-{name}_FORMS": "0" for part in ("memberships", "quotas") for name in ("TOTAL", "INITIAL")
        },
    }
    answer = client.post(f"/admin/quotas/workspace/{workspace.pk}/change/", data)
    return "" if answer.status_code == 302 else unescape(answer.content.decode())


def test_workspace_form_saves_each_kind_of_policy_with_an_audit_entry(client: Client) -> None:
    client.force_login(make_user(admin=True))
    workspace = make_workspace()
    for kind, rules, policy in [
        ("none", "", []),
        ("listed", "192.0.2.0/24:443\r\n\r\n198.51.100.7", ["192.0.2.0/24:443", "198.51.100.7/32"]),
        ("internet", "", ["internet"]),
    ]:
        assert save(client, workspace, kind, rules) == ""
        workspace.refresh_from_db()
        assert workspace.egress == policy
    rows = AuditEntry.objects.filter(content_type__model="workspace").order_by("pk")
    changed = [row.changes["egress"][1] for row in rows if "egress" in (row.changes or {})]
    assert len(changed) == 3
    assert "198.51.100.7/32" in changed[1]


def test_workspace_form_shows_stored_rules_and_each_wrong_line(client: Client) -> None:
    client.force_login(make_user(admin=True))
    workspace = make_workspace(egress=["192.0.2.0/24:443"])
    page = client.get(f"/admin/quotas/workspace/{workspace.pk}/change/").content.decode()
    assert "192.0.2.0/24:443</textarea>" in page
    wrong = save(client, workspace, "listed", "db.example.org:5432\n169.254.169.254")
    assert "db.example.org:5432: Names are not supported" in wrong
    assert "169.254.169.254: Loopback, link-local" in wrong
    assert "Required." in save(client, workspace, "listed", " \n")
    for kind in ("internet", "none"):
        page = save(client, workspace, kind, "198.51.100.7")
        assert "Select “Listed addresses only”" in page
        assert "198.51.100.7</textarea>" in page
    workspace.refresh_from_db()
    assert workspace.egress == ["192.0.2.0/24:443"]
