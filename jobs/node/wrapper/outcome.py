"""The end of a replica, as its wrapper records it, and the state that follows."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from signal import SIGKILL
from typing import Any, Final, Self

from jobs.states import Reason, ReasonCode, ReplicaState

KILLED: Final = 128 + SIGKILL
NOT_FOUND: Final = 127
"""What a shell says of a command that could not be run."""


NODE: Final = "node"
"""How a replica ended whose node the engine has lost, in its status file; nobody there tells an `Exit`."""


class Cause(StrEnum):
    """Cause of a replica's end.

    COMMAND: the command ended, by itself or by a signal that we did not send.
    TOLD: it ended after we had told it to.  NOT_STARTED: the job was over before it began.
    MEMORY: it used more than it was given.  START, IMAGE, MOUNT, CODE, PACKAGES: it could not be started.
    DATA: likewise, or what it wrote could not be taken away.  INIT: an init container failed.
    LOST: its wrapper was killed.  RESTART: the machine was started anew.
    """

    COMMAND = "command"
    TOLD = "told"
    NOT_STARTED = "not_started"
    MEMORY = "memory"
    START = "start"
    IMAGE = "image"
    MOUNT = "mount"
    CODE = "code"
    DATA = "data"
    PACKAGES = "packages"
    INIT = "init"
    LOST = "lost"
    RESTART = "restart"


@dataclass(frozen=True, slots=True)
class Exit:
    """One replica's end.  `code` is 128+n for a signal n; times are seconds since the epoch, `at` is
    seconds since the boot; `detail` is the system's own words for what went wrong; `container` is the init
    container that failed.
    """

    cause: Cause
    at: float
    ended_at: float
    started_at: float | None = None
    code: int | None = None
    signal: int | None = None
    detail: str = ""
    container: str = ""

    @classmethod
    def load(cls, value: Mapping[str, Any]) -> Self:
        """Read it from JSON."""
        return cls(**{**value, "cause": Cause(value["cause"])})

    def dump(self) -> dict[str, Any]:
        """Return it as JSON, without a container where there is none: earlier releases know no such field."""
        value = asdict(self)
        return (
            value if self.container else {name: said for name, said in value.items() if name != "container"}
        )


def now(
    cause: Cause,
    *,
    started_at: float | None = None,
    code: int | None = None,
    signal: int | None = None,
    detail: str = "",
    container: str = "",
) -> Exit:
    """An end at this moment."""
    return Exit(cause, time.monotonic(), time.time(), started_at, code, signal, detail, container)


def code_of(status: int) -> tuple[int, int | None]:
    """A wait status as (exit code, 128+n for a signal; the signal or None)."""
    code = os.waitstatus_to_exitcode(status)
    return (code, None) if code >= 0 else (128 - code, -code)


def judge(exit_: Exit, memory_mib: int) -> tuple[ReplicaState, Reason]:
    """The replica's state and why."""
    code = exit_.code
    if exit_.cause is Cause.COMMAND:
        return _by_itself(exit_)
    failed: dict[Cause, Reason] = {
        Cause.MEMORY: Reason(ReasonCode.OUT_OF_MEMORY, {"limit_mib": memory_mib, "exit_code": code}),
        Cause.START: Reason(ReasonCode.START_FAILED, {"error": exit_.detail, "exit_code": code}),
        Cause.IMAGE: Reason(ReasonCode.IMAGE_FAILED, {"error": exit_.detail, "exit_code": code}),
        Cause.MOUNT: Reason(ReasonCode.MOUNT_FAILED, {"error": exit_.detail}),
        Cause.DATA: Reason(ReasonCode.MOUNT_FAILED, {"error": exit_.detail}),
        Cause.CODE: Reason(ReasonCode.CODE_FAILED, {"error": exit_.detail, "exit_code": code}),
        Cause.PACKAGES: Reason(ReasonCode.REQUIREMENTS_FAILED, {"error": exit_.detail, "exit_code": code}),
        Cause.INIT: Reason(
            ReasonCode.INIT_CONTAINER_FAILED,
            {"container": exit_.container, "error": exit_.detail, "exit_code": code},
        ),
        Cause.LOST: Reason(ReasonCode.WRAPPER_LOST, {"exit_code": code}),
        Cause.RESTART: Reason(ReasonCode.MACHINE_RESTARTED),
    }
    if exit_.cause in failed:
        return ReplicaState.FAILED, failed[exit_.cause]
    return ReplicaState.STOPPED, Reason(ReasonCode.JOB_ENDED)


def _by_itself(exit_: Exit) -> tuple[ReplicaState, Reason]:
    if exit_.signal is not None:
        params = {"signal": exit_.signal, "exit_code": exit_.code}
        return ReplicaState.FAILED, Reason(ReasonCode.SIGNALLED, params)
    if exit_.code:
        return ReplicaState.FAILED, Reason(ReasonCode.EXIT_CODE, {"exit_code": exit_.code})
    return ReplicaState.SUCCEEDED, Reason(ReasonCode.COMPLETED)
