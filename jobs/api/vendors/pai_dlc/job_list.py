"""ListJobs: filters, sort orders and numbered pages over keys."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Final

from django.core.cache import cache
from django.db.models import Case, F, OrderBy, Q, QuerySet, Subquery, TextField, Value, When

from jobs.api.vendors.operations import Call, JsonObject, Operation, Parameter, Support
from jobs.api.vendors.pai_dlc.job_filters import FILTERS, FRAMEWORK, filtered_jobs, readable_by
from jobs.api.vendors.pai_dlc.job_rendering import amounts, render_job
from jobs.api.vendors.pai_dlc.pages import ORDER, PAGE_NUMBER, PAGE_SIZE
from jobs.api.vendors.pai_dlc.refusals import refuse_unsupported
from jobs.lifecycle import pending_reasons
from jobs.models import Attempt, Job, JobFile
from jobs.search.job_counts import count_jobs
from quotas.access import Verb, those

BY_CREATION: Final = "GmtCreateTime"
SORTS: Final[Mapping[str, str]] = {
    "DisplayName": "name",
    "JobType": "job_type",
    "Status": "state",
    BY_CREATION: "created_at",
    "GmtFinishTime": "ended_at",
}
"""Columns by the names of SortBy."""

REMEMBERED_S: Final = 600
"""Seconds for which the end of a page is remembered, so that the next page begins there."""


def list_jobs(call: Call) -> JsonObject:
    """Answer a page of jobs and the number of all; the number of queries is the same for every page."""
    refuse_unsupported(call)
    rows = filtered_jobs(call)
    return {"Jobs": _render(call, _page(call, rows)), "TotalCount": count_jobs(rows)}


def _page(call: Call, rows: QuerySet[Job]) -> list[int]:
    """Return the primary keys of a page.

    By creation, a page that follows one that was asked for lately begins behind it, wherever that is; other
    pages and orders have to be counted off.
    """
    number, size = call.values["PageNumber"], call.values["PageSize"]
    first = (number - 1) * size
    if call.values["SortBy"] != BY_CREATION:
        ordered = _sort_rows(call, rows)
        return list(ordered.values_list("pk", flat=True)[first : first + size])
    descending = call.values["Order"] == "desc"
    order = ("-created_at", "-pk") if descending else ("created_at", "pk")
    name = _name_of(call)
    last: int | None = cache.get(f"{name}:{number}") if number > 1 else None
    if last is not None:
        rows, first = rows.filter(_behind(last, descending=descending)), 0
    found = list(rows.order_by(*order).values_list("pk", flat=True)[first : first + size])
    if len(found) == size:
        cache.set(f"{name}:{number + 1}", found[-1], REMEMBERED_S)
    return found


def _behind(last: int, *, descending: bool) -> Q:
    """Return the condition of what comes behind a job; its first part is a range of the index.

    The time stays in the database, whose precision may be another than Python's.
    """
    at = Subquery(Job.objects.filter(pk=last).values("created_at"))
    if descending:
        return Q(created_at__lte=at) & (Q(created_at__lt=at) | Q(pk__lt=last))
    return Q(created_at__gte=at) & (Q(created_at__gt=at) | Q(pk__gt=last))


def _name_of(call: Call) -> str:
    """Return the name of a list: its reader and all parameters but the number of the page."""
    asked = {name: str(value) for name, value in call.values.items() if name != PAGE_NUMBER.name}
    text = json.dumps([call.person.pk, call.allows("admin"), asked], sort_keys=True)
    return f"dlc-jobs:{hashlib.sha256(text.encode()).hexdigest()}"


def _sort_rows(call: Call, rows: QuerySet[Job]) -> QuerySet[Job]:
    name, descending = call.values["SortBy"], call.values["Order"] == "desc"
    if name == "JobType":
        job_type = Case(When(readable_by(call), then=FRAMEWORK), default=Value(""), output_field=TextField())
        rows = rows.alias(job_type=job_type)
    order = OrderBy(F(SORTS[name]), descending=descending, nulls_last=True)
    return rows.order_by(order, "-pk" if descending else "pk")


def _render(call: Call, keys: Sequence[int]) -> list[JsonObject]:
    loaded = Job.objects.select_related("owner", "workspace", "cluster", "quota").in_bulk(keys)
    jobs = [loaded[key] for key in keys if key in loaded]
    pending_reasons.load_reasons(jobs)
    files = JobFile.objects.in_bulk([job.pk for job in _readable(call, jobs)])
    attempts = {
        attempt.job_id: attempt
        for attempt in Attempt.objects.filter(job__in=keys, number=F("job__attempt_number"))
    }
    return [_render_item(job, attempts.get(job.pk), files.get(job.pk)) for job in jobs]


def _readable(call: Call, jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs whose files the caller may read; one query, however many there are."""
    return those(call.person, Verb.READ, list(filter(call.has_scope_to_read, jobs)))


def _render_item(job: Job, attempt: Attempt | None, file: JobFile | None) -> JsonObject:
    item = {
        **render_job(job, attempt, file),
        "NodeCount": str(job.replicas_total),
        "RequestGPU": str(job.gpus),
    }
    if file is not None:
        cpus, _gpus, memory = amounts(file.spec)
        item |= {"RequestCPU": cpus, "RequestMemory": f"{memory:g}Gi"}
    return item


LIST_JOBS: Final = Operation(
    "ListJobs",
    "GET",
    "api/v1/jobs",
    list_jobs,
    parameters=(
        *FILTERS,
        Parameter("SortBy", choices=tuple(SORTS), default=BY_CREATION),
        ORDER,
        PAGE_NUMBER,
        PAGE_SIZE,
    ),
    support=Support.PARTIAL,
    note=(
        "Items have no Pods and no StatusHistory, which GetJob answers.  Jobs that the caller may not read "
        "have names, status, times and owners alone."
    ),
)
"""The operation."""
