"""Jobs that Slurm's controller has forgotten, by its accounting (slurmdbd).

A job's status files have priority: accounting is asked only for jobs without an end in them.  Accounting that
does not answer tells nothing about any job.  It may be late: the controller reports an end when it can.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from jobs.backends.base import Observation, Unreachable, Unseen
from jobs.backends.remote import attempts
from jobs.backends.remote.records import AttemptRecord
from jobs.backends.remote.replica_ends import killing_signal
from jobs.backends.slurm.client.controller import Controller
from jobs.backends.slurm.client.listing import ListedJob
from jobs.backends.slurm.status import states
from jobs.states import Params, Reason, ReasonCode, ReplicaState, State

EARLIER_S: Final = 3600
"""The clocks of the console and of Slurm may differ by so much."""

LATE_S: Final = 120
"""Accounting may be behind the controller for so long."""

_UNKNOWN_END: Final = frozenset({ReasonCode.START_FAILED, ReasonCode.WRAPPER_LOST})
"""Reasons of a job without an end in its status files."""


@dataclass(frozen=True, slots=True)
class AccountingAnswer:
    """Accounting's answer about forgotten jobs, by their numbers.

    `why` tells why it did not answer; `has_accounting` whether there is accounting.
    """

    rows: Mapping[int, ListedJob] = field(default_factory=dict)
    has_accounting: bool = False
    why: str = ""

    def decides(self, number: int) -> bool:
        """Return whether the job can't be taken for one that never began."""
        row = self.rows.get(number)
        return bool(self.why) or (row is not None and row.state != "PENDING")

    def observe(self, folder: Path, record: AttemptRecord, number: int) -> Observation | Unseen | None:
        """Return the observation of a job by accounting; None where that has nothing."""
        if self.why:
            return Unseen(self.why)
        row = self.rows.get(number)
        if row is not None and row.state in states.OVER:
            return _by_exit(states.from_listed(folder, record, row), row)
        if not self.has_accounting:
            return None
        since = attempts.first_time(folder / "missed")
        late = "Slurm's controller has forgotten a job whose end slurmdbd does not know yet."
        return Unseen(late) if time.time() < since + LATE_S else None


def read_forgotten(controller: Controller, forgotten: Mapping[int, str]) -> AccountingAnswer:
    """Ask accounting for jobs by their numbers, each with its name, by one call."""
    if not forgotten:
        return AccountingAnswer()
    try:
        rows = controller.find_forgotten(forgotten)
    except Unreachable as error:
        return AccountingAnswer(
            has_accounting=True,
            why=f"slurmdbd does not say how jobs ended that slurmctld has forgotten: {error}",
        )
    return (
        AccountingAnswer() if rows is None else AccountingAnswer(_last(forgotten, rows), has_accounting=True)
    )


def submitted_at(root: Path, key: str) -> float | None:
    """Return when the attempt's submission was begun, None if it was not."""
    with suppress(FileNotFoundError, attempts.InvalidKey):
        return (attempts.attempt_folder(root, key) / "begun").stat().st_mtime
    return None


def find_started(
    controller: Controller, whose: Mapping[str, str], since: Mapping[str, float]
) -> dict[str, int]:
    """Return the numbers of forgotten jobs by their names, each of that user, "" for the console.

    Only of jobs that ran: a refused submission never did, nor did a second copy that was cancelled.  Raises
    Unreachable.
    """
    if not whose:
        return {}
    rows = controller.find_accounted(list(whose), min(since.values()) - EARLIER_S) or ()
    return {
        row.name: row.number
        for row in rows
        if row.nodes and row.starts_at and whose.get(row.name) == row.user
    }


def _last(forgotten: Mapping[int, str], rows: Iterable[ListedJob]) -> dict[int, ListedJob]:
    """Return the last run of each; numbers are used again some day, names are not."""
    found: dict[int, ListedJob] = {}
    for row in rows:
        if forgotten.get(row.number) == row.name:
            before = found.get(row.number)
            found[row.number] = replace(row, restarts=before.restarts + 1) if before else row
    return found


def _by_exit(seen: Observation, row: ListedJob) -> Observation:
    """Return the outcome by the script's exit code, where no status file tells it."""
    if seen.reason.code not in _UNKNOWN_END:
        return seen
    state, reason = _verdict(row)
    ended = replace(seen, state=state, reason=reason, started_at=seen.started_at or row.starts_at)
    if len(seen.replicas) == 1:
        [one] = seen.replicas
        code = row.exit_code if row.exit_code or state is State.SUCCEEDED else None
        task = ReplicaState.SUCCEEDED if state is State.SUCCEEDED else ReplicaState.FAILED
        replica = replace(
            one, state=task, reason=reason, exit_code=code, signal=killing_signal(row.exit_code)
        )
        replica = replace(replica, started_at=one.started_at or row.starts_at, ended_at=row.ended_at)
        ended = replace(ended, replicas=(replace(replica, node=one.node or row.nodes),))
    return ended


def _verdict(row: ListedJob) -> tuple[State, Reason]:
    if row.state == "COMPLETED":
        return State.SUCCEEDED, Reason(ReasonCode.COMPLETED)
    params: Params = {"exit_code": row.exit_code} if row.exit_code else {}
    if (killer := killing_signal(row.exit_code)) is not None:
        return State.FAILED, Reason(ReasonCode.SIGNALLED, {**params, "signal": killer})
    return State.FAILED, Reason(ReasonCode.EXIT_CODE, params)
