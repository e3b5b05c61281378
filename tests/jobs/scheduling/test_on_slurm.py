"""A console with a Slurm cluster: job files submitted as people submit them, and followed to their end."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.conf import settings as console

from jobs import dialects, submission
from jobs.dialects.base import Parsed
from jobs.dialects.document import Document
from jobs.logs import log_store
from jobs.models import Attempt, Job, LogStream, Replica
from jobs.scheduling import reconcile
from jobs.spec import FaultTolerance, JobSpec, Resources, RoleSpec
from jobs.states import LIVE, TERMINAL, ReasonCode, State
from jobs.submission.sweeps import arrays, commands
from quotas.models import Admission, Cluster, Membership, Node, Quota, Request, Role, User, Workspace
from tests.arrays import SCRIPT, most_at_a_time
from tests.jobs.backends.slurm_bench import TOKEN_COMMAND, by_rest
from tests.slurm import Slurm
from tests.waiting import wait_for

pytestmark = [pytest.mark.django_db, pytest.mark.once]

SEEDS = Path(__file__).parents[2] / "data" / "seeds"

THREE_ROLES = {
    "jobName": "roles",
    "image": "registry.example.org/tensorflow:1.8",
    "taskRoles": [
        {
            "name": name,
            "taskNumber": count,
            "cpuNumber": 1,
            "memoryMB": 64,
            "command": "echo $PAI_TASK_ROLE_NAME $RANK of $WORLD_SIZE",
        }
        for name, count in (("PS", 1), ("Chief", 1), ("Worker", 2))
    ],
}


BOTH_WAYS = pytest.mark.parametrize("way", ["commands", "rest"])


@pytest.fixture
def way() -> str:
    """How Slurm is asked."""
    return "commands"


@pytest.fixture
def quota(slurm: Slurm, way: str, settings: LazySettings) -> Iterator[Quota]:
    """Of a person in a workspace, on a cluster that the engine schedules."""
    config = {"configuration": str(slurm.configuration), "allow_plain": True}
    config |= by_rest(slurm) if way == "rest" else {}
    settings.CONSOLE_SLURM_TOKEN_COMMAND = TOKEN_COMMAND
    cluster = Cluster.objects.create(
        slug="hpc", name="HPC", backend="slurm", config=config, admission=Admission.ENGINE
    )
    owner = User.objects.create_user("alice")
    workspace = Workspace.objects.create(slug="vision", name="Vision")
    Membership.objects.create(workspace=workspace, user=owner, role=Role.DEVELOPER)
    (Path(console.CONSOLE_HOME) / "jobs").mkdir(mode=0o700, exist_ok=True)
    reconcile.take_inventory(cluster.pk)
    yield Quota.objects.create(workspace=workspace, cluster=cluster, slug="all", name="All")
    wait_for(slurm.ready)


def finished(quota: Quota, text: str) -> Job:
    """The job of a file, submitted and followed to its end."""
    parsed = dialects.get("openpai-v1").parse(Document(text))
    job = submission.store(
        User.objects.get(username="alice"), Document("{}", "openpai-v1").with_parsed(parsed), quota
    )
    reconcile.drain(quota.cluster_id)

    def over() -> bool:
        reconcile.observe(quota.cluster_id)
        job.refresh_from_db()
        return State(job.state) in TERMINAL

    wait_for(over, interval=0.2)
    return job


def output(job: Job, role: str) -> str:
    """What the first replica of a role wrote, read where it lies."""
    stream = LogStream.objects.get(attempt__job=job, role=role, index=0)
    return log_store.read(stream, 0, 1 << 20).data.decode()


def test_slurm_inventory_lists_nodes_and_gpus(quota: Quota) -> None:
    nodes = {node.name: node.gpus for node in Node.objects.filter(cluster=quota.cluster)}
    assert set(nodes) == {"cpu1", "cpu2", "gpu1", "gpu2"}
    assert [sum(gpus.values()) for gpus in nodes.values()] == [0, 0, 4, 4]


@BOTH_WAYS
def test_slurm_runs_helloworld_of_scm_page(quota: Quota) -> None:
    value: dict[str, Any] = json.loads((SEEDS / "helloworld.json").read_text())
    value["taskRoles"][0]["gpuType"] = "titan"
    value["taskRoles"][0]["command"] = "echo Hello, $CUDA_VISIBLE_DEVICES"
    value["gpuType"] = "titan"
    job = finished(quota, json.dumps(value))
    assert (job.state, job.reason_code) == (State.SUCCEEDED, "completed")
    assert output(job, "task_1") == "Hello, 0\n"
    replica = Replica.objects.get(attempt__job=job)
    assert (replica.node, replica.exit_code, replica.image_used) == ("gpu2", 0, False)


@BOTH_WAYS
def test_slurm_runs_job_of_three_roles(quota: Quota) -> None:
    job = finished(quota, json.dumps(THREE_ROLES))
    assert job.state == State.SUCCEEDED
    assert [output(job, role) for role in ("PS", "Chief", "Worker")] == [
        "PS 1 of 4\n",
        "Chief 0 of 4\n",
        "Worker 2 of 4\n",
    ]


def test_slurm_job_release_missed_by_worker_is_made_at_next_poll(
    quota: Quota, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconcile, "release", lambda *_: None)
    job = finished(quota, json.dumps(THREE_ROLES))
    assert job.state == State.SUCCEEDED
    assert Attempt.objects.get(job=job).number == 1


def test_slurm_array_runs_as_separate_jobs_within_its_limit(quota: Quota, slurm: Slurm) -> None:
    asked = commands.SweepRequest(Document(f"{SCRIPT}echo $SLURM_JOB_ID\n"))
    sweep, _before = commands.submit(User.objects.get(username="alice"), asked)

    def over() -> bool:
        reconcile.drain(quota.cluster_id)
        reconcile.observe(quota.cluster_id)
        states = [State(run.job.state) for run in commands.latest(sweep)]
        assert len([state for state in states if state in LIVE]) <= sweep.at_once == 2
        return all(state in TERMINAL for state in states)

    wait_for(over, timeout=240, interval=0.2)
    runs = commands.latest(sweep)
    assert [run.job.state for run in runs] == [State.SUCCEEDED] * 6
    written = [output(run.job, "main") for run in runs]
    number = str(arrays.number_of(sweep.public_id))
    assert [log.splitlines()[0] for log in written] == [
        f"task {index} of 6 of {number}" for index in range(6)
    ]
    assert most_at_a_time(written) <= 2
    assert len({log.splitlines()[3] for log in written}) == 6, "each is a job of Slurm's of its own"
    with pytest.raises(subprocess.CalledProcessError):
        slurm.call("scontrol", "show", "job", number)


def test_slurm_logs_are_read_only_inside_shared_folder(quota: Quota, settings: Any, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    settings.CONSOLE_SLURM_FOLDER = str(shared)
    job = finished(quota, json.dumps(THREE_ROLES))
    stream = LogStream.objects.get(attempt__job=job, role="Chief", index=0)
    assert stream.live_path.startswith(f"{shared}/{job.public_id}/1/")
    assert output(job, "Chief") == "Chief 0 of 4\n"
    (tmp_path / "secret").write_text("secret")
    for way_out in (f"{shared}/../secret", str(tmp_path / "secret"), str(shared)):
        with pytest.raises(log_store.Unsafe), log_store.open_live(way_out):
            pass


LOST_ONCE = """\
[ -z "$RESUME_FROM" ] || { echo "from $(cat "$RESUME_FROM")"; exit 0; }
echo 20 >"$CHECKPOINT_DIR/step.tmp" && mv "$CHECKPOINT_DIR/step.tmp" "$CHECKPOINT_DIR/step-20"
[ "$RANK" = 0 ] || kill -KILL $$
sleep 60
"""


def test_slurm_job_that_lost_a_rank_resumes_from_its_checkpoint(quota: Quota) -> None:
    size = Resources(cpu_milli=1000, memory_mib=64)
    spec = JobSpec(
        name="train",
        roles=(RoleSpec(name="worker", replicas=2, command=LOST_ONCE, resources=size),),
        grace_s=1,
        fault_tolerance=FaultTolerance(enabled=True, arguments="--enable-job-restart=True"),
    )
    parsed = Document("{}", "openpai-v1").with_parsed(Parsed(spec, text="{}"))
    job = submission.store(User.objects.get(username="alice"), parsed, quota)

    def over() -> bool:
        Request.objects.update(not_before=None)
        reconcile.drain(quota.cluster_id)
        reconcile.observe(quota.cluster_id)
        job.refresh_from_db()
        return State(job.state) in TERMINAL

    wait_for(over, 90, interval=0.2)
    assert (job.state, job.attempt_number) == (State.SUCCEEDED, 2)
    first, second = Attempt.objects.filter(job=job).order_by("number")
    assert (first.fault or {})["code"] == ReasonCode.SIGNALLED
    assert (second.resumed_from, second.checkpoint_at is not None) == ("step-20", True)
    stream = LogStream.objects.get(attempt=second, role="worker", index=1)
    assert log_store.read(stream, 0, 1 << 20).data == b"from 20\n"
