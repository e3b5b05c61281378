"""Faults that are injected into real jobs, on this machine and on Slurm: decided by the table, and survived.

All jobs of a test run side by side: most of the time they wait.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from jobs.models import Attempt, Job, Replica, SanityCheck
from jobs.spec import Check
from jobs.states import State
from tests.jobs.scheduling.fault_site import WITHIN_S, FaultSite, decisions, is_over, pauses, site

__all__ = ["site"]

pytestmark = [pytest.mark.django_db, pytest.mark.once]

STEPS: Final = 6
FAULT_AT: Final = 3
TRAIN: Final = """
import os, signal, sys, time
from pathlib import Path

fault, judge, rank = sys.argv[1], Path(sys.argv[2]), os.environ["RANK"]
saved = Path(os.environ["CHECKPOINT_DIR"])
resumed = os.environ.get("RESUME_FROM")
first = int(Path(resumed).read_text()) if resumed else 0
begun = sum(1 for each in judge.glob("begun-*") if each.name.endswith("-" + rank))
(judge / f"begun-{begun}-{rank}").touch()
LIBRARY = '''
def all_reduce(step):
    (judge / f"{begun}-{step}-{rank}").touch()
    while not all((judge / f"{begun}-{step}-{each}").exists() for each in "01"):
        time.sleep(0.05)
'''
exec(compile(LIBRARY, "/x/site-packages/torch/distributed/c10d.py", "exec"), globals())


def fail():
    while not (saved / f"step-{step}").exists():
        time.sleep(0.05)
    if fault == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif fault == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif fault == "disk":
        with open(judge / "small" / "shard", "wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 16))
    elif fault == "pattern":
        print("the reader lost its shard 7", flush=True)
        time.sleep(600)
    elif fault == "code":
        print("usage: train.py [-h] [--lr LR]", file=sys.stderr)
        print("train.py: error: unrecognized arguments: --learning-rate 1", file=sys.stderr)
        sys.exit(2)
    elif fault == "wait":
        while not (judge / "go").exists():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGKILL)
    elif fault == "loop":
        print(f"terminate called after throwing an instance of 'std::length_error' {begun}", flush=True)
        os.abort()


for step in range(first, STEPS):
    if rank == "1" and step == FAULT_AT and (not begun or fault == "loop"):
        fail()
    all_reduce(step)
    with open(judge / f"steps-{rank}", "a") as steps:
        print(step, file=steps)
    print(f"step {step}", flush=True)
    if rank == "0":
        (saved / "next.tmp").write_text(str(step + 1))
        (saved / "next.tmp").rename(saved / f"step-{step + 1}")
""".replace("STEPS", str(STEPS)).replace("FAULT_AT", str(FAULT_AT))
"""Two ranks in step; the first saves after each.  At its first try the second one meets the fault, once all
steps before are saved."""

RESTARTS: Final = "--enable-job-restart=True --max-num-of-job-restart=5"


@dataclass(frozen=True)
class Injection:
    """A fault, what the job says about faults, and what is decided of each failed attempt."""

    fault: str
    arguments: str
    decisions: Sequence[tuple[str, str, bool]]

    @property
    def is_survived(self) -> bool:
        return self.decisions[-1][2]


INJECTIONS: Final = (
    Injection("kill", RESTARTS, [("signalled", "restarts_left", True)]),
    Injection(
        "stop",
        f"{RESTARTS} --enable-log-hang-detection=True --log-hang-interval-in-seconds=8",
        [("hang", "restarts_left", True)],
    ),
    Injection("disk", RESTARTS, [("disk_full", "own_error", False)]),
    Injection(
        "pattern",
        "--max-num-of-unconditional-retry=5 --custom-log-patterns='lost its shard'",
        [("log_pattern", "restarts_left", True)],
    ),
    Injection("code", RESTARTS, [("arguments", "own_error", False)]),
    Injection(
        "loop",
        RESTARTS,
        [
            ("signalled", "restarts_left", True),
            ("signalled", "restarts_left", True),
            ("signalled", "same_error", False),
        ],
    ),
)


def train(site: FaultSite, name: str, fault: str, arguments: str) -> Job:
    """Submit a job that meets a fault, with a folder of the judge for it."""
    folder = site.judge / name
    folder.mkdir(exist_ok=True)
    folder.chmod(0o777)
    (site.judge / "train.py").write_text(TRAIN)
    return site.submit(name, f"exec python3 {site.judge}/train.py {fault} {folder}", arguments)


@pytest.fixture
def small_disk(site: FaultSite) -> Iterator[Path]:
    """A disk of 1 MiB, in the folder of the job that fills it."""
    folder = site.judge / "disk" / "small"
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=777", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)
    shutil.rmtree(folder.parent)


def lost_steps(site: FaultSite, job: Job) -> int:
    """Return how many steps the first rank made twice."""
    return len((site.judge / job.name / "steps-0").read_text().split()) - STEPS


@pytest.mark.usefixtures("small_disk")
def test_injected_faults_are_decided_by_the_table_and_survived(
    site: FaultSite, record_property: Callable[[str, object], None]
) -> None:
    jobs = {each.fault: train(site, each.fault, each.fault, each.arguments) for each in INJECTIONS}
    site.follow(list(jobs.values()), is_over)
    for each in INJECTIONS:
        job = jobs[each.fault]
        assert decisions(job) == each.decisions
        faults = Attempt.objects.filter(job=job, fault__isnull=False).values_list("fault", flat=True)
        assert {(fault or {})["index"] for fault in faults} == {1}, "whoever met it, not whoever waited"
        if not each.is_survived:
            assert job.state == State.FAILED
            continue
        assert (job.state, job.attempt_number) == (State.SUCCEEDED, 2)
        assert Attempt.objects.get(job=job, number=2).resumed_from == f"step-{FAULT_AT}"
        assert lost_steps(site, job) <= 1
        [pause] = pauses(job)
        assert pause <= WITHIN_S
        record_property(f"{each.fault} on {site.quota.cluster.backend}, s until it ran again", pause)


def test_job_on_a_node_that_is_taken_away_resumes_once_there_is_one(
    site: FaultSite, record_property: Callable[[str, object], None]
) -> None:
    job = train(site, "drain", "wait", "--enable-job-restart=True --max-num-of-job-restart=0")
    folder = site.judge / "drain"
    site.follow([job], lambda _job: (folder / f"0-{FAULT_AT}-0").exists())
    node = Replica.objects.get(attempt__job=job, index=1).node
    site.take_away(node)
    (folder / "go").touch()  # what runs there goes on, until it breaks
    site.follow([job], lambda job: job.attempt_number == 2)
    assert decisions(job) == [("node_drained", "platform", True)]
    assert (Attempt.objects.get(job=job, number=1).fault or {})["line"] == f"{node}: bad fan"
    if not site.slurm:
        site.look()
        assert Attempt.objects.get(job=job, number=2).submitted_at is None, "there is no other node"
        site.give_back(node)
    site.follow([job], is_over)
    assert job.state == State.SUCCEEDED
    nodes = set(Replica.objects.filter(attempt__job=job, attempt__number=2).values_list("node", flat=True))
    assert (node in nodes) is (site.slurm is None)
    assert Attempt.objects.get(job=job, number=2).resumed_from == f"step-{FAULT_AT}"
    assert lost_steps(site, job) <= 1
    [pause] = pauses(job)
    assert pause <= WITHIN_S
    record_property(f"drain on {site.quota.cluster.backend}, s until it ran again", pause)


LOST_GPU: Final = """\
#!/bin/sh
here=${SLURMD_NODENAME:-$(cat /proc/sys/kernel/random/uuid)}
[ -e FOLDER/lost ] || echo "$here" > FOLDER/lost
[ "$here" != "$(cat FOLDER/lost)" ] || { echo 'GPU is lost'; exit 15; }
echo 'NVIDIA A100, 0'
"""
"""A driver that has lost its GPU on the first node that asks; on a cluster of one node once."""


def test_node_that_fails_its_sanity_check_is_left_out_of_the_next_attempt(
    site: FaultSite, record_property: Callable[[str, object], None]
) -> None:
    program = site.judge / "nvidia-smi"
    program.write_text(LOST_GPU.replace("FOLDER", str(site.judge)))
    program.chmod(0o755)
    job = site.submit(
        "checked",
        f"echo started >> {site.judge}/started",
        "--enable-job-restart=True --max-num-of-job-restart=0",
        replicas=1,
        env={"PATH": f"{site.judge}:/usr/local/bin:/usr/bin:/bin", "PAI_TASK_GPU_NUM": "1"},
        sanity_check=Check(enabled=True, arguments="--sanity-check-timing=AfterJobFaultTolerant"),
    )
    site.follow([job], is_over)
    assert decisions(job) == [("sanity_check_failed", "platform", True)]
    assert (job.state, (site.judge / "started").read_text()) == (State.SUCCEEDED, "started\n")
    first, second = SanityCheck.objects.filter(attempt__job=job).order_by("attempt")
    bad, good = Replica.objects.filter(attempt__job=job).order_by("attempt").values_list("node", flat=True)
    assert (first.status, first.failed_nodes, second.status) == ("Failed", [bad], "Succeeded")
    assert (bad != good) is (site.slurm is not None), "a cluster of one node has no other"
    [pause] = pauses(job)
    assert pause <= WITHIN_S
    record_property(f"sanity check on {site.quota.cluster.backend}, s until it ran again", pause)
