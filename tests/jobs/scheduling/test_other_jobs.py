"""Jobs that others run on a cluster: rows that follow what the engine lists, in usage and in a list."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.test import Client
from django.urls import reverse

from jobs.backends.base import Gpu, Handle, QueuedJob
from jobs.models import Attempt, ExternalJob, Job
from jobs.scheduling import reconcile
from jobs.states import State
from jobs.web import external_jobs as page
from quotas.amounts import Amounts
from quotas.ledger import reports
from quotas.models import Admission, Cluster, Node, Quota, User, Workspace
from tests.factories import make_membership, make_user
from tests.jobs.conftest import Place, attempt_of, queued
from tests.jobs.engine import MemoryEngine

THEIRS = QueuedJob(
    "17",
    "train",
    "carol",
    running=True,
    partition="gpu",
    cpu_milli=4000,
    memory_mib=1024,
    gpus={"A100": 2},
    nodes=("memory-1",),
    submitted_at=1_790_000_000.0,
    started_at=1_790_000_100.0,
)
WAITS = QueuedJob("18_[0-9]", "sweep", "dave", running=False, reason="QOSMaxGRESPerUser")


def taken(place: Place, engine: MemoryEngine, *jobs: QueuedJob) -> list[str]:
    """The numbers that are listed once the cluster has told of these."""
    engine.queue = jobs
    reconcile.take_inventory(place.cluster.pk)
    return list(ExternalJob.objects.order_by("pk").values_list("number", flat=True))


def test_external_jobs_follow_engine_and_keep_unchanged_rows(place: Place, engine: MemoryEngine) -> None:
    assert taken(place, engine, THEIRS, WAITS) == ["17", "18_[0-9]"]
    kept = ExternalJob.objects.get(number="17")
    assert (kept.user, kept.partition, kept.gpus, kept.nodes) == ("carol", "gpu", {"A100": 2}, ["memory-1"])
    assert taken(place, engine, THEIRS, replace(WAITS, number="19")) == ["17", "19"]
    assert ExternalJob.objects.get(number="17").pk == kept.pk
    taken(place, engine, replace(THEIRS, nodes=("memory-2",)))
    assert ExternalJob.objects.get().nodes == ["memory-2"]
    assert taken(place, engine) == []
    assert not Job.objects.exists()


def test_external_jobs_stay_when_engine_is_unreachable(place: Place, engine: MemoryEngine) -> None:
    taken(place, engine, THEIRS)
    engine.away = True
    reconcile.take_inventory(place.cluster.pk)
    assert ExternalJob.objects.count() == 1


def test_external_jobs_exclude_own_jobs_and_their_usage(place: Place, engine: MemoryEngine) -> None:
    Cluster.objects.update(admission=Admission.ENGINE)
    job = queued(place)
    reconcile.drain(place.cluster.pk)
    attempt = attempt_of(job)
    engine.run(next(iter(engine.jobs)))
    reconcile.observe(place.cluster.pk)
    engine.node = replace(engine.node, free_cpu_milli=60_000)
    ours = QueuedJob(
        "16", attempt.key, "console", running=True, handle=Handle(attempt.handle), nodes=("memory-1",)
    )
    assert taken(place, engine, ours) == []
    assert Amounts.from_json(Node.objects.get().others) == Amounts()
    [use] = reports.nodes_of([place.cluster])
    assert [each.holder for each in use.holdings] == [attempt.key]


def test_external_jobs_include_foreign_job_with_own_name(place: Place, engine: MemoryEngine) -> None:
    Cluster.objects.update(admission=Admission.ENGINE)
    job = queued(place)
    reconcile.drain(place.cluster.pk)
    false = replace(THEIRS, name=attempt_of(job).key, handle=Handle("another"))
    assert taken(place, engine, false, replace(false, number="18", handle=None)) == ["17", "18"]


def test_external_jobs_exclude_attempt_still_being_submitted(place: Place, engine: MemoryEngine) -> None:
    Cluster.objects.update(admission=Admission.ENGINE)
    job = queued(place)
    reconcile.drain(place.cluster.pk)
    Attempt.objects.update(handle="")
    on_its_way = replace(THEIRS, name=attempt_of(job).key, handle=Handle("not noted yet"))
    assert taken(place, engine, on_its_way) == []


def test_external_usage_excludes_own_job_running_beside_external_ones(
    place: Place, engine: MemoryEngine
) -> None:
    Cluster.objects.update(admission=Admission.ENGINE)
    job = queued(place)
    reconcile.drain(place.cluster.pk)
    engine.run(next(iter(engine.jobs)))
    reconcile.observe(place.cluster.pk)
    job.refresh_from_db()
    assert job.state == State.RUNNING
    held = reports.nodes_of([place.cluster])[0].holdings[0].amounts
    engine.node = replace(
        engine.node,
        gpus=tuple(Gpu(index, "A100") for index in range(4)),
        free_gpus=(2, 3),
        free_cpu_milli=64_000 - 4000 - held.cpu_milli,
    )
    taken(place, engine, THEIRS)
    found = Amounts.from_json(Node.objects.get().others)
    assert (found.cpu_milli, found.gpus) == (4000, {"A100": 2})


# --- the page --------------------------------------------------------------------------------------------


def shown(client: Client, person: User, **query: str) -> str:
    client.force_login(person)
    return client.get(reverse("jobs_others"), query).content.decode()


@pytest.fixture
def people(place: Place, engine: MemoryEngine) -> dict[str, User]:
    """A member, an admin, and somebody of a workspace that has no quota on the cluster."""
    taken(place, engine, THEIRS, WAITS)
    stranger = make_user("erin")
    make_membership(user=stranger, workspace=Workspace.objects.create(slug="other", name="Other"))
    admin = User.objects.create_superuser("root")
    return {"member": place.owner, "admin": admin, "stranger": stranger}


def test_external_jobs_are_visible_to_quota_members_and_admins(
    client: Client, people: dict[str, User]
) -> None:
    Cluster.objects.update(backend="slurm")  # whose texts the reason's word is looked up in
    for who in ("member", "admin"):
        text = shown(client, people[who])
        assert "carol" in text
        assert "Slurm limit QOSMaxGRESPerUser reached" in text
    assert "carol" not in shown(client, people["stranger"])
    assert list(ExternalJob.objects.visible_to(people["stranger"])) == []


def test_external_jobs_are_hidden_after_quota_deletion(client: Client, people: dict[str, User]) -> None:
    Quota.objects.all().delete()
    assert "carol" not in shown(client, people["member"])


def test_job_list_links_to_external_jobs_only_when_visible(client: Client, people: dict[str, User]) -> None:
    client.force_login(people["member"])
    assert reverse("jobs_others") in client.get(reverse("jobs")).content.decode()
    client.force_login(people["stranger"])
    assert reverse("jobs_others") not in client.get(reverse("jobs")).content.decode()


def test_external_jobs_page_filters_and_paginates(
    client: Client, people: dict[str, User], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "carol" not in shown(client, people["member"], user="dave")
    assert "carol" not in shown(client, people["member"], cluster="elsewhere")
    monkeypatch.setattr(page, "PAGE", 1)
    first = shown(client, people["member"])
    assert "dave" in first
    assert "carol" not in first
    [last] = ExternalJob.objects.filter(user="dave")
    assert "carol" in shown(client, people["member"], before=str(last.pk))
