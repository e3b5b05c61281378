"""Thresholds that no single event crosses: a job waits for long, or a quota is nearly used."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from django.db import models, transaction
from django.db.models import Exists, F, OuterRef, Value
from django.db.models.functions import Cast, Concat, Now

from jobs.models import Attempt, NotificationEvent, NotificationRule, QuotaLevel
from jobs.models.jobs import is_unfinished
from jobs.notifications import outbox
from jobs.states import State
from quotas.ledger import reports
from quotas.models import Quota

USUAL_WAIT: Final = NotificationRule().wait_minutes
USUAL_SHARE: Final = NotificationRule().quota_percent
"""The defaults, for people without a stored rule."""

MOST: Final = 500
FALL: Final = 10
"""A quota's use has to fall by so many percent before its rise is reported again."""


def report_waits() -> int:
    """Notify of jobs that have waited as long as a rule says; return how many."""
    return sum(_waiting_for(minutes) for minutes in sorted(_chosen("wait_minutes") | {USUAL_WAIT}))


def _chosen(field: str) -> set[int]:
    rules = NotificationRule.objects.filter(channel__off="", channel__verified_at__isnull=False)
    return set(rules.order_by().values_list(field, flat=True).distinct())


def _waiting_for(minutes: int) -> int:
    key = Concat(
        Value("waits:"),
        Cast(OuterRef("job_id"), models.CharField()),
        Value(":"),
        Cast(OuterRef("number"), models.CharField()),
        Value(f":{minutes}"),
        output_field=models.CharField(),
    )
    found = (
        Attempt.objects.filter(
            is_unfinished("job__"),
            job__state__in=[State.QUEUED.value, State.PENDING.value],
            job__deleted_at=None,
            number=F("job__attempt_number"),
            started_at=None,
            created_at__lte=Now() - timedelta(minutes=minutes),
        )
        .filter(~Exists(NotificationEvent.objects.filter(key=key)))
        .select_related("job")
        .order_by("created_at")[:MOST]
    )
    for attempt in found:
        with transaction.atomic():
            outbox.of_waiting(attempt.job, attempt.number, minutes)
    return len(found)


def report_quotas() -> int:
    """Notify of quotas whose use has risen past a rule's share; return how many."""
    shares = _chosen("quota_percent") | {USUAL_SHARE}
    levels = dict(QuotaLevel.objects.values_list("quota_id", "percent"))
    return sum(
        _report(quota, levels.get(quota.pk, 0), percent, most, shares)
        for quota, percent, most in reports.shares()
    )


@transaction.atomic
def _report(quota: Quota, before: int, percent: int, most: str, shares: Iterable[int]) -> bool:
    if before - FALL < percent <= before:
        return False
    QuotaLevel.objects.update_or_create(quota=quota, defaults={"percent": percent})
    if not any(before < share <= percent for share in shares):
        return False
    outbox.of_quota(quota, before, percent, most)
    return True
