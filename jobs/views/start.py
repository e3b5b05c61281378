"""Start something to work in: from a template's few questions to the open page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from django.contrib import messages as notes
from django.db import Error
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from jobs import drafts, outage, services
from jobs.dialects.base import Refused
from jobs.forms import TemplateForm, new_key
from jobs.jobtemplates import SHIPPED, Answers, JobTemplate, Kind, fill
from jobs.messages.jobtemplates import template_words
from jobs.models import Job, Task
from jobs.views.drafts import address_of
from jobs.views.findings import Findings, examine, problems_of
from jobs.views.http import SignedIn, page, signed_in
from quotas.models import Cluster, Node, Quota, User

FRAGMENTS: Final = {"start-file": "jobs/start/file.html"}
MOST_SOURCES: Final = 40
MOST_REPLICAS: Final = 16
"""Of one job, whose folders are shown."""

OUTPUTS: Final = "/job/outputs"
"""Where the folders of other jobs are, in a job that shows them."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A template in the reader's words, and in which clusters of theirs it is known to work or not."""

    template: JobTemplate
    title: str
    about: str
    there: Sequence[str] = ()
    missing: Sequence[str] = ()
    unknown: Sequence[str] = ()


@require_safe
@signed_in
def start(request: SignedIn) -> HttpResponseBase:
    """What can be started."""
    clusters = _clusters(services.quotas_open_to(request.user))
    return page(request, "jobs/start.html", {"offers": [_offer(each, clusters) for each in SHIPPED.values()]})


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def start_template(request: SignedIn, template: str) -> HttpResponseBase:
    """One template's questions, and what becomes of the answers."""
    chosen = SHIPPED.get(template)
    if chosen is None:
        raise Http404
    return _sent(request, chosen) if request.method == "POST" else _begun(request, chosen)


# --- the questions ---------------------------------------------------------------------------------------


def _begun(request: SignedIn, template: JobTemplate) -> HttpResponse:
    form = _form(request, template)
    wanted = request.GET.getlist("job")
    known = {public_id for public_id, _label in _sources(request.user)}
    initial = {**_fitting(template, form.quotas), "key": new_key(), "place": request.GET.get("place", "")}
    if any(parameter.kind is Kind.JOBS for parameter in template.parameters):
        initial["jobs"] = [each for each in wanted if each in known]
    form.initial = initial
    return _page(request, form, _preview(request.user, template, form.initial))


def _form(request: SignedIn, template: JobTemplate, *args: Any) -> TemplateForm:
    shows_jobs = any(parameter.kind is Kind.JOBS for parameter in template.parameters)
    return TemplateForm(
        request.user,
        template,
        *args,
        sources=_sources(request.user) if shows_jobs else (),
        gpu_types=_gpu_types(request.user),
    )


def _fitting(template: JobTemplate, quotas: Iterable[Quota]) -> dict[str, Any]:
    """The defaults, and no more of anything than the largest node there is has."""
    nodes = list(Node.objects.filter(cluster__in={quota.cluster_id for quota in quotas}))
    most = {
        "gpus": max((sum(node.gpus.values()) for node in nodes), default=0),
        "cpus": max((node.cpu_milli // 1000 for node in nodes), default=0),
        "memory": max((node.memory_mib // 1024 for node in nodes), default=0),
    }
    found: dict[str, Any] = {}
    for parameter in template.parameters:
        value = parameter.default
        if nodes and isinstance(value, int) and parameter.name in most:
            value = max(parameter.least, min(value, most[parameter.name]))
        found[parameter.name] = value
    return found


def _gpu_types(user: User) -> list[str]:
    clusters = {quota.cluster_id for quota in services.quotas_open_to(user)}
    nodes = Node.objects.filter(cluster__in=clusters).values_list("gpus", flat=True)
    return sorted({kind for gpus in nodes for kind in gpus if kind})


def _sources(user: User) -> list[tuple[str, str]]:
    """The person's own jobs that have run, the latest first: only their folders may be shown."""
    rows = Job.objects.visible_to(user).filter(owner=user, started_at__isnull=False).order_by("-pk")
    return [(job.public_id, f"{job.name} ({job.public_id})") for job in rows[:MOST_SOURCES]]


# --- the answers -----------------------------------------------------------------------------------------


def _sent(request: SignedIn, template: JobTemplate) -> HttpResponseBase:
    form = _form(request, template, request.POST)
    if not form.is_valid():
        return _page(request, form, "", status=422)
    text = _preview(request.user, template, form.cleaned_data)
    wanted = request.POST.get("do", "start")
    if wanted == "edit":
        kept = drafts.keep(request.user, "", drafts.Typed(text, place=form.cleaned_data["place"]))
        assert kept is not None  # a job file is never empty
        return redirect(address_of(kept.draft))
    if wanted == "show":
        return _page(request, form, text)
    return _started(request, form, text)


def _started(request: SignedIn, form: TemplateForm, text: str) -> HttpResponseBase:
    try:
        submitted = services.submit(
            request.user,
            text,
            dialect=form.template.dialect,
            place=form.chosen_place(),
            idempotency_key=form.cleaned_data["key"],
            keep_original=True,
        )
    except Refused as refused:
        found = examine(request.user, text, form.template.dialect)
        problems = found.problems or problems_of(text, refused.problems)
        return _page(request, form, text, Findings(found.dialect, problems), status=422)
    except services.Conflict:
        answers = request.POST.copy()
        answers["key"] = new_key()
        form = _form(request, form.template, answers)
        notes.warning(request, _("You already started this with other answers. Start again for another one."))
        return _page(request, form, text, status=409)
    except Error as error:
        if not outage.is_outage(error):
            raise
        notes.error(request, _("The database is busy or away, and nothing was started. Start again."))
        return _page(request, form, text, status=503)
    to = f"?to={quote(form.template.opens)}" if form.template.opens else ""
    return redirect(reverse("job_opening", args=[submitted.job.public_id]) + to)


def _preview(user: User, template: JobTemplate, answers: Mapping[str, Any]) -> str:
    """The job file that the answers make."""
    known: dict[str, Any] = {
        name: value for name, value in answers.items() if name not in {"key", "place", "jobs"}
    }
    if any(parameter.kind is Kind.JOBS for parameter in template.parameters):
        known["jobs"] = _folders(user, answers.get("jobs") or [])
    filled: Answers = known
    return fill(template, filled)


def _folders(user: User, public_ids: Sequence[str]) -> list[dict[str, str]]:
    """Where the replicas of these jobs keep what they wrote, and where that is to be seen."""
    found = []
    for job in Job.objects.visible_to(user).filter(owner=user, public_id__in=public_ids).order_by("-pk"):
        tasks = Task.objects.filter(attempt__job=job, attempt__number=job.attempt_number, run=job.run_number)
        found += [_folder(job, task) for task in tasks.order_by("ordinal")[:MOST_REPLICAS]]
    return found


def _folder(job: Job, task: Task) -> dict[str, str]:
    return {
        "uri": f"job://{job.public_id}/{quote(task.role, safe='')}/{task.index}",
        "path": f"{OUTPUTS}/{_plain(job.name)}-{job.public_id}/{_plain(task.role)}-{task.index}",
    }


def _plain(name: str) -> str:
    """A name as one part of a path that every engine understands."""
    return "".join(each if each.isascii() and (each.isalnum() or each in "._-") else "_" for each in name)[
        :80
    ]


# --- where it works --------------------------------------------------------------------------------------


def _clusters(quotas: Iterable[Quota]) -> list[Cluster]:
    return list({quota.cluster_id: quota.cluster for quota in quotas}.values())


def _offer(template: JobTemplate, clusters: Sequence[Cluster]) -> Offer:
    there: list[str] = []
    missing: list[str] = []
    unknown: list[str] = []
    nodes = Node.objects.filter(cluster__in=clusters).values_list("cluster_id", "programs")
    known: dict[int, set[str] | None] = {}
    for cluster_id, programs in nodes:
        before = known.get(cluster_id)
        known[cluster_id] = before if programs is None else {*(before or ()), *programs}
    for cluster in clusters if template.programs else ():
        programs = known.get(cluster.pk)
        fits = there if programs and programs & set(template.programs) else missing
        (unknown if programs is None else fits).append(cluster.name)
    words = template_words(template.title), template_words(template.about)
    return Offer(template, *words, there, missing, unknown)


def _page(
    request: SignedIn,
    form: TemplateForm,
    text: str,
    findings: Findings | None = None,
    *,
    status: int = 200,
) -> HttpResponse:
    context = {
        "form": form,
        "offer": _offer(form.template, _clusters(form.quotas)),
        "text": text,
        "findings": findings,
    }
    return page(request, "jobs/start_template.html", context, fragments=FRAGMENTS, status=status)
