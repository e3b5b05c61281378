"""Recovery from a loss of state of Slurm's controller.

The controller saves its jobs at most every five seconds, and after a crash it knows what it had saved.

- A job that it had accepted and not saved is unknown to it.  It has not begun, or there would be its claim;
it
  is submitted again under its own key, by the stored script.  Its handle stays; its new number stands in its
  folder.
- A released job is held again, as it was submitted, or waits again, or runs although it has ended.  One that
  had not begun is released again.  One that had is ended by Slurm when its node reports, and Slurm never
  learns how it ended: only its own files tell.  It is not begun a second time.  One that had ended is
  observed by its files, and cancelled at Slurm.
- Where Slurm begins a job again on the node that still runs it, or another of the same number (after a crash
  Slurm gives numbers twice), that node refuses, and Slurm holds the job for an admin, as its next run
  (LAUNCH_FAILED).  And what the node reports of the other's end, however late, ends whichever job has the
  number by then, also one that goes on.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from jobs.backends.base import Observation
from jobs.backends.remote import attempts, status_files
from jobs.backends.remote.attempts import InvalidKey
from jobs.backends.remote.records import AttemptRecord
from jobs.backends.slurm.client.listing import ListedJob
from jobs.backends.slurm.handles import SlurmJob
from jobs.backends.slurm.status import states
from jobs.states import ReasonCode

SAVED_S: Final = 15
"""What Slurm has known for so long it has saved."""

SETTLES_S: Final = 60
"""By then the node of a job that began has reported, and what ran of it has ended."""

UNHEARD_S: Final = 5
"""What runs at Slurm so long after its end was written: Slurm has not been told of that end."""

LEFT_S: Final = 20
"""By then Slurm's node would have reported it again."""

LAUNCHES_S: Final = 10
"""By then a node has refused to begin what Slurm took for ended before that."""

EXACT_S: Final = 2
"""The clocks of Slurm and of the folder may differ by so much."""

LAUNCH_FAILED: Final = "launch failed requeued held"
"""Slurm's reason for a job that its node has already; it counts that as a restart."""

BY_SCRIPT: Final = frozenset({"COMPLETED", "FAILED"})
"""States that tell no more than that a script ended."""


@dataclass(slots=True)
class PendingActions:
    """Actions at Slurm after an observation that began at `asked_at`, by numbers of jobs.

    `cancel` is for jobs that wait, `again` for jobs to be submitted again.
    """

    asked_at: float = field(default_factory=time.time)
    cancel: list[int] = field(default_factory=list)
    release: list[int] = field(default_factory=list)
    again: list[SlurmJob] = field(default_factory=list)


# --- jobs that the controller had not saved ---


def current_number(folder: Path, job: SlurmJob) -> int:
    """Return the number that Slurm has for the job now."""
    return int(attempts.read_text(folder / "again") or job.number)


def note_saved(folder: Path, listed: ListedJob) -> None:
    """Record that Slurm has saved the job: if it does not know it some day, it has ended."""
    if listed.state not in ("PENDING", "RUNNING") or is_saved(folder):
        return
    times = [path.stat().st_mtime for path in (folder / "begun", folder / "again") if path.exists()]
    if time.time() > max(times, default=0.0) + SAVED_S:
        attempts.create(folder / "saved", "")


def is_saved(folder: Path) -> bool:
    """Return whether Slurm is known to have saved the job."""
    return (folder / "saved").exists()


def may_be_unsaved(folder: Path) -> bool:
    """Return whether nothing tells that the job began, was saved or was to end."""
    return not any((folder / name).exists() for name in ("claim", "saved", "stop"))


def find_copy(folder: Path, listed: Sequence[ListedJob]) -> ListedJob | None:
    """Return a copy that was submitted again and whose number was not recorded; record it."""
    found = next((each for each in listed if each.is_held), None)
    if found is not None:
        attempts.write_text(folder / "again", str(found.number))
    return found


# --- jobs of which the controller knows an earlier state ---


def observe_lost_state(
    folder: Path, record: AttemptRecord, listed: ListedJob, todo: PendingActions
) -> Observation | None:
    """Return the observation of a job of which Slurm knows an earlier state; None for any other."""
    job = _ListedAttempt(folder, record, _with_actual_run(folder, listed), todo)
    seen = job.observe()
    return job.in_state(job.listed.state) if seen is None and job.listed is not listed else seen


def observe_forgotten(folder: Path, record: AttemptRecord, number: int) -> Observation | None:
    """Return the end of a job that Slurm has forgotten, by its files; None where they tell none.

    One that Slurm had not saved did not go on: to a Slurm that does not know it, its script starts nothing.
    """
    seen = states.from_files(folder, record, number)
    if seen is None or seen.reason.code is not ReasonCode.WRAPPER_LOST or is_saved(folder):
        return seen
    _mark(folder)
    return states.from_files(folder, record, number)


def observe_vanished(
    folder: Path, record: AttemptRecord, listed: ListedJob, todo: PendingActions
) -> Observation | None:
    """Return the observation of a job that began before Slurm had saved it; None for any other."""
    job = _ListedAttempt(folder, record, listed, todo)
    if is_saved(folder) or not job.run.exists():
        return None
    _mark(folder)
    return job.in_state("COMPLETED" if job.has_settled else "RUNNING")


def overdue_jobs(root: Path, rows: Iterable[ListedJob], todo: PendingActions) -> Iterator[int]:
    """Yield jobs that run at Slurm and have ended long ago: it would keep their nodes, and begin them
    again.
    """
    for listed in rows:
        if listed.state != "RUNNING":
            continue
        try:
            folder = attempts.attempt_folder(root, listed.name)
        except InvalidKey:
            continue
        is_claimed = (attempts.read_text(folder / "claim") or "").strip() == str(listed.number)
        if _ended_before(folder, listed, todo.asked_at - LEFT_S) and is_claimed:
            yield listed.number


@dataclass(frozen=True, slots=True)
class _ListedAttempt:
    """An attempt and what Slurm lists of it, which may be an earlier state."""

    folder: Path
    record: AttemptRecord
    listed: ListedJob
    todo: PendingActions

    @property
    def run(self) -> Path:
        """Return the folder of the run that Slurm means."""
        return _run(self.folder, self.listed)

    @property
    def has_lost_state(self) -> bool:
        """Return whether Slurm has forgotten a start of the attempt."""
        return (self.folder / "rewound").exists()

    @property
    def has_settled(self) -> bool:
        """Return whether its node has reported since Slurm forgot it."""
        since = (attempts.read_text(self.folder / "rewound") or "").strip()
        return self.todo.asked_at > float(since or 0) + SETTLES_S

    @property
    def has_end(self) -> bool:
        """Return whether the run has written its end."""
        return (self.run / "end").exists()

    def in_state(self, state: str) -> Observation:
        """Return the observation as if Slurm listed the job in `state`."""
        return states.from_listed(self.folder, self.record, replace(self.listed, state=state))

    def ended_before(self, at: float) -> bool:
        """Return whether the run has written its end before `at`, and no other run began."""
        return _ended_before(self.folder, self.listed, at)

    def observe(self) -> Observation | None:
        """Return the observation if what Slurm lists is an earlier state, else None."""
        listed = self.listed
        if listed.state == "RUNNING":
            is_over = self.ended_before(self.todo.asked_at - UNHEARD_S)
            return self.in_state("COMPLETED") if is_over else None
        if listed.state in states.OVER:
            return self._observe_ended()
        if listed.state != "PENDING":
            return None
        if self.run.exists():
            return self._observe_begun()
        if listed.is_as_submitted and attempts.read_text(self.folder / "released") is not None:
            self.todo.release.append(listed.number)
            return states.from_listed(self.folder, self.record, replace(listed, reason="None"))
        return None

    def _observe_ended(self) -> Observation | None:
        """Observe a job that Slurm ended itself, once nothing of it runs any more.

        Or one that Slurm took for running long after its end, until it was cancelled (as by `overdue_jobs`)
        or its node was lost.
        """
        listed = self.listed
        if listed.ended_at and self.ended_before(listed.ended_at - UNHEARD_S):
            return self.in_state("COMPLETED")
        if self.has_lost_state and not self.has_end and not self.has_settled:
            return self.in_state("RUNNING")
        never_began = not listed.nodes and self.run.exists()
        if listed.state == "CANCELLED" and (self.has_lost_state or never_began):
            return self.in_state("COMPLETED")
        return self._observe_reused_number()

    def _observe_reused_number(self) -> Observation | None:
        """Observe an end that none of the job's files tells: it may be that of another job of its number."""
        listed = self.listed
        if listed.state not in BY_SCRIPT or not listed.nodes or self.has_end:
            return None
        has_begun = self.run.exists()
        if self.todo.asked_at < (listed.ended_at or 0) + (SETTLES_S if has_begun else LAUNCHES_S):
            return self.in_state("RUNNING")
        earlier_run = self.folder / attempts.run_name(listed.restarts)
        was_refused = listed.restarts and not earlier_run.exists()
        ends_well = listed.state == "COMPLETED" and not self.record.apart
        began_again = has_begun and not self.record.apart and self._began_earlier()
        if ends_well or was_refused or began_again:  # a script that ends well has written that before
            _mark(self.folder)
        return None

    def _observe_begun(self) -> Observation:
        """Observe a job that waits and has begun: either after Slurm was asked, or Slurm has forgotten
        that.
        """
        if attempts.first_time(self.folder / "doubted") >= self.todo.asked_at:
            return self.in_state("RUNNING")
        _mark(self.folder)
        if not self.has_end and not self.has_settled:
            return self.in_state("RUNNING")
        self.todo.cancel.append(self.listed.number)
        return self.in_state("COMPLETED")

    def _began_earlier(self) -> bool:
        """Return whether the run was there before Slurm, as it says now, began it."""
        earliest = min(path.stat().st_mtime for path in (self.run, *self.run.iterdir()))
        return earliest + EXACT_S < (self.listed.starts_at or 0)


def _with_actual_run(folder: Path, listed: ListedJob) -> ListedJob:
    """Return the job with the run that it is about.

    A start that failed while the run before went on, or had ended, made no run.
    """
    if not listed.restarts or _run(folder, listed).exists():
        return listed
    last = status_files.last_run(folder)
    before = replace(listed, restarts=last - 1)
    if not _run(folder, before).exists():
        return listed
    if listed.reason == LAUNCH_FAILED and last == listed.restarts:
        _mark(folder)
    return before if (folder / "rewound").exists() else listed


def _mark(folder: Path) -> None:
    """Record since when Slurm has forgotten a start of the attempt."""
    attempts.create(folder / "rewound", f"{time.time():.3f}")


def _run(folder: Path, listed: ListedJob) -> Path:
    return folder / attempts.run_name(listed.restarts + 1)


def _ended_before(folder: Path, listed: ListedJob, at: float) -> bool:
    try:
        ended_at = (_run(folder, listed) / "end").stat().st_mtime
    except (FileNotFoundError, NotADirectoryError):
        return False
    return ended_at < at and status_files.last_run(folder) == listed.restarts + 1
