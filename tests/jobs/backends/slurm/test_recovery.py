"""Jobs of which Slurm knows less than their own files say, after a crash of its controller."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.backends.base import Observation, Person, Submission
from jobs.backends.remote.records import read_record
from jobs.backends.slurm.client.listing import ListedJob
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.script import job_script
from jobs.backends.slurm.status import recovery, states
from jobs.backends.slurm.status.recovery import PendingActions
from jobs.spec import JobSpec
from jobs.states import ReasonCode, State
from tests.jobs.backends.benches import role

KEY = "console-job7-1"
RUNS = ListedJob(7, KEY, "RUNNING", "None", nodes="cpu1")
WAITS = ListedJob(7, KEY, "PENDING", "Priority")


class Files:
    """What an attempt of one replica wrote down."""

    def __init__(self, root: Path) -> None:
        self.root, self.folder = root, root / "job7" / "1"
        self.run = self.folder / "run-1"
        (self.run / "started").mkdir(parents=True)
        (self.run / "ends").mkdir()
        spec = JobSpec(name="bench", roles=(role(),))
        submission = Submission(key=KEY, job_id="job7", attempt=1, spec=spec, person=Person("alice", 7))
        (self.folder / "job.json").write_text(job_script.render_record(submission, SlurmConfig(root=root)))
        (self.folder / "claim").write_text("7\n")
        (self.run / "started" / "worker-0").write_text(f"cpu1 {time.time():.3f} 4711\n")

    def end(self, code: int, ago_s: float, how: str = "itself") -> None:
        (self.run / "ends" / "worker-0").write_text(f"{code} {time.time() - ago_s:.3f} {how}\n")
        (self.run / "end").write_text(f"{time.time() - ago_s:.3f}\n")
        os.utime(self.run / "end", (time.time() - ago_s,) * 2)

    def seen(self, listed: ListedJob, todo: PendingActions | None = None) -> Observation | None:
        kept = read_record(self.folder)
        assert kept is not None
        return recovery.observe_lost_state(self.folder, kept, listed, todo or PendingActions())

    def looked(self, listed: ListedJob, todo: PendingActions | None = None) -> tuple[State, ReasonCode]:
        """What the console is told, whoever knows it."""
        kept = read_record(self.folder)
        assert kept is not None
        seen = self.seen(listed, todo) or states.from_listed(self.folder, kept, listed)
        return seen.state, seen.reason.code


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def told(seen: Observation | None) -> tuple[State, ReasonCode] | None:
    return (seen.state, seen.reason.code) if seen is not None else None


def test_job_ended_but_running_in_slurm_is_read_from_its_files(files: Files) -> None:
    assert files.seen(RUNS) is None
    files.end(3, ago_s=0)
    assert files.seen(RUNS) is None, "Slurm may be about to say how it ended"
    files.end(3, ago_s=recovery.UNHEARD_S + 1)
    assert told(files.seen(RUNS)) == (State.FAILED, ReasonCode.EXIT_CODE)
    (files.folder / "run-2").mkdir()
    assert files.seen(RUNS) is None, "it was let run again since"


def test_ended_job_still_in_slurm_is_listed_as_overdue(files: Files) -> None:
    others = replace(RUNS, number=8, name="somebody's own")
    rows = [RUNS, others, replace(RUNS, number=9), replace(RUNS, state="PENDING")]
    assert list(recovery.overdue_jobs(files.root, rows, PendingActions())) == []
    files.end(0, ago_s=recovery.LEFT_S + 1)
    assert list(recovery.overdue_jobs(files.root, rows, PendingActions())) == [7], "9 is another of that name"


def test_waiting_job_with_earlier_start_is_read_from_files_and_cancelled(files: Files) -> None:
    early, todo = PendingActions(), PendingActions(asked_at=time.time() + 1)
    files.end(0, ago_s=1)
    assert told(files.seen(WAITS, early)) == (State.RUNNING, ReasonCode.RUNNING)
    assert early.cancel == [], "it may have begun after Slurm was asked"
    assert not (files.folder / "rewound").exists()
    assert told(files.seen(WAITS, todo)) == (State.SUCCEEDED, ReasonCode.COMPLETED)
    assert todo.cancel == [7]


def test_waiting_job_without_start_is_left_to_slurm(files: Files) -> None:
    assert files.seen(replace(WAITS, restarts=1)) is None


def test_job_ended_without_known_start_is_read_from_its_files(files: Files) -> None:
    cancelled = replace(WAITS, state="CANCELLED")
    files.end(3, ago_s=1)
    assert told(files.seen(cancelled)) == (State.FAILED, ReasonCode.EXIT_CODE)
    assert files.seen(replace(cancelled, nodes="cpu1")) is None, "somebody cancelled it"


@pytest.mark.parametrize("state", ["CANCELLED", "NODE_FAIL", "TIMEOUT"])
def test_job_ended_long_before_slurm_report_is_read_from_files(files: Files, state: str) -> None:
    over = replace(RUNS, state=state, ended_at=time.time())
    files.end(0, ago_s=recovery.UNHEARD_S - 1)
    assert files.seen(over) is None, "it may be that which ended it"
    files.end(0, ago_s=recovery.UNHEARD_S + 1)
    assert told(files.seen(over)) == (State.SUCCEEDED, ReasonCode.COMPLETED)
    (files.folder / "run-2").mkdir()
    assert files.seen(over) is None, "it was let run again since"


def test_job_begun_twice_stays_running_until_settled(files: Files) -> None:
    failed = replace(RUNS, state="FAILED", exit_code=1)
    (files.folder / "rewound").write_text(f"{time.time():.3f}\n")
    assert told(files.seen(failed)) == (State.RUNNING, ReasonCode.RUNNING)
    later = PendingActions(asked_at=time.time() + recovery.SETTLES_S + 1)
    assert files.seen(failed, later) is None
    files.end(0, ago_s=1)
    assert files.seen(failed) is None


def test_requeued_job_already_run_by_its_node_is_not_run_again(files: Files) -> None:
    held = replace(WAITS, reason=recovery.LAUNCH_FAILED, restarts=1)
    todo = PendingActions(asked_at=time.time() + 1)
    ending = replace(held, state="COMPLETING")
    seen = files.seen(ending)
    assert told(seen) == (State.RUNNING, ReasonCode.RUNNING)
    assert seen is not None
    assert seen.run == 1, "there never was a second"
    assert (files.folder / "rewound").exists(), "so that a second ends at once"
    assert told(files.seen(held, todo)) == (State.RUNNING, ReasonCode.RUNNING)
    assert todo.cancel == []
    files.end(3, ago_s=1)
    assert told(files.seen(ending)) == (State.RUNNING, ReasonCode.RUNNING), "it can't be cancelled yet"
    for waits in (held, replace(held, reason="Priority")):
        todo = PendingActions(asked_at=time.time() + 1)
        assert told(files.seen(waits, todo)) == (State.FAILED, ReasonCode.EXIT_CODE)
        assert todo.cancel == [7]
    cancelled = replace(held, state="CANCELLED", reason="None")
    assert told(files.seen(cancelled)) == (State.FAILED, ReasonCode.EXIT_CODE)


def test_requeued_job_ended_by_launch_failure_fails_as_node_lost(files: Files) -> None:
    held = replace(WAITS, reason=recovery.LAUNCH_FAILED, restarts=1)
    assert told(files.seen(held)) == (State.RUNNING, ReasonCode.RUNNING)
    later = PendingActions(asked_at=time.time() + recovery.SETTLES_S + 1)
    assert told(files.seen(held, later)) == (State.FAILED, ReasonCode.NODE_LOST)
    assert later.cancel == [7]
    refused = replace(held, state="FAILED", reason="NonZeroExitCode", nodes="cpu1", exit_code=1)
    assert told(files.seen(refused, later)) == (State.FAILED, ReasonCode.NODE_LOST), "let go all the same"


def test_requeued_job_is_left_to_slurm_as_next_run(files: Files) -> None:
    files.end(143, ago_s=1)
    assert files.seen(replace(WAITS, restarts=1)) is None
    held = replace(WAITS, restarts=2, reason=recovery.LAUNCH_FAILED)
    assert files.seen(held) is None, "it was the second that could not be started"
    assert not (files.folder / "rewound").exists()


@pytest.mark.parametrize(
    ("state", "means"), [("FAILED", ReasonCode.WRAPPER_LOST), ("COMPLETED", ReasonCode.NODE_LOST)]
)
def test_end_reported_only_by_slurm_fails_job_after_settling_time(
    files: Files, state: str, means: ReasonCode
) -> None:
    over = replace(RUNS, state=state, ended_at=time.time())
    later = PendingActions(asked_at=time.time() + recovery.SETTLES_S + 1)
    assert told(files.seen(over)) == (State.RUNNING, ReasonCode.RUNNING)
    assert files.looked(over, later) == (State.FAILED, means), "no script of ours ends well without a word"
    files.end(0, ago_s=0)
    assert files.looked(over) == (State.SUCCEEDED, ReasonCode.COMPLETED)


@pytest.mark.parametrize(
    ("state", "restarts", "means"),
    [
        ("FAILED", 0, ReasonCode.START_FAILED),
        ("COMPLETED", 0, ReasonCode.NODE_LOST),
        ("FAILED", 1, ReasonCode.NODE_LOST),
    ],
)
def test_unstarted_job_ended_by_slurm_fails_after_launch_time(
    files: Files, state: str, restarts: int, means: ReasonCode
) -> None:
    shutil.rmtree(files.run)
    over = replace(RUNS, state=state, ended_at=time.time(), restarts=restarts)
    later = PendingActions(asked_at=time.time() + recovery.LAUNCHES_S + 1)
    assert files.seen(replace(over, state="TIMEOUT")) is None, "Slurm says why"
    assert files.seen(replace(over, nodes="")) is None, "no node ever had it"
    assert told(files.seen(over)) == (State.PENDING, ReasonCode.STARTING)
    assert files.looked(over, later) == (State.FAILED, means)


def test_job_ended_by_reused_number_fails_as_node_lost(
    files: Files,
) -> None:
    over = replace(RUNS, state="FAILED", exit_code=9, ended_at=time.time(), restarts=1)
    files.run.rename(files.folder / "run-2")
    assert told(files.seen(over)) == (State.RUNNING, ReasonCode.RUNNING)
    later = PendingActions(asked_at=time.time() + recovery.SETTLES_S + 1)
    assert files.looked(over, later) == (State.FAILED, ReasonCode.NODE_LOST)


def test_vanished_job_after_start_fails_as_node_lost(files: Files) -> None:
    kept = read_record(files.folder)
    assert kept is not None
    nothing = ListedJob(7, KEY, "", "")
    later = PendingActions(asked_at=time.time() + recovery.SETTLES_S + 1)
    assert told(recovery.observe_vanished(files.folder, kept, nothing, PendingActions())) == (
        State.RUNNING,
        ReasonCode.RUNNING,
    )
    assert told(recovery.observe_vanished(files.folder, kept, nothing, later)) == (
        State.FAILED,
        ReasonCode.NODE_LOST,
    )
    (files.folder / "stop").touch()
    assert told(recovery.observe_vanished(files.folder, kept, nothing, later)) == (
        State.STOPPED,
        ReasonCode.USER_STOP,
    )
    recovery.note_saved(files.folder, RUNS)
    assert recovery.observe_vanished(files.folder, kept, nothing, later) is None, (
        "that it ended is all that is known"
    )


def test_forgotten_unsaved_job_with_lost_end_fails_as_node_lost(files: Files) -> None:
    kept = read_record(files.folder)
    assert kept is not None
    assert recovery.observe_forgotten(files.folder, kept, 7) is None, "it goes on"
    files.end(5, ago_s=0)
    assert told(recovery.observe_forgotten(files.folder, kept, 7)) == (State.FAILED, ReasonCode.EXIT_CODE)
    files.end(1, ago_s=0, how="lost")
    recovery.note_saved(files.folder, RUNS)
    assert told(recovery.observe_forgotten(files.folder, kept, 7)) == (State.FAILED, ReasonCode.WRAPPER_LOST)
    (files.folder / "saved").unlink()
    assert told(recovery.observe_forgotten(files.folder, kept, 7)) == (State.FAILED, ReasonCode.NODE_LOST)


def test_job_begun_anew_and_ended_by_slurm_fails_as_node_lost(files: Files) -> None:
    over = replace(RUNS, state="FAILED", exit_code=1, ended_at=time.time(), starts_at=time.time())
    later = PendingActions(asked_at=time.time() + recovery.SETTLES_S + 1)
    assert files.looked(over, later) == (State.FAILED, ReasonCode.WRAPPER_LOST)
    anew = replace(over, starts_at=time.time() + recovery.EXACT_S + 1)
    assert files.looked(anew, later) == (State.FAILED, ReasonCode.NODE_LOST)
