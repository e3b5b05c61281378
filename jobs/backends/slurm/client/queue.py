"""The jobs of all users in Slurm's queue, however it was asked.

Names and paths of other users may contain anything, also line ends.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from jobs.backends.base import Handle, QueuedJob
from jobs.backends.remote import attempts
from jobs.backends.remote.attempts import InvalidKey
from jobs.backends.slurm.client import values
from jobs.backends.slurm.handles import SlurmJob
from jobs.dialects.sbatch import hosts

FIELDS: Final = (
    "JobID",
    "HetJobID",
    "JobArrayID",
    "UserName",
    "Partition",
    "StateCompact",
    "Reason",
    "tres-alloc",
    "tres-per-job",
    "tres-per-node",
    "tres-per-task",
    "NumNodes",
    "NumTasks",
    "SubmitTime",
    "StartTime",
    "EndTime",
    "NodeList",
)
"""The fields of squeue; a name and a path come after them."""

OUTPUT: Final = "STDOUT"
NAME: Final = "Name"

WAITS: Final = "PD"
STATES: Final = ("PENDING", "RUNNING", "SUSPENDED", "CONFIGURING")

_GPU: Final = re.compile(r"\bgpu(?:[:/]([^:,=()]*[^:,=()\d][^:,=()]*))?[:=](\d+)")
_PATTERN: Final = re.compile(r"%(\d{0,2})([%AajJuxs])")
_LONGEST: Final = 1000


def read_job(row: Mapping[str, str], root: Path) -> QueuedJob:
    """Return one job; `root` is the folder of the console's own jobs."""
    amounts = dict(part.partition("=")[::2] for part in row["tres-alloc"].split(",") if "=" in part)
    running = row["StateCompact"] != WAITS
    return QueuedJob(
        number=row["JobArrayID"],
        name=row[NAME],
        user=row["UserName"],
        running=running,
        handle=_handle(row, root),
        partition=row["Partition"],
        reason="" if running else row["Reason"],
        cpu_milli=values.whole(amounts.get("cpu", "")) * 1000,
        memory_mib=values.mib(amounts.get("mem", "")) or 0,
        gpus=_gpus(row),
        nodes=hosts.expand(row["NodeList"]) or () if running else (),
        submitted_at=values.time(row["SubmitTime"]),
        started_at=values.time(row["StartTime"]) if running else None,
        ends_at=values.time(row["EndTime"]) if running else None,
        output=_output(row) if running else "",
    )


def _handle(row: Mapping[str, str], root: Path) -> Handle | None:
    """Return the handle of a job of the console, None for another job.

    A job that Slurm forgot, and was submitted again, has another number than its handle.
    """
    leader = values.whole(row["HetJobID"]) or values.whole(row["JobID"])
    key = row[NAME]
    try:
        folder = attempts.attempt_folder(root, key)
        if (attempts.read_text(folder / "again") or "").strip() == str(leader):
            leader = values.whole((attempts.read_text(folder / "sent") or "").strip())
    except (InvalidKey, OSError):
        return None
    return SlurmJob(leader, key).handle


def _output(row: Mapping[str, str]) -> str:
    """Return the job's output file, "" where it is not known."""
    array, _, index = row["JobArrayID"].partition("_")
    path = row[OUTPUT]
    if index and path.endswith(f"/slurm-{row['JobID']}.out"):  # which squeue says, wrongly, of arrays
        path = path.removesuffix(f"{row['JobID']}.out") + f"{array}_{index}.out"
    known = {
        "%": "%",
        "j": row["JobID"],
        "J": row["JobID"],
        "A": array if index else row["JobID"],
        "a": index,
        "u": row["UserName"],
        "x": row[NAME],
    }

    def substitute(match: re.Match[str]) -> str:
        value = known.get(match[2])
        return match[0] if value is None else value.zfill(int(match[1] or 0)) if value.isdigit() else value

    found = _PATTERN.sub(substitute, path)
    return found if found.startswith("/") and len(found) <= _LONGEST and "\0" not in found else ""


def _gpus(row: Mapping[str, str]) -> dict[str, int]:
    """Return requested GPUs by type: allocated ones are listed only where Slurm's accounting counts them."""
    times = {"job": 1, "node": values.whole(row["NumNodes"]), "task": values.whole(row["NumTasks"])}
    found: dict[str, int] = {}
    for each, count in times.items():
        for kind, number in _GPU.findall(row[f"tres-per-{each}"]):
            found[kind] = found.get(kind, 0) + int(number) * count
        if found:
            break
    return found
