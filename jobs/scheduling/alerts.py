"""Alerts by threshold: a job's metric that is above or below a value for some time is told to its owner.

Evaluated with each measurement of the cluster (`idle.watch`), and written only when it changes: the time
begins when the condition holds, the owner is told once, and when it holds again later, once more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from jobs import notifications
from jobs.lifecycle import transitions
from jobs.models import Attempt, Event, MetricAlert, ReplicaUsage
from jobs.spec import Alert, AlertComparison, AlertMetric, JobSpec
from jobs.states import ReplicaState


def judge(attempts: Sequence[Attempt], specs: Mapping[int, JobSpec], *, unbroken: bool) -> None:
    """Evaluate the alerts of measured attempts, whose jobs' specs are given by their keys.

    Without an unbroken row of measurements the time begins anew.
    """
    alerts = {attempt.pk: alert for attempt in attempts if (alert := specs[attempt.job_id].alert) is not None}
    if not alerts:
        return
    rows = MetricAlert.objects.in_bulk(list(alerts))
    uses = _uses_of(alerts)
    now = timezone.now()
    for attempt in attempts:
        if (alert := alerts.get(attempt.pk)) is None:
            continue
        seen = _value(alert.metric, attempt, specs[attempt.job_id], uses.get(attempt.pk, []), now)
        row = rows.get(attempt.pk)
        if seen is None or not _holds(alert, seen):
            if row is not None:
                row.delete()
            continue
        if row is None or not (unbroken or row.told_at):
            row = MetricAlert(attempt=attempt, since=now)
            row.save()
        if row.told_at is None and row.since <= now - timedelta(minutes=alert.minutes):
            _tell(attempt, alert, seen)


def _uses_of(attempts: Mapping[int, Alert]) -> dict[int, list[ReplicaUsage]]:
    """Return the use of the running replicas of each attempt; one query."""
    rows = ReplicaUsage.objects.filter(
        replica__attempt__in=list(attempts),
        replica__run=F("replica__attempt__job__run_number"),
        replica__state=ReplicaState.RUNNING,
    ).select_related("replica")
    found: dict[int, list[ReplicaUsage]] = {}
    for row in rows:
        found.setdefault(row.replica.attempt_id, []).append(row)
    return found


def _value(
    metric: AlertMetric, attempt: Attempt, spec: JobSpec, uses: Sequence[ReplicaUsage], now: datetime
) -> int | None:
    """Return the metric of a whole attempt: minutes, or percent of what it requested; None if unknown."""
    if metric is AlertMetric.RUNNING:
        return None if attempt.started_at is None else int((now - attempt.started_at).total_seconds() // 60)
    if metric is AlertMetric.GPU:
        percents = [each for use in uses for each in use.gpu_percents or ()]
        return round(sum(percents) / len(percents)) if percents else None
    resources = [spec.role(use.replica.role).resources for use in uses]
    if metric is AlertMetric.CPU:
        pairs = [(use.cpu_milli, each.cpu_milli) for use, each in zip(uses, resources, strict=True)]
    else:
        pairs = [(use.memory_mib, each.memory_mib) for use, each in zip(uses, resources, strict=True)]
    known = [(used, requested) for used, requested in pairs if used is not None]
    whole = sum(requested for _used, requested in known)
    return round(100 * sum(used for used, _requested in known) / whole) if whole else None


def _holds(alert: Alert, seen: int) -> bool:
    return seen > alert.value if alert.comparison is AlertComparison.ABOVE else seen < alert.value


def _tell(attempt: Attempt, alert: Alert, seen: int) -> None:
    """Tell the owner, once, with what was measured."""
    with transaction.atomic():
        job = transitions.lock_job(attempt.job_id)
        if not MetricAlert.objects.filter(attempt=attempt, told_at=None).update(told_at=timezone.now()):
            return
        params = {**alert.model_dump(mode="json"), "seen": seen}
        transitions.record(job, Event.Kind.ALERT, params=params)
        notifications.tell([attempt.job.owner], notifications.Kind.ALERT, params, job)
        transitions.tell(job)
