"""`python -m tests.bench.drain '{"name": ["backend", {settings}], …}'`: a console before real clusters.

Reads lines: a cluster's name, a number, and perhaps `run`.  Accepts so many jobs of one replica there, then
hands them over as a worker does, with `run` until all of them have ended, and prints JSON: the seconds that
this took, how many jobs were let go, and the numbers of their reasons.  With BENCH_PORT its web server
listens there.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import django

from jobs.dialects.document import Document

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
django.setup()

from django.conf import settings  # noqa: E402
from django.core.management import call_command  # noqa: E402  # settings come first

import console.celery  # noqa: E402, F401  # settings come first; kicks go by it
from jobs import clusters, dialects  # noqa: E402
from jobs.backends import registry  # noqa: E402
from jobs.backends.base import Backend, Handle, Submission  # noqa: E402
from jobs.backends.slurm.backend import SlurmBackend  # noqa: E402
from jobs.backends.slurm.config import SlurmConfig  # noqa: E402
from jobs.backends.slurm.handles import SlurmJob  # noqa: E402
from jobs.models import Attempt, Job  # noqa: E402
from jobs.scheduling import admission, reconcile  # noqa: E402
from jobs.states import TERMINAL  # noqa: E402
from jobs.submission import store  # noqa: E402
from quotas.models import Admission, Cluster, Membership, Quota, Role, User, Workspace  # noqa: E402
from tests.kubernetes.images import BASE as IMAGE  # noqa: E402
from tests.serving import web_server  # noqa: E402

CPU_MILLI, MEMORY_MIB = 50, 32
"""What a job requests of an engine that runs it to its end."""

INVENTORY_S = 30.0
"""Workers take an inventory so often."""

POLL_S = 0.2
"""The bare loops look so often, too."""

ENGINE_AWAY = "database"
"""The cluster of this name is before an engine that answers at once, and keeps nothing."""


class AtOnce(SlurmBackend):
    """What is left then is the console's own."""

    numbers = itertools.count(1)

    def submit(self, submission: Submission) -> Handle:
        """Take it, and know nothing of it."""
        return SlurmJob(next(self.numbers), submission.key).handle

    def release(self, handles: Sequence[Handle]) -> None:
        """Nothing is held."""


def backend_for(cluster: Cluster) -> Backend:
    """The cluster's backend, or nothing behind it."""
    if cluster.slug != ENGINE_AWAY:
        return clusters.backend_for(cluster)
    return AtOnce(SlurmConfig.from_settings(Path(settings.CONSOLE_HOME), cluster.config))


def lay_out(clusters: dict[str, tuple[str, dict[str, Any]]]) -> tuple[User, dict[str, Quota]]:
    """Somebody, and a quota on each cluster."""
    owner = User.objects.create_user("bench")
    workspace = Workspace.objects.create(slug="bench", name="Bench")
    Membership.objects.create(workspace=workspace, user=owner, role=Role.DEVELOPER)
    quotas = {}
    for name, (backend, config) in clusters.items():
        has_scheduler = registry.find(backend).has_scheduler
        usual = Admission.ENGINE if has_scheduler else Admission.CONSOLE
        cluster = Cluster.objects.create(
            slug=name, name=name, backend=backend, config=config, admission=usual
        )
        reconcile.take_inventory(cluster.pk)
        quotas[name] = Quota.objects.create(
            workspace=workspace, cluster=cluster, slug=name, name=name, most_pending=10**6
        )
    return owner, quotas


def accept(owner: User, quota: Quota, count: int) -> None:
    """Job files, as people submit them."""
    dialect, text = _job_file(quota.cluster.backend)
    parsed = dialects.get(dialect).parse(Document(text))
    for _each in range(count):
        store(owner, Document("{}", dialect).with_parsed(parsed), quota)


def _job_file(backend: str) -> tuple[str, str]:
    """Return the dialect and the text of a job of one replica."""
    if backend == "slurm":
        role = {"name": "worker", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 64, "command": "true"}
        return "openpai-v1", json.dumps({"jobName": "bench", "image": "any", "taskRoles": [role]})
    container: dict[str, Any] = {
        "name": "pytorch",
        "command": ["true"],
        "resources": {"limits": {"cpu": f"{CPU_MILLI}m", "memory": f"{MEMORY_MIB}Mi"}},
    }
    if backend == "kubernetes":
        container["image"] = IMAGE
    worker = {"replicas": 1, "restartPolicy": "Never", "template": {"spec": {"containers": [container]}}}
    manifest = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "bench"},
        "spec": {"pytorchReplicaSpecs": {"Worker": worker}},
    }
    return "kubeflow", json.dumps(manifest)


def run(cluster_id: int) -> Counter[str]:
    """Do what workers do until all jobs of a cluster have ended; return the numbers of their reasons."""
    ended = [state.value for state in TERMINAL]
    begun = set(Job.objects.filter(cluster=cluster_id).exclude(state__in=ended).values_list("pk", flat=True))
    jobs = Job.objects.filter(pk__in=begun)
    due = 0.0
    while jobs.exclude(state__in=ended).exists():
        if time.monotonic() >= due:
            reconcile.take_inventory(cluster_id)
            due = time.monotonic() + INVENTORY_S
        admission.admit(cluster_id)
        reconcile.drain(cluster_id)
        reconcile.observe(cluster_id)
        time.sleep(POLL_S)
    return Counter(jobs.values_list("reason_code", flat=True))


@contextmanager
def served() -> Iterator[None]:
    """Serve the console's pages at BENCH_PORT, where nodes deliver what their jobs write."""
    if not (port := os.environ.get("BENCH_PORT")):
        yield
        return
    with socket.socket() as kept:
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        kept.bind(("127.0.0.1", int(port)))
        with web_server(kept):
            yield


def main() -> None:
    """Do as each line says."""
    call_command("migrate", verbosity=0)
    owner, quotas = lay_out(json.loads(sys.argv[1]))
    with served():
        for line in sys.stdin:
            print(json.dumps(_answer(owner, quotas, *line.split())), flush=True)


def _answer(owner: User, quotas: dict[str, Quota], name: str, count: str, way: str = "") -> dict[str, Any]:
    accept(owner, quotas[name], int(count))
    cluster_id, noted = quotas[name].cluster_id, Attempt.objects.exclude(handle="").count()
    began = time.perf_counter()
    if way == "run":
        reasons = run(cluster_id)
        return {"s": time.perf_counter() - began, "sent": reasons.total(), "reasons": reasons}
    with patch.object(reconcile, "backend_for", backend_for):
        reconcile.drain(cluster_id)
    took = time.perf_counter() - began
    return {"s": took, "sent": Attempt.objects.exclude(handle="").count() - noted}


if __name__ == "__main__":
    main()
