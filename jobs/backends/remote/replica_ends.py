"""Ends of replicas: from the words of their status files to reasons."""

from __future__ import annotations

import signal
from typing import Final

from jobs.backends.base import FailedRun
from jobs.backends.remote.status_files import ReplicaEnd
from jobs.node.wrapper.outcome import NODE, Cause
from jobs.states import Params, Reason, ReasonCode

START_FAILURES: Final = {
    "mount": ReasonCode.MOUNT_FAILED,
    "code": ReasonCode.CODE_FAILED,
    "packages": ReasonCode.REQUIREMENTS_FAILED,
    "image": ReasonCode.IMAGE_FAILED,
    "data": ReasonCode.MOUNT_FAILED,
    "start": ReasonCode.START_FAILED,
}
"""What kept a replica's command from being started."""

_SIGNALS: Final = frozenset(int(each) for each in signal.Signals)


def killing_signal(code: int) -> int | None:
    """Return the signal of a shell's exit code, None for another code."""
    return code - 128 if code - 128 in _SIGNALS else None


def read_failed_run(number: int, end: ReplicaEnd) -> FailedRun:
    """Return the failed start of a replica with that number."""
    return FailedRun(number, describe_end(end), end.code, killing_signal(end.code), end.at)


def describe_end(end: ReplicaEnd) -> Reason:
    """Return why a replica ended."""
    if end.code == 0:
        return Reason(ReasonCode.COMPLETED)
    if end.how == Cause.INIT:
        container, _, error = end.detail.partition(" ")
        params: Params = {"container": container, "error": error, "exit_code": end.code}
        return Reason(ReasonCode.INIT_CONTAINER_FAILED, params)
    if end.how in START_FAILURES:
        return Reason(START_FAILURES[end.how], {"error": end.detail})
    if end.how == Cause.MEMORY:
        params = {"limit_mib": int(end.detail) if end.detail.isdecimal() else None, "exit_code": end.code}
        return Reason(ReasonCode.OUT_OF_MEMORY, params)
    if end.how == NODE:
        return Reason(ReasonCode.NODE_LOST, {"node": end.detail or None})
    if end.how == "lost":
        return Reason(ReasonCode.WRAPPER_LOST, {"exit_code": end.code})
    if (number := killing_signal(end.code)) is not None:
        return Reason(ReasonCode.SIGNALLED, {"signal": number, "exit_code": end.code})
    return Reason(ReasonCode.EXIT_CODE, {"exit_code": end.code})
