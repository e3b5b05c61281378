"""Interruptions of jobs with fault tolerance, by cause and by node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from jobs.fault_tolerance.decisions import Fault
from jobs.messages.faults import cause_label
from jobs.models import Attempt
from quotas.audit import action_record

DAYS: Final = 30
MOST: Final = 10_000
"""At most so many of the newest interruptions are counted."""

MOST_ROWS: Final = 50
MOST_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class InterruptionRow:
    """A cause or a node: its interruptions, how many jobs they are of, and the most frequent in detail."""

    name: str
    count: int
    jobs: int
    detail: str


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Interruptions of the last days, by cause and by node."""
    action_record.actor_of(request)
    found = list_interruptions()
    context: dict[str, Any] = {
        **admin.site.each_context(request),
        "title": _("Interruptions"),
        "days": DAYS,
        "is_cut": len(found) == MOST,
        "causes": count_rows((cause_label(fault.code), fault.node, job) for fault, job in found),
        "nodes": count_rows((fault.node, cause_label(fault.code), job) for fault, job in found if fault.node),
    }
    return TemplateResponse(request, "administration/interruptions.html", context)


def list_interruptions() -> list[tuple[Fault, int]]:
    """Return the faults of the last days with the keys of their jobs, the newest first."""
    rows = Attempt.objects.filter(fault__isnull=False, ended_at__gt=timezone.now() - timedelta(days=DAYS))
    newest = rows.order_by("-ended_at").values_list("fault", "job_id")[:MOST]
    return [(Fault.from_json(fault or {}), job_id) for fault, job_id in newest]


def count_rows(interruptions: Iterable[tuple[str, str, int]]) -> Sequence[InterruptionRow]:
    """Return a row for each name of (name, detail, job), the most frequent first."""
    counts, jobs, details = Counter[str](), dict[str, set[int]](), dict[str, Counter[str]]()
    for name, detail, job in interruptions:
        counts[name] += 1
        jobs.setdefault(name, set()).add(job)
        details.setdefault(name, Counter()).update([detail] if detail else [])
    return [
        InterruptionRow(
            name,
            count,
            len(jobs[name]),
            ", ".join(each for each, _count in _order(details[name])[:MOST_NAMED]),
        )
        for name, count in _order(counts)[:MOST_ROWS]
    ]


def _order(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
