"""Lines of output that say why jobs failed, for those who may read the jobs' logs.

A job's row has the reason that everybody in the workspace may know: which replica failed, and how.  The line
is part of its log, and is kept with the attempt (`Attempt.fault`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from django.db.models import F

from jobs.fault_tolerance.decisions import Fault
from jobs.models import Attempt, Job
from jobs.states import Reason, ReasonCode, State
from quotas.access import Verb, Visitor, those

LONGEST: Final = 300

_CODES: Final = frozenset({ReasonCode.EXIT_CODE, ReasonCode.SIGNALLED})
"""Reasons that a line of output explains; the others explain themselves."""


def load_failures(user: Visitor, jobs: Iterable[Job]) -> None:
    """Set `told` of the failed ones of `jobs` that `user` may read: the reason with its line of output.

    Two queries for all, and none where no job failed.
    """
    rows = [job for job in jobs if job.state == State.FAILED and job.reason_code in _CODES]
    readable = {job.pk: job for job in those(user, Verb.READ, rows)} if rows else {}
    if not readable:
        return
    attempts = Attempt.objects.filter(
        job__in=readable, number=F("job__attempt_number"), fault__isnull=False
    ).values_list("job_id", "fault")
    for job_id, stored in attempts:
        set_reason(readable[job_id], Fault.from_json(stored or {}))


def set_reason(job: Job, fault: Fault) -> None:
    """Set `told` of a failed job: the line of output that says why, and the replica that wrote it."""
    if job.state != State.FAILED or job.reason_code not in _CODES or not fault.line:
        return
    params = job.reason_params
    is_same = (params.get("role"), params.get("index")) == (fault.role, fault.index)
    end = {key: params.get(key) for key in ("exit_code", "signal")} if is_same else {}
    line = fault.line if len(fault.line) <= LONGEST else fault.line[: LONGEST - 1] + "…"
    shown = {**end, "role": fault.role, "index": fault.index, "output": line}
    job.told = Reason(ReasonCode(job.reason_code), shown)
