"""A probe job of a person, followed from its submission to its log."""

from __future__ import annotations

import secrets
import time
from typing import Final

from jobs.backends.base import (
    Backend,
    Handle,
    HeldSubmission,
    NotSubmitted,
    Observation,
    Person,
    Refused,
    ReplicaRef,
    Submission,
    Unknown,
    Unreachable,
)
from jobs.spec import JobSpec, Resources, RoleSpec
from jobs.states import TERMINAL, State

PATIENCE_S: Final = 120
POLL_S: Final = 0.5
ROLE: Final = "look"
COMMAND: Final = 'name=$(id -un 2>/dev/null) || name=$(id -u); echo "$name"'
"""Prints the user's name, or its number where the image has no name for it."""

MAX_OUTPUT: Final = 1000


def run(backend: Backend, person: Person, workspace: str = "") -> str:
    """Run a probe job, in a workspace where that matters, and return the name of the user as whom it ran.

    Raises Refused for a job that was refused or failed, Unreachable for one that did not end soon.
    """
    resources = Resources(cpu_milli=100, memory_mib=64)
    probe = RoleSpec(name=ROLE, command=COMMAND, resources=resources)
    job_id = f"t{secrets.token_hex(6)}"
    submission = Submission(
        key=f"try-{job_id}-1",
        job_id=job_id,
        attempt=1,
        spec=JobSpec(name="job-console-look", roles=(probe,)),
        person=person,
        workspace=workspace,
    )
    try:
        handle = backend.submit(submission)
    except (NotSubmitted, Unknown) as error:
        raise Unreachable(_why(error)) from error
    try:
        return _follow(backend, handle)
    finally:
        backend.forget(handle)


def _why(error: NotSubmitted | Unknown) -> str:
    detail = error.reason.params.get("detail") if isinstance(error, NotSubmitted) else None
    return str(detail or error)


def _follow(backend: Backend, handle: Handle) -> str:
    if isinstance(backend, HeldSubmission):
        backend.release([handle])
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        seen = backend.observe([handle])[handle]
        if isinstance(seen, Observation) and seen.state in TERMINAL:
            if seen.state is not State.SUCCEEDED:
                raise Refused(seen.reason)
            return (
                backend.read_log(handle, ReplicaRef(ROLE, 0), "", MAX_OUTPUT)
                .data.decode(errors="replace")
                .strip()
            )
        time.sleep(POLL_S)
    backend.stop(handle, grace_s=0, signal="KILL")
    raise Unreachable(f"The job that was to try it did not end within {PATIENCE_S} s.")
