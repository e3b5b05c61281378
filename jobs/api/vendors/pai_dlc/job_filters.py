"""The filters of ListJobs as conditions on rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, Func, JSONField, Q, QuerySet, TextField
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Cast
from django.db.models.sql.compiler import SQLCompiler
from django.utils import timezone

from jobs.api.vendors.operations import Call, Kind, Parameter, Support
from jobs.api.vendors.pai_dlc import statuses
from jobs.api.vendors.pai_dlc.identifiers import public_id
from jobs.dialects.dlc.job_types import BY_NAME
from jobs.dialects.dlc.settings_keys import OVERSOLD_TYPE
from jobs.models import Job, Visibility
from quotas.access import managed_by, match_workspace, workspaces_of

WINDOW: Final = timedelta(days=7)
"""Without StartTime, jobs are listed that were created so long before EndTime, or now."""

MOST_IDS: Final = 100

_NOT_SEARCHED: Final = "the console does not search jobs by it"


def _refuse_filter(name: str, kind: Kind = Kind.TEXT, note: str = _NOT_SEARCHED) -> Parameter:
    return Parameter(name, kind, support=Support.REFUSED, note=note, since="1.11.6")


FILTERS: Final = (
    Parameter("WorkspaceId"),
    Parameter("DisplayName"),
    Parameter("JobId"),
    Parameter("JobIds", since="1.11.6"),
    Parameter(
        "JobType",
        support=Support.PARTIAL,
        note="A job of another format without a framework is found under no JobType.",
    ),
    Parameter("Status", choices=statuses.NAMES),
    Parameter("ResourceId"),
    Parameter("ResourceIds", since="1.11.6"),
    Parameter("ResourceQuotaName", since="1.4.17"),
    Parameter("UserIdForFilter"),
    Parameter("Username", since="1.4.17"),
    Parameter("BusinessUserId"),
    Parameter("Caller"),
    Parameter("PipelineId"),
    Parameter("Tags", Kind.MAP),
    Parameter("Accessibility", choices=tuple(Visibility.values), since="1.4.17"),
    Parameter("OversoldInfo", choices=tuple(OVERSOLD_TYPE.meanings), since="1.4.17"),
    Parameter("StartTime", Kind.TIME),
    Parameter("EndTime", Kind.TIME),
    Parameter("ShowOwn", Kind.BOOLEAN, default=False),
    Parameter("FromAllWorkspaces", Kind.BOOLEAN, default=False),
    _refuse_filter("Description"),
    _refuse_filter("DisplayNameSearchMode", note="DisplayName finds a part of a name"),
    _refuse_filter("EnableAssignNode", Kind.BOOLEAN),
    _refuse_filter("ImageSearch"),
    _refuse_filter("NumericRangeField"),
    _refuse_filter("NumericRangeMin", Kind.NUMBER),
    _refuse_filter("NumericRangeMax", Kind.NUMBER),
    _refuse_filter("PaymentType"),
    _refuse_filter("ReasonSearch"),
    _refuse_filter("TemplateId"),
    _refuse_filter("TimeRangeField", note="StartTime and EndTime are times of creation"),
    _refuse_filter("UserCommandSearch"),
)

_COLUMNS: Final[Mapping[str, str]] = {
    "DisplayName": "name__icontains",
    "ResourceId": "quota__slug",
    "ResourceQuotaName": "quota__name",
    "UserIdForFilter": "owner__username",
    "Username": "owner__username",
    "Accessibility": "visibility",
}
_SETTINGS: Final = ("BusinessUserId", "Caller", "PipelineId")

_SPEC: Final = Cast("file__spec_json", JSONField())


class _Text(KeyTextTransform):
    """The text of a member of a JSON object.

    SQLite takes a key of digits in a path for a position in a list, and Django its null for the text "null".
    """

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_extra: Any
    ) -> tuple[str, tuple[Any, ...]]:
        lhs, params, (*outer, key) = self.preprocess_lhs(compiler, connection)
        sql = f"(SELECT member.value FROM JSON_EACH({lhs}, %s) AS member WHERE member.key = %s)"  # noqa: S608 a column
        return sql, (*params, "$" + "".join(f".{json.dumps(each)}" for each in outer), key)


def _text_of(key: str, container: object) -> Cast:
    """Return the text of a member of a JSON column, to be compared as such."""
    return Cast(_Text(key, container), TextField())


FRAMEWORK: Final = _text_of("framework", _SPEC)
"""The framework in a job's file."""


def filtered_jobs(call: Call) -> QuerySet[Job]:
    """Return the jobs that the caller may see and the parameters of ListJobs mean."""
    values = call.values
    spaces = workspaces_of(call.person)
    if values["WorkspaceId"] and not (values["FromAllWorkspaces"] and values["ShowOwn"]):
        spaces = spaces.filter(match_workspace(values["WorkspaceId"]))
    # The sum keeps databases from the indexes by workspace, which have no order among several.
    rows = Job.objects.alias(space=F("workspace_id") + 0).filter(
        space__in=spaces.values("pk"), deleted_at=None
    )
    for condition in (*_row_conditions(call), *_period(values)):
        rows = rows.filter(condition)
    for number, (expression, text) in enumerate(_file_conditions(values)):
        name = f"content_{number}"
        rows = rows.filter(readable_by(call)).alias(**{name: expression}).filter(**{name: text})
    return rows


def readable_by(call: Call) -> Q:
    """Return the condition of the jobs whose files the caller may read; the others aren't searched."""
    own = Q(owner=call.person) | Q(visibility=Visibility.PUBLIC)
    return own | Q(workspace__in=managed_by(call.person)) if call.allows("admin") else own


def _row_conditions(call: Call) -> Iterator[Q]:
    values = call.values
    for name, column in _COLUMNS.items():
        if values[name]:
            yield Q(**{column: values[name]})
    if ids := _job_ids(values):
        yield Q(public_id__in=[public_id(each) for each in ids])
    if resources := _split(values["ResourceIds"]):
        yield Q(quota__slug__in=resources)
    if values["ShowOwn"]:
        yield Q(owner=call.person)
    if values["Status"]:
        yield statuses.match_status(values["Status"])


def _period(values: Mapping[str, Any]) -> Iterator[Q]:
    start, end = values["StartTime"], values["EndTime"]
    if end is not None:
        yield Q(created_at__lte=end)
    if start is None and not _job_ids(values):
        # By the whole minute, so that all pages of a list have one query, whose count is kept.
        start = (end or timezone.now().replace(second=0, microsecond=0)) - WINDOW
    if start is not None:
        yield Q(created_at__gte=start)


def _job_ids(values: Mapping[str, Any]) -> list[str]:
    return [values["JobId"]] if values["JobId"] else _split(values["JobIds"])


def _split(text: str | None) -> list[str]:
    return [each.strip() for each in (text or "").split(",") if each.strip()][:MOST_IDS]


def _file_conditions(values: Mapping[str, Any]) -> Iterator[tuple[Func, str]]:
    """Yield expressions on a job's file, each with the text that it has to be."""
    if values["JobType"]:
        job_type = BY_NAME.get(values["JobType"])
        if job_type is not None and job_type.framework is None:
            yield _text_of("/JobType", "file__extras"), job_type.name
        else:
            yield FRAMEWORK, job_type.framework.value if job_type and job_type.framework else ""
    for name in _SETTINGS:
        if values[name]:
            yield _text_of(f"/Settings/{name}", "file__extras"), values[name]
    if values["OversoldInfo"]:
        yield _text_of("idle", _SPEC), str(OVERSOLD_TYPE.meanings[values["OversoldInfo"]])
    for key, value in (values["Tags"] or {}).items():
        yield _text_of(key, KeyTransform("tags", _SPEC)), value
