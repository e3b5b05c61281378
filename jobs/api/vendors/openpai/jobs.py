"""Operations on jobs under all their addresses."""

from __future__ import annotations

from typing import Any, Final

from jobs import submission
from jobs.api.vendors.api import VendorError
from jobs.api.vendors.openpai import attempts, configs, errors, events, job_details, job_lists, logs, ssh
from jobs.api.vendors.openpai.configs import V1, V2
from jobs.api.vendors.openpai.job_names import find_job, requested_name
from jobs.api.vendors.openpai.submissions import submit_v1, submit_v2
from jobs.api.vendors.operations import Call, JsonObject, Location, Operation, Parameter, Support
from jobs.models import Job
from jobs.states import State
from jobs.submission import tags
from quotas.access import Verb

START: Final = "START"
STOP: Final = "STOP"


def execute_v1(call: Call) -> JsonObject:
    """Stop a job; to start one that has not ended changes nothing."""
    _execute(call)
    return {"message": f"execute job {requested_name(call)} successfully"}


def execute_v2(call: Call) -> JsonObject:
    """Stop a job, in the words of version 2."""
    _execute(call)
    return {"status": 202, "message": f"Execute job {requested_name(call)} successfully."}


def _execute(call: Call) -> None:
    job = find_job(call, Verb.CONTROL, "execute")
    if call.values["value"] == STOP:
        submission.stop(call.person, job)
    elif job.is_ended:
        message = "A job that has ended is not started again; submit it again under another name."
        raise VendorError(501, "NotImplementedError", message)


def delete_v1(call: Call) -> JsonObject:
    """Delete a job that has ended; one that waits is stopped first."""
    job = find_job(call, Verb.CONTROL, "remove")
    if State(job.state) is State.QUEUED:
        submission.stop(call.person, job)
    try:
        submission.delete(call.person, job)
    except submission.StillRunning:
        message = f"Job {requested_name(call)} is running; stop it first."
        raise errors.conflicting_job(message) from None
    return {"message": f"deleted job {requested_name(call)} successfully"}


def add_tag(call: Call) -> JsonObject:
    """Put a tag on a job."""
    job = find_job(call, Verb.CONTROL, "add tag to")
    name, tag = requested_name(call), _tag(call)
    try:
        tags.add_tag(call.person, job, tag)
    except tags.TooManyTags:
        raise errors.invalid_parameters(f"A job has at most {tags.MOST} tags.") from None
    return {"status": 200, "message": f"Add tag {tag} for job {name} successfully."}


def delete_tag(call: Call) -> JsonObject:
    """Take a tag off a job."""
    job: Job = find_job(call, Verb.CONTROL, "delete tag from")
    name, tag = requested_name(call), _tag(call)
    if not tags.remove_tag(call.person, job, tag):
        raise errors.no_tag(name, tag)
    return {"status": 200, "message": f"Delete tag {tag} from job {name} successfully."}


def _tag(call: Call) -> str:
    tag = str(call.values["value"])
    if not tag or len(tag) > tags.LONGEST:
        raise errors.invalid_parameters(f'"value" must have 1 to {tags.LONGEST} characters.')
    return tag


_JOB: Final = Parameter("job", location=Location.PATH, required=True)
_OWNER: Final = Parameter("username", location=Location.PATH, required=True)
_NAMED_OWNER: Final = Parameter("username")
_VALUE: Final = Parameter(
    "value",
    location=Location.BODY,
    required=True,
    choices=(START, STOP),
    support=Support.PARTIAL,
    note="START does not start a job that has ended.",
)
_TAG: Final = Parameter("value", location=Location.BODY, required=True)
_SUBMISSION: Final[dict[str, Any]] = {
    "scope": "submit",
    "format": V1,
    "support": Support.PARTIAL,
    "note": "The caller's own jobs; two jobs of one person that have not been deleted never share a name.",
}


def _first_version(mount: str, owner: tuple[Parameter, ...]) -> list[Operation]:
    """Return the operations of version 1 under an address; `owner` is its user, if it has one."""
    listed = owner or (_NAMED_OWNER,)
    one, of_job = f"{mount}/<str:job>", (*owner, _JOB)
    stop: dict[str, Any] = {"scope": "stop", "status": 202}
    return [
        Operation(
            "listJobs",
            "GET",
            mount,
            job_lists.list_v1,
            parameters=listed,
            support=Support.PARTIAL,
            note=job_lists.NEWEST_ONLY,
        ),
        Operation("submitJob", "POST", mount, submit_v1, parameters=listed, **_SUBMISSION),
        Operation("getJob", "GET", one, job_details.get_v1, parameters=of_job),
        Operation("updateJob", "PUT", one, submit_v1, parameters=(*listed, _JOB), **_SUBMISSION),
        Operation(
            "deleteJob",
            "DELETE",
            one,
            delete_v1,
            parameters=of_job,
            support=Support.PARTIAL,
            note="A running job is stopped first.",
            **stop,
        ),
        Operation(
            "executeJob",
            "PUT",
            f"{one}/executionType",
            execute_v1,
            parameters=(*of_job, _VALUE),
            **stop,
        ),
        Operation("getJobConfig", "GET", f"{one}/config", configs.get_v1, parameters=of_job),
        Operation("getJobSsh", "GET", f"{one}/ssh", ssh.get_ssh_info, scope="exec", parameters=of_job),
    ]


def _second_version() -> list[Operation]:
    one = "rest-server/api/v2/jobs/<str:job>"
    tagged: dict[str, Any] = {"scope": "submit", "parameters": (_JOB, _TAG)}
    return [
        *job_lists.OPERATIONS,
        Operation(
            "submitJob",
            "POST",
            "rest-server/api/v2/jobs",
            submit_v2,
            status=202,
            **{**_SUBMISSION, "format": V2},
        ),
        Operation("getJob", "GET", one, job_details.get_v2, parameters=(_JOB,)),
        Operation(
            "executeJob",
            "PUT",
            f"{one}/executionType",
            execute_v2,
            scope="stop",
            status=202,
            parameters=(_JOB, _VALUE),
        ),
        Operation("getJobConfig", "GET", f"{one}/config", configs.get_v2, parameters=(_JOB,)),
        Operation("addTag", "PUT", f"{one}/tag", add_tag, **tagged),
        Operation("deleteTag", "DELETE", f"{one}/tag", delete_tag, **tagged),
    ]


_WRONG_CONFIG: Final = Operation(
    "getJobConfig",
    "GET",
    "rest-server/api/v1/jobs/<str:username>/jobs/<str:job>/config",
    configs.get_v1,
    parameters=(_OWNER, _JOB),
    note="An address that only the JavaScript SDK uses.",
)

OPERATIONS: Final[tuple[Operation, ...]] = (
    *_first_version("rest-server/api/v1/jobs", ()),
    *_first_version("rest-server/api/v1/user/<str:username>/jobs", (_OWNER,)),
    *_first_version("rest-server/api/v2/user/<str:username>/jobs", (_OWNER,)),
    _WRONG_CONFIG,
    *_second_version(),
    *ssh.OPERATIONS,
    *events.OPERATIONS,
    *attempts.OPERATIONS,
    *logs.OPERATIONS,
)
