"""A workspace, people and an engine for tests of the worker side."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from jobs import submission
from jobs.backends import registry
from jobs.dialects.base import Parsed
from jobs.dialects.document import Document
from jobs.models import Attempt, Job
from jobs.spec import JobSpec, RoleSpec
from quotas.models import Cluster, Membership, Node, Quota, Role, User, Workspace
from tests.jobs import engine as memory
from tests.jobs.engine import MemoryEngine


@dataclass
class Place:
    """One workspace with one quota on one cluster of one node."""

    owner: User
    workspace: Workspace
    cluster: Cluster
    quota: Quota
    node: Node


@pytest.fixture
def place(db: None) -> Place:
    owner = User.objects.create_user("alice")
    workspace = Workspace.objects.create(slug="vision", name="Vision")
    Membership.objects.create(workspace=workspace, user=owner, role=Role.DEVELOPER)
    cluster = Cluster.objects.create(slug="memory", name="Memory", backend="memory")
    node = Node.objects.create(cluster=cluster, name="memory-1", cpu_milli=64_000, memory_mib=256 * 1024)
    quota = Quota.objects.create(workspace=workspace, cluster=cluster, slug="default", name="Default")
    return Place(owner, workspace, cluster, quota, node)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> MemoryEngine:
    made = MemoryEngine()
    monkeypatch.setitem(registry.PACKAGES, "memory", "tests.jobs.memory")
    monkeypatch.setattr(memory, "running", made)
    return made


def spec(name: str = "job", **changes: object) -> JobSpec:
    """A one-replica job that asks for little."""
    role = RoleSpec(name="worker", command="true")
    return JobSpec(**{"name": name, "roles": (role,), **changes})  # type: ignore[arg-type]


def queued(place: Place, job_spec: JobSpec | None = None) -> Job:
    """A job as `submit` leaves it."""
    return submission.store(
        place.owner,
        Document("{}", "openpai-v1").with_parsed(Parsed(job_spec or spec(), text="{}")),
        place.quota,
    )


def attempt_of(job: Job) -> Attempt:
    """The job's current attempt."""
    job.refresh_from_db()
    return Attempt.objects.get(job=job, number=job.attempt_number)
