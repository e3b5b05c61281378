"""UpdateJob, StopJob and DeleteJob."""

from __future__ import annotations

from typing import Final

from django.db import transaction

from jobs import submission
from jobs.api.vendors.api import ErrorKind
from jobs.api.vendors.operations import (
    Call,
    JsonObject,
    Kind,
    Location,
    MissingScopeError,
    Operation,
    Parameter,
    Support,
)
from jobs.api.vendors.pai_dlc.identifiers import find_job
from jobs.api.vendors.pai_dlc.job_events import JOB_ID
from jobs.api.vendors.pai_dlc.refusals import refusal, refuse_unsupported
from jobs.models import Job, Visibility
from quotas.access import Verb, administers


def update_job(call: Call) -> JsonObject:
    """Change the priority and open the job to its workspace; both or nothing."""
    job = find_job(call, call.values["JobId"], Verb.CONTROL)
    refuse_unsupported(call)
    with transaction.atomic():
        _change_priority(call, job, call.values["Priority"])
        _open_to_workspace(call, job, call.values["Accessibility"])
    return {"JobId": call.values["JobId"]}


def _change_priority(call: Call, job: Job, priority: int | None) -> None:
    if priority is None or priority == job.priority:
        return
    if not administers(call.person):
        message = "Priority: only admins of the console can change the priority of a submitted job."
        raise refusal(ErrorKind.FORBIDDEN, message)
    if not call.allows("admin"):
        raise MissingScopeError("admin")
    try:
        submission.prioritise(call.person, job, priority)
    except submission.NotWaiting:
        message = "Priority: only the priority of a queued job can be changed."
        raise refusal(ErrorKind.CONFLICT, message) from None


def _open_to_workspace(call: Call, job: Job, accessibility: str | None) -> None:
    if accessibility is None or accessibility == job.visibility:
        return
    if accessibility != Visibility.PUBLIC:
        message = "Accessibility: a public job can't be made private again."
        raise refusal(ErrorKind.INVALID, message)
    submission.share(call.person, job, Visibility.PUBLIC)


def stop_job(call: Call) -> JsonObject:
    """Request the end of a job; one that has ended stays as it ended."""
    submission.stop(call.person, find_job(call, call.values["JobId"], Verb.CONTROL))
    return {"JobId": call.values["JobId"]}


def delete_job(call: Call) -> JsonObject:
    """Delete an ended job."""
    submission.delete(call.person, find_job(call, call.values["JobId"], Verb.CONTROL))
    return {"JobId": call.values["JobId"]}


def _unchangeable(name: str, kind: Kind = Kind.TEXT) -> Parameter:
    note = "a submitted job runs as its file says; create another one."
    return Parameter(name, kind, Location.BODY, support=Support.REFUSED, note=note, since="1.11.6")


OPERATIONS: Final = (
    Operation(
        "UpdateJob",
        "PUT",
        "api/v1/jobs/<str:JobId>",
        update_job,
        scope="submit",
        parameters=(
            JOB_ID,
            Parameter(
                "Priority",
                Kind.INTEGER,
                Location.BODY,
                least=1,
                most=9,
                support=Support.PARTIAL,
                note="By admins of the console, and while the job is queued.",
            ),
            Parameter(
                "Accessibility",
                location=Location.BODY,
                choices=tuple(Visibility.values),
                support=Support.PARTIAL,
                note="As the vendor has it, a job can only be made public.",
                since="1.4.17",
            ),
            _unchangeable("Description"),
            _unchangeable("JobSpecs", Kind.LIST),
            _unchangeable("UserCommand"),
        ),
        support=Support.PARTIAL,
        note="Priority and Accessibility can be changed.",
    ),
    Operation(
        "StopJob", "POST", "api/v1/jobs/<str:JobId>/stop", stop_job, scope="stop", parameters=(JOB_ID,)
    ),
    Operation(
        "DeleteJob",
        "DELETE",
        "api/v1/jobs/<str:JobId>",
        delete_job,
        scope="stop",
        parameters=(JOB_ID,),
        support=Support.PARTIAL,
        note="Only a job that has ended can be deleted.",
    ),
)
"""The operations."""
