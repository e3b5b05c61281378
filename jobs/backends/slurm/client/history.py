"""Jobs that Slurm's controller has forgotten, as its accounting (slurmdbd) remembers them.

What a job's own script wrote down goes before: it is asked for those alone that left no end behind.
Accounting that does not answer says nothing about any job.  What it has may be late: the controller tells it
of an end when it can.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from jobs.backends.base import Observation, Unreachable, Unseen
from jobs.backends.slurm.client.controller import Controller
from jobs.backends.slurm.client.listing import Listed
from jobs.backends.slurm.script import layout
from jobs.backends.slurm.status import sight
from jobs.backends.slurm.status.evidence import Kept
from jobs.states import Params, Reason, ReasonCode, State, TaskState

EARLIER_S: Final = 3600
"""So far may the clocks of the console and of Slurm be apart."""

LATE_S: Final = 120
"""So long may accounting be behind the controller."""

_UNTOLD: Final = frozenset({ReasonCode.START_FAILED, ReasonCode.WRAPPER_LOST})
"""Nothing that the job left behind says how it ended."""


@dataclass(frozen=True, slots=True)
class Past:
    """What accounting said of forgotten jobs, by their numbers.  `why` is why it did not answer; where there
    is none, `kept` is false.
    """

    rows: Mapping[int, Listed] = field(default_factory=dict)
    kept: bool = False
    why: str = ""

    def decides(self, number: int) -> bool:
        """Whether the job may not be taken for one that never began."""
        row = self.rows.get(number)
        return bool(self.why) or (row is not None and row.state != "PENDING")

    def seen(self, folder: Path, kept: Kept, number: int) -> Observation | Unseen | None:
        """The job by what accounting has of it; None where that says nothing."""
        if self.why:
            return Unseen(self.why)
        row = self.rows.get(number)
        if row is not None and row.state in sight.OVER:
            return _by_exit(sight.of_listed(folder, kept, row), row)
        if not self.kept:
            return None
        layout.publish(folder / "missed", f"{time.time():.3f}")
        since = float(layout.text(folder / "missed") or 0)
        late = "Slurm's controller has forgotten a job whose end slurmdbd does not know yet."
        return Unseen(late) if time.time() < since + LATE_S else None


def past(controller: Controller, forgotten: Mapping[int, str]) -> Past:
    """What accounting has of jobs by their numbers, each with its name, by one call."""
    if not forgotten:
        return Past()
    try:
        rows = controller.history(forgotten)
    except Unreachable as error:
        return Past(
            kept=True, why=f"slurmdbd does not say how jobs ended that slurmctld has forgotten: {error}"
        )
    return Past() if rows is None else Past(_last(forgotten, rows), kept=True)


def handed_over(root: Path, key: str) -> float | None:
    """Since when the attempt may be at Slurm; None where nobody has begun to hand it over."""
    with suppress(FileNotFoundError, layout.NotOurs):
        return (layout.attempt(root, key) / "begun").stat().st_mtime
    return None


def began(controller: Controller, whose: Mapping[str, str], since: Mapping[str, float]) -> dict[str, int]:
    """Jobs that Slurm's controller has forgotten by their names, each of that user's; '' is the console.

    Only those that ran: what a refused sbatch leaves behind never did, nor did a second copy that was
    cancelled.  Raises Unreachable.
    """
    if not whose:
        return {}
    rows = controller.remembered(list(whose), min(since.values()) - EARLIER_S) or ()
    return {
        row.name: row.number
        for row in rows
        if row.nodes and row.starts_at and whose.get(row.name) == row.user
    }


def _last(forgotten: Mapping[int, str], rows: Iterable[Listed]) -> dict[int, Listed]:
    """The last run of each; numbers are used again some day, names are not."""
    found: dict[int, Listed] = {}
    for row in rows:
        if forgotten.get(row.number) == row.name:
            before = found.get(row.number)
            found[row.number] = replace(row, restarts=before.restarts + 1) if before else row
    return found


def _by_exit(seen: Observation, row: Listed) -> Observation:
    """Where a job left nothing behind, its script's exit code is its verdict."""
    if seen.reason.code not in _UNTOLD:
        return seen
    state, reason = _verdict(row)
    ended = replace(seen, state=state, reason=reason, started_at=seen.started_at or row.starts_at)
    if len(seen.replicas) == 1:
        [one] = seen.replicas
        code = row.exit_code if row.exit_code or state is State.SUCCEEDED else None
        task = TaskState.SUCCEEDED if state is State.SUCCEEDED else TaskState.FAILED
        replica = replace(one, state=task, reason=reason, exit_code=code, signal=_killer(row))
        replica = replace(replica, started_at=one.started_at or row.starts_at, ended_at=row.ended_at)
        ended = replace(ended, replicas=(replace(replica, node=one.node or row.nodes),))
    return sight.versioned(ended)


def _verdict(row: Listed) -> tuple[State, Reason]:
    if row.state == "COMPLETED":
        return State.SUCCEEDED, Reason(ReasonCode.COMPLETED)
    told: Params = {"exit_code": row.exit_code} if row.exit_code else {}
    if (killer := _killer(row)) is not None:
        return State.FAILED, Reason(ReasonCode.SIGNALLED, {**told, "signal": killer})
    return State.FAILED, Reason(ReasonCode.EXIT_CODE, told)


def _killer(row: Listed) -> int | None:
    number = row.exit_code - 128
    return number if number in {int(each) for each in signal.Signals} else None
