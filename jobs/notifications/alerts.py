"""Alerts that a job asks for, by a threshold or by AIHC's `alertConfig`, whatever its owner's rules say."""

from __future__ import annotations

from typing import Final

from jobs.dialects.aihc import keys
from jobs.models import JobFile, NotificationEvent
from jobs.models.kinds import Kind

KINDS: Final = {"jobRunning": Kind.STARTED, "jobFT": Kind.AGAIN, "jobFailed": Kind.FAILED}
DIALECT: Final = "aihc"


def is_alert(event: NotificationEvent) -> bool:
    """Tell whether an event is the alert of its job, or of a kind that its job file (AIHC) names."""
    if event.kind == Kind.ALERT:
        return True
    job = event.job
    if job is None or job.dialect != DIALECT or event.kind not in KINDS.values():
        return False
    extras = JobFile.objects.filter(job=job).values_list("extras", flat=True).first() or {}
    return event.kind in {KINDS[item] for item in keys.list_alerts(extras.get(keys.ALERTS))}
