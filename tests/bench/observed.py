"""`python -m tests.bench.observed N`: a console with N live jobs, before an engine in memory.

Prints JSON: CPU seconds of an observation that changes nothing, and of one that ends every hundredth.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Final
from unittest.mock import patch

import django

from tests.bench.slurm import measure_cpu

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
django.setup()

from django.core.management import call_command  # noqa: E402  # settings come first

import console.celery  # noqa: E402, F401  # settings come first; kicks go by it
from jobs import dialects  # noqa: E402
from jobs.dialects.document import Document  # noqa: E402
from jobs.models import Job  # noqa: E402
from jobs.scheduling import reconcile  # noqa: E402
from jobs.states import State  # noqa: E402
from jobs.submission import store  # noqa: E402
from quotas.models import Admission, Cluster, Membership, Quota, Role, User, Workspace  # noqa: E402
from tests.jobs.engine import MemoryEngine  # noqa: E402
from tests.scenes import job_file  # noqa: E402

ONE_OF: Final = 100
"""Of so many jobs one ends between two observations."""


def main() -> None:
    """Submit all, and measure two observations."""
    call_command("migrate", verbosity=0)
    engine = MemoryEngine(has_scheduler=True)
    with patch.object(reconcile, "backend_for", lambda _cluster: engine):
        cluster_id = _submit_all(int(sys.argv[1]))
        for handle in engine.jobs:
            engine.run(handle)
        reconcile.observe(cluster_id)
        assert Job.objects.filter(state=State.RUNNING).count() == len(engine.jobs)
        listings = engine.listings
        same = measure_cpu(lambda: reconcile.observe(cluster_id))
        assert engine.listings == listings + 1
        for handle in list(engine.jobs)[::ONE_OF]:
            engine.succeed(handle)
        some = measure_cpu(lambda: reconcile.observe(cluster_id))
    print(json.dumps({"same_s": same, "some_s": some}))


def _submit_all(count: int) -> int:
    """Return the cluster to which so many jobs were handed over."""
    owner = User.objects.create_user("bench")
    workspace = Workspace.objects.create(slug="bench", name="Bench")
    Membership.objects.create(workspace=workspace, user=owner, role=Role.DEVELOPER)
    cluster = Cluster.objects.create(
        slug="memory", name="Memory", backend="slurm", admission=Admission.ENGINE
    )
    reconcile.take_inventory(cluster.pk)
    quota = Quota.objects.create(
        workspace=workspace, cluster=cluster, slug="bench", name="Bench", most_pending=10**6
    )
    parsed = dialects.get("openpai-v1").parse(Document(job_file("bench")))
    for _each in range(count):
        store(owner, Document("{}", "openpai-v1").with_parsed(parsed), quota)
    reconcile.drain(cluster.pk)
    return cluster.pk


if __name__ == "__main__":
    main()
