"""From a job that was just submitted to what it serves: how far it is, and there as soon as it is ready."""

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

from jobs.access import entries
from jobs.live import bus
from jobs.logs import tail
from jobs.models import Attempt, Endpoint, Job, JobFile, Task
from jobs.states import State, TaskState
from jobs.submission import extending
from jobs.submission.access import find_job
from jobs.web import replicas, waiting
from jobs.web.http import SignedIn, live, page, signed_in
from quotas.access import Verb, can

FRAGMENTS: Final = {"opening": "jobs/opening/progress.html"}
LINES: Final = 12
TERMINAL: Final = "terminal"


class Stage(StrEnum):
    """How far a step is."""

    DONE = "done"
    NOW = "now"
    LATER = "later"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Step:
    """One of the steps on the way."""

    label: str
    stage: Stage


@require_safe
@never_cache
@signed_in
def opening(request: SignedIn, public_id: str) -> HttpResponseBase:
    """How far the job is on its way to the endpoint whose label is `to`, or to a terminal beside it.

    Once that is ready the answer leads there; the page asks again by itself.
    """
    around = live(request)
    job = find_job(request.user, public_id, Verb.ENTER)
    label = request.GET.get("to", "")
    task = entries.current_tasks(job).order_by("ordinal").first()
    endpoint = _endpoint(job, label)
    there = _there(job, task, endpoint, label)
    if there:
        return _sent_on(request, there)
    spec = JobFile.objects.get(job=job).spec
    asked = spec.requirements
    return page(
        request,
        "jobs/opening.html",
        {
            **around,
            **waiting.context(request.user, job, controllable=can(request.user, Verb.CONTROL, job)),
            "job": job,
            "label": label,
            "task": task,
            "endpoint": endpoint,
            "steps": _steps(job, task, label, installs=bool(asked.packages or asked.directory)),
            "lines": _lines(job, task),
            "opening_url": request.get_full_path(),
            "live_name": bus.job_name(public_id),
            "limit_s": extending.limit_s(job, spec.time_limit_s),
        },
        fragments=FRAGMENTS,
    )


def _endpoint(job: Job, label: str) -> Endpoint | None:
    rows = [each for each in replicas.endpoints_of(job) if each.label == label]
    return next((each for each in rows if each.ready), rows[0] if rows else None)


def _there(job: Job, task: Task | None, endpoint: Endpoint | None, label: str) -> str:
    """Where it leads, once it is ready."""
    if job.is_ended or task is None:
        return ""
    if not label:
        running = task.state == TaskState.RUNNING
        return f"{reverse('job', args=[job.public_id])}?tab={TERMINAL}" if running else ""
    if endpoint is None or endpoint.lacks(endpoint.task):
        return ""
    return reverse("endpoint_open", args=[endpoint.slug])


def _sent_on(request: SignedIn, there: str) -> HttpResponseBase:
    """A fragment cannot redirect the page it stands in; htmx does on this header."""
    if request.htmx:
        return HttpResponse(headers={"HX-Redirect": there})
    return redirect(there)


def _steps(job: Job, task: Task | None, label: str, *, installs: bool) -> list[Step]:
    starting = _("Installing Python packages") if installs else _("Starting the job")
    names = [_("Waiting for its turn"), starting, _("Opening the port")]
    if not label:
        names.pop()
    started = task is not None and task.state != TaskState.WAITING
    reached = 0 if State(job.state) is State.QUEUED else 2 if started else 1
    stages = [Stage.DONE if at < reached else Stage.NOW if at == reached else Stage.LATER for at in range(3)]
    if job.is_ended:
        stages = [Stage.FAILED if stage is Stage.NOW else stage for stage in stages]
    return [Step(name, stage) for name, stage in zip(names, stages, strict=False)]


def _lines(job: Job, task: Task | None) -> str:
    """The end of what it wrote, which may say why it takes so long, or what went wrong."""
    attempt = Attempt.objects.filter(job=job, number=job.attempt_number).first()
    if task is None or attempt is None:
        return ""
    stream = replicas.log_of(attempt, task)
    lines: list[Any] = tail.last_lines(stream, LINES) if stream else []
    return "\n".join(lines)
