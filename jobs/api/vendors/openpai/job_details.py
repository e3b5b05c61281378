"""A job in full, as OpenPAI describes it: its status, and its task roles with their tasks."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Any

from jobs import messages
from jobs.api.vendors.openpai import errors, states
from jobs.api.vendors.openpai.job_lists import load_tags
from jobs.api.vendors.openpai.job_names import find_job, may_read, name_of
from jobs.api.vendors.openpai.job_summaries import RetryCounts, load_retries, to_ms
from jobs.api.vendors.openpai.states import Version
from jobs.api.vendors.openpai.task_details import TaskView, newest_replicas
from jobs.api.vendors.operations import Call, JsonObject
from jobs.lifecycle import pending_reasons
from jobs.models import Attempt, Job, JobFile
from jobs.states import Phase, ReasonCode, State
from quotas.access import Verb, rights


def get_v1(call: Call) -> JsonObject:
    """Return a job; its task roles only to whoever may read it."""
    return describe(call, find_job(call, Verb.LIST), Version.V1)


def get_v2(call: Call) -> JsonObject:
    """Return a job as version 2 describes it."""
    return describe(call, find_job(call, Verb.LIST), Version.V2)


def get_attempt(call: Call) -> JsonObject:
    """Return a job as it was in one of its attempts, which are counted from 0."""
    job = find_job(call, Verb.READ)
    return describe(call, job, Version.V2, find_attempt(job, call.values["attempt"]))


def find_attempt(job: Job, index: int) -> Attempt:
    """Return an attempt by its index from 0.  Raises VendorError."""
    attempt = Attempt.objects.filter(job=job, number=index + 1).first()
    if attempt is None:
        raise errors.no_job(name_of(job))
    return attempt


def describe(call: Call, job: Job, version: Version, attempt: Attempt | None = None) -> JsonObject:
    """Return a job, in its newest attempt or another; the number of queries does not depend on its size."""
    attempt = attempt or Attempt.objects.get(job=job, number=job.attempt_number)
    verbs = rights(call.person, job)
    reads = may_read(call, job, verbs)
    pending_reasons.load_reasons([job])
    retries = load_retries([job]).get(job.pk, RetryCounts())
    shown = job if attempt.number == job.attempt_number else _set_back(job, attempt)
    found: JsonObject = {
        "name": job.name,
        "jobStatus": _status(shown, attempt, version, retries, reads=reads),
        "taskRoles": _roles(call, shown, attempt, version, verbs) if reads else {},
    }
    if version is Version.V2:
        tags = load_tags([job]).get(job.pk, [])
        found |= {"debugId": job.public_id, "tags": tags, "jobPriority": None}
    return found


def describe_attempts(job: Job, attempts: Iterable[Attempt]) -> list[tuple[JsonObject, Attempt]]:
    """Return a job in each of some attempts, without its task roles; for whoever may read it."""
    pending_reasons.load_reasons([job])
    retries = load_retries([job]).get(job.pk, RetryCounts())
    found = []
    for attempt in attempts:
        shown = job if attempt.number == job.attempt_number else _set_back(job, attempt)
        status = _status(shown, attempt, Version.V2, retries, reads=True)
        found.append(({"name": job.name, "jobStatus": status, "taskRoles": {}}, attempt))
    return found


def _set_back(job: Job, attempt: Attempt) -> Job:
    """Return a copy of the job, never to be saved, as it was at the end of an earlier attempt."""
    earlier = copy(job)
    earlier.state, earlier.phase = State.FAILED.value, Phase.ENDED.value
    earlier.reason_code = attempt.reason_code or ReasonCode.LOST.value
    earlier.reason_params = attempt.reason_params
    earlier.attempt_number = attempt.number
    earlier.started_at, earlier.ended_at = attempt.started_at, attempt.ended_at
    earlier.told = None
    return earlier


def _roles(
    call: Call, job: Job, attempt: Attempt, version: Version, verbs: frozenset[Verb]
) -> dict[str, Any]:
    enters = Verb.ENTER in verbs and call.allows("exec")
    view = TaskView(call, job, attempt, version, shows_ports=enters and job.cluster.shows_addresses)
    return view.roles(JobFile.objects.get(job=job).spec.roles, newest_replicas(attempt))


def _status(
    job: Job, attempt: Attempt, version: Version, retries: RetryCounts, *, reads: bool
) -> dict[str, Any]:
    state = states.state_of(job, version)
    code = states.exit_code_of(job, version)
    diagnostics = _diagnostics(job)
    status = {
        "name": job.name,
        "username": job.owner.get_username(),
        "state": state.state,
        "subState": state.sub_state,
        "executionType": states.execution_type(job),
        "retries": job.attempt_number - 1,
        "retryDetails": retries.to_json(),
        "createdTime": to_ms(job.created_at),
        "completedTime": to_ms(job.ended_at),
        "appId": attempt.key,
        "appProgress": 1 if job.is_ended else 0,
        "appTrackingUrl": "",
        "appLaunchedTime": to_ms(attempt.submitted_at),
        "appCompletedTime": to_ms(attempt.ended_at),
        "appExitCode": code,
        "appExitSpec": states.exit_spec_of(job, version),
        "appExitDiagnostics": diagnostics,
        "appExitMessages": {"container": None, "runtime": diagnostics, "launcher": None},
        "appExitTriggerMessage": diagnostics if job.is_ended else None,
        "appExitTriggerTaskRoleName": _trigger(job, "role", reads=reads),
        "appExitTriggerTaskIndex": _trigger(job, "index", reads=reads),
        "appExitType": states.exit_type_of(job),
        "virtualCluster": job.quota.slug,
    }
    if version is Version.V1:
        return status
    return {
        **status,
        "submissionTime": to_ms(job.created_at),
        "launchedTime": to_ms(attempt.started_at),
        "appCreatedTime": to_ms(attempt.created_at),
        "attemptId": attempt.number - 1,
        "attemptState": state.sub_state,
        "retryDelayTime": None,
    }


def _diagnostics(job: Job) -> str:
    reason = pending_reasons.reason_of(job)
    return messages.reason_message(reason.code, reason.params)


def _trigger(job: Job, key: str, *, reads: bool) -> Any:
    """Return the role or index of the task that decided the job, as far as the reason names it."""
    return job.reason_params.get(key) if reads and job.is_ended else None
