"""The page of the audit log: whose, what is found, what is taken away."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from quotas import audit
from quotas.audit import origin
from quotas.audit.origin import Origin
from quotas.models import Action, AuditEntry, Membership, Role, Way, Workspace
from tests.jobs.web.conftest import People, browser, seen
from tests.streams import taken


@pytest.fixture
def people(people: People) -> People:
    """The log has it that Mallory administers another workspace, and Alice has an address and her own."""
    elsewhere = Workspace.objects.create(slug="lab", name="Laboratory")
    Membership.objects.create(user=people.stranger, workspace=elsewhere, role=Role.ADMIN)
    Membership.objects.filter(user=people.owner).delete()
    Membership.objects.create(user=people.owner, workspace=people.quota.workspace)
    people.owner.email = "alice@example.com"
    people.owner.save()
    people.quota.gpus = 6
    people.quota.save()
    return people


def test_audit_page_shows_workspace_admin_own_workspace_only(people: People) -> None:
    text = seen(browser(people.manager).get("/audit/"))
    assert "gpus: – → 6" in text
    assert "Laboratory" not in text
    other = seen(browser(people.stranger).get("/audit/"))
    assert "Laboratory" in other
    assert "gpus: – → 6" not in other


def test_audit_page_shows_console_admin_all_entries(people: People) -> None:
    text = seen(browser(people.admin).get("/audit/"))
    assert "gpus: – → 6" in text
    assert "Laboratory" in text


@pytest.mark.parametrize("address", ["/audit/", "/audit/export"])
def test_audit_pages_refuse_members(people: People, address: str) -> None:
    assert browser(people.member).get(address).status_code == 403
    assert browser().get(address).status_code == 302


def test_audit_link_is_shown_to_workspace_admins_only(people: People) -> None:
    assert 'href="/audit/"' in seen(browser(people.manager).get("/quotas/"))
    assert 'href="/audit/"' not in seen(browser(people.member).get("/quotas/"))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"person": "alice"}, {"alice · Vision", "alice"}),
        ({"thing": "Default"}, {"Default"}),
        ({"workspace": "lab", "action": "create"}, {"Laboratory", "mallory · Laboratory"}),
        ({"since": "2100-01-01"}, set()),
        ({"until": "2000-01-01"}, set()),
        ({"refused": "on"}, set()),
        ({"person": "nobody"}, set()),
    ],
)
def test_audit_search_finds_matching_entries(people: People, query: dict[str, str], found: set[str]) -> None:
    entries = browser(people.admin).get("/audit/", query).context["rows"]
    assert {entry.object_repr for entry in entries} == found


def test_audit_page_escapes_html_in_names(people: People) -> None:
    with origin.of(Origin(Way.PAGE, user=people.owner)):
        audit.log(Action.USE, people.quota, name="<script>alert(1)</script>")
    assert "<script>alert" not in browser(people.admin).get("/audit/").content.decode()


def test_audit_page_continues_on_the_next_page(people: People) -> None:
    for number in range(60):
        audit.log(Action.USE, people.quota, name=f"thing {number}")
    client = browser(people.manager)
    first = client.get("/audit/")
    assert len(first.context["rows"]) == 50
    second = client.get(first.context["next_url"])
    assert not {entry.pk for entry in first.context["rows"]} & {e.pk for e in second.context["rows"]}


def test_audit_query_count_stays_fixed_and_counts_no_rows(
    people: People, django_assert_max_num_queries: Any
) -> None:
    for number in range(40):
        audit.log(Action.USE, people.quota, name=f"thing {number}")
    client = browser(people.manager)
    client.get("/audit/")
    with django_assert_max_num_queries(11) as asked:
        client.get("/audit/")
    assert not [each["sql"] for each in asked.captured_queries if "COUNT(" in each["sql"]]


@pytest.mark.django_db(transaction=True)
def test_audit_export_as_csv_and_json_lines_is_itself_recorded(people: People) -> None:
    for number in range(3):
        audit.log(Action.USE, people.quota, name=f"=HYPERLINK({number})")
    client = browser(people.manager)
    text = taken(client.get("/audit/export", {"action": "use"}))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["thing"] for row in rows] == [f"'=HYPERLINK({number})" for number in (2, 1, 0)]
    assert {row["workspace"] for row in rows} == {"vision"}
    lines = taken(client.get("/audit/export", {"as": "jsonl", "thing": "Default"})).splitlines()
    assert json.loads(lines[0])["changes"] == {"gpus": [None, 6]}
    assert AuditEntry.objects.filter(action="export", actor=people.manager).count() == 2
