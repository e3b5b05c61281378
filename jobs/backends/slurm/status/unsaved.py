"""Jobs that Slurm accepted and no longer knows: its controller crashed before it had written them down.

Such a job has not begun, or it would have left its claim; it is handed over again under its own key, by the
script that is kept.  Its handle stays; the number that it has at Slurm from then on stands in its folder.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from jobs.backends.slurm.client.listing import Listed
from jobs.backends.slurm.script import layout
from jobs.backends.slurm.script.layout import Sent

SAVED_S: Final = 15
"""What Slurm has known for so long it has written down."""


def number(folder: Path, sent: Sent) -> int:
    """The number that Slurm has for the job now."""
    return int(layout.text(folder / "again") or sent.number)


def note(folder: Path, listed: Listed) -> None:
    """Remember that Slurm has written the job down: if it does not know it some day, it has ended."""
    goes_on = listed.state in ("PENDING", "RUNNING") and not is_saved(folder)
    if goes_on and time.time() > _handed_over(folder) + SAVED_S:
        layout.publish(folder / "saved", "")


def is_saved(folder: Path) -> bool:
    """Whether Slurm is known to have written the job down."""
    return (folder / "saved").exists()


def is_one(folder: Path) -> bool:
    """Whether the job may have been forgotten so: nothing says that it began, waited long or was to end."""
    return not any((folder / name).exists() for name in ("claim", "saved", "stop"))


def copy(folder: Path, listed: Sequence[Listed]) -> Listed | None:
    """A copy that was handed over already, and whose number nobody wrote down."""
    found = next((each for each in listed if each.is_held), None)
    if found is not None:
        layout.put(folder / "again", str(found.number))
    return found


def _handed_over(folder: Path) -> float:
    times = [path.stat().st_mtime for path in (folder / "begun", folder / "again") if path.exists()]
    return max(times, default=0.0)
