"""The progress page of an interactive job, which redirects to its service."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from jobs.access import sessions
from jobs.live import bus
from jobs.logs import tail
from jobs.models import Attempt, Endpoint, Job, JobFile, Replica
from jobs.states import ReplicaState, State
from jobs.submission import job_control
from jobs.submission.access import find_job
from jobs.web.http import SignedIn, live, page, signed_in
from jobs.web.job.pending_reason import pending_context
from jobs.web.job.replicas import find_log, list_endpoints
from quotas.access import Verb, can

LINES: Final = 12
TERMINAL: Final = "terminal"


class StepStage(StrEnum):
    """The progress of a step."""

    DONE = "done"
    NOW = "now"
    LATER = "later"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class StartStep:
    """One of the steps on the way."""

    label: str
    stage: StepStage


@require_safe
@never_cache
@signed_in
def show_progress(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Show the job's progress towards the endpoint with label `to`, or towards a terminal.

    Once that is ready the answer leads there; the page asks again by itself.
    """
    around = live(request)
    job = find_job(request.user, public_id, Verb.ENTER)
    label = request.GET.get("to", "")
    replica = sessions.current_replicas(job).order_by("ordinal").first()
    endpoint = _endpoint(job, label)
    destination = _find_destination(job, replica, endpoint, label)
    if destination:
        return _redirect(request, destination)
    spec = JobFile.objects.get(job=job).spec
    requirements = spec.requirements
    return page(
        request,
        "jobs/opening.html",
        {
            **around,
            **pending_context(request.user, job, controllable=can(request.user, Verb.CONTROL, job)),
            "job": job,
            "label": label,
            "replica": replica,
            "endpoint": endpoint,
            "steps": _list_steps(
                job, replica, label, installs=bool(requirements.packages or requirements.directory)
            ),
            "lines": _last_lines(job, replica),
            "opening_url": request.get_full_path(),
            "live_name": bus.job_name(public_id),
            "limit_s": job_control.limit_s(job, spec.time_limit_s),
        },
        fragments={"opening": "jobs/opening/progress.html"},
    )


def _endpoint(job: Job, label: str) -> Endpoint | None:
    rows = [each for each in list_endpoints(job) if each.label == label]
    return next((each for each in rows if each.ready), rows[0] if rows else None)


def _find_destination(job: Job, replica: Replica | None, endpoint: Endpoint | None, label: str) -> str:
    """Return the address of the service, once it is ready."""
    if job.is_ended or replica is None:
        return ""
    if not label:
        running = replica.state == ReplicaState.RUNNING
        return f"{reverse('job', args=[job.public_id])}?tab={TERMINAL}" if running else ""
    if endpoint is None or endpoint.lacks(endpoint.replica):
        return ""
    return reverse("endpoint_open", args=[endpoint.slug])


def _redirect(request: SignedIn, destination: str) -> HttpResponseBase:
    """Redirect; for a fragment by a header of htmx, since a fragment can't redirect its page."""
    if request.htmx:
        return HttpResponse(headers={"HX-Redirect": destination})
    return redirect(destination)


def _list_steps(job: Job, replica: Replica | None, label: str, *, installs: bool) -> list[StartStep]:
    starting = _("Installing Python packages") if installs else _("Starting the job")
    names = [_("Waiting in queue"), starting, _("Opening the port")]
    if not label:
        names.pop()
    started = replica is not None and replica.state != ReplicaState.WAITING
    reached = 0 if State(job.state) is State.QUEUED else 2 if started else 1
    stages = [
        StepStage.DONE if at < reached else StepStage.NOW if at == reached else StepStage.LATER
        for at in range(3)
    ]
    if job.is_ended:
        stages = [StepStage.FAILED if stage is StepStage.NOW else stage for stage in stages]
    return [StartStep(name, stage) for name, stage in zip(names, stages, strict=False)]


def _last_lines(job: Job, replica: Replica | None) -> str:
    """Return the end of the log, which may tell why the start takes long."""
    attempt = Attempt.objects.filter(job=job, number=job.attempt_number).first()
    if replica is None or attempt is None:
        return ""
    stream = find_log(attempt, replica)
    lines: list[Any] = tail.last_lines(stream, LINES) if stream else []
    return "\n".join(lines)
