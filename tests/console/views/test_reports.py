"""Reports of use and cost: whose, how they are divided, as table, chart, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from quotas.accounts import tokens
from quotas.amounts import Part
from quotas.billing import costs, ledger_days
from quotas.billing.costs import ReportQuery
from quotas.models import Role, Spec, User
from tests.factories import make_cluster, make_membership, make_quota, make_workspace
from tests.jobs.web.conftest import People, browser, seen
from tests.quotas.billing.test_ledger_days import gpus, hold, price
from tests.streams import taken

MARCH = {"since": "2026-03-01", "until": "2026-03-31"}
FIRST = datetime(2026, 3, 2, 9, tzinfo=UTC)
ASKED = ReportQuery(FIRST.date(), FIRST.date() + timedelta(days=29))


@pytest.fixture
def used(people: People) -> People:
    """Alice held 2 GPUs for an hour and, on the next day, Bob 1 for half an hour; Mallory one elsewhere."""
    spec = Spec.objects.create(
        name="a", cpu_milli=8000, memory_mib=8192, gpus={"A100": 1}, price_micro=2_000_000
    )
    price(spec, begins=FIRST - timedelta(days=9))
    hour, half = timedelta(hours=1), timedelta(minutes=30)
    hold(people.quota, people.owner, [Part(2, gpus(1))], at=FIRST, until=FIRST + hour, holder="a")
    day = FIRST + timedelta(days=1)
    hold(people.quota, people.member, [Part(1, gpus(1))], at=day, until=day + half, holder="b", borrowed=True)
    elsewhere = make_quota(make_workspace("lab"), people.quota.cluster, "other")
    hold(elsewhere, people.stranger, [Part(1, gpus(1, "H100"))], at=FIRST, until=FIRST + hour, holder="c")
    ledger_days.roll_up(FIRST + timedelta(days=5))
    return people


def told(user: User, **query: str) -> list[tuple[Any, ...]]:
    report = browser(user).get("/reports/", {**MARCH, **query}).context["report"]
    return [(*row.names, row.figures["gpu_hours"], row.figures["cost"]) for row in report.rows]


def test_report_shows_users_their_own_usage(used: People) -> None:
    assert told(used.member, by="person") == [("bob", 0.5, 1.0)]
    assert told(used.stranger, by="person") == [("mallory", 1.0, 0.0)]


def test_report_shows_workspace_managers_usage_of_all_members(used: People) -> None:
    assert told(used.manager, by="person") == [("alice", 2.0, 4.0), ("bob", 0.5, 1.0)]
    make_membership(used.member, used.quota.workspace, Role.OPERATOR)
    assert len(told(used.member, by="person")) == 2


def test_report_shows_admins_all_workspaces(used: People) -> None:
    assert [row[0] for row in told(used.admin, by="workspace")] == ["vision", "lab"]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ({"by": "gpu_type"}, [("A100", 2.5, 5.0), ("H100", 1.0, 0.0)]),
        ({"by": "spec"}, [("a", 2.5, 5.0), ("", 1.0, 0.0)]),
        ({"by": "month"}, [("2026-03", 3.5, 5.0)]),
        ({"by": "day", "workspace": "vision"}, [("2026-03-02", 2.0, 4.0), ("2026-03-03", 0.5, 1.0)]),
        (
            {"by": "person", "then": "day", "workspace": "vision"},
            [("alice", "2026-03-02", 2.0, 4.0), ("bob", "2026-03-03", 0.5, 1.0)],
        ),
        ({"by": "quota", "person": "bob"}, [("default", 0.5, 1.0)]),
        ({"by": "source", "source": "preemptible"}, []),
        ({"by": "person", "since": "2026-03-03", "until": "2026-03-03"}, [("bob", 0.5, 1.0)]),
    ],
)
def test_report_is_grouped_and_filtered(used: People, query: dict[str, str], rows: list[Any]) -> None:
    assert told(used.admin, **query) == rows


def test_report_figures_and_totals_are_correct(used: People) -> None:
    report = costs.report(used.manager, ASKED)
    assert report.total.figures == {
        "gpu_hours": 2.5,
        "core_hours": 20.0,
        "borrowed_gpu_hours": 0.5,
        "starts": 2,
        "mean_wait_seconds": 600,
        "cost": 5.0,
    }
    text = seen(browser(used.manager).get("/reports/", MARCH))
    assert "0:10:00" in text
    assert "2.50" not in text
    assert "5.00" in text


def test_unrecorded_usage_is_included_for_permitted_users(used: People) -> None:
    begin = FIRST + timedelta(days=5)
    hold(used.quota, used.owner, [Part(1, gpus(1))], at=begin, holder="live")
    now = begin + timedelta(minutes=15)
    asked = ReportQuery(begin.date(), begin.date())
    for user, hours in ((used.owner, 0.25), (used.manager, 0.25), (used.admin, 0.25), (used.stranger, 0)):
        assert costs.report(user, asked, now).total.figures["gpu_hours"] == hours
    assert costs.report(used.manager, asked, now, own=True).rows == []
    ledger_days.roll_up(begin + timedelta(hours=2))
    assert costs.report(used.manager, asked, now + timedelta(hours=2)).total.figures["gpu_hours"] == 2.25


def test_report_filter_does_not_reveal_usage_of_others(used: People) -> None:
    assert told(used.member, by="person", person="alice") == []
    answer = browser(used.member).get("/reports/", {**MARCH, "by": "person", "workspace": "lab"})
    assert answer.status_code == 422


def test_report_chart_contains_the_days(used: People) -> None:
    answer = browser(used.manager).get("/reports/", {**MARCH, "by": "person"})
    drawn = json.loads(answer.context["chart"])
    assert drawn == {"alice": [[1772409600.0, 2.0]], "bob": [[1772496000.0, 0.5]]}
    assert 'class="usage-chart"' in seen(answer)


@pytest.mark.django_db(transaction=True)
def test_report_csv_contains_all_rows_and_no_formulas(used: People) -> None:
    User.objects.filter(pk=used.member.pk).update(username="@SUM(A1)")
    answer = browser(used.manager).get("/reports/", {**MARCH, "by": "person", "as": "csv"})
    assert answer.headers["Content-Type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(taken(answer))))
    assert [(row["person"], row["gpu_hours"], row["cost"]) for row in rows] == [
        ("alice", "2.0", "4.0"),
        ("'@SUM(A1)", "0.5", "1.0"),
    ]


def test_report_with_invalid_dates_shows_an_error(used: People) -> None:
    answer = browser(used.owner).get("/reports/", {"since": "2026-03-09", "until": "2026-03-01"})
    assert answer.status_code == 422
    assert "The end date is before the start date." in seen(answer)


def test_report_for_an_empty_period_shows_a_message(people: People) -> None:
    assert "No usage in this period" in seen(browser(people.owner).get("/reports/"))


def test_report_query_count_stays_fixed(used: People, django_assert_max_num_queries: Any) -> None:
    for number in range(12):
        quota = make_quota(used.quota.workspace, make_cluster())
        hold(
            quota,
            used.owner,
            [Part(1, gpus(1))],
            at=FIRST,
            until=FIRST + timedelta(hours=1),
            holder=str(number),
        )
    client = browser(used.manager)
    client.get("/reports/", MARCH)
    with django_assert_max_num_queries(22):
        client.get("/reports/", MARCH)


# --- the API ---------------------------------------------------------------------------------------------


def api(user: User, *scopes: str, **query: Any) -> Any:
    token = tokens.issue(user, scopes=scopes, lifetime=timedelta(days=1))
    return Client().get(
        "/api/console/v1/usage", {**MARCH, **query}, headers={"Authorization": f"Bearer {token}"}
    )


def test_report_api_returns_the_same_figures(used: People) -> None:
    answer = api(used.manager, "read", "admin", by=["person", "gpu_type"]).json()
    assert [(row["person"], row["gpu_type"], row["gpu_hours"]) for row in answer["rows"]] == [
        ("alice", "A100", 2.0),
        ("bob", "A100", 0.5),
    ]
    assert answer["total"]["cost"] == 5.0
    assert answer["by"] == ["person", "gpu_type"]


def test_report_token_without_admin_scope_reads_own_usage_only(used: People) -> None:
    assert api(used.manager, "read").json()["rows"] == []
    assert [row["person"] for row in api(used.owner, "read").json()["rows"]] == ["alice"]
    assert api(used.owner, "submit").status_code == 403


def test_report_api_with_an_invalid_query_lists_problems(used: People) -> None:
    for query in ({"by": "colour"}, {"since": "yesterday"}, {"since": "2026-04-01"}):
        answer = api(used.owner, "read", **query)
        assert answer.status_code == 400
        assert answer.json()["problems"]
