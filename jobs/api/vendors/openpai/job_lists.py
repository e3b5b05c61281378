"""Lists of jobs: version 1 by user, version 2 with filters, order and pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from django.db.models import F, Func, IntegerField, Q, QuerySet
from django.db.models.sql.compiler import SQLCompiler
from django.http import HttpResponseBase, JsonResponse

from jobs.api.vendors.openpai import errors, states
from jobs.api.vendors.openpai.job_summaries import RetryCounts, in_batches, load_retries, summarize
from jobs.api.vendors.openpai.states import Version
from jobs.api.vendors.operations import Call, Kind, Operation, Parameter, Support
from jobs.models import Job, JobTag
from jobs.search.job_counts import count_jobs
from jobs.states import TERMINAL, Phase

LIMIT: Final = 5000
MOST: Final = 50_000

_ORDERS: Final = {
    "jobName": "name",
    "submissionTime": "pk",
    "username": "owner__username",
    "vc": "quota__slug",
    "retries": "attempt_number",
    "totalTaskNumber": "replicas_total",
    "totalGpuNumber": "gpus",
    "state": "state",
    "completionTime": "ended_at",
    "jobPriority": "priority",
}
_DEFAULT_PRIORITY: Final = "default"


class _RoleCount(Func):
    """The number of roles of a job, counted by the database, which need not send the whole file."""

    output_field = IntegerField()
    arity = 1

    def as_sqlite(self, compiler: SQLCompiler, connection: Any, **context: Any) -> Any:
        template = "json_array_length(%(expressions)s, '$.roles')"
        return self.as_sql(compiler, connection, template=template, **context)

    def as_postgresql(self, compiler: SQLCompiler, connection: Any, **context: Any) -> Any:
        template = "json_array_length((%(expressions)s)::json -> 'roles')"
        return self.as_sql(compiler, connection, template=template, **context)


def list_v1(call: Call) -> HttpResponseBase:
    """List jobs, newest first; those of one person where the address or the query names one."""
    rows = _visible(call)
    if username := call.values["username"]:
        rows = rows.filter(owner__username=username)
    page = rows.order_by("-pk")[:LIMIT]
    return JsonResponse(_render(page, Version.V1), safe=False)


def list_v2(call: Call) -> HttpResponseBase:
    """List jobs by the filters of the query."""
    limit, offset = call.values["limit"], call.values["offset"]
    if limit > MOST:
        raise errors.invalid_parameters(f"Limit exceeds max number {MOST}.")
    rows = _filter(call, _visible(call))
    page = _render(_order(rows, call.values["order"] or "")[offset : offset + limit], Version.V2)
    if call.values["withTotalCount"] != "true":
        return JsonResponse(page, safe=False)
    return JsonResponse({"totalCount": count_jobs(rows), "data": page})


def _visible(call: Call) -> QuerySet[Job]:
    return Job.objects.visible_to(call.person)


def _filter(call: Call, rows: QuerySet[Job]) -> QuerySet[Job]:
    values = call.values
    if values["username"]:
        rows = rows.filter(owner__username__in=values["username"].split(","))
    if values["vc"]:
        rows = rows.filter(quota__slug__in=values["vc"].split(","))
    if values["state"]:
        rows = rows.filter(_by_state(values["state"].split(",")))
    if word := values["keyword"]:
        rows = rows.filter(
            Q(owner__username__contains=word) | Q(name__contains=word) | Q(quota__slug__contains=word)
        )
    if values["tagsContain"]:
        rows = rows.filter(pk__in=_find_tagged(values["tagsContain"]))
    if values["tagsNotContain"]:
        rows = rows.exclude(pk__in=_find_tagged(values["tagsNotContain"]))
    if values["jobPriority"] and _DEFAULT_PRIORITY not in values["jobPriority"].split(","):
        rows = rows.none()
    return rows


def _by_state(names: Iterable[str]) -> Q:
    """Return the condition of being in any of the states; STOPPING is a phase of the others."""
    live = ~Q(state__in=[state.value for state in TERMINAL])
    stopping = live & Q(phase=Phase.STOPPING.value)
    wanted = Q(pk__in=[])
    for name in names:
        if name == "STOPPING":
            wanted |= stopping
        else:
            wanted |= Q(state__in=[each.value for each in states.states_named(name)]) & ~stopping
    return wanted


def _find_tagged(tags: str) -> QuerySet[JobTag, int]:
    return JobTag.objects.filter(name__in=tags.split(",")).values_list("job_id", flat=True)


def _order(rows: QuerySet[Job], order: str) -> QuerySet[Job]:
    """Return the rows in an order `field,ASC` or `field,DESC`; the newest first for any other."""
    field, _comma, direction = order.partition(",")
    column = _ORDERS.get(field)
    if column is None or direction not in {"ASC", "DESC"}:
        return rows.order_by("-pk")
    if direction == "ASC":
        return rows.order_by(F(column).asc(nulls_last=True), "-pk")
    return rows.order_by(F(column).desc(nulls_first=True), "-pk")


def _render(rows: QuerySet[Job], version: Version) -> list[dict[str, Any]]:
    """Return jobs as items: three queries, however many they are."""
    found = rows.select_related("owner", "quota").annotate(role_count=_RoleCount("file__spec_json"))
    page = list(found)
    retries = load_retries(page)
    items = [summarize(job, retries.get(job.pk, RetryCounts()), version, job.role_count or 0) for job in page]
    if version is Version.V2:
        tags = load_tags(page)
        for job, item in zip(page, items, strict=True):
            item["tags"] = tags.get(job.pk, [])
    return items


def load_tags(jobs: Iterable[Job]) -> dict[int, list[str]]:
    """Return the tags of jobs, with one query for many of them."""
    found: dict[int, list[str]] = {}
    for batch in in_batches([job.pk for job in jobs]):
        rows = JobTag.objects.filter(job__in=batch).order_by("pk")
        for job, name in rows.values_list("job_id", "name"):
            found.setdefault(job, []).append(name)
    return found


_NO_PRIORITIES: Final = "Every job has the default priority class."
_PARAMETERS: Final = (
    Parameter("username"),
    Parameter("vc"),
    Parameter("state"),
    Parameter("keyword"),
    Parameter("tagsContain"),
    Parameter("tagsNotContain"),
    Parameter("jobPriority", support=Support.PARTIAL, note=_NO_PRIORITIES),
    Parameter("offset", Kind.INTEGER, default=0, least=0, most=2**31),
    Parameter("limit", Kind.INTEGER, default=LIMIT, least=0),
    Parameter("order"),
    Parameter("withTotalCount"),
)

NEWEST_ONLY: Final = f"The newest {LIMIT} jobs."

OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation("listJobs", "GET", "rest-server/api/v2/jobs", list_v2, parameters=_PARAMETERS),
)
