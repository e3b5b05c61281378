"""TensorBoards of PAI-DLC: created, listed, read, started, stopped, changed, deleted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from django.core.exceptions import PermissionDenied
from django.core.exceptions import ValidationError as FormError
from django.db.models import F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.urls import reverse
from django.utils import timezone

from jobs import messages, submission
from jobs.api.vendors.alibaba import page_slice
from jobs.api.vendors.api import ErrorKind
from jobs.api.vendors.operations import (
    Call,
    InvalidParameters,
    JsonObject,
    Kind,
    Location,
    Operation,
    Parameter,
    Support,
    WrongValue,
    render_time,
)
from jobs.api.vendors.pai_dlc import tensorboard_jobs
from jobs.api.vendors.pai_dlc.identifiers import find_job, job_id, public_id
from jobs.api.vendors.pai_dlc.job_filters import readable_by
from jobs.api.vendors.pai_dlc.pages import ORDER, PAGE_NUMBER, PAGE_SIZE
from jobs.api.vendors.pai_dlc.refusals import refusal, refuse_unsupported
from jobs.api.vendors.pai_dlc.tensorboard_jobs import TEMPLATE, TensorboardRequest, tensorboard_id
from jobs.models import Job, JobFile, Visibility
from jobs.spec import JobSpec, Mount
from jobs.states import LIVE, TERMINAL, State
from jobs.submission import JobTarget, job_control
from jobs.submission.forms import NAME
from quotas.access import Verb, those

CREATING: Final = "Creating"
RUNNING: Final = "Running"
STOPPED: Final = "Stopped"
STATUSES: Final[Mapping[State, str]] = {
    State.QUEUED: CREATING,
    State.SUBMITTING: CREATING,
    State.PENDING: CREATING,
    State.RUNNING: RUNNING,
    State.LOST: RUNNING,
    State.SUCCEEDED: "Succeeded",
    State.FAILED: "Failed",
    State.STOPPED: STOPPED,
}
OF_JOB: Final = "dlcjob"
OF_DATA: Final = "datasource"
RECENT: Final = timedelta(days=7)
JOB_SCHEME: Final = "job://"

_COLUMNS: Final[Mapping[str, str]] = {"GmtCreateTime": "created_at", "DisplayName": "name"}
_FILTERS: Final[Mapping[str, str]] = {
    "DisplayName": "name__icontains",
    "StartTime": "created_at__gte",
    "EndTime": "created_at__lte",
    "WorkspaceId": "workspace__slug",
    "QuotaId": "quota__slug",
    "UserId": "owner__username",
    "Username": "owner__username",
    "Accessibility": "visibility",
}
"""Columns of a TensorBoard's first job, by the parameters that filter them."""


# --- create ----------------------------------------------------------------------------------------------


def create_tensorboard(call: Call) -> JsonObject:
    """Start a TensorBoard over the folders of own jobs, and other data."""
    refuse_unsupported(call)
    values = call.values
    sources = _source_jobs(call)
    mounts = _data_mounts(values)
    if not sources and not mounts:
        raise InvalidParameters([WrongValue("JobId", "string", missing=True)])
    request = TensorboardRequest(
        name=_read_name(values["DisplayName"] or TEMPLATE.id),
        jobs=[each.public_id for each in sources],
        mounts=mounts,
        target=_target(values),
        minutes=values["MaxRunningTimeMinutes"],
        cores=values["Cpu"],
        memory_gib=values["Memory"],
        priority=values["Priority"],
        instance_type=(values["TensorboardSpec"] or {}).get("EcsType") or "",
    )
    document = tensorboard_jobs.compose(call.person, request)
    job = submission.submit(
        call.person, document, place=request.target, keep_original=True, template=TEMPLATE.ref
    ).job
    if values["Accessibility"] == Visibility.PUBLIC:
        submission.share(call.person, job, Visibility.PUBLIC)
    return {
        "TensorboardId": tensorboard_id(job),
        "JobId": job_id(sources[0]) if sources else "",
        "DataSourceId": values["DataSourceId"] or "",
    }


def _source_jobs(call: Call) -> list[Job]:
    """Return the caller's own jobs that the request names, each once.  Raises what refuses one."""
    values = call.values
    names = [values["JobId"], values["SourceId"]]
    names += [each["Id"] for each in values["TensorboardDataSources"] or () if each["SourceType"] == OF_JOB]
    found = [find_job(call, name, Verb.READ) for name in dict.fromkeys(filter(None, names))]
    for job in found:
        if job.owner_id != call.person.pk:
            raise PermissionDenied("A TensorBoard shows its owner's own jobs.")
        if job.started_at is None:
            raise refusal(ErrorKind.CONFLICT, f"The job {job_id(job)} has not started.")
    return found


def _data_mounts(values: Mapping[str, Any]) -> list[Mount]:
    """Return the mounts of the request's own data, and of its sources that are no jobs."""
    named = [(values["Uri"], values["DataSourceId"])]
    named += [(each["Uri"], each["Id"]) for each in values["TensorboardDataSources"] or () if _is_data(each)]
    given = [(uri or "", "" if uri else dataset or "") for uri, dataset in named if uri or dataset]
    return [
        tensorboard_jobs.data_mount(index, uri=uri, dataset=dataset)
        for index, (uri, dataset) in enumerate(given)
    ]


def _is_data(source: Mapping[str, Any]) -> bool:
    return bool(source["SourceType"] == OF_DATA)


def _read_name(text: str) -> str:
    """Return the name of a job.  Raises InvalidParameters."""
    try:
        NAME(text)
    except FormError:
        raise InvalidParameters([WrongValue("DisplayName", "letters, digits, - _ .", value=text)]) from None
    if len(text) > 256:
        raise InvalidParameters([WrongValue("DisplayName", "string of at most 256 characters")])
    return text


def _target(values: Mapping[str, Any]) -> JobTarget:
    quota: str = values["QuotaId"] or ""
    if "/" in quota:
        return submission.parse_target(quota)
    return JobTarget(workspace=values["WorkspaceId"] or "", quota=quota)


# --- read ------------------------------------------------------------------------------------------------


def list_tensorboards(call: Call) -> JsonObject:
    """Answer a page of TensorBoards; of those that the caller may not read, what every member sees."""
    rows = _filter(call, tensorboard_jobs.first_jobs(call.person))
    sign = "-" if call.values["Order"] == "desc" else ""
    column = _COLUMNS[call.values["SortBy"]]
    page = list(rows.order_by(f"{sign}{column}", f"{sign}pk")[page_slice(call)])
    return {"Tensorboards": _render_all(call, page), "TotalCount": rows.count()}


def get_tensorboard(call: Call) -> JsonObject:
    """Answer one TensorBoard."""
    (found,) = _render_all(call, [tensorboard_jobs.find_first(call, Verb.READ)])
    return found


def _filter(call: Call, rows: QuerySet[Job]) -> QuerySet[Job]:
    values = call.values
    rows = rows.filter(**{column: values[name] for name, column in _FILTERS.items() if values[name]})
    if values["StartTime"] is None:
        rows = rows.filter(created_at__gte=timezone.now() - RECENT)
    if values["ShowOwn"]:
        rows = rows.filter(owner=call.person)
    if named := values["TensorboardId"]:
        rows = rows.filter(public_id=named.removeprefix(tensorboard_jobs.PREFIX))
    if source := values["JobId"] or values["SourceId"]:
        uri = f"{JOB_SCHEME}{public_id(source) or '-'}/"
        rows = rows.filter(readable_by(call), file__spec_json__contains=uri)
    return _filter_status(rows, values["Status"])


def _filter_status(rows: QuerySet[Job], status: str | None) -> QuerySet[Job]:
    if not status:
        return rows
    later = Job.objects.filter(tensorboard_jobs.STARTED_AGAIN, origin=OuterRef("pk"), deleted_at=None)
    current = Coalesce(Subquery(later.order_by("-pk").values("state")[:1]), F("state"))
    states = [state.value for state, name in STATUSES.items() if name == status]
    return rows.alias(current_state=current).filter(current_state__in=states)


def _render_all(call: Call, first: Sequence[Job]) -> list[JsonObject]:
    """Return TensorBoards by their first jobs; the number of queries does not depend on how many."""
    current = {each.pk: each for each in first}
    for later in reversed(tensorboard_jobs.later_jobs(first)):
        assert later.origin_id is not None
        current[later.origin_id] = later
    readable = {each.pk for each in those(call.person, Verb.READ, first) if call.has_scope_to_read(each)}
    files = JobFile.objects.in_bulk([current[pk].pk for pk in readable])
    items = []
    for each in first:
        job = current[each.pk]
        spec = files[job.pk].spec if job.pk in files else None
        items.append({**_render(call, each, job), **(_render_spec(spec) if spec else {})})
    return items


def _render(call: Call, first: Job, job: Job) -> JsonObject:
    """Return what every member of the workspace sees; `job` is the latest one."""
    username = first.owner.get_username()
    end = job.ended_at or timezone.now()
    duration = int((end - job.started_at).total_seconds()) if job.started_at else 0
    return {
        "TensorboardId": tensorboard_id(first),
        "TensorboardUrl": _address(call, job),
        "DisplayName": first.name,
        "Status": STATUSES[State(job.state)],
        "ReasonCode": job.reason_code,
        "ReasonMessage": messages.reason_message(job.reason_code, job.reason_params),
        "Duration": str(duration),
        "GmtCreateTime": render_time(first.created_at),
        "GmtModifyTime": render_time(job.ended_at or job.started_at or job.created_at),
        "GmtFinishTime": render_time(job.ended_at),
        "UserId": username,
        "Username": username,
        "WorkspaceId": first.workspace.slug,
        "QuotaId": job.quota.slug,
        "QuotaName": job.quota.name,
        "Accessibility": first.visibility,
        "Priority": str(job.priority),
    }


def _address(call: Call, job: Job) -> str:
    """Return the address that leads to the TensorBoard once it listens; "" after its end."""
    if State(job.state) in TERMINAL:
        return ""
    path = reverse("job_opening", args=[job.public_id])
    return call.request.build_absolute_uri(f"{path}?to={TEMPLATE.opens}")


def _render_spec(spec: JobSpec) -> JsonObject:
    """Return the details, which are for those who may read the job."""
    (role,) = spec.roles
    jobs = list(dict.fromkeys(_source_ids(spec.mounts)))
    data = [each for each in spec.mounts if not each.uri.startswith(JOB_SCHEME)]
    sources = [{"SourceType": OF_JOB, "Id": each, "Name": each} for each in jobs]
    sources += [{"SourceType": OF_DATA, "Id": each.id, "Uri": each.uri} for each in data]
    return {
        "JobId": jobs[0] if jobs else "",
        "SourceId": jobs[0] if jobs else "",
        "SourceType": "job" if jobs else "",
        "DataSourceId": data[0].id if data else "",
        "Cpu": role.resources.cpu_milli // 1000,
        "Memory": role.resources.memory_mib // 1024,
        "MaxRunningTimeMinutes": tensorboard_jobs.minutes_of(spec.time_limit_s),
        "TensorboardDataSources": sources,
    }


def _source_ids(mounts: Iterable[Mount]) -> list[str]:
    """Return the JobIds of the jobs whose folders are mounted."""
    uris = [each.uri for each in mounts if each.uri.startswith(JOB_SCHEME)]
    return [f"dlc{uri.removeprefix(JOB_SCHEME).partition('/')[0]}" for uri in uris]


# --- change ----------------------------------------------------------------------------------------------


def start_tensorboard(call: Call) -> JsonObject:
    """Start a TensorBoard that has ended; one that has not goes on."""
    first = tensorboard_jobs.find_first(call, Verb.CONTROL)
    if first.owner_id != call.person.pk:
        raise PermissionDenied("Only its owner can start a TensorBoard again.")
    current = tensorboard_jobs.current_of(first)
    if State(current.state) in TERMINAL:
        tensorboard_jobs.start_again(call.person, first, current)
    return {"TensorboardId": tensorboard_id(first)}


def stop_tensorboard(call: Call) -> JsonObject:
    """Stop a TensorBoard; one that has ended stays as it is."""
    first = tensorboard_jobs.find_first(call, Verb.CONTROL)
    submission.stop(call.person, tensorboard_jobs.current_of(first))
    return {"TensorboardId": tensorboard_id(first)}


def update_tensorboard(call: Call) -> JsonObject:
    """Extend the time limit of a running TensorBoard, share it, or change the priority of a queued one."""
    first = tensorboard_jobs.find_first(call, Verb.CONTROL)
    current = tensorboard_jobs.current_of(first)
    if (minutes := call.values["MaxRunningTimeMinutes"]) is not None:
        _extend(call, current, minutes)
    if (priority := call.values["Priority"]) is not None and priority != current.priority:
        submission.prioritise(call.person, current, priority)
    if accessibility := call.values["Accessibility"]:
        for job in {first, current}:
            submission.share(call.person, job, Visibility(accessibility))
    return {"TensorboardId": tensorboard_id(first)}


def _extend(call: Call, job: Job, minutes: int) -> None:
    """Make the time limit of the job that long.  Raises VendorError."""
    limit = job_control.limit_s(job, JobFile.objects.get(job=job).spec.time_limit_s)
    seconds = 60 * minutes - (limit or 0)
    if seconds == 0:
        return
    if limit is None or seconds < 0 or State(job.state) not in LIVE:
        raise refusal(ErrorKind.CONFLICT, "The time of a running TensorBoard can be extended only.")
    try:
        job_control.extend(call.person, job, seconds)
    except job_control.NotExtended:
        raise refusal(ErrorKind.CONFLICT, "The time can't be extended so far.") from None


def delete_tensorboard(call: Call) -> JsonObject:
    """Delete a TensorBoard that has ended."""
    first = tensorboard_jobs.find_first(call, Verb.CONTROL)
    for job in (*tensorboard_jobs.later_jobs([first]), first):
        submission.delete(call.person, job)
    return {"TensorboardId": tensorboard_id(first)}


# --- table -----------------------------------------------------------------------------------------------

_ROOT: Final = "api/v1/tensorboards"
_ONE: Final = f"{_ROOT}/<str:TensorboardId>"
_ID: Final = Parameter("TensorboardId", location=Location.PATH, required=True)
_VISIBILITIES: Final = ("PUBLIC", "PRIVATE")
_ENOUGH: Final = "The TensorboardId is enough."
_SHOWN: Final = "Everything below the working folders of a job's replicas is shown."
_EXTENDED: Final = "The owner of a running TensorBoard can extend its time, as far as the console allows."


def _ignore(name: str, note: str, location: Location = Location.QUERY, **more: Any) -> Parameter:
    return Parameter(name, Kind.ANY, location, support=Support.IGNORED, note=note, **more)


def _body(name: str, kind: Kind = Kind.TEXT, **more: Any) -> Parameter:
    return Parameter(name, kind, Location.BODY, **more)


_WORKSPACE: Final = _ignore("WorkspaceId", _ENOUGH)
_DATA_SOURCE_FIELDS: Final = (
    Parameter("SourceType", choices=(OF_DATA, OF_JOB), default=OF_DATA),
    Parameter("Id", note="A JobId, or the id of a dataset."),
    Parameter("Uri"),
    *(
        Parameter(name, Kind.ANY, support=Support.IGNORED, note=_SHOWN)
        for name in ("DataSourceType", "DirectoryName", "FullSummaryPath", "Name", "SummaryPath")
    ),
)

OPERATIONS: Final = (
    Operation(
        "CreateTensorboard",
        "POST",
        _ROOT,
        create_tensorboard,
        scope="submit",
        parameters=(
            _body("DisplayName"),
            _body("JobId", note="One of the caller's own jobs that has started."),
            _body("SourceId", note="As JobId."),
            _body("SourceType", choices=("job",)),
            _body("WorkspaceId"),
            _body("QuotaId", since="1.4.17", note="The quota's short name, or WORKSPACE/CLUSTER/QUOTA."),
            _body("Uri"),
            _body("DataSourceId"),
            _body(
                "TensorboardDataSources",
                Kind.LIST,
                fields=_DATA_SOURCE_FIELDS,
                since="1.4.17",
                support=Support.PARTIAL,
                note=_SHOWN,
            ),
            _body("Cpu", Kind.INTEGER, least=1, most=512),
            _body("Memory", Kind.INTEGER, least=1, most=8192, note="In GiB."),
            _body("MaxRunningTimeMinutes", Kind.INTEGER, least=1, most=10_080),
            _body("Accessibility", choices=_VISIBILITIES, since="1.4.17"),
            _body("Priority", Kind.INTEGER, least=1, most=9, since="1.4.17"),
            _body(
                "TensorboardSpec",
                Kind.OBJECT,
                fields=(
                    Parameter("EcsType"),
                    *(
                        Parameter(
                            name, Kind.ANY, support=Support.IGNORED, note="The cluster has its network."
                        )
                        for name in ("VpcId", "SwitchId", "SecurityGroupId")
                    ),
                ),
                since="1.4.17",
            ),
            _ignore("SummaryPath", _SHOWN, Location.BODY),
            _ignore("SummaryRelativePath", _SHOWN, Location.BODY),
            _ignore("DataSourceType", "Uri has it.", Location.BODY),
            _ignore("Options", "Data is mounted where TensorBoard looks for it.", Location.BODY),
            _body(
                "DataSources",
                Kind.LIST,
                support=Support.REFUSED,
                note="use Uri, DataSourceId or TensorboardDataSources.",
            ),
        ),
        support=Support.PARTIAL,
        note="A job from the built-in template TensorBoard, which counts against its quota.",
    ),
    Operation(
        "ListTensorboards",
        "GET",
        _ROOT,
        list_tensorboards,
        parameters=(
            *(
                Parameter(name)
                for name in ("DisplayName", "JobId", "SourceId", "TensorboardId", "WorkspaceId")
            ),
            *(Parameter(name, since="1.4.17") for name in ("QuotaId", "UserId", "Username")),
            Parameter("Accessibility", choices=_VISIBILITIES, since="1.4.17"),
            Parameter("StartTime", Kind.TIME, note="Seven days ago without one."),
            Parameter("EndTime", Kind.TIME),
            Parameter("ShowOwn", Kind.BOOLEAN, default=False),
            Parameter("SourceType", choices=("job",)),
            Parameter("Status", choices=tuple(dict.fromkeys(STATUSES.values()))),
            Parameter("SortBy", choices=tuple(_COLUMNS), default="GmtCreateTime"),
            ORDER,
            PAGE_NUMBER,
            PAGE_SIZE,
            _ignore("Verbose", "Details are always answered to those who may read them."),
            _ignore("PaymentType", "TensorBoards are paid for by their quotas.", since="1.4.17"),
        ),
    ),
    Operation(
        "GetTensorboard",
        "GET",
        _ONE,
        get_tensorboard,
        parameters=(
            _ID,
            _ignore("JodId", _ENOUGH),
            _ignore("Token", "There are no sharing tokens."),
            _WORKSPACE,
        ),
        support=Support.PARTIAL,
        note=(
            "TensorboardUrl leads people who are signed in and have access to the TensorBoard once it "
            "listens. SummaryPath, Options, TensorboardSpec and Token are not answered."
        ),
    ),
    Operation(
        "StartTensorboard",
        "PUT",
        f"{_ONE}/start",
        start_tensorboard,
        scope="submit",
        parameters=(_ID, _WORKSPACE),
        support=Support.PARTIAL,
        note="Only its owner starts a TensorBoard again; it is a new job under the same TensorboardId.",
    ),
    Operation(
        "StopTensorboard",
        "PUT",
        f"{_ONE}/stop",
        stop_tensorboard,
        scope="stop",
        parameters=(_ID, _WORKSPACE),
    ),
    Operation(
        "UpdateTensorboard",
        "PUT",
        _ONE,
        update_tensorboard,
        scope="submit",
        parameters=(
            _ID,
            Parameter(
                "MaxRunningTimeMinutes", Kind.INTEGER, least=1, most=10_080, note="Can be extended only."
            ),
            Parameter("Accessibility", choices=_VISIBILITIES, since="1.4.17"),
            Parameter(
                "Priority",
                Kind.INTEGER,
                least=1,
                most=9,
                since="1.4.17",
                support=Support.PARTIAL,
                note="Of a queued one, for admins of the console.",
            ),
            _WORKSPACE,
        ),
        support=Support.PARTIAL,
        note=_EXTENDED,
    ),
    Operation(
        "DeleteTensorboard",
        "DELETE",
        _ONE,
        delete_tensorboard,
        scope="stop",
        parameters=(_ID, _WORKSPACE),
        support=Support.PARTIAL,
        note="One that has ended; stop a running one first.",
    ),
)
