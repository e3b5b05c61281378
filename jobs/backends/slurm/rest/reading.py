"""Jobs and nodes as slurmrestd tells them, in whichever version: a number is one, or an object that holds one
(`set`, `infinite`, `number`), and a state is a word or a list of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jobs.backends.slurm.listing import Listed

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
        **{name: str(value) for name, each in numbers.items() if (value := _number(each)) is not None},
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
