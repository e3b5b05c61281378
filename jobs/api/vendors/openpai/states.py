"""States of jobs and tasks in OpenPAI's words, and the exit codes that stand for how a job ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from jobs import messages
from jobs.models import Job, Replica
from jobs.states import ENDINGS, TERMINAL, Phase, ReasonCode, Retry, State


class Version(Enum):
    """The version of the REST API: 1 is that of v0.14 on YARN, 2 that of v1.8 on Kubernetes."""

    V1 = 1
    V2 = 2


@dataclass(frozen=True, slots=True)
class JobState:
    """A state, and the state of the framework behind it."""

    state: str
    sub_state: str


_STATES: Final[Mapping[State, tuple[JobState, JobState]]] = {
    State.QUEUED: (
        JobState("WAITING", "FRAMEWORK_WAITING"),
        JobState("WAITING", "AttemptCreationPending"),
    ),
    State.SUBMITTING: (
        JobState("WAITING", "APPLICATION_CREATED"),
        JobState("WAITING", "AttemptCreationRequested"),
    ),
    State.PENDING: (
        JobState("WAITING", "APPLICATION_WAITING"),
        JobState("WAITING", "AttemptPreparing"),
    ),
    State.RUNNING: (
        JobState("RUNNING", "APPLICATION_RUNNING"),
        JobState("RUNNING", "AttemptRunning"),
    ),
    State.SUCCEEDED: (JobState("SUCCEEDED", "FRAMEWORK_COMPLETED"), JobState("SUCCEEDED", "Completed")),
    State.FAILED: (JobState("FAILED", "FRAMEWORK_COMPLETED"), JobState("FAILED", "Completed")),
    State.STOPPED: (JobState("STOPPED", "FRAMEWORK_COMPLETED"), JobState("STOPPED", "Completed")),
    State.LOST: (JobState("UNKNOWN", "UNKNOWN"), JobState("UNKNOWN", "UNKNOWN")),
}
"""Version 1 has no state of its own for a job that is being stopped: its execution type says it."""

_STOPPING: Final = JobState("STOPPING", "AttemptDeletionRequested")

_USER_STOP: Final = {Version.V1: -7351, Version.V2: -210}
_CODES: Final[Mapping[ReasonCode, tuple[int, int]]] = {
    ReasonCode.OUT_OF_MEMORY: (196, -1200),
    ReasonCode.NODE_LOST: (-7111, -1000),
    ReasonCode.REFUSED: (-7300, -1000),
    ReasonCode.PORT_CONFLICT: (-7103, 253),
    ReasonCode.IMAGE_FAILED: (193, 254),
}
_UNKNOWN_CODE: Final = 255

_PLATFORM: Final = frozenset(
    {
        ReasonCode.NODE_LOST,
        ReasonCode.MACHINE_RESTARTED,
        ReasonCode.WRAPPER_LOST,
        ReasonCode.START_FAILED,
        ReasonCode.MOUNT_FAILED,
        ReasonCode.PORT_CONFLICT,
        ReasonCode.SANITY_CHECK_FAILED,
        ReasonCode.LOST,
    }
)
_USER: Final = frozenset({ReasonCode.EXIT_CODE, ReasonCode.SIGNALLED, ReasonCode.OUT_OF_MEMORY})
_BEHAVIORS: Final = {
    Retry.NEVER: ("NON_TRANSIENT", "NEVER_RETRY"),
    Retry.TRANSIENT: ("TRANSIENT_NORMAL", "ALWAYS_RETRY"),
    Retry.COUNTED: ("UNKNOWN", "RETRY_TO_MAX"),
}


def is_stopping(job: Job) -> bool:
    """Tell whether the job's end was requested and not observed yet."""
    return job.phase == Phase.STOPPING and State(job.state) not in TERMINAL


def state_of(job: Job, version: Version) -> JobState:
    """Return the job's state."""
    if version is Version.V2 and is_stopping(job):
        return _STOPPING
    first, second = _STATES[State(job.state)]
    return first if version is Version.V1 else second


def states_named(name: str) -> tuple[State, ...]:
    """Return the states of which OpenPAI speaks by that name; none for an unknown one."""
    return tuple(state for state, (first, _second) in _STATES.items() if first.state == name)


def execution_type(job: Job) -> str:
    """Return START, or STOP once somebody wanted the job's end."""
    by_people = job.reason_code in {ReasonCode.USER_STOP, ReasonCode.ADMIN_STOP}
    return "STOP" if is_stopping(job) or by_people else "START"


def exit_code_of(job: Job, version: Version) -> int | None:
    """Return the exit code by which OpenPAI tells how a job ended; None while it has not."""
    state = State(job.state)
    if state is State.SUCCEEDED:
        return 0
    if state is State.STOPPED:
        return _USER_STOP[version]
    if state is not State.FAILED:
        return None
    return _failure_code(job, version)


def _failure_code(job: Job, version: Version) -> int:
    params: Mapping[str, Any] = job.reason_params
    if isinstance(params.get("exit_code"), int):
        return int(params["exit_code"])
    if isinstance(params.get("signal"), int):
        return 128 + int(params["signal"])
    found = _CODES.get(ReasonCode(job.reason_code))
    return found[version is Version.V2] if found else _UNKNOWN_CODE


def exit_code_of_task(replica: Replica) -> int | None:
    """Return a task's exit code, 128 and the signal's number for one that a signal ended."""
    if replica.exit_code is None and replica.signal is not None:
        return 128 + replica.signal
    return replica.exit_code


def exit_type_of(job: Job) -> str | None:
    """Return whose failure it was; None while the job has not ended."""
    state, code = State(job.state), ReasonCode(job.reason_code)
    if state not in TERMINAL:
        return None
    if state is State.SUCCEEDED:
        return "USER_SUCCESS"
    if state is State.STOPPED:
        return "USER_STOP"
    if code in _USER:
        return "USER_FAILURE"
    return "PLATFORM_FAILURE" if code in _PLATFORM else "UNKNOWN_FAILURE"


def exit_spec_of(job: Job, version: Version) -> dict[str, Any] | None:
    """Return the description of the job's exit code; None while the job has not ended."""
    code = exit_code_of(job, version)
    kind = exit_type_of(job)
    if code is None or kind is None:
        return None
    reason = ReasonCode(job.reason_code)
    effect = ENDINGS.get(reason)
    behavior, reaction = _BEHAVIORS[effect.retry if effect else Retry.NEVER]
    is_platform = kind == "PLATFORM_FAILURE"
    return {
        "code": code,
        "phrase": "".join(word.title() for word in reason.value.split("_")),
        "issuer": "PAI_RUNTIME" if is_platform else "USER_CONTAINER",
        "causer": "PAI_RUNTIME" if is_platform else "USER_CONTAINER",
        "type": kind,
        "stage": "COMPLETING",
        "behavior": behavior,
        "reaction": reaction,
        "reason": messages.reason_message(reason, job.reason_params),
        "repro": [],
        "solution": [],
    }
