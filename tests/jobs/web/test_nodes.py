"""Nodes: what is free, and whose the rest is."""

from __future__ import annotations

from django.utils import timezone

from jobs.models import Job
from jobs.states import State
from quotas import ledger
from quotas.amounts import Amounts
from quotas.models import Node
from tests.factories import attempt_of, make_cluster, make_job
from tests.jobs.web.conftest import People, browser, fragment, seen


def hold(job: Job, node: str, amounts: Amounts) -> None:
    request = ledger.ask(
        attempt_of(job).key,
        quota=job.quota,
        owner=job.owner,
        parts=[ledger.Part(1, amounts)],
        priority=1,
        declared_s=None,
    )
    ledger.reserve(request, [(node, amounts)])


def test_node_gpus_are_squares_held_or_free(people: People) -> None:
    cluster = people.quota.cluster
    Node.objects.create(cluster=cluster, name="n1", cpu_milli=8000, memory_mib=4096, gpus={"TITANX": 4})
    mine = make_job(State.RUNNING, owner=people.owner, quota=people.quota, name="mine")
    foreign = make_job(State.RUNNING, owner=people.stranger, name="foreign")
    foreign.quota.cluster = cluster
    foreign.quota.save()
    hold(mine, "n1", Amounts(1000, 1024, {"TITANX": 1}))
    hold(foreign, "n1", Amounts(1000, 1024, {"TITANX": 2}))
    response = browser(people.owner).get("/nodes/")
    [shown] = response.context["clusters"][0].nodes
    assert [(square.held, square.job) for square in shown.squares] == [
        (True, mine),
        (True, None),
        (True, None),
        (False, None),
    ]
    text = seen(response)
    assert "1 of 4 free" in text
    assert "TITANX, used by mine" in text
    assert "1 job of others" in text
    assert "foreign" not in text


def test_clusters_without_own_quota_are_not_shown(people: People) -> None:
    cluster = make_cluster(name="Somebody else's")
    Node.objects.create(cluster=cluster, name="theirs")
    assert "theirs" not in seen(browser(people.owner).get("/nodes/"))
    assert "theirs" in seen(browser(people.admin).get("/nodes/"))


def test_node_reservations_of_the_engine_are_shown_until_they_end(people: People) -> None:
    cluster = people.quota.cluster
    Node.objects.create(cluster=cluster, name="n1", partitions=["all", "gpu"])
    Node.objects.create(cluster=cluster, name="n2")
    now = timezone.now().timestamp()
    kept = {"name": "lecture", "nodes": ["n1"], "since": now - 60, "until": now + 60, "maintenance": False}
    cluster.set_aside = [
        {**kept, "whom": ["carol"]},
        {**kept, "whom": [], "until": None},
        {**kept, "whom": [], "maintenance": True, "since": now + 30},
        {**kept, "whom": ["over"], "until": now - 1},
    ]
    cluster.save()
    response = browser(people.owner).get("/nodes/")
    first, second = response.context["clusters"][0].nodes
    assert [(each.whom, each.maintenance) for each in first.set_aside] == [
        (["carol"], False),
        ([], False),
        ([], True),
    ]
    assert not second.set_aside
    text = seen(response)
    assert "all, gpu" in text
    assert "Reserved for carol" in text
    assert "Reserved for jobs that request lecture" in text
    assert "Reserved for maintenance" in text


def test_unschedulable_node_shows_its_reason(people: People) -> None:
    Node.objects.create(cluster=people.quota.cluster, name="n1", schedulable=False, why="Being repaired")
    text = seen(browser(people.owner).get("/nodes/"))
    assert "not accepting jobs" in text
    assert "Being repaired" in text


def test_node_list_without_nodes_or_clusters_shows_empty_state(people: People) -> None:
    assert "No nodes reported yet" in seen(browser(people.owner).get("/nodes/"))
    assert "No clusters available" in seen(browser(people.stranger).get("/nodes/"))


def test_node_list_fragment_is_the_list(people: People) -> None:
    text = seen(browser(people.owner).get("/nodes/", headers=fragment("nodes-list")))
    assert text.startswith('<div id="nodes-list"')


def test_nodes_page_requires_sign_in(db: None) -> None:
    assert browser().get("/nodes/").status_code == 302
