"""A job in a list, as OpenPAI describes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from jobs.api.vendors.openpai import states
from jobs.api.vendors.openpai.job_names import name_of
from jobs.api.vendors.openpai.states import Version
from jobs.models import Attempt, Job
from jobs.states import ENDINGS, ReasonCode, Retry

BATCH: Final = 10_000

_CONFLICTS: Final = frozenset({ReasonCode.PREEMPTED, ReasonCode.PORT_CONFLICT})
"""Reasons for a new attempt that are about resources."""


@dataclass(slots=True)
class RetryCounts:
    """Retries by cause: the user's failures, the platform's, and conflicts about resources."""

    user: int = 0
    platform: int = 0
    resource: int = 0

    def add(self, reason: str) -> None:
        """Count an attempt that ended for a reason."""
        code = ReasonCode(reason) if reason in ReasonCode.__members__.values() else None
        effect = ENDINGS.get(code) if code is not None else None
        if code in _CONFLICTS:
            self.resource += 1
        elif effect is not None and effect.retry is Retry.TRANSIENT:
            self.platform += 1
        else:
            self.user += 1

    def to_json(self) -> dict[str, int]:
        """Return the counts as OpenPAI writes them."""
        return {"user": self.user, "platform": self.platform, "resource": self.resource}


def load_retries(jobs: Iterable[Job]) -> Mapping[int, RetryCounts]:
    """Return the retries of those jobs that had any; one query for many of them."""
    retried = {job.pk: job.attempt_number for job in jobs if job.attempt_number > 1}
    found = {pk: RetryCounts() for pk in retried}
    for batch in in_batches(list(retried)):
        rows = Attempt.objects.filter(job__in=batch).values_list("job_id", "number", "reason_code")
        for pk, number, reason in rows:
            if number < retried[pk]:
                found[pk].add(reason)
    return found


def in_batches(pks: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield keys in portions that a database takes as parameters of one query."""
    for first in range(0, len(pks), BATCH):
        yield pks[first : first + BATCH]


def to_ms(moment: datetime | None) -> int | None:
    """Return a time in milliseconds since 1970."""
    return None if moment is None else int(moment.timestamp() * 1000)


def summarize(job: Job, retries: RetryCounts, version: Version, role_count: int) -> dict[str, Any]:
    """Return a job as an item of a list; its owner and quota have to be at hand."""
    state = states.state_of(job, version)
    owner = job.owner.get_username()
    summary = {
        "name": job.name,
        "namespace": owner,
        "username": owner,
        "state": state.state,
        "subState": state.sub_state,
        "executionType": states.execution_type(job),
        "retries": job.attempt_number - 1,
        "retryDetails": retries.to_json(),
        "createdTime": to_ms(job.created_at),
        "completedTime": to_ms(job.ended_at),
        "appExitCode": states.exit_code_of(job, version),
        "virtualCluster": job.quota.slug,
        "totalGpuNumber": job.gpus,
        "totalTaskNumber": job.replicas_total,
        "totalTaskRoleNumber": role_count,
    }
    if version is Version.V1:
        return summary
    return {
        **summary,
        "debugId": job.public_id,
        "retryDelayTime": None,
        "submissionTime": to_ms(job.created_at),
        "launchedTime": to_ms(job.started_at),
        "jobPriority": None,
        "frameworkName": name_of(job),
    }
