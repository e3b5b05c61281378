"""The page of a job: its head, its tabs, and downloads of its file and logs."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from django.http import Http404, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from jobs import dialects
from jobs.dialects.document import Document
from jobs.dialects.formats import FORMATS
from jobs.fault_tolerance.decisions import Fault
from jobs.lifecycle import failure_lines
from jobs.lifecycle.transitions import key_of
from jobs.live import bus, log_responses, merged_responses
from jobs.logs import tail
from jobs.models import (
    Attempt,
    Event,
    Idleness,
    Job,
    JobFile,
    JobStar,
    JobTag,
    Replica,
    SanityCheck,
    TemplateUse,
)
from jobs.spec import JobSpec
from jobs.states import ReplicaState, State
from jobs.submission import clones, dependencies, job_control, templates
from jobs.submission.access import find_job
from jobs.submission.checks.feasibility import describe_network
from jobs.submission.checks.findings import conversion, notes_of, stored_notes
from jobs.submission.forms import dialect_choices, new_key
from jobs.submission.lineage import describe_change
from jobs.web.http import SignedIn, live, page, signed_in, text_response
from jobs.web.job.access import connect_context, terminal_context
from jobs.web.job.attempts import list_attempts
from jobs.web.job.files import files_context
from jobs.web.job.metrics import collect_metrics, describe_usage, list_training
from jobs.web.job.pending_reason import pending_context
from jobs.web.job.replicas import find_log, find_retained, list_endpoints, list_replicas, pick_log
from jobs.web.job.timeline import timeline
from quotas import ledger
from quotas.access import Verb, can, rights
from quotas.billing.ledger_days import sum_cost
from quotas.models import User

FRAGMENTS: Final = {
    "job-head": "jobs/job/head.html",
    "job-tab": "jobs/job/tab.html",
    "training-metrics": "jobs/job/training_metrics.html",
    "terminal-bar": "jobs/job/terminal_bar.html",
    "files-list": "jobs/job/files_list.html",
    "files-more": "jobs/job/files_piece.html",
}
MOST_EVENTS: Final = 200
MOST_DESCENDANTS: Final = 10


@require_safe
@signed_in
def job(request: SignedIn, public_id: str) -> HttpResponseBase:
    """The page; for members who may list but not read it, name, state, resources and reason only."""
    around = live(request)
    found = find_job(request.user, public_id, Verb.LIST)
    may = rights(request.user, found)
    tab = _tab(request.GET.get("tab", ""), may)
    part = request.htmx.target if request.htmx else None
    context: dict[str, Any] = {
        **around,
        "job": found,
        "tab": tab,
        "readable": Verb.READ in may,
        "controllable": Verb.CONTROL in may,
        "enterable": Verb.ENTER in may,
        "job_url": reverse("job", args=[public_id]),
        "share_url": request.build_absolute_uri(reverse("job", args=[public_id])),
        "tab_url": request.get_full_path(),
        "live_name": bus.job_name(public_id),
    }
    if part not in {"job-tab", "training-metrics"}:
        context |= _head(request.user, found, readable=Verb.READ in may)
        if Verb.ENTER in may and not found.is_ended:
            context["opens"] = _opens(request.user, found)
        context |= pending_context(request.user, found, controllable=Verb.CONTROL in may)
    if part != "job-head":
        context |= TABS[tab](request, found) if Verb.READ in may else {}
    return page(request, "jobs/job.html", context, fragments=FRAGMENTS)


def _tab(requested: str, may: Collection[Verb]) -> str:
    needed = Verb.ENTER if requested in INNER_TABS else Verb.READ
    return requested if needed in may and requested in TABS else "overview"


# --- the head --------------------------------------------------------------------------------------------


def _head(user: User, job: Job, *, readable: bool) -> dict[str, Any]:
    """The state and, when replicas failed, the first of them: the line that says why, the end of its log."""
    context: dict[str, Any] = {
        "key": new_key(),
        "extendable": job_control.left_s(user, job) >= job_control.HOUR_S,
    }
    if readable and job.started_at:
        context |= _time_and_cost(job)
    if job.is_idle:
        rows = Idleness.objects.filter(attempt__job=job, attempt__number=job.attempt_number)
        context["idle"] = rows.filter(warned_at__isnull=False).first()
    if readable and (larger := clones.larger_memory(job)):
        context["larger_mib"] = larger
    if readable and job.is_ended and (job.state == State.FAILED or job.replicas_failed):
        context |= _cause(job)
    return context


def _time_and_cost(job: Job) -> dict[str, Any]:
    """Return the time limit of a running job, and what the job has cost so far, None without a price."""
    holders = [key_of(job.public_id, number + 1) for number in range(job.attempt_number)]
    found: dict[str, Any] = {"cost_micro": sum_cost(holders, timezone.now()), "limit_s": None}
    if not job.is_ended:
        found["limit_s"] = job_control.limit_s(job, JobFile.objects.get(job=job).spec.time_limit_s)
    return found


@dataclass(frozen=True, slots=True)
class Opens:
    """The service of an interactive job: its name and address, and whether it is ready."""

    name: str
    url: str
    ready: bool


def _opens(user: User, job: Job) -> Opens | None:
    """Return the target of the page's main button; None for a job that is not interactive."""
    chosen = templates.of_job(user, job)
    if chosen is None or not chosen.template.interactive:
        return None
    label = chosen.template.opens
    if not label:
        ready = Replica.objects.filter(
            attempt__job=job,
            attempt__number=job.attempt_number,
            run=job.run_number,
            state=ReplicaState.RUNNING,
        ).exists()
        return Opens(_("terminal"), reverse("job", args=[job.public_id]) + "?tab=terminal", ready)
    for endpoint in list_endpoints(job):
        if endpoint.label == label and not endpoint.lacks(endpoint.replica):
            return Opens(chosen.name, reverse("endpoint_open", args=[endpoint.slug]), ready=True)
    progress_url = f"{reverse('job_opening', args=[job.public_id])}?to={quote(label)}"
    return Opens(chosen.name, progress_url, ready=False)


def _cause(job: Job) -> dict[str, Any]:
    attempt = Attempt.objects.get(job=job, number=job.attempt_number)
    fault = Fault.from_json(attempt.fault) if attempt.fault else None
    if fault is not None:
        failure_lines.set_reason(job, fault)
    replica = (fault and fault.line and _replica_of(attempt, job.run_number, fault)) or tail.first_failed(
        attempt, job.run_number
    )
    if replica is None:
        return {}
    stream = find_log(attempt, replica)
    lines = tail.last_lines(stream) if stream else []
    return {
        "failed_replica": replica,
        "fault": fault,
        "last_lines": "\n".join(lines),
        "kept": find_retained(replica),
    }


def _replica_of(attempt: Attempt, run: int, fault: Fault) -> Replica | None:
    rows = Replica.objects.filter(attempt=attempt, run=run, role=fault.role)
    return rows.filter(index=fault.index).first() if fault.index is not None else None


# --- the tabs --------------------------------------------------------------------------------------------


def _count_reserved(job: Job, spec: JobSpec) -> int | None:
    """Return how many replicas an elastic job's attempt has; None where it has all of them, or none yet."""
    if all(spec.least_replicas(role) is None for role in spec.roles):
        return None
    counts = ledger.granted_counts([key_of(job.public_id, job.attempt_number)])
    return next((sum(each) for each in counts.values()), None)


def _overview(request: SignedIn, job: Job) -> dict[str, Any]:
    file = JobFile.objects.select_related("job__sweep_run__sweep").get(job=job)
    return {
        **_template(request, job),
        "spec": file.spec,
        "usage": describe_usage(job, file.spec) if job.is_ended else {},
        "commit": clones.commit_of(job),
        "sanity": _newest_check(job) if file.spec.sanity_check.enabled else None,
        "network": "" if job.is_ended else describe_network(job.quota, file.spec),
        "limit_s": job_control.limit_s(job, file.spec.time_limit_s),
        "reserved_replicas": _count_reserved(job, file.spec),
        "notes": notes_of(Document(file.text, job.dialect), stored_notes(file)),
        "attempts": list_attempts(job),
        "origin": _visible(request, job.origin_id),
        "run_of_sweep": getattr(file.job, "sweep_run", None),
        "before": dependencies.list_dependencies(request.user, job),
        "behind": dependencies.list_dependents(request.user, job),
        "changed": describe_change(request.user, job),
        "descendants": Job.objects.visible_to(request.user)
        .filter(origin=job)
        .order_by("-pk")[:MOST_DESCENDANTS],
        "endpoints": list_endpoints(job),
        "tags": list(JobTag.objects.filter(job=job).values_list("name", flat=True)),
        "is_starred": JobStar.objects.filter(job=job, user=request.user).exists(),
        "has_log": not job.is_ended
        or (job.state != State.FAILED and Replica.objects.filter(attempt__job=job).exists()),
    }


def _newest_check(job: Job) -> SanityCheck | None:
    rows = SanityCheck.objects.filter(attempt__job=job).select_related("attempt")
    return rows.order_by("-attempt__number", "-run").first()


def _template(request: SignedIn, job: Job) -> dict[str, Any]:
    """Return the template and version of the job, as far as the person may see them."""
    use = TemplateUse.objects.filter(job=job).select_related("version__template").first()
    if use is None:
        return {}
    chosen = templates.of_job(request.user, job)
    name = chosen.name if chosen else use.shipped or _("custom template")
    url = reverse("start_template", args=[chosen.template.id]) if chosen else ""
    if chosen and chosen.row:
        url = reverse("template", args=[chosen.template.id])
    return {"template_use": use, "template_name": name, "template_url": url}


def _visible(request: SignedIn, pk: int | None) -> Job | None:
    return Job.objects.visible_to(request.user).filter(pk=pk).first() if pk else None


def _logs(request: SignedIn, job: Job) -> dict[str, Any]:
    log = pick_log(job, request.GET)
    if log is None:
        return {"log": None}
    download = f"{reverse('job_logs', args=[job.public_id])}?{log.query}&download=1"
    return {"log": log, "download_url": download}


def _events(request: SignedIn, job: Job) -> dict[str, Any]:
    rows = Event.objects.filter(job=job).select_related("actor").order_by("-pk")
    found = list(rows[: MOST_EVENTS + 1])
    return {
        "events": timeline(found[:MOST_EVENTS]),
        "more_events": len(found) > MOST_EVENTS,
    }


def _file(request: SignedIn, job: Job) -> dict[str, Any]:
    return {
        "file": JobFile.objects.get(job=job),
        "file_name": job_file_name(job.name, job.dialect),
        "syntax": FORMATS[job.dialect].syntax,
        "dialects": dialect_choices(),
        "before": _readable(request, job.origin_id),
    }


def _readable(request: SignedIn, pk: int | None) -> Job | None:
    found = _visible(request, pk)
    return found if found and can(request.user, Verb.READ, found) else None


TABS: Final[Mapping[str, Callable[[SignedIn, Job], dict[str, Any]]]] = {
    "overview": _overview,
    "replicas": lambda request, job: {"replicas": list_replicas(job, request.GET)},
    "logs": _logs,
    "events": _events,
    "metrics": lambda _request, job: {"metrics": collect_metrics(job), "training": list_training(job)},
    "file": _file,
    "connect": connect_context,
    "terminal": terminal_context,
    "files": files_context,
}

INNER_TABS: Final = frozenset({"connect", "terminal", "files"})
"""For those who may enter the job."""


@require_safe
@signed_in
def job_file(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Download the job file, with placeholders for secret values.

    With `as` it is written in that dialect; 422 with the reasons when the file can't be read (any more).
    """
    job = find_job(request.user, public_id)
    document = Document(JobFile.objects.get(job=job).text, job.dialect)
    dialect, text = job.dialect, document.text
    if requested := request.GET.get("as"):
        if requested not in dialects.NAMES:
            raise Http404
        made = conversion(document, requested)
        if made.text is None:
            return text_response("\n".join(problem.message for problem in made.problems), status=422)
        dialect, text = requested, made.text
    return text_response(text, job_file_name(job.name, dialect))


def job_file_name(job: str, dialect: str) -> str:
    """Return the file name of a job file in that dialect."""
    return f"{re.sub(r'[^A-Za-z0-9._~-]', '_', job) or 'job'}.{FORMATS[dialect].suffix}"


@require_safe
@signed_in
def logs(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Return a slice, the whole log (`download=1`) or the lines with `q`; see `jobs.live.log_responses`."""
    job = find_job(request.user, public_id)
    try:
        return log_responses.respond(job, request.GET.dict())
    except log_responses.NoSuchLog:
        raise Http404 from None
    except log_responses.BadNumber as error:
        return HttpResponse(f"{error} is no such number", status=400, content_type="text/plain")
    except log_responses.BadSearch as error:
        return text_response(str(error), status=400)


@require_safe
@signed_in
def merged_logs(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Return lines of all replicas by time, what is found in them, or all as text; see `merged_responses`."""
    job = find_job(request.user, public_id)
    try:
        return merged_responses.respond(job, request.GET.dict())
    except log_responses.BadNumber as error:
        return HttpResponse(f"{error} is no such number", status=400, content_type="text/plain")
    except log_responses.BadSearch as error:
        return text_response(str(error), status=400)
