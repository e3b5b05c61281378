"""How long what lies in an ended job's folders is kept."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from jobs.models import Attempt, JobFile

KEEP: Final = timedelta(hours=24)
"""The folder of an ended attempt is kept this long, so that its files can still be looked at."""


def kept_until(attempt: Attempt) -> datetime | None:
    """When the folders of an ended attempt are removed; None while it has not ended."""
    if attempt.ended_at is None:
        return None
    spec = JobFile.objects.get(job_id=attempt.job_id).spec
    return attempt.ended_at + max(KEEP, timedelta(seconds=spec.keep_failed_s))
