"""The queue as squeue lists it: one call, whatever the number of jobs, and only what is needed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from jobs.backends.base import Unreachable
from jobs.backends.slurm.programs import Programs

FIELDS: Final = (
    "JobID",
    "HetJobID",
    "State",
    "Reason",
    "RestartCnt",
    "exit_code",
    "StartTime",
    "EndTime",
    "NodeList",
    "Name",
)
"""The name last: other people's may hold anything."""

SEPARATOR: Final = "|"


@dataclass(frozen=True, slots=True)
class Listed:
    """One job as Slurm tells it, for a job of several components the first of them.  Times are seconds since
    the epoch; `exit_code` is 128+n for a signal.
    """

    number: int
    name: str
    state: str
    reason: str
    restarts: int = 0
    exit_code: int = 0
    starts_at: float | None = None
    ended_at: float | None = None
    nodes: str = ""

    @property
    def is_held(self) -> bool:
        """Whether it waits to be released."""
        return self.state == "PENDING" and self.reason == "JobHeldUser"

    @property
    def was_refused(self) -> bool:
        """Whether it is only what a refused sbatch left behind."""
        return self.state == "FAILED" and not self.nodes


def take(programs: Programs, names: Iterable[str] = ()) -> dict[str, list[Listed]]:
    """Every job of ours that Slurm remembers, or those so named, by name and in order of their numbers."""
    wanted = ",".join(names)
    arguments = [f"--user={os.geteuid()}", f"--Format={','.join(f'{name}:{SEPARATOR}' for name in FIELDS)}"]
    out = programs.squeue(*arguments, *([f"--name={wanted}"] if wanted else []))
    found: dict[str, list[Listed]] = {}
    for line in out.splitlines():
        if (listed := _read(line)) is not None:
            found.setdefault(listed.name, []).append(listed)
    for each in found.values():
        each.sort(key=lambda listed: listed.number)
    return found


def _read(line: str) -> Listed | None:
    """A line; None for the further components of a job."""
    values = line.rstrip().removesuffix(SEPARATOR).split(SEPARATOR, len(FIELDS) - 1)
    if len(values) != len(FIELDS):
        raise Unreachable(f"squeue told something else than it was asked for: {line[:200]}")
    told = dict(zip(FIELDS, (value.strip() for value in values), strict=True))
    if not told["JobID"].isdigit() or told["HetJobID"] not in (told["JobID"], "N/A", "0", ""):
        return None
    status = _whole(told["exit_code"])
    return Listed(
        number=int(told["JobID"]),
        name=told["Name"],
        state=told["State"],
        reason=told["Reason"],
        restarts=_whole(told["RestartCnt"]),
        exit_code=128 + (status & 0x7F) if status & 0x7F else status >> 8,
        starts_at=_time(told["StartTime"]),
        ended_at=_time(told["EndTime"]),
        nodes=told["NodeList"] if told["NodeList"] != "(null)" else "",
    )


def _whole(value: str) -> int:
    return int(value) if value.isdigit() else 0


def _time(value: str) -> float | None:
    return float(value) if value.isdigit() and int(value) else None
