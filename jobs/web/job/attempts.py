"""The attempts of a job as its page shows them, with the work that was lost between them."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.messages.amounts import duration
from jobs.models import Attempt, Job


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """An attempt, and the time of its work that the next one did again, "" where that is not known."""

    attempt: Attempt
    lost: str = ""


def list_attempts(job: Job) -> list[AttemptRow]:
    """Return the job's attempts, the newest first."""
    attempts = list(Attempt.objects.filter(job=job).order_by("-number"))
    later = (None, *attempts)
    return [AttemptRow(each, _lost_time(each, after)) for each, after in zip(attempts, later, strict=False)]


def _lost_time(attempt: Attempt, after: Attempt | None) -> str:
    """Return the time between the checkpoint of the attempt after it, or its own start, and its end."""
    if after is None or after.started_at is None or attempt.started_at is None or attempt.ended_at is None:
        return ""
    saved = max(after.checkpoint_at or attempt.started_at, attempt.started_at)
    return duration(max(0, round((attempt.ended_at - saved).total_seconds())))
