"""Jobs and nodes as slurmrestd tells them, in whichever version: a number is one, or an object that holds one
(`set`, `infinite`, `number`), and a state is a word or a list of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jobs.backends.slurm.client import everybody
from jobs.backends.slurm.client.listing import Listed

PASSING: Final = (
    "COMPLETING",
    "CONFIGURING",
    "STAGE_OUT",
    "REQUEUE_HOLD",
    "SPECIAL_EXIT",
    "REQUEUED",
    "REVOKED",
    "RESV_DEL_HOLD",
    "SIGNALING",
    "STOPPED",
    "RESIZING",
)
"""What squeue says in place of the state itself, where it is so."""


def listed(told: Mapping[str, Any]) -> Listed | None:
    """A job; None for the further components of one."""
    number = _number(told.get("job_id")) or 0
    if _number(told.get("het_job_id")) not in (None, 0, number):
        return None
    starts_at, ended_at = _number(told.get("start_time")), _number(told.get("end_time"))
    return Listed(
        number=number,
        name=str(told.get("name") or ""),
        state=state(told.get("job_state")),
        reason=str(told.get("state_description") or told.get("state_reason") or "None"),
        restarts=_number(told.get("restart_cnt")) or 0,
        exit_code=_exit_code(told.get("exit_code")),
        starts_at=float(starts_at) if starts_at else None,
        ended_at=float(ended_at) if ended_at else None,
        nodes=str(told.get("nodes") or ""),
        waited=bool(_number(told.get("accrue_time"))),
    )


def past(told: Mapping[str, Any]) -> Listed:
    """A job as slurmdbd has it.  By v0.0.38 the exit code of one that failed is 0: it is not known."""
    current, times = told.get("state") or {}, told.get("time") or {}
    starts_at, ended_at = _number(times.get("start")), _number(times.get("end"))
    return Listed(
        number=_number(told.get("job_id")) or 0,
        name=str(told.get("name") or ""),
        state=state(current.get("current")),
        reason=str(current.get("reason") or "None"),
        exit_code=_exit_code(told.get("exit_code")),
        starts_at=float(starts_at) if starts_at else None,
        ended_at=float(ended_at) if ended_at else None,
        nodes=str(told.get("nodes") or "").replace("None assigned", ""),
    )


def is_first(told: Mapping[str, Any]) -> bool:
    """Whether slurmdbd tells of a job, or of its first component."""
    return not _number((told.get("het") or {}).get("job_offset"))


def queued(told: Mapping[str, Any]) -> dict[str, str]:
    """A job of anybody's, in the words of `everybody.FIELDS`."""
    number, leader = _number(told.get("job_id")) or 0, _number(told.get("het_job_id")) or 0
    numbers = {
        "NumNodes": told.get("node_count"),
        "NumTasks": told.get("tasks"),
        "SubmitTime": told.get("submit_time"),
        "StartTime": told.get("start_time"),
        "EndTime": told.get("end_time"),
    }
    words = {
        "UserName": told.get("user_name"),
        "Partition": told.get("partition"),
        "Reason": told.get("state_description") or told.get("state_reason"),
        "tres-alloc": told.get("tres_alloc_str") or told.get("tres_req_str"),
        "tres-per-job": told.get("tres_per_job"),
        "tres-per-node": told.get("tres_per_node"),
        "tres-per-task": told.get("tres_per_task"),
        "NodeList": told.get("nodes"),
        everybody.NAME: told.get("name"),
    }
    waits = state(told.get("job_state")) == "PENDING"
    array = _array(told)
    return {
        "JobID": str(number),
        "HetJobID": str(leader),
        "JobArrayID": array
        or (f"{leader}+{_number(told.get('het_job_offset')) or 0}" if leader else str(number)),
        "StateCompact": everybody.WAITS if waits else "R",
        everybody.OUTPUT: _output(told, array),
        **{name: str(_number(each) or 0) for name, each in numbers.items()},
        **{name: str(each or "") for name, each in words.items()},
    }


def _array(told: Mapping[str, Any]) -> str:
    """The number of one job, or of all that still wait, of an array; '' for a job that is in none."""
    array, which = _number(told.get("array_job_id")) or 0, str(told.get("array_task_string") or "")
    task = f"[{which}]" if which else str(_number(told.get("array_task_id")) or 0)
    return f"{array}_{task}" if array else ""


def _output(told: Mapping[str, Any], array: str) -> str:
    """Where it writes to: Slurm tells nothing where the job does not say so."""
    path = str(told.get("stdout_expanded") or told.get("standard_output") or "")
    if path or not told.get("batch_flag"):
        return path
    return f"{told.get('current_working_directory') or ''}/slurm-{'%A_%a' if array else '%j'}.out"


def state(told: Any) -> str:
    """The word that squeue has for a job's state."""
    words = [str(each) for each in told] if isinstance(told, list) else [str(told or "")]
    return next((word for word in PASSING if word in words), words[0] if words else "")


def node(told: Mapping[str, Any]) -> dict[str, str]:
    """A node, in the words of `scontrol show node`."""
    words = [*_words(told.get("state")), *_words(told.get("state_flags"))]
    numbers = {
        "CPUEfctv": told.get("effective_cpus"),
        "CPUTot": told.get("cpus"),
        "CPUAlloc": told.get("alloc_cpus"),
        "RealMemory": told.get("real_memory"),
        "AllocMem": told.get("alloc_memory"),
    }
    return {
        "NodeName": str(told.get("name") or ""),
        "NodeAddr": str(told.get("address") or ""),
        "State": "+".join(word.upper() for word in words) or "UNKNOWN",
        "Gres": str(told.get("gres") or ""),
        "GresUsed": str(told.get("gres_used") or ""),
        "Reason": str(told.get("reason") or ""),
        "Partitions": ",".join(_words(told.get("partitions"))),
        **{name: str(value) for name, each in numbers.items() if (value := _number(each)) is not None},
    }


def reservation(told: Mapping[str, Any]) -> dict[str, str]:
    """A reservation, in the words of `scontrol show reservation`."""
    times = {"StartTime": told.get("start_time"), "EndTime": told.get("end_time")}
    return {
        "ReservationName": str(told.get("name") or ""),
        "Nodes": str(told.get("node_list") or ""),
        "Users": str(told.get("users") or ""),
        "Accounts": str(told.get("accounts") or ""),
        "Flags": ",".join(word.upper() for word in _words(told.get("flags"))),
        **{name: str(at) for name, each in times.items() if (at := _number(each)) is not None},
    }


def _words(told: Any) -> list[str]:
    return [str(each) for each in told] if isinstance(told, list) else [str(told)] if told else []


def _number(told: Any) -> int | None:
    """A number that is set and ends."""
    if isinstance(told, Mapping):
        return _number(told.get("number")) if told.get("set") and not told.get("infinite") else None
    return int(told) if isinstance(told, int | float) and not isinstance(told, bool) else None


def _exit_code(told: Any) -> int:
    """As a shell has it: 128+n for a signal."""
    if isinstance(told, Mapping):
        signal = told.get("signal")
        by = signal if isinstance(signal, Mapping) else {}
        killer = _number(by.get("id", by.get("signal_id")))
        return 128 + killer if killer else _number(told.get("return_code")) or 0
    status = _number(told) or 0
    return 128 + (status & 0x7F) if status & 0x7F else status >> 8
