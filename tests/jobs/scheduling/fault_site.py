"""A real cluster with a person's quota, for tests of what becomes of jobs that meet faults."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pytest
from django.conf import LazySettings

from jobs import submission
from jobs.dialects.base import Parsed
from jobs.dialects.document import Document
from jobs.models import Attempt, Event, Job
from jobs.scheduling import fault_watch, reconcile, stack_dumps
from jobs.spec import FaultTolerance, JobSpec, NodeChoice, Resources, RestartScope, RoleSpec
from jobs.states import TERMINAL, State
from quotas.clusters import inventory
from quotas.models import Admission, Cluster, Membership, Node, NodeState, Quota, Role, User, Workspace
from tests.jobs.backends.benches import LocalBench
from tests.slurm import APART, NODES, Slurm
from tests.waiting import wait_for

WITHIN_S: Final = 60
"""A job runs again so soon after a fault was detected."""

SMALL: Final = Resources(cpu_milli=1000, memory_mib=256)


@dataclass
class FaultSite:
    """A cluster with a person's quota; `judge` is a folder that its jobs see under this name."""

    quota: Quota
    judge: Path
    slurm: Slurm | None = None

    def submit(
        self,
        name: str,
        command: str,
        arguments: str,
        *,
        replicas: int = 2,
        size: Resources = SMALL,
        scope: RestartScope = RestartScope.JOB,
        **more: Any,
    ) -> Job:
        """Submit a job with fault tolerance, of two ranks unless said otherwise."""
        nodes = NodeChoice(never=(APART,) if self.slurm else ())  # it does not see what is mounted now
        role = RoleSpec(name="worker", replicas=replicas, command=command, resources=size, nodes=nodes)
        tolerance = FaultTolerance(enabled=True, arguments=arguments, restart_scope=scope)
        spec = JobSpec(name=name, roles=(role,), grace_s=1, fault_tolerance=tolerance, **more)
        document = Document("{}", "openpai-v1").with_parsed(Parsed(spec, text="{}"))
        return submission.store(User.objects.get(username="alice"), document, self.quota)

    def look(self) -> None:
        """Do once what the console's workers do again and again."""
        cluster = self.quota.cluster_id
        reconcile.drain(cluster)
        reconcile.observe(cluster)
        fault_watch.watch()
        stack_dumps.answer(cluster)

    def follow(self, jobs: Sequence[Job], until: Callable[[Job], bool]) -> None:
        """Look until all jobs are so."""

        def is_done() -> bool:
            self.look()
            for job in jobs:
                job.refresh_from_db()
            return all(map(until, jobs))

        wait_for(is_done, 240, interval=0.5)

    def take_away(self, node: str) -> None:
        """Drain a node in Slurm, or cordon it in the console."""
        if self.slurm:
            self.slurm.call("scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=bad fan")
            reconcile.take_inventory(self.quota.cluster_id)
        else:
            self._decide(node, NodeState.CORDONED)

    def give_back(self, node: str) -> None:
        """Let the console's node take jobs again."""
        self._decide(node, NodeState.SCHEDULABLE)

    def _decide(self, node: str, state: NodeState) -> None:
        rows = Node.objects.filter(cluster=self.quota.cluster_id, name=node)
        inventory.decide(rows, state, by=None, why="bad fan")


def is_over(job: Job) -> bool:
    """Return whether the job has ended."""
    return State(job.state) in TERMINAL


@pytest.fixture(params=["local", "slurm"])
def site(request: pytest.FixtureRequest, tmp_path: Path, settings: LazySettings) -> Iterator[FaultSite]:
    """A local cluster, or Slurm."""
    bench = LocalBench(tmp_path)
    bench.installation = settings.CONSOLE_INSTALLATION
    settings.CONSOLE_HOME = settings.CONSOLE_SHARED_FOLDER = bench.home
    slurm: Slurm | None = None
    config = {"show": [str(bench.judge)], "bell": str(bench.home / "bell"), "cpu_milli": 64_000}
    if request.param == "slurm":
        slurm = request.getfixturevalue("slurm")
        (bench.home / "jobs").mkdir(mode=0o700)
        config = {"configuration": str(slurm.configuration), "allow_plain": True}
    cluster = Cluster.objects.create(
        slug="site",
        name="Site",
        backend=request.param,
        config=config,
        admission=Admission.ENGINE if slurm else Admission.CONSOLE,
    )
    owner = User.objects.create_user("alice")
    workspace = Workspace.objects.create(slug="vision", name="Vision")
    Membership.objects.create(workspace=workspace, user=owner, role=Role.DEVELOPER)
    quota = Quota.objects.create(workspace=workspace, cluster=cluster, slug="all", name="All")
    reconcile.take_inventory(cluster.pk)
    yield FaultSite(quota, bench.judge, slurm)
    if slurm:
        slurm.call("scancel", "--user=root", "--signal=KILL", "--full")
        slurm.call("scancel", "--user=root")
        with suppress(subprocess.CalledProcessError):  # none is drained
            slurm.call("scontrol", "update", f"NodeName={','.join(NODES)}", "State=RESUME")
        wait_for(slurm.ready)
    else:
        bench.close()


def decisions(job: Job) -> list[tuple[str, str, bool]]:
    """Return what was decided about each fault of the job: cause, rule, and whether it was restarted."""
    rows = Event.objects.filter(job=job, kind=Event.Kind.FAULT, params__has_key="rule").order_by("pk")
    return [(row.params["code"], row.params["rule"], row.params["restarts"]) for row in rows]


def pauses(job: Job) -> Sequence[float]:
    """Return the seconds from each detection of a fault until the next attempt ran."""
    detected: list[datetime] = []
    begins = True
    for event in Event.objects.filter(job=job).order_by("pk"):
        is_detection = event.kind == Event.Kind.END_WANTED or "rule" in event.params
        if is_detection and begins:
            detected.append(event.at)
        begins = event.kind == Event.Kind.QUEUED_AGAIN or (begins and not is_detection)
    later = (
        Attempt.objects.filter(job=job, number__gt=1).order_by("number").values_list("started_at", flat=True)
    )
    return [(began - at).total_seconds() for at, began in zip(detected, later, strict=False) if began]
