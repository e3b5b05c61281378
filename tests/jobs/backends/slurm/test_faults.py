"""What goes wrong at Slurm while jobs are on their way."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from jobs.backends.base import Handle, NotSubmitted, Observation, Refused, Unknown
from jobs.backends.slurm.backend import SlurmBackend
from jobs.backends.slurm.client.programs import Programs
from jobs.backends.slurm.client.rest.client import RestAnswer, RestClient
from jobs.backends.slurm.client.rest.controller import RestController
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.handles import SlurmJob
from jobs.backends.slurm.script.job_script import MAIN_SCRIPT
from jobs.backends.slurm.status import recovery
from jobs.spec import NodeChoice
from jobs.states import ReasonCode, State
from tests.jobs.backends.benches import log_of, role, wait_until_over
from tests.jobs.backends.slurm_bench import SlurmBench, by_rest
from tests.slurm import Slurm
from tests.waiting import wait_for


@contextmanager
def forgets(bench: SlurmBench, copy: Path, until: Callable[[], object] = lambda: True) -> Iterator[None]:
    """A controller that crashes at the end of the block and comes back with what it knew at its beginning."""
    bench.slurm.wait_until_saved()
    state = bench.slurm.base / "state"
    bench.copy_state(copy)
    yield
    bench.slurm.kill("slurmctld")
    shutil.rmtree(state)
    shutil.copytree(copy, state)
    wait_for(until, 60)
    bench.slurm.start_controller()


@pytest.fixture
def drained(on_slurm: SlurmBench) -> Iterator[None]:
    """Nodes that Slurm may drain."""
    yield
    for node in ("cpu1", "cpu2"):
        with suppress(subprocess.CalledProcessError):  # it did not
            on_slurm.slurm.call("scontrol", "update", f"NodeName={node}", "State=RESUME")


@pytest.mark.usefixtures("drained")
def test_job_started_again_by_slurm_on_its_node_runs_once(
    on_slurm: SlurmBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "SETTLES_S", 1)
    backend, slurm = SlurmBackend(on_slurm.config), on_slurm.slurm
    go = tmp_path / "go"
    ended, cut = (
        backend.submit(on_slurm.submission(role(command, nodes=NodeChoice(only=(node,)))))
        for node, command in (
            ("cpu1", f"echo once; until [ -e {go} ]; do sleep 0.1; done; exit 5"),
            ("cpu2", "echo once; sleep 300"),
        )
    )
    numbers = [str(SlurmJob.of(handle).number) for handle in (ended, cut)]
    begins_at = time.time() + 5
    for number in numbers:
        slurm.call("scontrol", "update", f"JobId={number}", "StartTime=now+5")
    backend.release([ended, cut])

    def has_ended() -> bool:
        go.touch()
        end = on_slurm.attempt(ended) / "run-1" / "ends" / "worker-0"
        return end.exists() and time.time() > begins_at + 1

    def were_refused() -> bool:
        """By the node that still had it, or by its own script where the node had been told to end it."""
        told = slurm.call("squeue", "--noheader", f"--jobs={','.join(numbers)}", "--format=%r").splitlines()
        return set(told) <= {recovery.LAUNCH_FAILED}

    with forgets(on_slurm, tmp_path / "state", has_ended):
        for number in numbers:
            with suppress(subprocess.CalledProcessError):  # that one has begun already
                slurm.call("scontrol", "update", f"JobId={number}", "StartTime=now")
        wait_for(lambda: log_of(backend, ended) and log_of(backend, cut), 60)
    wait_for(were_refused, 60)
    backend.observe([ended, cut])
    for number in numbers:
        with suppress(subprocess.CalledProcessError):  # that one is over
            slurm.call("scontrol", "release", number)
    assert wait_until_over(backend, ended).reason.code is ReasonCode.EXIT_CODE
    assert wait_until_over(backend, cut).reason.code is ReasonCode.NODE_LOST
    assert [log_of(backend, each) for each in (ended, cut)] == ["once\n"] * 2
    wait_for(lambda: not set(numbers) & set(on_slurm.live()), 60)


def state_of(backend: SlurmBackend, handle: Handle) -> State:
    seen = backend.observe([handle])[handle]
    assert isinstance(seen, Observation)
    return seen.state


def test_job_forgotten_by_slurm_is_submitted_again(on_slurm: SlurmBench, tmp_path: Path) -> None:
    backend = SlurmBackend(on_slurm.config)
    with forgets(on_slurm, tmp_path / "state"):
        handle = backend.submit(on_slurm.submission(role("echo once")))
        stopped = backend.submit(on_slurm.submission(role("echo never")))
        backend.stop(stopped, grace_s=0, signal="KILL")
    assert state_of(backend, handle) is State.PENDING
    assert wait_until_over(backend, handle).state is State.SUCCEEDED
    assert log_of(backend, handle) == "once\n"
    assert log_of(backend, stopped) == ""


def test_long_waiting_job_lost_by_slurm_is_not_resubmitted(
    on_slurm: SlurmBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "SAVED_S", 0)
    backend = SlurmBackend(on_slurm.config)
    with forgets(on_slurm, tmp_path / "state"):
        handle = backend.submit(on_slurm.submission(role("echo never")))
        assert state_of(backend, handle) is State.PENDING
    assert not isinstance(backend.observe([handle])[handle], Observation)


def test_late_submit_reply_creates_no_second_job(on_slurm: SlurmBench, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("squeue", "scontrol", "scancel"):
        (programs / name).symlink_to(f"/usr/bin/{name}")
    slow = programs / "sbatch"
    slow.write_text('#!/bin/sh\n/usr/bin/sbatch "$@"; exec sleep 60\n')
    slow.chmod(0o755)
    late = SlurmBackend(replace(on_slurm.config, programs=str(programs), timeout_s=2))
    submission = on_slurm.submission(role("echo once"))
    with pytest.raises(Unknown):
        late.submit(submission)
    backend = on_slurm.backend
    assert len(backend.find([submission.key])[submission.key]) == 1
    handle = backend.submit(submission)
    assert [handle] == list(backend.find([submission.key])[submission.key])
    assert wait_until_over(backend, handle).state is State.SUCCEEDED
    assert log_of(backend, handle) == "once\n"


@pytest.mark.parametrize("way", ["commands", "rest"])
def test_reused_number_of_forgotten_job_leaves_other_job_alone(
    way: str, slurm: Slurm, tmp_path: Path
) -> None:
    bench = SlurmBench(tmp_path, slurm, by_rest(slurm) if way == "rest" else {})
    backend = SlurmBackend(bench.config)
    other = backend.submit(bench.submission(role("sleep 600")))
    mine = backend.submit(bench.submission(role("echo mine")))
    forgotten = SlurmJob(SlurmJob.of(other).number, SlurmJob.of(mine).key).handle
    backend.release([forgotten])
    assert bench.live()[str(SlurmJob.of(other).number)] == SlurmJob.of(other).key
    assert is_held(backend, other)
    backend.stop(forgotten, grace_s=0, signal="KILL")
    assert is_held(backend, other)
    (bench.attempt(mine) / "stop").write_text("KILL 0 1.0\n")
    backend.stop(forgotten, grace_s=0, signal="KILL")
    assert is_held(backend, other)
    backend.release([other, mine])
    assert not is_held(backend, other)
    bench.close()


def is_held(backend: SlurmBackend, handle: Handle) -> bool:
    seen = backend.observe([handle])[handle]
    assert isinstance(seen, Observation)
    assert seen.state in (State.PENDING, State.RUNNING)
    return seen.held


@pytest.mark.parametrize(
    ("said", "means"),
    [
        ("Unable to contact slurm controller (connect failure)", NotSubmitted),
        ("Unable to contact slurm controller (receive failure)", Unknown),
        ("Message receive failure", Unknown),
        ("I/O error writing script/environment to file", NotSubmitted),
        ("Invalid authentication credential", NotSubmitted),
        ("Requested node configuration is not available", Refused),
    ],
)
def test_controller_trouble_is_never_reported_as_refusal(
    said: str, means: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sbatch = tmp_path / "sbatch"
    sbatch.write_text(f"#!/bin/sh\necho 'sbatch: error: Batch job submission failed: {said}' >&2\nexit 1\n")
    sbatch.chmod(0o755)
    with pytest.raises(means):
        Programs(SlurmConfig(root=tmp_path, programs=str(tmp_path))).submit("key", "#!/bin/sh\n")
    answer = RestAnswer(500, {"errors": [{"error": said, "error_code": 2000}]})
    monkeypatch.setattr(RestClient, "version", Mock(return_value=38))
    monkeypatch.setattr(RestClient, "ask", Mock(return_value=answer))
    with pytest.raises(means):
        RestController(SlurmConfig(root=tmp_path, way="rest", url="http://localhost")).submit(
            "key", "#!/bin/sh\ntrue\n"
        )


@pytest.mark.parametrize(("begun", "said"), [("", "again\n0\n"), ("w-0", "1\n")])
def test_srun_without_controller_is_retried_unless_step_began(begun: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "work" / begun).mkdir(parents=True)
    away = "Unable to confirm allocation for job 7: Unable to contact slurm controller (connect failure)"
    lines = f"""{MAIN_SCRIPT}
        run={tmp_path} folder={tmp_path} names=(w) told=('') commands=(true)
        srun() {{
          ! mkdir "$run/tried" 2>/dev/null || {{ echo 'srun: error: {away}' >&2; return 1; }}
          echo again
        }}
        run_step 0 ''
        echo "$code"
    """
    with (tmp_path / "errors").open("w") as errors:
        done = subprocess.run(
            ["bash", "-c", lines], stdout=subprocess.PIPE, stderr=errors, text=True, check=True
        )
    assert done.stdout == said


@pytest.mark.parametrize("why", ["Job is pending execution", "Invalid job id specified"])
def test_script_forgotten_by_slurm_writes_rewound_mark(why: str, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    lines = f"""{MAIN_SCRIPT}
        run={tmp_path} folder={tmp_path} names=(w) told=('') commands=(true)
        srun() {{ echo 'srun: error: Unable to confirm allocation for job 7: {why}' >&2; return 1; }}
        run_step 0 ''
    """
    with (tmp_path / "errors").open("w") as errors:
        subprocess.run(["bash", "-c", lines], stderr=errors, check=False)
    assert (tmp_path / "rewound").exists()


@pytest.mark.parametrize(("left", "code"), [("", 5), ("rewound", 1), ("run-2", 1)])
def test_job_start_forgotten_by_slurm_is_not_repeated(left: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "run-1").mkdir()
    (tmp_path / left).mkdir(exist_ok=True)
    lines = f"{MAIN_SCRIPT}\nfolder={tmp_path}\nwrite_hosts() {{ exit 5; }}\nbegin\n"
    numbers = {"SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": "1"}
    done = subprocess.run(["bash", "-c", lines], env={**os.environ, **numbers}, check=False)
    assert done.returncode == code, "it gets as far as its folders where nothing is left"
    assert (tmp_path / "run-2").exists() is (left != "rewound")
    assert (tmp_path / "rewound").exists() is bool(left)


def test_job_with_unknown_user_name_is_not_attributed_to_console(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = SlurmConfig(root=tmp_path, way="rest", url="http://localhost", identity="jwt", user="console")
    told = [{"job_id": 7 + at, "name": "x-job9-1", "job_state": "PENDING", "user_id": 900} for at in (0, 1)]
    told[0]["user_name"], told[1]["user_name"] = "console", ""
    monkeypatch.setattr(RestClient, "version", Mock(return_value=38))
    monkeypatch.setattr(RestClient, "ask", Mock(return_value=RestAnswer(200, {"jobs": told})))
    assert [(each.number, each.user) for each in RestController(config).list_jobs(["x-job9-1"])] == [
        (7, ""),
        (8, "900"),
    ]
