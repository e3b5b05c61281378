"""Slurm's controller by its command line."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from jobs.backends.base import QueuedJob, Unreachable
from jobs.backends.slurm.client import everybody
from jobs.backends.slurm.client.listing import Listed
from jobs.backends.slurm.client.programs import Programs
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.identity import visible
from jobs.backends.slurm.script import layout
from jobs.backends.slurm.script.layout import Sent
from jobs.dialects.sbatch import hosts

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

WHOSE: Final = "UserName"
"""What is asked for besides, where jobs run as their owners."""

HISTORY_FIELDS: Final = (
    "JobIDRaw",
    "State",
    "ExitCode",
    "DerivedExitCode",
    "Start",
    "End",
    "NodeList",
    "Reason",
    "JobName",
)
"""What accounting is asked for."""

COMPONENT: Final = "JobID"
OWNER: Final = "User"
"""And where jobs are looked for by their names."""

SEPARATOR: Final = "|"

_FIELD: Final = re.compile(r"(?:^| )([A-Za-z:/]+)=(.*?)(?= [A-Za-z:/]+=|$)")


class Commands:
    """See `jobs.backends.slurm.client.controller.Controller`."""

    def __init__(self, config: SlurmConfig) -> None:
        self._programs = Programs(config)
        self._root = config.root
        self._user = config.login.user if config.login else str(os.geteuid())
        self._name = visible.asking(config)
        self._everybody = config.tells_apart

    def submit(self, script: str) -> int:
        """See `Controller`."""
        return self._programs.sbatch(script)

    def listing(self, names: Sequence[str] = ()) -> Iterator[Listed]:
        """See `Controller`."""
        fields = (WHOSE, *FIELDS) if self._everybody else FIELDS
        end = secrets.token_hex(4)  # which no name, that may hold anything, has in it
        asked = [f"--Format={','.join(f'{name}:{SEPARATOR}' for name in fields)}{end}"]
        asked += [f"--name={','.join(names)}"] if names else []
        asked += [] if self._everybody else [f"--user={self._user}"]
        rows = self._programs.squeue(*asked).split(f"{SEPARATOR}{end}")
        for row in rows[:-1]:
            if not _is_whole(row, fields):
                raise Unreachable(f"Slurm told something else than it was asked for: {row[:200]}")
            is_ours = layout.is_key(row.rpartition(SEPARATOR)[2].strip())
            if is_ours and (listed := _read(row.removeprefix("\n"), fields, self._name)) is not None:
                yield listed

    def history(self, forgotten: Mapping[int, str]) -> Iterator[Listed] | None:
        """See `Controller`."""
        asked = f"--format={','.join(HISTORY_FIELDS)}"
        out = self._programs.sacct("--duplicates", asked, f"--jobs={','.join(map(str, forgotten))}")
        return None if out is None else (_past(line) for line in out.splitlines())

    def remembered(self, names: Sequence[str], since: float) -> Iterator[Listed] | None:
        """See `Controller`."""
        fields = (COMPONENT, OWNER, *HISTORY_FIELDS)
        asked = (f"--format={','.join(fields)}", f"--name={','.join(names)}")
        out = self._programs.sacct("--duplicates", *asked, f"--starttime=now-{int(time.time() - since)}")
        if out is None:
            return None
        lines = (_told(line, fields) for line in out.splitlines())
        return (
            replace(_of_history(told), user="" if told[OWNER] == self._name else told[OWNER])
            for told in lines
            if told[COMPONENT].partition("+")[2] in ("", "0")
        )

    def queue(self) -> Iterator[QueuedJob]:
        """See `controller.Controller`."""
        end = f"{SEPARATOR}{secrets.token_hex(8)}{SEPARATOR}"  # which nobody's name or path has in it
        fields = [f"{name}:{SEPARATOR}" for name in everybody.FIELDS]
        asked = f"--Format={','.join([*fields, f'{everybody.OUTPUT}:{end}', f'{everybody.NAME}:{end}'])}"
        parts = iter(self._programs.squeue(f"--states={','.join(everybody.STATES)}", asked).split(end))
        for line, name in zip(parts, parts, strict=False):
            *values, output = line.removeprefix("\n").split(SEPARATOR, len(everybody.FIELDS))
            if len(values) != len(everybody.FIELDS):
                raise Unreachable(f"squeue told something else than it was asked for: {line[:200]}")
            told = dict(zip(everybody.FIELDS, map(str.strip, values), strict=True))
            yield everybody.read({**told, everybody.OUTPUT: output, everybody.NAME: name}, self._root)

    def known(self, jobs: Sequence[Sent]) -> Iterable[Listed]:
        """See `Controller`."""
        return self.listing([sent.key for sent in jobs])

    def release(self, numbers: Sequence[int]) -> None:
        """See `Controller`."""
        self._programs.release(numbers)

    def cancel(self, numbers: Sequence[int], *, waiting_only: bool = False, name: str = "") -> None:
        """See `Controller`."""
        only = ["--state=PENDING"] if waiting_only else []
        named = [f"--name={name}"] if name else []
        self._programs.cancel(*only, *named, *map(str, numbers))

    def nodes(self) -> Iterator[Mapping[str, str]]:
        """See `Controller`."""
        out = self._programs.scontrol("--oneliner", "--details", "show", "node")
        return (dict(_FIELD.findall(line)) for line in out.splitlines() if line.startswith("NodeName="))

    def nodes_of(self, number: int) -> Iterator[str]:
        """See `Controller`."""
        out = self._programs.squeue(f"--jobs={number}", "--format=%N")
        return (name for line in out.splitlines() for name in hosts.names(line.strip()) or ())

    def reservations(self) -> Iterator[Mapping[str, str]]:
        """See `Controller`."""
        out = self._programs.scontrol("--oneliner", "show", "reservation")
        return (
            dict(_FIELD.findall(line)) for line in out.splitlines() if line.startswith("ReservationName=")
        )


def _read(line: str, fields: Sequence[str], own: str) -> Listed | None:
    """A line; None for the further components of a job.  `own` is what Slurm calls the console's own user."""
    told = _told(line, fields)
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
        user="" if (user := told.get(WHOSE, "")) == own else user,
    )


def _past(line: str) -> Listed:
    """A line of sacct's, whose states may say by whom."""
    return _of_history(_told(line, HISTORY_FIELDS))


def _of_history(told: Mapping[str, str]) -> Listed:
    return Listed(
        number=_whole(told["JobIDRaw"]),
        name=told["JobName"],
        state=told["State"].split(" ")[0],
        reason=told["Reason"],
        exit_code=_exit_code(told["ExitCode"], told["DerivedExitCode"]),
        starts_at=_time(told["Start"]),
        ended_at=_time(told["End"]),
        nodes=told["NodeList"] if told["NodeList"] != "None assigned" else "",
    )


def _exit_code(told: str, derived: str) -> int:
    """Of `code:signal`.  Slurm keeps 137 of a script as 9, and as it was only in what it derives of steps."""
    code, _colon, killer = told.partition(":")
    if _whole(killer):
        return 128 + _whole(killer)
    most = _whole(derived.partition(":")[0])
    return most if most == 128 + _whole(code) else _whole(code)


def _is_whole(row: str, fields: Sequence[str]) -> bool:
    return row.count(SEPARATOR) >= len(fields) - 1


def _told(line: str, names: Sequence[str]) -> dict[str, str]:
    """A line's fields by their names, the last of which may hold anything."""
    values = line.rstrip().removesuffix(SEPARATOR).split(SEPARATOR, len(names) - 1)
    if len(values) != len(names):
        raise Unreachable(f"Slurm told something else than it was asked for: {line[:200]}")
    return dict(zip(names, (value.strip() for value in values), strict=True))


def _whole(value: str) -> int:
    return int(value) if value.isdigit() else 0


def _time(value: str) -> float | None:
    return float(value) if value.isdigit() and int(value) else None
