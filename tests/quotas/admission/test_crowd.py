"""Five processes at once on one PostgreSQL: what holds for one pass holds for all of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from console.home import CHECKOUT
from tests import postgres, prepared

pytestmark = pytest.mark.postgres

PROCESSES = 5
STEPS = 40

PREPARE = """
import django; django.setup()
from quotas.models import *
user = User.objects.create_superuser("crowd")
cluster = Cluster.objects.create(slug="c", name="C", backend="none")
for name in ("n1", "n2"):
    Node.objects.create(cluster=cluster, name=name, cpu_milli=32000, memory_mib=65536, gpus={"A100": 4})
workspaces = [Workspace.objects.create(slug=slug, name=slug) for slug in ("one", "two")]
top = Quota(workspace=workspaces[0], cluster=cluster, slug="top", name="top", gpus=6, accepts_jobs=False)
top.save()
for workspace in workspaces:
    Membership.objects.create(workspace=workspace, user=user)
    Quota.objects.create(workspace=workspace, cluster=cluster, slug="q", name="q", gpus=4, parent=top)
"""

JUDGE = """
import django; django.setup()
from django.db.models import Count
from jobs.models import Attempt, Job
from quotas.models import Request, Reservation
live = set(Job.objects.filter(state="SUBMITTING").values_list("attempts__key", flat=True))
held = set(Reservation.objects.filter(active=True).values_list("request__holder", flat=True))
assert held <= live, held - live
assert Reservation.objects.filter(active=True).count() == Job.objects.filter(state="SUBMITTING").count()
waiting = Request.objects.filter(state="waiting").count()
assert waiting == Job.objects.filter(state="QUEUED").count()
print(Job.objects.count(), Reservation.objects.count(), Reservation.objects.filter(borrowed=True).count(),
      Attempt.objects.filter(end_kind="preemption").count())
"""


@pytest.fixture
def database() -> Iterator[str]:
    """A database with all tables, on the server that the tests run on or on one of our own."""
    given = os.environ.get("DATABASE_URL", "")
    programs = postgres.find_programs()
    if given:
        url = postgres.fresh_database(given, f"crowd_{os.getpid()}", prepared.template(given))
        yield url
        postgres.drop_database(url)
    elif programs is None:
        pytest.skip("there is neither DATABASE_URL nor a PostgreSQL server to start")
    else:
        with postgres.server(programs) as url:
            yield postgres.fresh_database(url, "crowd", prepared.template(url))


def python(database: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        env={**os.environ, "DATABASE_URL": database, "REDIS_URL": "redis://127.0.0.1:1/0"},
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err[-3000:]
    return out


def test_concurrent_processes_never_exceed_a_limit(database: str) -> None:
    finished(python(database, "-c", PREPARE))
    crowd = [
        python(database, "-m", "tests.quotas.admission.crowd", str(seed), str(STEPS))
        for seed in range(PROCESSES)
    ]
    for process in crowd:
        finished(process)
    jobs, reserved, borrowed, _taken = map(int, finished(python(database, "-c", JUDGE)).split())
    assert jobs > 20
    assert reserved > 20
    assert borrowed > 0
