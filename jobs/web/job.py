"""One job: what it is doing and why, and everything that belongs to it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from django.http import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from jobs.dialects.document import Document
from jobs.dialects.formats import FORMATS
from jobs.live import bus
from jobs.logs import tail
from jobs.models import Attempt, Event, Idleness, Job, JobFile, Task, TemplateUse
from jobs.states import State, TaskState
from jobs.submission import afters, extending, ran, templates
from jobs.submission.access import find_job
from jobs.submission.extending import HOUR_S
from jobs.submission.findings import notes_of
from jobs.submission.forms import dialect_choices, new_key
from jobs.submission.notes import stored_notes
from jobs.web import metrics, replicas, waiting
from jobs.web.connect import connect
from jobs.web.files import file_name
from jobs.web.folders import files
from jobs.web.history import line_of
from jobs.web.http import SignedIn, live, page, signed_in
from jobs.web.terminal import terminal
from jobs.web.timeline import timeline
from quotas.access import Verb, can, rights
from quotas.models import User

FRAGMENTS: Final = {
    "job-head": "jobs/job/head.html",
    "job-tab": "jobs/job/tab.html",
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
        "tab_url": request.get_full_path(),
        "live_name": bus.job_name(public_id),
    }
    if part != "job-tab":
        context |= _head(request.user, found, readable=Verb.READ in may)
        if Verb.ENTER in may and not found.is_ended:
            context["opens"] = _opens(request.user, found)
        context |= waiting.context(request.user, found, controllable=Verb.CONTROL in may)
    if part != "job-head":
        context |= TABS[tab](request, found) if Verb.READ in may else {}
    return page(request, "jobs/job.html", context, fragments=FRAGMENTS)


def _tab(asked: str, may: Collection[Verb]) -> str:
    needed = Verb.ENTER if asked in INNER_TABS else Verb.READ
    return asked if needed in may and asked in TABS else "overview"


# --- the head --------------------------------------------------------------------------------------------


def _head(user: User, job: Job, *, readable: bool) -> dict[str, Any]:
    """The state and, when replicas failed, the first of them with the end of its log."""
    context: dict[str, Any] = {"key": new_key(), "extendable": extending.left_s(user, job) >= HOUR_S}
    if job.is_idle:
        rows = Idleness.objects.filter(attempt__job=job, attempt__number=job.attempt_number)
        context["idle"] = rows.filter(warned_at__isnull=False).first()
    if readable and job.is_ended and (job.state == State.FAILED or job.tasks_failed):
        context |= _cause(job)
    return context


@dataclass(frozen=True, slots=True)
class Opens:
    """What an interactive job is there for: its name, and where it is opened or how far it is on the way."""

    name: str
    url: str
    ready: bool


def _opens(user: User, job: Job) -> Opens | None:
    """What the page's main button opens, by the job's template; None for a job that is not interactive."""
    chosen = templates.of_job(user, job)
    if chosen is None or not chosen.template.interactive:
        return None
    label = chosen.template.opens
    if not label:
        ready = Task.objects.filter(
            attempt__job=job, attempt__number=job.attempt_number, run=job.run_number, state=TaskState.RUNNING
        ).exists()
        return Opens(_("terminal"), reverse("job", args=[job.public_id]) + "?tab=terminal", ready)
    for endpoint in replicas.endpoints_of(job):
        if endpoint.label == label and not endpoint.lacks(endpoint.task):
            return Opens(chosen.name, reverse("endpoint_open", args=[endpoint.slug]), ready=True)
    way = f"{reverse('job_opening', args=[job.public_id])}?to={quote(label)}"
    return Opens(chosen.name, way, ready=False)


def _cause(job: Job) -> dict[str, Any]:
    attempt = Attempt.objects.get(job=job, number=job.attempt_number)
    task = tail.first_failed(attempt, job.run_number)
    if task is None:
        return {}
    stream = replicas.log_of(attempt, task)
    lines = tail.last_lines(stream) if stream else []
    return {"failed_task": task, "last_lines": "\n".join(lines), "kept": replicas.kept_of(task)}


# --- the tabs --------------------------------------------------------------------------------------------


def _overview(request: SignedIn, job: Job) -> dict[str, Any]:
    file = JobFile.objects.select_related("job__sweep_run__sweep").get(job=job)
    return {
        **_template(request, job),
        "spec": file.spec,
        "commit": ran.commit_of(job),
        "limit_s": extending.limit_s(job, file.spec.time_limit_s),
        "notes": notes_of(Document(file.text, job.dialect), stored_notes(file)),
        "attempts": Attempt.objects.filter(job=job).order_by("-number"),
        "origin": _visible(request, job.origin_id),
        "run_of_sweep": getattr(file.job, "sweep_run", None),
        "before": afters.before(request.user, job),
        "behind": afters.behind(request.user, job),
        "changed": line_of(request.user, job),
        "descendants": Job.objects.visible_to(request.user)
        .filter(origin=job)
        .order_by("-pk")[:MOST_DESCENDANTS],
        "endpoints": replicas.endpoints_of(job),
        "has_log": not job.is_ended
        or (job.state != State.FAILED and Task.objects.filter(attempt__job=job).exists()),
    }


def _template(request: SignedIn, job: Job) -> dict[str, Any]:
    """Which version of which template it came from, as far as the person may know of it."""
    use = TemplateUse.objects.filter(job=job).select_related("version__template").first()
    if use is None:
        return {}
    chosen = templates.of_job(request.user, job)
    name = chosen.name if chosen else use.shipped or _("somebody's own")
    kept = reverse("template", args=[chosen.template.id]) if chosen and chosen.row else ""
    url = kept or (reverse("start_template", args=[chosen.template.id]) if chosen else "")
    return {"template_use": use, "template_name": name, "template_url": url}


def _visible(request: SignedIn, pk: int | None) -> Job | None:
    return Job.objects.visible_to(request.user).filter(pk=pk).first() if pk else None


def _replicas(request: SignedIn, job: Job) -> dict[str, Any]:
    return {"replicas": replicas.listed(job, request.GET)}


def _logs(request: SignedIn, job: Job) -> dict[str, Any]:
    log = replicas.picked(job, request.GET)
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


def _metrics(request: SignedIn, job: Job) -> dict[str, Any]:
    return {"metrics": metrics.shown(job)}


def _file(request: SignedIn, job: Job) -> dict[str, Any]:
    return {
        "file": JobFile.objects.get(job=job),
        "file_name": file_name(job.name, job.dialect),
        "syntax": FORMATS[job.dialect].syntax,
        "dialects": dialect_choices(),
        "before": _readable(request, job.origin_id),
    }


def _readable(request: SignedIn, pk: int | None) -> Job | None:
    found = _visible(request, pk)
    return found if found and can(request.user, Verb.READ, found) else None


TABS: Final[Mapping[str, Callable[[SignedIn, Job], dict[str, Any]]]] = {
    "overview": _overview,
    "replicas": _replicas,
    "logs": _logs,
    "events": _events,
    "metrics": _metrics,
    "file": _file,
    "connect": connect,
    "terminal": terminal,
    "files": files,
}

INNER_TABS: Final = frozenset({"connect", "terminal", "files"})
"""For those who may enter the job."""
