"""Many jobs while everything between the console and Slurm breaks: none lost, none run twice.

The judge is a file to which each start of an attempt appends its name.  What Slurm ended because it had
forgotten that it had started it is told so, and begins again as another attempt.  SLURM_STORM is how many.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from jobs import dialects, reconcile, services
from jobs.models import Attempt, Job
from jobs.states import TERMINAL, State
from quotas.models import Admission, Cluster, Membership, Quota, Role, User, Workspace
from tests.slurm import Slurm
from tests.waiting import wait_for

pytestmark = pytest.mark.django_db

JOBS = int(os.environ.get("SLURM_STORM", "60"))
PATIENCE_S = int(os.environ.get("STORM_PATIENCE", 120 + 2 * JOBS))
LATE = """\
#!/bin/sh
if mv {late} {late}.taken 2>/dev/null; then /usr/bin/sbatch "$@"; exec sleep 60; fi
exec /usr/bin/sbatch "$@"
"""


@dataclass
class Storm:
    """A console beside a Slurm that a test may hurt."""

    slurm: Slurm
    quota: Quota
    folder: Path

    @property
    def judge(self) -> Path:
        return self.folder / "judge"

    def submit(self, count: int) -> None:
        """Job files, of which every fifth fails."""
        parser = dialects.get("openpai-v1")
        owner = User.objects.get(username="alice")
        for _ in range(count):
            name = f"job-{Job.objects.count()}"
            code = 3 if Job.objects.count() % 5 == 4 else 0
            command = f"echo {name} $APP_ID >>{self.judge}; sleep 0.3; exit {code}"
            role = {"name": "w", "taskNumber": 1, "cpuNumber": 4, "memoryMB": 64, "command": command}
            text = json.dumps({"jobName": name, "image": "any", "taskRoles": [role]})
            services.store(owner, "openpai-v1", parser.parse(text), self.quota)

    def step(self) -> None:
        """What workers do every two seconds."""
        reconcile.drain(self.quota.cluster_id)
        reconcile.observe(self.quota.cluster_id)

    def reply_late(self) -> None:
        """The next sbatch is accepted, and its reply is lost."""
        (self.folder / "late").touch()

    def over(self) -> bool:
        self.step()
        return not Job.objects.exclude(state__in=[state.value for state in TERMINAL]).exists()


@pytest.fixture
def storm(slurm: Slurm, tmp_path: Path, settings: object) -> Iterator[Storm]:
    programs, shared = tmp_path / "bin", tmp_path / "jobs"
    programs.mkdir()
    shared.mkdir()
    for name in ("squeue", "scontrol", "scancel"):
        (programs / name).symlink_to(f"/usr/bin/{name}")
    (programs / "sbatch").write_text(LATE.format(late=tmp_path / "late"))
    (programs / "sbatch").chmod(0o755)
    settings.CONSOLE_SLURM_FOLDER = str(shared)  # type: ignore[attr-defined]
    config = {
        "configuration": str(slurm.configuration),
        "programs": str(programs),
        "allow_plain": True,
        "timeout_s": 3,
    }
    cluster = Cluster.objects.create(
        slug="hpc", name="HPC", backend="slurm", config=config, admission=Admission.ENGINE
    )
    owner = User.objects.create_user("alice")
    workspace = Workspace.objects.create(slug="vision", name="Vision")
    Membership.objects.create(workspace=workspace, user=owner, role=Role.DEVELOPER)
    reconcile.take_inventory(cluster.pk)
    quota = Quota.objects.create(workspace=workspace, cluster=cluster, slug="all", name="All")
    yield Storm(slurm, quota, tmp_path)
    slurm.call("scancel", "--quiet", f"--user={os.geteuid()}")
    wait_for(slurm.ready, 60)


def test_none_is_lost_and_none_runs_twice(storm: Storm) -> None:
    slurm = storm.slurm
    storm.submit(JOBS // 3)
    storm.reply_late()
    storm.step()
    slurm.kill("slurmctld")
    storm.submit(JOBS // 3)
    storm.step()
    slurm.start_controller()
    storm.step()
    storm.submit(JOBS - Job.objects.count())
    storm.reply_late()
    storm.step()
    slurm.kill("slurmctld")
    storm.step()
    slurm.start_controller()
    wait_for(storm.over, PATIENCE_S, interval=0.5)
    lines = storm.judge.read_text().splitlines()
    starts = Counter(line.split()[0] for line in lines)
    wrong = [(job.name, job.state, job.reason_code) for job in Job.objects.all() if not is_right(job)]
    assert not wrong
    assert set(starts) == set(Job.objects.values_list("name", flat=True))
    assert max(Counter(lines).values()) == 1, "no attempt began twice"
    again = Attempt.objects.filter(number__gt=1).values_list("job__name", flat=True)
    assert {name for name, count in starts.items() if count > 1} <= set(again)


def is_right(job: Job) -> bool:
    fails = int(job.name.removeprefix("job-")) % 5 == 4
    return job.state == (State.FAILED if fails else State.SUCCEEDED)
