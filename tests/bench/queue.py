"""`python -m tests.bench.queue N`: one pass over N waiting jobs in 200 quotas, in a console of its own.

Prints JSON: CPU seconds of the decision alone, and of a whole pass with its rows that starts nothing more.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from datetime import timedelta
from typing import Final

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
django.setup()

from django.core.management import call_command  # noqa: E402  # settings come first
from django.utils import timezone  # noqa: E402

from jobs.lifecycle.transitions import key_of  # noqa: E402
from jobs.models import Attempt, Job  # noqa: E402
from jobs.scheduling import admission as admitting  # noqa: E402
from quotas import admission  # noqa: E402
from quotas.admission import snapshot  # noqa: E402
from quotas.models import Cluster, Node, Quota, Request, User, Workspace  # noqa: E402

QUOTAS: Final = 200
WORKSPACES: Final = 40
NODES: Final = 200
SIZES: Final = ((1, 0), (1, 1), (1, 2), (1, 4), (1, 8), (2, 8), (4, 8), (8, 1))
"""Replicas, and GPUs of each."""


def lay_out() -> tuple[Cluster, list[Quota], User]:
    """A cluster of 200 nodes, and 200 quotas of 40 workspaces below one."""
    user = User.objects.create_user("bench")
    cluster = Cluster.objects.create(slug="bench", name="Bench", backend="none")
    Node.objects.bulk_create(
        Node(
            cluster=cluster,
            name=f"n{number:03}",
            cpu_milli=96_000,
            memory_mib=1024 * 1024,
            gpus={("A100", "H800")[number % 2]: 8},
        )
        for number in range(NODES)
    )
    spaces = [Workspace.objects.create(slug=f"w{each}", name=f"w{each}") for each in range(WORKSPACES)]
    top = Quota.objects.create(
        workspace=spaces[0], cluster=cluster, slug="top", name="top", accepts_jobs=False
    )
    quotas = Quota.objects.bulk_create(
        Quota(
            workspace=spaces[each % WORKSPACES],
            cluster=cluster,
            slug=f"q{each}",
            name=f"q{each}",
            parent=top,
            gpus=16,
            person_gpus=12,
        )
        for each in range(QUOTAS)
    )
    return cluster, quotas, user


def fill(cluster: Cluster, quotas: list[Quota], user: User, count: int) -> None:
    """Submit as many jobs as are missing until `count` wait."""
    chance = random.Random(count)
    missing = count - Request.objects.filter(state=Request.State.WAITING).count()
    jobs = Job.objects.bulk_create(
        Job(
            name="j",
            owner=user,
            cluster=cluster,
            quota=quota,
            workspace_id=quota.workspace_id,
            dialect="openpai-v1",
            priority=chance.randint(1, 9),
        )
        for quota in (chance.choice(quotas) for _each in range(missing))
    )
    Attempt.objects.bulk_create(Attempt(job=job, key=key_of(job.public_id, 1)) for job in jobs)
    Request.objects.bulk_create(_request(job, chance) for job in jobs)
    while admitting.admit(cluster.pk):
        pass


def _request(job: Job, chance: random.Random) -> Request:
    replicas, gpus = chance.choice(SIZES)
    each = {"cpu_milli": 2000 + 4000 * gpus, "memory_mib": 8192 * (gpus + 1)}
    kinds = {"gpus": {chance.choice(["A100", "H800"]): gpus}} if gpus else {"gpus": {}}
    return Request(
        holder=key_of(job.public_id, 1),
        cluster_id=job.cluster_id,
        quota_id=job.quota_id,
        owner_id=job.owner_id,
        parts=[[replicas, {**each, **kinds}]],
        priority=job.priority,
        declared_s=chance.choice([None, 3600, 36_000]),
        idle=chance.choice(["", "", "accept"]),
        since=timezone.now() - timedelta(seconds=chance.randint(0, 90_000)),
    )


def main() -> None:
    """Fill the cluster, then its queue, and measure the pass that finds nothing more to start."""
    call_command("migrate", verbosity=0)
    cluster, quotas, user = lay_out()
    for count in (1000, int(sys.argv[1]), int(sys.argv[1])):
        fill(cluster, quotas, user, count)
    now = snapshot.take(cluster)
    began = time.process_time()
    admission.decide(now)
    decided = time.process_time() - began
    began = time.process_time()
    admitting.admit(cluster.pk)
    passed = time.process_time() - began
    print(json.dumps({"waiting": len(now.waiting), "decision_s": decided, "pass_s": passed}))


if __name__ == "__main__":
    main()
