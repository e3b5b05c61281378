"""Folders of a person's other jobs, which a job may mount read-only.

`job://<job id>/<role>/<index>[/folder]` is the folder of that replica in the job's latest attempt.  Whose it
is is told by that attempt's own plan, which nobody but the console writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from jobs.node.sandbox.folders import parts_of
from jobs.node.supervisor.plan import Plan, UnknownFormat

SCHEME: Final = "job://"
_ADDRESS: Final = 3


@dataclass(frozen=True, slots=True)
class JobFolder:
    """The replica's folder, a folder in it ('' for itself), and whose job it was."""

    root: str
    inner: str
    user: str
    uid: int

    @property
    def path(self) -> str:
        """The folder that is meant."""
        return f"{self.root}/{self.inner}" if self.inner else self.root


def find(jobs: Path, uri: str) -> JobFolder | None:
    """Return the folder that the address means here; None for nothing."""
    parts = [unquote(part) for part in uri.removeprefix(SCHEME).split("/")]
    if len(parts) < _ADDRESS or not parts[0].isalnum() or not parts[2].isdecimal():
        return None
    plan = _latest(jobs / parts[0])
    inner = "/".join(part for part in parts[_ADDRESS:] if part)
    if plan is None or (inner and not parts_of(f"/{inner}")):
        return None
    place = plan.replica(parts[1], int(parts[2]))
    if place is None or str(place.index) != parts[2]:
        return None
    root = jobs / parts[0] / str(plan.attempt) / "work" / place.name
    return JobFolder(str(root), inner, plan.user, plan.uid)


def _latest(job: Path) -> Plan | None:
    """The plan of the job's last attempt that is still there."""
    try:
        numbers = sorted((int(path.name) for path in job.iterdir() if path.name.isdecimal()), reverse=True)
        return Plan.read(job / str(numbers[0])) if numbers else None
    except (OSError, UnknownFormat):
        return None
