"""A small job of a person's, from its submission to its log: whether everything is there that theirs need."""

from __future__ import annotations

import secrets
import time
from typing import Final, Protocol

from jobs.backends.base import (
    Backend,
    Handle,
    Holding,
    NotSent,
    Observation,
    Person,
    Refused,
    Submission,
    TaskRef,
    Unknown,
    Unreachable,
)
from jobs.spec import JobSpec, Resources, TaskRole
from jobs.states import TERMINAL, State

PATIENCE_S: Final = 120
EVERY_S: Final = 0.5
ROLE: Final = "look"
MOST: Final = 1000


class Held(Backend, Holding, Protocol):
    """A backend whose jobs wait to be released."""


def run(backend: Held, person: Person) -> str:
    """As whom it ran, by its own words.  Raises Refused for a job that was refused or failed, Unreachable for
    one that did not end soon.
    """
    resources = Resources(cpu_milli=1000, memory_mib=64)
    job_id = f"t{secrets.token_hex(6)}"
    submission = Submission(
        key=f"try-{job_id}-1",
        job_id=job_id,
        attempt=1,
        spec=JobSpec(
            name="job-console-look", roles=(TaskRole(name=ROLE, command="id -un", resources=resources),)
        ),
        person=person,
    )
    try:
        handle = backend.submit(submission)
    except (NotSent, Unknown) as error:
        raise Unreachable(_why(error)) from error
    try:
        return _followed(backend, handle)
    finally:
        backend.forget(handle)


def _why(error: NotSent | Unknown) -> str:
    return str(error.reason.params.get("detail", "")) if isinstance(error, NotSent) else str(error)


def _followed(backend: Held, handle: Handle) -> str:
    backend.release([handle])
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        seen = backend.observe([handle])[handle]
        if isinstance(seen, Observation) and seen.state in TERMINAL:
            if seen.state is not State.SUCCEEDED:
                raise Refused(seen.reason)
            return backend.read_log(handle, TaskRef(ROLE, 0), "", MOST).data.decode(errors="replace").strip()
        time.sleep(EVERY_S)
    backend.stop(handle, grace_s=0, signal="KILL")
    raise Unreachable(f"The job that was to try it did not end within {PATIENCE_S} s.")
