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
from jobs.backends.remote import attempts
from jobs.backends.slurm.client import queue as queued
from jobs.backends.slurm.client import values
from jobs.backends.slurm.client.listing import ListedJob
from jobs.backends.slurm.client.programs import Programs
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.handles import SlurmJob
from jobs.backends.slurm.identity import visibility
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
"""The name is last, as names of other users may contain anything."""

USER: Final = "UserName"
"""Requested besides where jobs run as their owners."""

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
"""The fields of accounting."""

COMPONENT: Final = "JobID"
OWNER: Final = "User"
"""Requested besides where jobs are looked up by their names."""

SEPARATOR: Final = "|"

_FIELD: Final = re.compile(r"(?:^| )([A-Za-z:/]+)=(.*?)(?= [A-Za-z:/]+=|$)")


class CommandController(Programs):
    """See `jobs.backends.slurm.client.controller.Controller`."""

    def __init__(self, config: SlurmConfig) -> None:
        super().__init__(config)
        self._user = config.login.user if config.login else str(os.geteuid())
        self._name = visibility.asking_user(config)

    def list_jobs(self, names: Sequence[str] = ()) -> Iterator[ListedJob]:
        """See `Controller`."""
        of_all = self._config.tells_apart
        fields = (USER, *FIELDS) if of_all else FIELDS
        end = secrets.token_hex(4)  # names may contain anything, but not this
        options = [f"--Format={','.join(f'{name}:{SEPARATOR}' for name in fields)}{end}"]
        options += [f"--name={','.join(names)}"] if names else []
        options += [] if of_all else [f"--user={self._user}"]
        for row in self.squeue(*options).split(f"{SEPARATOR}{end}")[:-1]:
            found = _parse_row(row.removeprefix("\n"), fields)
            if attempts.is_key(found["Name"]) and (listed := _parse_listed(found, self._name)) is not None:
                yield listed

    def find_forgotten(self, forgotten: Mapping[int, str]) -> Iterator[ListedJob] | None:
        """See `Controller`."""
        rows = self._query_accounting(HISTORY_FIELDS, f"--jobs={','.join(map(str, forgotten))}")
        return None if rows is None else map(_accounted_job, rows)

    def find_accounted(self, names: Sequence[str], since: float) -> Iterator[ListedJob] | None:
        """See `Controller`."""
        options = (f"--name={','.join(names)}", f"--starttime=now-{int(time.time() - since)}")
        rows = self._query_accounting((COMPONENT, OWNER, *HISTORY_FIELDS), *options)
        if rows is None:
            return None
        return (
            replace(_accounted_job(row), user="" if row[OWNER] == self._name else row[OWNER])
            for row in rows
            if row[COMPONENT].partition("+")[2] in ("", "0")
        )

    def _query_accounting(self, fields: Sequence[str], *options: str) -> Iterator[dict[str, str]] | None:
        out = self.sacct("--allocations", "--duplicates", f"--format={','.join(fields)}", *options)
        return None if out is None else (_parse_row(line, fields) for line in out.splitlines())

    def queue(self) -> Iterator[QueuedJob]:
        """See `Controller`."""
        end = f"{SEPARATOR}{secrets.token_hex(8)}{SEPARATOR}"  # no name or path contains this
        fields = [f"{name}:{SEPARATOR}" for name in queued.FIELDS]
        options = f"--Format={','.join([*fields, f'{queued.OUTPUT}:{end}', f'{queued.NAME}:{end}'])}"
        parts = iter(self.squeue(f"--states={','.join(queued.STATES)}", options).split(end))
        for line, name in zip(parts, parts, strict=False):
            *row, output = line.removeprefix("\n").split(SEPARATOR, len(queued.FIELDS))
            if len(row) != len(queued.FIELDS):
                raise Unreachable(f"squeue told something else than it was asked for: {line[:200]}")
            found = dict(zip(queued.FIELDS, map(str.strip, row), strict=True))
            yield queued.read_job({**found, queued.OUTPUT: output, queued.NAME: name}, self._config.root)

    def find_named(self, jobs: Sequence[SlurmJob]) -> Iterable[ListedJob]:
        """See `Controller`."""
        return self.list_jobs([job.key for job in jobs])

    def nodes(self) -> Iterator[Mapping[str, str]]:
        """See `Controller`."""
        return self._show("NodeName", "--details", "show", "node")

    def nodes_of(self, number: int) -> Iterator[str]:
        """See `Controller`."""
        out = self.squeue(f"--jobs={number}", "--format=%N")
        return (name for line in out.splitlines() for name in hosts.expand(line.strip()) or ())

    def reservations(self) -> Iterator[Mapping[str, str]]:
        """See `Controller`."""
        return self._show("ReservationName", "show", "reservation")

    def _show(self, first: str, *options: str) -> Iterator[Mapping[str, str]]:
        """Yield the fields of what scontrol shows, one a line."""
        lines = self.scontrol("--oneliner", *options).splitlines()
        return (dict(_FIELD.findall(line)) for line in lines if line.startswith(f"{first}="))


def _parse_listed(row: Mapping[str, str], own: str) -> ListedJob | None:
    """Return a row of squeue, None for the further components of a job.

    `own` is the console's own user at Slurm.
    """
    if not row["JobID"].isdigit() or row["HetJobID"] not in (row["JobID"], "N/A", "0", ""):
        return None
    return ListedJob(
        number=int(row["JobID"]),
        name=row["Name"],
        state=row["State"],
        reason=row["Reason"],
        restarts=values.whole(row["RestartCnt"]),
        exit_code=values.shell_code(values.whole(row["exit_code"])),
        starts_at=values.time(row["StartTime"]),
        ended_at=values.time(row["EndTime"]),
        nodes=row["NodeList"] if row["NodeList"] != "(null)" else "",
        waited=values.time(row["AccrueTime"]) is not None,
        user="" if (user := row.get(USER, "")) == own else user,
    )


def _accounted_job(row: Mapping[str, str]) -> ListedJob:
    """Return a row of sacct, whose states may tell by whom."""
    return ListedJob(
        number=values.whole(row["JobIDRaw"]),
        name=row["JobName"],
        state=row["State"].split(" ")[0],
        reason=row["Reason"],
        exit_code=_exit_code(row["ExitCode"], row["DerivedExitCode"]),
        starts_at=values.time(row["Start"]),
        ended_at=values.time(row["End"]),
        nodes=row["NodeList"] if row["NodeList"] != "None assigned" else "",
    )


def _exit_code(code: str, derived: str) -> int:
    """Return the exit code of `code:signal`.

    Slurm stores a script's 137 as 9, and as it was only in the code that it derives from steps.
    """
    number, _colon, killer = code.partition(":")
    if values.whole(killer):
        return 128 + values.whole(killer)
    most = values.whole(derived.partition(":")[0])
    return most if most == 128 + values.whole(number) else values.whole(number)


def _parse_row(line: str, names: Sequence[str]) -> dict[str, str]:
    """Return a row's fields by their names, the last of which may contain anything."""
    row = line.split(SEPARATOR, len(names) - 1)
    if len(row) != len(names):
        raise Unreachable(f"Slurm told something else than it was asked for: {line[:200]}")
    return dict(zip(names, (value.strip() for value in row), strict=True))
