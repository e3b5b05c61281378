"""Many jobs while everything between the console and Slurm breaks: none lost, none run twice.

Half of the jobs go by the command line and half by slurmrestd, to one Slurm.  The judge is a file to which
each replica appends the name of its attempt when it begins.  What Slurm ended because its controller had
crashed and no longer knew that it ran is told so, and follows as another attempt.

`make storm` runs it, with JOBS=60 for so many jobs.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from django.db.models import F

from jobs import dialects
from jobs.dialects.document import Document
from jobs.models import Attempt, Job
from jobs.scheduling import admission, reconcile
from jobs.states import TERMINAL, ReasonCode, State
from jobs.submission import store
from quotas.models import Admission, Cluster, Membership, Quota, Role, User, Workspace
from tests.jobs.backends.benches import Submitter, as_told, submitter
from tests.jobs.backends.slurm_bench import TOKEN_COMMAND, by_rest
from tests.slurm import Slurm
from tests.waiting import wait_for

pytestmark = pytest.mark.django_db

JOBS = int(os.environ.get("SLURM_STORM", "500"))
PATIENCE_S = 300 + 3 * JOBS
HELD = "launch failed requeued held"
LATE = """\
#!/bin/sh
if mv {late} {late}.taken.$$ 2>/dev/null; then /usr/bin/sbatch "$@" >/dev/null; exec sleep 60; fi
exec /usr/bin/sbatch "$@"
"""


@dataclass
class Storm:
    """A console beside a Slurm that a test may hurt."""

    slurm: Slurm
    folder: Path
    quotas: list[Quota]
    settings: dict[str, dict[str, object]]
    frozen: list[Submitter] = field(default_factory=list)

    @property
    def judge(self) -> Path:
        return self.folder / "judge"

    def begun(self) -> list[str]:
        """The attempts whose replica began, each time that it did."""
        return self.judge.read_text().splitlines() if self.judge.exists() else []

    def submit(self, count: int) -> None:
        """Job files, of which every fifth fails."""
        parser = dialects.get("openpai-v1")
        owner = User.objects.get(username="alice")
        for number in range(Job.objects.count(), Job.objects.count() + count):
            command = f"echo $APP_ID >>{self.judge}; sleep 0.{number % 10}; exit {3 if fails(number) else 0}"
            role = {"name": "w", "taskNumber": 1, "cpuNumber": 4, "memoryMB": 64, "command": command}
            text = json.dumps({"jobName": f"job-{number}", "image": "any", "taskRoles": [role]})
            store(
                owner,
                Document("{}", "openpai-v1").with_parsed(parser.parse(Document(text))),
                self.quotas[number % 2],
            )

    def release_held(self) -> None:
        """What an admin does where Slurm gave away a number that a node still had: both are held back.

        Jobs are let go that the console, too, shows as held: those that had begun it ends by itself.  What
        does not succeed, since Slurm has too much to do or went on meanwhile, is done later.
        """
        if "slurmctld" in self.slurm.running:
            with suppress(subprocess.SubprocessError):
                self._release_held()

    def _release_held(self) -> None:
        nodes = self.slurm.call("sinfo", "--noheader", "--Node", "--format=%N %E")
        for line in nodes.splitlines():
            node, _, reason = line.partition(" ")
            if "Duplicate jobid" in reason:
                self.slurm.call("scontrol", "update", f"NodeName={node}", "State=RESUME")
        shown = Job.objects.filter(reason_params__slurm=HELD)
        names = {attempt.key for attempt in Attempt.objects.filter(job__in=shown)}
        waiting = self.slurm.call("squeue", "--noheader", "--states=PENDING", "--format=%i %j %r")
        for line in waiting.splitlines():
            number, name, reason = line.split(" ", 2)
            if reason == HELD and name in names:
                self.slurm.call("scontrol", "release", number)
                self.slurm.call("scontrol", "update", f"JobId={number}", "StartTime=now")

    def step(self) -> None:
        """What workers do every two seconds."""
        self.release_held()
        for quota in self.quotas:
            reconcile.drain(quota.cluster_id)
            reconcile.observe(quota.cluster_id)

    def lose_a_reply(self) -> None:
        """The next sbatch is accepted, and nobody hears of it."""
        (self.folder / "late").touch()

    def freeze_a_worker(self, quota: Quota, point: str) -> None:
        """Another worker that takes the next job and is stopped on the way."""
        admission.admit(quota.cluster_id)
        attempt = Attempt.objects.filter(job__cluster_id=quota.cluster_id, lease_token="").order_by("id")[0]
        assert reconcile.take_leases([attempt.pk])
        submission = reconcile._submission(attempt)
        faults = self.folder / point
        faults.mkdir()
        (faults / point).write_text("STOP")
        told = {"slurm": self.settings[quota.cluster.slug], "submission": as_told(submission)}
        self.frozen.append(submitter(told, faults))
        wait_for(lambda: not (faults / point).exists(), 60)

    def runs(self, more: int) -> None:
        """Until so many more replicas have begun."""
        enough = min(len(self.begun()) + more, JOBS)
        wait_for(lambda: self.over() or len(self.begun()) >= enough, PATIENCE_S, interval=0.5)

    def crash(self) -> None:
        """End slurmctld while jobs run and wait that it has written down, and some that it has not.

        Not before the first are: it would give their numbers to others, whose nodes it then drains.
        """
        self.slurm.wait_until_saved()
        self.submit(4)
        self.step()
        self.slurm.kill("slurmctld")

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
    settings.CONSOLE_SLURM_TOKEN_COMMAND = TOKEN_COMMAND  # type: ignore[attr-defined]
    config = {
        "configuration": str(slurm.configuration),
        "programs": str(programs),
        "allow_plain": True,
        "timeout_s": 3,
    }
    owner = User.objects.create_user("alice")
    workspace = Workspace.objects.create(slug="vision", name="Vision")
    Membership.objects.create(workspace=workspace, user=owner, role=Role.DEVELOPER)
    quotas, told = [], {}
    for slug, more in (("lines", {}), ("rest", by_rest(slurm))):
        cluster = Cluster.objects.create(
            slug=slug, name=slug, backend="slurm", config={**config, **more}, admission=Admission.ENGINE
        )
        reconcile.take_inventory(cluster.pk)
        quotas.append(Quota.objects.create(workspace=workspace, cluster=cluster, slug=slug, name=slug))
        told[slug] = {**config, **more, "folder": str(shared), "token_command": TOKEN_COMMAND}
    made = Storm(slurm, tmp_path, quotas, told)
    yield made
    for each in made.frozen:
        each.end()
    slurm.call("scancel", "--quiet", f"--user={os.geteuid()}")
    wait_for(slurm.ready, PATIENCE_S)


@pytest.mark.timeout(1800)
def test_slurm_storm_loses_no_jobs_and_runs_none_twice(storm: Storm) -> None:
    slurm = storm.slurm
    by_line, by_rest = storm.quotas
    storm.submit(JOBS // 2)
    storm.freeze_a_worker(by_line, "slurm.accepted")
    storm.freeze_a_worker(by_rest, "slurm.before_sbatch")
    storm.lose_a_reply()
    storm.runs(JOBS // 8)
    storm.crash()
    storm.submit(JOBS // 8)
    storm.step()
    slurm.start_controller()
    storm.runs(JOBS // 8)
    slurm.kill("slurmrestd")
    storm.lose_a_reply()
    storm.crash()
    slurm.start_controller()
    slurm.start_rest()
    storm.frozen[0].thaw()
    storm.submit(JOBS - Job.objects.count())
    storm.runs(JOBS // 8)
    storm.frozen[1].thaw()
    wait_for(storm.over, PATIENCE_S, interval=0.5)
    assert not [(job.name, job.state, job.reason_code) for job in Job.objects.all() if not is_right(job)]
    begun = Counter(storm.begun())
    assert set(begun.values()) == {1}, "no attempt began twice"
    last = {attempt.key for attempt in Attempt.objects.filter(number=F("job__attempt_number"))}
    again = Attempt.objects.exclude(key__in=last)
    assert set(begun) == last | {attempt.key for attempt in again if attempt.key in begun}
    assert {attempt.reason_code for attempt in again} <= {ReasonCode.NODE_LOST}


def fails(number: int) -> bool:
    return number % 5 == 4


def is_right(job: Job) -> bool:
    number = int(job.name.removeprefix("job-"))
    return job.state == (State.FAILED if fails(number) else State.SUCCEEDED)
