"""Slurm's controller by its command line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from jobs.backends.base import Unreachable
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.listing import Listed
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
    "AccrueTime",
    "Name",
)
"""Only what is needed; the name last: other people's may hold anything."""

SEPARATOR: Final = "|"

_FIELD: Final = re.compile(r"(?:^| )([A-Za-z:/]+)=(.*?)(?= [A-Za-z:/]+=|$)")


class Commands:
    """See `jobs.backends.slurm.controller.Controller`."""

    def __init__(self, config: SlurmConfig) -> None:
        self._programs = Programs(config)

    def submit(self, script: str) -> int:
        """See `Controller`."""
        return self._programs.sbatch(script)

    def listing(self, names: Sequence[str] = ()) -> Iterator[Listed]:
        """See `Controller`."""
        asked = f"--Format={','.join(f'{name}:{SEPARATOR}' for name in FIELDS)}"
        named = [f"--name={','.join(names)}"] if names else []
        out = self._programs.squeue(f"--user={os.geteuid()}", asked, *named)
        return (listed for line in out.splitlines() if (listed := _read(line)) is not None)

    def release(self, numbers: Sequence[int]) -> None:
        """See `Controller`."""
        self._programs.release(numbers)

    def cancel(self, numbers: Sequence[int], *, waiting_only: bool = False) -> None:
        """See `Controller`."""
        self._programs.cancel(*(["--state=PENDING"] if waiting_only else []), *map(str, numbers))

    def nodes(self) -> Iterator[Mapping[str, str]]:
        """See `Controller`."""
        out = self._programs.scontrol("--oneliner", "--details", "show", "node")
        return (dict(_FIELD.findall(line)) for line in out.splitlines() if line.startswith("NodeName="))


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
        waited=_time(told["AccrueTime"]) is not None,
    )


def _whole(value: str) -> int:
    return int(value) if value.isdigit() else 0


def _time(value: str) -> float | None:
    return float(value) if value.isdigit() and int(value) else None
