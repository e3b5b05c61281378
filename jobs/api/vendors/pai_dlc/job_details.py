"""GetJob."""

from __future__ import annotations

from typing import Final

from jobs.api.vendors.operations import Call, JsonObject, Kind, Operation, Parameter, Support
from jobs.api.vendors.pai_dlc.identifiers import find_job
from jobs.api.vendors.pai_dlc.job_events import JOB_ID
from jobs.api.vendors.pai_dlc.job_rendering import amounts, render_history, render_job
from jobs.api.vendors.pai_dlc.pod_rendering import render_counts, render_pods
from jobs.api.vendors.pai_dlc.statuses import HISTORY
from jobs.lifecycle import pending_reasons
from jobs.models import Attempt, Event, Job, JobFile
from quotas.access import Verb, can


def get_job(call: Call) -> JsonObject:
    """Answer a job; without the content of its file, pods and history for whoever may not read them."""
    job = find_job(call, call.values["JobId"], Verb.LIST)
    pending_reasons.load_reasons([job])
    attempt = Attempt.objects.filter(job=job, number=job.attempt_number).first()
    if not _is_readable(call, job):
        return {**render_job(job, attempt, None), "RequestGPU": job.gpus}
    file = JobFile.objects.get(job=job)
    cpus, gpus, memory = amounts(file.spec)
    return {
        **render_job(job, attempt, file),
        "RequestCPU": cpus,
        "RequestGPU": gpus,
        "RequestMemory": memory,
        **(_details(job) if call.values["NeedDetail"] else {}),
    }


def _is_readable(call: Call, job: Job) -> bool:
    return call.has_scope_to_read(job) and can(call.person, Verb.READ, job)


def _details(job: Job) -> JsonObject:
    pods = render_pods(job)
    kinds = [kind.value for kind in (*HISTORY, Event.Kind.ENDED)]
    events = Event.objects.filter(job=job, kind__in=kinds).order_by("pk")
    return {
        "Pods": pods,
        "JobReplicaStatuses": render_counts(pods),
        "StatusHistory": render_history(job, list(events)),
    }


GET_JOB: Final = Operation(
    "GetJob",
    "GET",
    "api/v1/jobs/<str:JobId>",
    get_job,
    parameters=(JOB_ID, Parameter("NeedDetail", Kind.BOOLEAN, default=True)),
    support=Support.PARTIAL,
    note=(
        "Pods have no Ip, and jobs no TenantId, RoleSystemEnvs, RestartRecord and supportedProfilingTypes, "
        "which the console does not know. A job that was lost is Failed with the SubStatus Lost, and Running "
        "again if it reappears."
    ),
)
"""The operation."""
