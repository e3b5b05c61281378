"""Logs of tasks: where they are, and their bytes."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpResponseBase

from jobs.api.vendors.openpai import errors, tickets
from jobs.api.vendors.openpai.job_names import find_job
from jobs.api.vendors.operations import Call, JsonObject, Kind, Location, Operation, Parameter, Support
from jobs.live import log_responses
from jobs.models import Job, Replica
from jobs.submission.access import find_job as find_visible_job
from quotas.access import Verb

NAMES: Final = ("all", "stdout")
"""Both are the same bytes: a task's standard output and error are one log here."""

TAIL_BYTES: Final = 16 * 1024
PURPOSE: Final = "log"


def list_locations(call: Call) -> JsonObject:
    """Return the addresses of a task's logs; each works for a few minutes without a token."""
    job = find_job(call, Verb.READ)
    query = _query(call, job)
    if call.values["tail-mode"] or call.values["tailMode"]:
        query["offset"] = str(-TAIL_BYTES)
    else:
        query["download"] = "true"
    ticket = tickets.issue(call, PURPOSE, [job.public_id, query])
    address = call.request.build_absolute_uri(f"/rest-server/logs/{ticket}")
    return {"locations": [{"name": name, "uri": address} for name in NAMES]}


def _query(call: Call, job: Job) -> dict[str, str]:
    """Return the query of a task's log.  Raises VendorError where there is no such task."""
    values = call.values
    place = {
        "attempt__job": job,
        "attempt__number": values["attempt"] + 1,
        "role": values["role"],
        "index": values["index"],
        "run": values["taskAttempt"] + 1,
    }
    if not Replica.objects.filter(**place).exists():
        raise errors.no_task_log()
    numbers = {"index": values["index"], "attempt": place["attempt__number"], "run": place["run"]}
    return {"role": values["role"], **{name: str(number) for name, number in numbers.items()}}


def read_by_ticket(call: Call) -> HttpResponseBase:
    """Return a log to whoever has its address, while the caller whom it was given to may read it."""
    found = tickets.read(call.values["ticket"], PURPOSE)
    if found is None:
        raise errors.no_task_log()
    user, (public_id, query) = found
    return _respond(find_visible_job(user, public_id, Verb.READ), query)


def read_log(call: Call) -> HttpResponseBase:
    """Return a log, by its name, to a caller with a token."""
    job = find_job(call, Verb.READ)
    query = _query(call, job)
    if call.values["log"] not in {*NAMES, ""}:
        raise errors.no_task_log()
    return _respond(job, {**query, "download": "true"})


def _respond(job: Job, query: dict[str, str]) -> HttpResponseBase:
    try:
        return log_responses.respond(job, query)
    except (log_responses.NoSuchLog, log_responses.BadNumber):
        raise errors.no_task_log() from None


_TASK: Final = (
    Parameter("job", location=Location.PATH, required=True),
    Parameter("attempt", Kind.INTEGER, Location.PATH, required=True, least=0, most=2**31 - 2),
    Parameter("role", location=Location.PATH, required=True),
    Parameter("index", Kind.INTEGER, Location.PATH, required=True, least=0, most=2**31 - 2),
    Parameter("taskAttempt", Kind.INTEGER, Location.PATH, required=True, least=0, most=2**31 - 2),
)
_TAIL: Final = (
    Parameter("tail-mode", Kind.BOOLEAN, default=False),
    Parameter("tailMode", Kind.BOOLEAN, default=False),
)
_LOGS: Final = (
    "rest-server/api/v2/jobs/<str:job>/attempts/<str:attempt>/taskRoles/<str:role>/taskIndex/<str:index>"
    "/attempts/<str:taskAttempt>/logs"
)
_ONE_LOG: Final[dict[str, Any]] = {
    "support": Support.PARTIAL,
    "note": "Standard output and error of a task are one log, which has the names all and stdout.",
}

OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation("getTaskLogs", "GET", _LOGS, list_locations, parameters=(*_TASK, *_TAIL), **_ONE_LOG),
    *(
        Operation("getTaskLog", "GET", path, read_log, parameters=parameters, **_ONE_LOG)
        for path, parameters in (
            (f"{_LOGS}/", (*_TASK, Parameter("log", default=""))),
            (f"{_LOGS}/<str:log>", (*_TASK, Parameter("log", location=Location.PATH, required=True))),
        )
    ),
    Operation(
        "getLogByAddress",
        "GET",
        "rest-server/logs/<str:ticket>",
        read_by_ticket,
        scope="",
        parameters=(Parameter("ticket", location=Location.PATH, required=True),),
    ),
)
