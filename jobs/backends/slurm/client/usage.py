"""Usage of ended jobs by Slurm's accounting (slurmdbd).

Each role runs in steps that the job's script names after its place; a script that Slurm itself spreads has
other steps, which are all of its one role.  Memory is known where Slurm gathers it (JobAcctGatherType).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from jobs.backends.base import Unreachable
from jobs.backends.measures import AccountedUse
from jobs.backends.remote.records import AttemptRecord
from jobs.backends.slurm.client import values
from jobs.backends.slurm.client.programs import Programs

FIELDS: Final = ("JobID", "TotalCPU", "MaxRSS", "JobName")
"""The name is last, as those of a job's own steps may contain anything."""

_STEP: Final = re.compile(r"([0-9]+)(?:\+[0-9]+)?\.(?!extern$)\w+")
_ROLE: Final = re.compile(r"role-([0-9]+)")
_TIME: Final = re.compile(r"(?:(?P<d>[0-9]+)-)?(?:(?P<h>[0-9]+):)?(?P<m>[0-9]+):(?P<s>[0-9.]+)")


@dataclass(frozen=True, slots=True)
class StepUse:
    """Usage of a step: the place of its role, None for another step; CPU seconds of all of its tasks."""

    place: int | None
    cpu_s: float
    memory_mib: int | None


def read_steps(programs: Programs, numbers: Sequence[int]) -> dict[int, list[StepUse]]:
    """Return the steps of the latest run of jobs by their numbers, by one call.  Raises Unreachable."""
    out = programs.sacct(f"--jobs={','.join(map(str, numbers))}", f"--format={','.join(FIELDS)}")
    found: dict[int, list[StepUse]] = {}
    for line in (out or "").splitlines():
        row = line.split("|", len(FIELDS) - 1)
        if len(row) != len(FIELDS):
            raise Unreachable(f"sacct told something else than it was asked for: {line[:200]}")
        step, cpu, memory, name = row
        if match := _STEP.fullmatch(step):
            role = _ROLE.fullmatch(name)
            use = StepUse(int(role[1]) if role else None, parse_seconds(cpu), values.mib(memory))
            found.setdefault(int(match[1]), []).append(use)
    return found


def parse_seconds(text: str) -> float:
    """Return the seconds of a time such as 00:01.500 or 1-02:03:04, 0 for anything else."""
    match = _TIME.fullmatch(text)
    if match is None:
        return 0.0
    days, hours, minutes = (int(match[unit] or 0) for unit in "dhm")
    return 86400 * days + 3600 * hours + 60 * minutes + float(match["s"])


def by_role(record: AttemptRecord, steps: Sequence[StepUse]) -> list[AccountedUse]:
    """Return the usage of each role that has any."""
    return [use for use in _by_role(record, steps) if (use.cpu_s, use.memory_mib) != (None, None)]


def _by_role(record: AttemptRecord, steps: Sequence[StepUse]) -> Iterator[AccountedUse]:
    is_named = any(step.place is not None for step in steps)
    for place, role in enumerate(record.roles):
        if not is_named and len(record.roles) > 1:
            return
        mine = [step for step in steps if step.place == (place if is_named else None)]
        cpu_s = sum(step.cpu_s for step in mine)
        memory = max((step.memory_mib or 0 for step in mine), default=0)
        yield AccountedUse(role.name, cpu_s / role.replicas if cpu_s else None, memory or None)
