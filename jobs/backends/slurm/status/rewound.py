"""Jobs of which Slurm knows less than it did.

Its controller writes its jobs down at most every five seconds, and one that crashes comes back with what it
had written.  A job that had been let go is held again, as it was submitted, or waits again, or runs although
it has ended.  One that had not begun is let go once more.  One that had is ended by Slurm when its node
reports, and Slurm never learns how it ended: its own files say so, or nobody does.  It is not begun a second
time.  One that had ended is told by its files, and taken off Slurm's hands.

Where Slurm begins a job once more on the node that still has it, or has another of the same number (a crash
makes Slurm give numbers away twice), that node refuses, and Slurm holds the job for an admin, as its next run
(LAUNCH_FAILED).  And what the node tells of the other's end, however late, ends whichever job has the number
by then, also one that goes on.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from jobs.backends.base import Observation
from jobs.backends.slurm.client.listing import Listed
from jobs.backends.slurm.script import layout
from jobs.backends.slurm.script.layout import NotOurs, Sent
from jobs.backends.slurm.status import evidence, sight, unsaved
from jobs.backends.slurm.status.evidence import Kept
from jobs.states import ReasonCode

SETTLES_S: Final = 60
"""By then the node of a job that began has reported, and what ran of it has ended."""

UNHEARD_S: Final = 5
"""What runs at Slurm so long after it wrote its end down: Slurm has not heard of that."""

LEFT_S: Final = 20
"""By then Slurm's node would have told it once more."""

LAUNCHES_S: Final = 10
"""By then a node has said that it does not begin what Slurm took for ended before that."""

EXACT_S: Final = 2
"""So far may the clocks of Slurm and of the folder be apart."""

LAUNCH_FAILED: Final = "launch failed requeued held"
"""What Slurm says of a job that its node has already; it counts that as a restart."""

BY_SCRIPT: Final = frozenset({"COMPLETED", "FAILED"})
"""States that say no more than that a script ended."""


@dataclass(slots=True)
class ToDo:
    """What is to be asked of Slurm after a look that began at `asked_at`, by numbers of jobs; `cancel` is for
    those that wait, `again` are to be handed over anew.
    """

    asked_at: float = field(default_factory=time.time)
    cancel: list[int] = field(default_factory=list)
    release: list[int] = field(default_factory=list)
    again: list[Sent] = field(default_factory=list)


def seen(folder: Path, kept: Kept, listed: Listed, todo: ToDo) -> Observation | None:
    """A job that Slurm knows less of than it did; None for any other."""
    meant = _meant(folder, listed)
    told = _seen(folder, kept, meant, todo)
    return sight.of_listed(folder, kept, meant) if told is None and meant is not listed else told


def _meant(folder: Path, listed: Listed) -> Listed:
    """The same with the run that it is about: a start that failed since the run before goes on, or had ended,
    made none.
    """
    if not listed.restarts or _run(folder, listed).exists():
        return listed
    last = evidence.last_run(folder)
    before = replace(listed, restarts=last - 1)
    if not _run(folder, before).exists():
        return listed
    if listed.reason == LAUNCH_FAILED and last == listed.restarts:
        layout.publish(folder / "rewound", f"{time.time():.3f}")
    return before if (folder / "rewound").exists() else listed


def _seen(folder: Path, kept: Kept, listed: Listed, todo: ToDo) -> Observation | None:
    if listed.state == "RUNNING":
        return _running(folder, kept, listed, todo)
    if listed.state in sight.OVER:
        return _ended(folder, kept, listed, todo)
    if listed.state != "PENDING":
        return None
    if _run(folder, listed).exists():
        return _begun(folder, kept, listed, todo)
    if listed.is_as_submitted and layout.text(folder / "released") is not None:
        todo.release.append(listed.number)
        return sight.of_listed(folder, kept, replace(listed, reason="None"))
    return None


def ended(folder: Path, kept: Kept, number: int) -> Observation | None:
    """The end of a job that Slurm has forgotten, by its files; None where they tell none.

    One that Slurm had not written down did not get on: to a Slurm that does not know it, its script starts
    nothing.
    """
    told = sight.of_evidence(folder, kept, number)
    if told is None or told.reason.code is not ReasonCode.WRAPPER_LOST or unsaved.is_saved(folder):
        return told
    layout.publish(folder / "rewound", f"{time.time():.3f}")
    return sight.of_evidence(folder, kept, number)


def vanished(folder: Path, kept: Kept, listed: Listed, todo: ToDo) -> Observation | None:
    """A job that began and that Slurm had not written down yet; None for any other."""
    if unsaved.is_saved(folder) or not _run(folder, listed).exists():
        return None
    layout.publish(folder / "rewound", f"{time.time():.3f}")
    state = "COMPLETED" if _has_settled(folder, todo) else "RUNNING"
    return sight.of_listed(folder, kept, replace(listed, state=state))


def left(root: Path, rows: Iterable[Listed], todo: ToDo) -> Iterator[int]:
    """Jobs that run at Slurm and have ended long ago: it would keep their nodes, and begin them once more."""
    for listed in rows:
        if listed.state != "RUNNING":
            continue
        try:
            folder = layout.attempt(root, listed.name)
        except NotOurs:
            continue
        if _ended_before(folder, listed, todo.asked_at - LEFT_S) and _is_its_own(folder, listed):
            yield listed.number


def _running(folder: Path, kept: Kept, listed: Listed, todo: ToDo) -> Observation | None:
    if not _ended_before(folder, listed, todo.asked_at - UNHEARD_S):
        return None
    return sight.of_listed(folder, kept, replace(listed, state="COMPLETED"))


def _ended(folder: Path, kept: Kept, listed: Listed, todo: ToDo) -> Observation | None:
    """What Slurm ended of its own accord, once nothing of it runs any more; or what it took for running long
    after it had ended, until somebody (`left`, for one) cancelled it, or its node was lost.
    """
    if listed.ended_at and _ended_before(folder, listed, listed.ended_at - UNHEARD_S):
        return sight.of_listed(folder, kept, replace(listed, state="COMPLETED"))
    is_rewound = (folder / "rewound").exists()
    if is_rewound and not (_run(folder, listed) / "end").exists() and not _has_settled(folder, todo):
        return sight.of_listed(folder, kept, replace(listed, state="RUNNING"))
    never_began = not listed.nodes and _run(folder, listed).exists()
    if listed.state == "CANCELLED" and (is_rewound or never_began):
        return sight.of_listed(folder, kept, replace(listed, state="COMPLETED"))
    return _of_another(folder, kept, listed, todo)


def _of_another(folder: Path, kept: Kept, listed: Listed, todo: ToDo) -> Observation | None:
    """An end that nothing of the job's own speaks for: it may be that of another of its number."""
    run = _run(folder, listed)
    if listed.state not in BY_SCRIPT or not listed.nodes or (run / "end").exists():
        return None
    has_begun = run.exists()
    if todo.asked_at < (listed.ended_at or 0) + (SETTLES_S if has_begun else LAUNCHES_S):
        return sight.of_listed(folder, kept, replace(listed, state="RUNNING"))
    refused = listed.restarts and not (folder / layout.run_folder(listed.restarts)).exists()
    ends_well = listed.state == "COMPLETED" and not kept.apart
    again = has_begun and not kept.apart and _began_before(run, listed)
    if ends_well or refused or again:  # a script that ends well has said so before, if the console was there
        layout.publish(folder / "rewound", f"{time.time():.3f}")
    return None


def _begun(folder: Path, kept: Kept, listed: Listed, todo: ToDo) -> Observation:
    """One that waits, and has begun: either of it after Slurm was asked, or Slurm has forgotten that."""
    layout.publish(folder / "doubted", repr(time.time()))  # exactly: it is compared with the look's beginning
    if float(layout.text(folder / "doubted") or 0) >= todo.asked_at:
        return sight.of_listed(folder, kept, replace(listed, state="RUNNING"))
    layout.publish(folder / "rewound", f"{time.time():.3f}")
    if not (_run(folder, listed) / "end").exists() and not _has_settled(folder, todo):
        return sight.of_listed(folder, kept, replace(listed, state="RUNNING"))
    todo.cancel.append(listed.number)
    return sight.of_listed(folder, kept, replace(listed, state="COMPLETED"))


def _has_settled(folder: Path, todo: ToDo) -> bool:
    since = (layout.text(folder / "rewound") or "").strip()
    return todo.asked_at > float(since or 0) + SETTLES_S


def _run(folder: Path, listed: Listed) -> Path:
    return folder / layout.run_folder(listed.restarts + 1)


def _ended_before(folder: Path, listed: Listed, at: float) -> bool:
    """Whether the run that Slurm means wrote its end down before then, and is the last that there was."""
    try:
        ended_at = (_run(folder, listed) / "end").stat().st_mtime
    except (FileNotFoundError, NotADirectoryError):
        return False
    return ended_at < at and evidence.last_run(folder) == listed.restarts + 1


def _began_before(run: Path, listed: Listed) -> bool:
    """Whether the run was there before Slurm, as it says now, began it."""
    earliest = min(path.stat().st_mtime for path in (run, *run.iterdir()))
    return earliest + EXACT_S < (listed.starts_at or 0)


def _is_its_own(folder: Path, listed: Listed) -> bool:
    """Whether this is the one of that name that ran."""
    return (layout.text(folder / "claim") or "").strip() == str(listed.number)
