"""`python -m tests.bench.drain '{"name": {settings}, …}'`: a console of its own before real clusters.

Reads lines: a cluster's name and a number.  Accepts so many jobs of one replica there, then hands them over
as a worker does, and prints JSON: the seconds that this took, and how many jobs were let go.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections.abc import Sequence
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
from jobs.backends.base import Backend, Handle, Submission  # noqa: E402
from jobs.backends.slurm.backend import SlurmBackend  # noqa: E402
from jobs.backends.slurm.config import SlurmConfig  # noqa: E402
from jobs.backends.slurm.handles import SlurmJob  # noqa: E402
from jobs.models import Attempt  # noqa: E402
from jobs.scheduling import reconcile  # noqa: E402
from jobs.submission import store  # noqa: E402
from quotas.models import Admission, Cluster, Membership, Quota, Role, User, Workspace  # noqa: E402

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


def lay_out(clusters: dict[str, dict[str, Any]]) -> tuple[User, dict[str, Quota]]:
    """Somebody, and a quota on each cluster."""
    owner = User.objects.create_user("bench")
    workspace = Workspace.objects.create(slug="bench", name="Bench")
    Membership.objects.create(workspace=workspace, user=owner, role=Role.DEVELOPER)
    quotas = {}
    for name, config in clusters.items():
        cluster = Cluster.objects.create(
            slug=name, name=name, backend="slurm", config=config, admission=Admission.ENGINE
        )
        reconcile.take_inventory(cluster.pk)
        quotas[name] = Quota.objects.create(
            workspace=workspace, cluster=cluster, slug=name, name=name, most_pending=10**6
        )
    return owner, quotas


def accept(owner: User, quota: Quota, count: int) -> None:
    """Job files, as people submit them."""
    role = {"name": "worker", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 64, "command": "true"}
    text = json.dumps({"jobName": "bench", "image": "any", "taskRoles": [role]})
    parsed = dialects.get("openpai-v1").parse(Document(text))
    for _each in range(count):
        store(owner, Document("{}", "openpai-v1").with_parsed(parsed), quota)


def main() -> None:
    """Do as each line says."""
    call_command("migrate", verbosity=0)
    owner, quotas = lay_out(json.loads(sys.argv[1]))
    for line in sys.stdin:
        name, count = line.split()
        accept(owner, quotas[name], int(count))
        noted = Attempt.objects.exclude(handle="").count()
        began = time.perf_counter()
        with patch.object(reconcile, "backend_for", backend_for):
            reconcile.drain(quotas[name].cluster_id)
        took = time.perf_counter() - began
        print(json.dumps({"s": took, "sent": Attempt.objects.exclude(handle="").count() - noted}), flush=True)


if __name__ == "__main__":
    main()
