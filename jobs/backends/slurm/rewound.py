"""Jobs of which Slurm knows less than it did.

Its controller writes its jobs down at most every five seconds, and one that crashes comes back with what it
had written: a job that had been let go is held again, as it was submitted.  One that had not begun is let go
once more.  One that had is ended by Slurm when its node reports, and Slurm never learns how it ended: its own
files say so, or nobody does.  It is not begun a second time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from jobs.backends.base import Observation
from jobs.backends.slurm import evidence, layout, sight
from jobs.backends.slurm.evidence import Kept
from jobs.backends.slurm.layout import Sent
from jobs.backends.slurm.listing import Listed

SETTLES_S: Final = 60
"""By then the node of a job that began has reported, and what ran of it has ended."""


@dataclass(slots=True)
class ToDo:
    """What is to be asked of Slurm after a look, by numbers of jobs; `again` are to be handed over anew."""

    cancel: list[int] = field(default_factory=list)
    release: list[int] = field(default_factory=list)
    again: list[Sent] = field(default_factory=list)


def seen(folder: Path, kept: Kept, listed: Listed, todo: ToDo) -> Observation | None:
    """A job that Slurm knows less of than it did; None for any other."""
    if listed.state == "CANCELLED" and (folder / "rewound").exists():
        return sight.of_listed(folder, kept, replace(listed, state="COMPLETED"))
    if not listed.is_as_submitted or layout.text(folder / "released") is None:
        return None
    run = evidence.of_run(folder, 1)
    if not run.begun:
        todo.release.append(listed.number)
        return sight.of_listed(folder, kept, replace(listed, reason="None"))
    layout.publish(folder / "rewound", f"{time.time():.3f}")
    since = float(layout.text(folder / "rewound") or 0)
    if not run.over and time.time() < since + SETTLES_S:
        return sight.of_listed(folder, kept, replace(listed, state="RUNNING"))
    todo.cancel.append(listed.number)
    return sight.of_listed(folder, kept, replace(listed, state="COMPLETED"))
