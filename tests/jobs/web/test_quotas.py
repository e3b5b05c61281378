"""Quotas: who uses what, what waits, and what would happen if."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from jobs import submission
from jobs.dialects.base import Parsed
from jobs.dialects.document import Document
from jobs.models import Job
from jobs.scheduling import admission
from jobs.spec import Resources, RoleSpec
from quotas import ledger
from quotas.amounts import Amounts, Part
from quotas.ledger import usage
from quotas.models import Node, Quota, Request, Reservation, UsageHour, User
from tests.factories import make_quota, make_spec
from tests.jobs.web.conftest import People, browser, fragment, seen


@pytest.fixture
def people(people: People) -> People:
    """One node of eight GPUs; the quota has six."""
    Node.objects.create(
        cluster=people.quota.cluster, name="n1", cpu_milli=64_000, memory_mib=262_144, gpus={"A100": 8}
    )
    people.quota.gpus = 6
    people.quota.save()
    return people


def hold(
    quota: Quota, owner: User, gpus: int, *, holder: str, borrowed: bool = False, running: bool = True
) -> None:
    each = Amounts(1000, 1024, {"A100": gpus})
    request = ledger.ask(holder, quota=quota, owner=owner, parts=[Part(1, each)], priority=1, declared_s=None)
    ledger.reserve(request, [("n1", each)], borrowed=borrowed)
    if running:
        ledger.record_start(holder)


def wait(owner: User, quota: Quota, gpus: int, name: str) -> Job:
    role = RoleSpec(name="w", command="true", resources=Resources(gpus=gpus, gpu_type="A100"))
    job = submission.store(
        owner,
        Document("{}", "openpai-v1").with_parsed(Parsed(make_spec(name=name, roles=(role,)), text="{}")),
        quota,
    )
    admission.admit(quota.cluster_id)
    return job


def test_quota_bars_show_used_reserved_borrowed_and_free(people: People) -> None:
    hold(people.quota, people.owner, 2, holder="a")
    hold(people.quota, people.owner, 1, holder="b", running=False)
    hold(people.quota, people.member, 2, holder="c", borrowed=True)
    response = browser(people.member).get("/quotas/")
    [shown] = response.context["quotas"]
    bars = {bar.kind: bar for bar in shown.use.bars}
    told = [(bar.used, bar.reserved, bar.borrowed, bar.free) for bar in (bars["gpu"], bars["A100"])]
    assert told == [(2, 1, 2, 3), (2, 1, 2, None)]
    assert [(person.username, person.gpus) for person in shown.people] == [("alice", 3), ("bob", 2)]
    assert sum(width for _what, _at, width in bars["gpu"].segments) <= 100
    assert bars["A100"].segments == [], "without a limit there is nothing to be part of"


def test_quota_counts_holdings_of_its_child_quotas(people: People) -> None:
    child = make_quota(people.quota.workspace, people.quota.cluster, "child", parent=people.quota)
    hold(child, people.owner, 2, holder="a")
    shown = browser(people.owner).get("/quotas/").context["quotas"]
    assert [(row.use.quota, row.depth, row.use.held.gpu_count) for row in shown] == [
        (people.quota, 0, 2),
        (child, 1, 2),
    ]


def test_quota_users_include_those_of_child_quotas(people: People) -> None:
    top = make_quota(people.quota.workspace, people.quota.cluster, name="Top", accepts_jobs=False)
    elsewhere = make_quota(None, people.quota.cluster, name="Elsewhere", parent=top)
    people.quota.parent = top
    people.quota.save()
    hold(people.quota, people.owner, 2, holder="a")
    hold(elsewhere, people.stranger, 3, holder="b")
    rows = {shown.use.quota.name: shown for shown in browser(people.member).get("/quotas/").context["quotas"]}
    users = [(each.username, each.gpus) for each in rows["Top"].people]
    assert users == [("", 3), ("alice", 2)], "people of other workspaces are not named"
    assert sum(gpus for _name, gpus in users) == rows["Top"].use.held.gpu_count
    assert "Other workspaces" in seen(browser(people.member).get("/quotas/"))


def test_waiting_jobs_of_a_quota_are_counted_and_linked(people: People) -> None:
    hold(people.quota, people.owner, 6, holder="a")
    job = wait(people.owner, people.quota, 4, "patient")
    text = seen(browser(people.member).get("/quotas/"))
    assert "1 job, 4 GPU requested" in text
    assert f'href="/jobs/{job.public_id}/"' in text


def test_quotas_page_shows_own_quotas_and_all_to_admins(people: People) -> None:
    foreign = make_quota(name="Foreign quota")
    assert "Foreign quota" not in seen(browser(people.owner).get("/quotas/"))
    assert "No resource quotas available" in seen(browser(people.stranger).get("/quotas/"))
    text = seen(browser(people.admin).get("/quotas/"))
    assert "Foreign quota" in text
    assert foreign.workspace.name in text


def ask(people: People, user: User | None = None, **values: Any) -> str:
    place = submission.target_address(people.quota)
    asked: dict[str, Any] = {
        "quota": place,
        "replicas": 1,
        "gpus": 4,
        "gpu_type": "A100",
        "cores": 4,
        "memory_gib": 4,
    }
    asked |= {"priority": 1, **values}
    return seen(browser(user or people.owner).get("/quotas/", asked, headers=fragment("what-if")))


def test_quota_check_for_fitting_job_names_its_node_and_stores_nothing(people: People) -> None:
    before = (Request.objects.count(), Reservation.objects.count(), Job.objects.count())
    assert "Can start now on n1." in ask(people)
    assert (Request.objects.count(), Reservation.objects.count(), Job.objects.count()) == before


def test_quota_check_for_blocked_job_gives_the_reason(people: People) -> None:
    hold(people.quota, people.owner, 4, holder="a")
    assert "Waiting for quota Default: 4 GPUs requested, 4 GPUs of 6 GPUs in use" in ask(people)
    assert "allows at most 6 GPUs" in ask(people, gpus=7)
    assert "no TITANX GPU on" in ask(people, gpus=1, gpu_type="TITANX")


def test_quota_check_with_invalid_input_shows_error_and_retains_input(people: People) -> None:
    text = ask(people, gpus="many")
    assert "Enter a whole number" in text
    assert 'value="many"' in text


def test_quota_check_for_inaccessible_quota_is_refused(people: People) -> None:
    foreign = make_quota(name="Foreign quota")
    assert "Select a valid choice" in ask(people, quota=submission.target_address(foreign))


def test_usage_chart_is_drawn_from_whole_hours(people: People) -> None:
    hold(people.quota, people.owner, 2, holder="a")
    now = timezone.now()
    Reservation.objects.update(created_at=now - timedelta(hours=3, minutes=now.minute))
    usage.roll_up(now)
    assert UsageHour.objects.filter(gpu_type="A100", seconds=7200).count() >= 2
    assert "2.0]" in seen(browser(people.owner).get("/quotas/"))


def test_quota_list_fragment_is_the_list(people: People) -> None:
    text = seen(browser(people.owner).get("/quotas/", headers=fragment("quotas-list")))
    assert text.startswith('<div id="quotas-list"')
    assert "what-if" not in text


def test_quotas_page_query_count_does_not_grow(people: People, django_assert_max_num_queries: object) -> None:
    for number in range(8):
        quota = make_quota(people.quota.workspace, people.quota.cluster, parent=people.quota)
        hold(quota, people.owner, 1, holder=f"h{number}")
        wait(people.owner, quota, 8, f"w{number}")
    client = browser(people.owner)
    client.get("/quotas/")
    with django_assert_max_num_queries(20):  # type: ignore[operator]
        client.get("/quotas/")


def test_free_gpu_square_links_to_new_job_with_such_a_gpu(people: People) -> None:
    text = seen(browser(people.owner).get("/nodes/"))
    address = "/jobs/new?gpus=1&gpu_type=A100&place=vision/local/default"
    assert f'href="{address}"' in text
    page = browser(people.owner).get(address)
    assert '"gpuType": "A100"' in seen(page)
    assert page.context["form"]["place"].value() == "vision/local/default"


def test_draining_node_shows_actor_and_reason(people: People) -> None:
    Node.objects.update(state="draining", state_why="new disks", state_by=people.admin)
    text = seen(browser(people.owner).get("/nodes/"))
    assert "Draining" in text
    assert "new disks by root" in text
    assert "start a job here" not in text


def test_quotas_page_requires_sign_in(db: None) -> None:
    assert browser().get("/quotas/").status_code == 302
