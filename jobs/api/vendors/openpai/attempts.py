"""Attempts of a job, counted from 0, and the runs of a task in one of them."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpResponse, HttpResponseBase, JsonResponse

from jobs.api.vendors.openpai import errors
from jobs.api.vendors.openpai.job_details import describe, describe_attempts, find_attempt, get_attempt
from jobs.api.vendors.openpai.job_names import find_job, name_of
from jobs.api.vendors.openpai.states import Version
from jobs.api.vendors.openpai.task_details import TaskView
from jobs.api.vendors.operations import Call, JsonObject, Kind, Location, Operation, Parameter, Support
from jobs.models import Attempt, Job, Replica
from quotas.access import Verb

MOST: Final = 20
"""Attempts of an answer, the newest ones: each has all its tasks."""


def check_health(call: Call) -> HttpResponseBase:
    """Tell that attempts are stored."""
    find_job(call, Verb.LIST)
    return HttpResponse("ok", content_type="text/plain")


def list_attempts(call: Call) -> HttpResponseBase:
    """Return the status of the newest attempts, the newest first."""
    job = find_job(call, Verb.READ)
    attempts = list(Attempt.objects.filter(job=job).order_by("-number")[:MOST])
    found = [_with_index(job, summary, row) for summary, row in describe_attempts(job, attempts)]
    return JsonResponse(found, safe=False)


def show_attempt(call: Call) -> JsonObject:
    """Return one attempt in full."""
    job = find_job(call, Verb.READ)
    attempt = find_attempt(job, call.values["attempt"])
    return _with_index(job, describe(call, job, Version.V2, attempt), attempt)


def _with_index(job: Job, found: dict[str, Any], attempt: Attempt) -> dict[str, Any]:
    is_latest = attempt.number == job.attempt_number
    return {**found, "attemptIndex": attempt.number - 1, "isLatest": is_latest}


def list_task_attempts(call: Call) -> JsonObject:
    """Return a task in each of its runs, the newest first."""
    job = find_job(call, Verb.READ)
    attempt = find_attempt(job, call.values["attempt"])
    rows = Replica.objects.filter(attempt=attempt, role=call.values["role"], index=call.values["index"])
    replicas = list(rows.order_by("-run").prefetch_related("endpoints")[:MOST])
    if not replicas:
        raise errors.no_job(name_of(job))
    view = TaskView(call, job, attempt, Version.V2, shows_ports=False)
    return {
        "jobAttemptIndex": attempt.number - 1,
        "taskRoleName": call.values["role"],
        "taskIndex": call.values["index"],
        "attempts": [view.describe(row.role, row.index, row) for row in replicas],
    }


_JOB: Final = (Parameter("job", location=Location.PATH, required=True),)


def _number(name: str) -> Parameter:
    return Parameter(name, Kind.INTEGER, Location.PATH, required=True, least=0, most=2**31 - 2)


_ATTEMPT: Final = (*_JOB, _number("attempt"))
_TASK: Final = (*_ATTEMPT, Parameter("role", location=Location.PATH, required=True), _number("index"))
_ONE: Final = "rest-server/api/v2/jobs/<str:job>"
_NEWEST: Final = f"The newest {MOST} attempts, without their task roles."

OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation("getJobAttemptsHealthz", "GET", f"{_ONE}/job-attempts/healthz", check_health, parameters=_JOB),
    Operation(
        "getJobAttempts",
        "GET",
        f"{_ONE}/job-attempts",
        list_attempts,
        parameters=_JOB,
        support=Support.PARTIAL,
        note=_NEWEST,
    ),
    Operation(
        "getJobAttempt",
        "GET",
        f"{_ONE}/job-attempts/<str:attempt>",
        show_attempt,
        parameters=_ATTEMPT,
    ),
    Operation("getJobByAttempt", "GET", f"{_ONE}/attempts/<str:attempt>", get_attempt, parameters=_ATTEMPT),
    Operation(
        "getTask",
        "GET",
        f"{_ONE}/attempts/<str:attempt>/taskRoles/<str:role>/taskIndex/<str:index>/attempts",
        list_task_attempts,
        parameters=_TASK,
        support=Support.PARTIAL,
        note="The runs of the task, each with the fields of a task status.",
    ),
)
