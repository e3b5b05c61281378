"""What no single event tells: that a job has been waiting for long, that a quota is nearly used."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from django.db import models, transaction
from django.db.models import Exists, F, OuterRef, Value
from django.db.models.functions import Cast, Concat, Now

from jobs.models import Attempt, Occasion, QuotaLevel, Rule
from jobs.notifications import outbox
from jobs.states import State
from quotas.ledger import reports
from quotas.models import Quota

USUAL_WAIT: Final = Rule().wait_minutes
USUAL_SHARE: Final = Rule().quota_percent
"""What those who never chose are told, whose rule may not be written yet."""

MOST: Final = 500
FALL: Final = 10
"""A quota's use has to fall by so many percent before its rise is told again."""


def waits() -> int:
    """Tell of jobs that have been waiting for as long as somebody's rule says; answers how many."""
    return sum(_waiting_for(minutes) for minutes in sorted(_chosen("wait_minutes") | {USUAL_WAIT}))


def _chosen(field: str) -> set[int]:
    rules = Rule.objects.filter(channel__off="", channel__verified_at__isnull=False)
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
    rows = (
        Attempt.objects.filter(
            job__state__in=[State.QUEUED.value, State.PENDING.value],
            job__deleted_at=None,
            number=F("job__attempt_number"),
            started_at=None,
            created_at__lte=Now() - timedelta(minutes=minutes),
        )
        .filter(~Exists(Occasion.objects.filter(key=key)))
        .select_related("job")
        .order_by("id")[:MOST]
    )
    found = list(rows)
    for attempt in found:
        with transaction.atomic():
            outbox.of_waiting(attempt.job, attempt.number, minutes)
    return len(found)


def quotas() -> int:
    """Tell of quotas whose use has risen past what somebody's rule says; answers how many."""
    shares = _chosen("quota_percent") | {USUAL_SHARE}
    levels = dict(QuotaLevel.objects.values_list("quota_id", "percent"))
    told = 0
    for quota, percent, most in reports.shares():
        before = levels.get(quota.pk, 0)
        told += _changed(quota, before, percent, most, shares)
    return told


@transaction.atomic
def _changed(quota: Quota, before: int, percent: int, most: str, shares: Iterable[int]) -> bool:
    if before - FALL < percent <= before:
        return False
    QuotaLevel.objects.update_or_create(quota=quota, defaults={"percent": percent})
    if not any(before < share <= percent for share in shares):
        return False
    outbox.of_quota(quota, before, percent, most)
    return True
