"""What everybody's jobs are, as Slurm lists them, whichever way it was asked.

Names and paths of other people's may hold anything, line ends among it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from jobs.backends.base import Handle, QueuedJob
from jobs.backends.slurm.script import layout
from jobs.backends.slurm.script.layout import NotOurs, Sent
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
"""What squeue is asked for, in its words; a name and a path come after them."""

OUTPUT: Final = "STDOUT"
NAME: Final = "Name"

WAITS: Final = "PD"
STATES: Final = ("PENDING", "RUNNING", "SUSPENDED", "CONFIGURING")

_GPU: Final = re.compile(r"\bgpu(?:[:/]([^:,=()]*[^:,=()\d][^:,=()]*))?[:=](\d+)")
_PATTERN: Final = re.compile(r"%(\d{0,2})([%AajJuxs])")
_LONGEST: Final = 1000


def read(told: Mapping[str, str], root: Path) -> QueuedJob:
    """One of them; `root` is where the console's own jobs lie."""
    amounts = dict(part.partition("=")[::2] for part in told["tres-alloc"].split(",") if "=" in part)
    running = told["StateCompact"] != WAITS
    return QueuedJob(
        number=told["JobArrayID"],
        name=told[NAME],
        user=told["UserName"],
        running=running,
        handle=_handle(told, root),
        partition=told["Partition"],
        reason="" if running else told["Reason"],
        cpu_milli=whole(amounts.get("cpu", "")) * 1000,
        memory_mib=_mib(amounts.get("mem", "")),
        gpus=_gpus(told),
        nodes=hosts.names(told["NodeList"]) or () if running else (),
        submitted_at=_time(told["SubmitTime"]),
        started_at=_time(told["StartTime"]) if running else None,
        ends_at=_time(told["EndTime"]) if running else None,
        output=_output(told) if running else "",
    )


def _handle(told: Mapping[str, str], root: Path) -> Handle | None:
    """The handle that the job has if it is the console's own.  One that Slurm forgot, and was handed over
    again, has another number than its handle.
    """
    leader = whole(told["HetJobID"]) or whole(told["JobID"])
    key = told[NAME]
    try:
        folder = layout.attempt(root, key)
        if (layout.text(folder / "again") or "").strip() == str(leader):
            leader = whole((layout.text(folder / "sent") or "").strip())
    except (NotOurs, OSError):
        return None
    return Sent(leader, key).handle


def _output(told: Mapping[str, str]) -> str:
    """The file that it writes to, as far as that can be told; '' otherwise."""
    array, _, index = told["JobArrayID"].partition("_")
    path = told[OUTPUT]
    if index and path.endswith(f"/slurm-{told['JobID']}.out"):  # where squeue says so, it is mistaken
        path = path.removesuffix(f"{told['JobID']}.out") + f"{array}_{index}.out"
    known = {
        "%": "%",
        "j": told["JobID"],
        "J": told["JobID"],
        "A": array if index else told["JobID"],
        "a": index,
        "u": told["UserName"],
        "x": told[NAME],
    }

    def put(match: re.Match[str]) -> str:
        value = known.get(match[2])
        return match[0] if value is None else value.zfill(int(match[1] or 0)) if value.isdigit() else value

    found = _PATTERN.sub(put, path)
    return found if found.startswith("/") and len(found) <= _LONGEST and "\0" not in found else ""


def _gpus(told: Mapping[str, str]) -> dict[str, int]:
    """GPUs by type, as asked for: what was given names them only where Slurm's accounting counts them."""
    times = {"job": 1, "node": whole(told["NumNodes"]), "task": whole(told["NumTasks"])}
    found: dict[str, int] = {}
    for each, count in times.items():
        for kind, number in _GPU.findall(told[f"tres-per-{each}"]):
            found[kind] = found.get(kind, 0) + int(number) * count
        if found:
            break
    return found


def _mib(value: str) -> int:
    """What Slurm writes as 200M, 1.50G or 2T."""
    number, unit = value.rstrip("KMGT"), value[-1:]
    try:
        return round(float(number) * {"K": 1 / 1024, "G": 1024, "T": 1 << 20}.get(unit, 1))
    except ValueError:
        return 0


def whole(value: str) -> int:
    """A number; 0 for anything else."""
    return int(value) if value.isascii() and value.isdigit() else 0


def _time(value: str) -> float | None:
    return float(value) if whole(value) else None
