"""Jobs and nodes of slurmrestd, in any version of its API.

A number is a number or an object (`set`, `infinite`, `number`), a state a word or a list of words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jobs.backends.slurm.client import queue, values
from jobs.backends.slurm.client.listing import ListedJob

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
"""States that squeue shows in place of the base state."""


def parse_job(job: Mapping[str, Any]) -> ListedJob | None:
    """Return a job; None for the further components of one."""
    number = _number(job.get("job_id")) or 0
    if _number(job.get("het_job_id")) not in (None, 0, number):
        return None
    return ListedJob(
        number=number,
        name=str(job.get("name") or ""),
        state=parse_state(job.get("job_state")),
        reason=str(job.get("state_description") or job.get("state_reason") or "None"),
        restarts=_number(job.get("restart_cnt")) or 0,
        exit_code=_exit_code(job.get("exit_code")),
        starts_at=_time(job.get("start_time")),
        ended_at=_time(job.get("end_time")),
        nodes=str(job.get("nodes") or ""),
        waited=bool(_number(job.get("accrue_time"))),
    )


def parse_accounted(job: Mapping[str, Any]) -> ListedJob:
    """Return a job of slurmdbd.  In v0.0.38 the exit code of a failed one is unknown, and 0."""
    current, times = job.get("state") or {}, job.get("time") or {}
    return ListedJob(
        number=_number(job.get("job_id")) or 0,
        name=str(job.get("name") or ""),
        state=parse_state(current.get("current")),
        reason=str(current.get("reason") or "None"),
        exit_code=_exit_code(job.get("exit_code")),
        starts_at=_time(times.get("start")),
        ended_at=_time(times.get("end")),
        nodes=str(job.get("nodes") or "").replace("None assigned", ""),
    )


def is_first_component(job: Mapping[str, Any]) -> bool:
    """Return whether a job of slurmdbd is no further component of another."""
    return not _number((job.get("het") or {}).get("job_offset"))


def parse_queued(job: Mapping[str, Any]) -> dict[str, str]:
    """Return a job of any user, with the fields of `queue`."""
    number, leader = _number(job.get("job_id")) or 0, _number(job.get("het_job_id")) or 0
    numbers = {
        "NumNodes": job.get("node_count"),
        "NumTasks": job.get("tasks"),
        "SubmitTime": job.get("submit_time"),
        "StartTime": job.get("start_time"),
        "EndTime": job.get("end_time"),
    }
    words = {
        "UserName": job.get("user_name"),
        "Partition": job.get("partition"),
        "Reason": job.get("state_description") or job.get("state_reason"),
        "tres-alloc": job.get("tres_alloc_str") or job.get("tres_req_str"),
        "tres-per-job": job.get("tres_per_job"),
        "tres-per-node": job.get("tres_per_node"),
        "tres-per-task": job.get("tres_per_task"),
        "NodeList": job.get("nodes"),
        queue.NAME: job.get("name"),
    }
    waits = parse_state(job.get("job_state")) == "PENDING"
    array = _array(job)
    return {
        "JobID": str(number),
        "HetJobID": str(leader),
        "JobArrayID": array
        or (f"{leader}+{_number(job.get('het_job_offset')) or 0}" if leader else str(number)),
        "StateCompact": queue.WAITS if waits else "R",
        queue.OUTPUT: _output(job, array),
        **{name: str(_number(each) or 0) for name, each in numbers.items()},
        **{name: str(each or "") for name, each in words.items()},
    }


def _array(job: Mapping[str, Any]) -> str:
    """Return the number of an array's task, or of all its waiting ones; "" for a job in no array."""
    array, which = _number(job.get("array_job_id")) or 0, str(job.get("array_task_string") or "")
    task = f"[{which}]" if which else str(_number(job.get("array_task_id")) or 0)
    return f"{array}_{task}" if array else ""


def _output(job: Mapping[str, Any], array: str) -> str:
    """Return the output file; Slurm tells none where the job names none."""
    path = str(job.get("stdout_expanded") or job.get("standard_output") or "")
    if path or not job.get("batch_flag"):
        return path
    return f"{job.get('current_working_directory') or ''}/slurm-{'%A_%a' if array else '%j'}.out"


def parse_state(job: Any) -> str:
    """Return a job's state as squeue shows it."""
    words = [str(each) for each in job] if isinstance(job, list) else [str(job or "")]
    return next((word for word in PASSING if word in words), words[0] if words else "")


def parse_node(job: Mapping[str, Any]) -> dict[str, str]:
    """Return a node, in the words of `scontrol show node`."""
    words = [*_words(job.get("state")), *_words(job.get("state_flags"))]
    numbers = {
        "CPUEfctv": job.get("effective_cpus"),
        "CPUTot": job.get("cpus"),
        "CPUAlloc": job.get("alloc_cpus"),
        "RealMemory": job.get("real_memory"),
        "AllocMem": job.get("alloc_memory"),
    }
    return {
        "NodeName": str(job.get("name") or ""),
        "NodeAddr": str(job.get("address") or ""),
        "State": "+".join(word.upper() for word in words) or "UNKNOWN",
        "Gres": str(job.get("gres") or ""),
        "GresUsed": str(job.get("gres_used") or ""),
        "Reason": str(job.get("reason") or ""),
        "Partitions": ",".join(_words(job.get("partitions"))),
        **{name: str(value) for name, each in numbers.items() if (value := _number(each)) is not None},
    }


def parse_reservation(job: Mapping[str, Any]) -> dict[str, str]:
    """Return a reservation, in the words of `scontrol show reservation`."""
    times = {"StartTime": job.get("start_time"), "EndTime": job.get("end_time")}
    return {
        "ReservationName": str(job.get("name") or ""),
        "Nodes": str(job.get("node_list") or ""),
        "Users": str(job.get("users") or ""),
        "Accounts": str(job.get("accounts") or ""),
        "Flags": ",".join(word.upper() for word in _words(job.get("flags"))),
        **{name: str(at) for name, each in times.items() if (at := _number(each)) is not None},
    }


def _words(job: Any) -> list[str]:
    return [str(each) for each in job] if isinstance(job, list) else [str(job)] if job else []


def _number(job: Any) -> int | None:
    """Return a number that is set and finite."""
    if isinstance(job, Mapping):
        return _number(job.get("number")) if job.get("set") and not job.get("infinite") else None
    return int(job) if isinstance(job, int | float) and not isinstance(job, bool) else None


def _time(value: Any) -> float | None:
    return float(_number(value) or 0) or None


def _exit_code(job: Any) -> int:
    """Return an exit code as a shell has it: 128+n for a signal."""
    if isinstance(job, Mapping):
        signal = job.get("signal")
        by = signal if isinstance(signal, Mapping) else {}
        killer = _number(by.get("id", by.get("signal_id")))
        return 128 + killer if killer else _number(job.get("return_code")) or 0
    return values.shell_code(_number(job) or 0)
