"""Start something from a template: from its few questions to the open page, or to the whole form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from django.contrib import messages as notes
from django.db import Error
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_safe

from jobs import submission
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.jobtemplates import SHIPPED, JobTemplate, Kind
from jobs.messages.jobtemplates import question, template_words
from jobs.models import Job, Template, outage
from jobs.submission import drafts, templates
from jobs.submission.access import find_template
from jobs.submission.answers import Linked, filled, form_for, linked, own_jobs
from jobs.submission.findings import Findings, examine, problems_of
from jobs.submission.forms import TemplateForm, new_key
from jobs.submission.sweeps import acting, arrays
from jobs.submission.templates import Chosen
from jobs.web.drafts import address_of
from jobs.web.http import SignedIn, page, signed_in
from quotas.models import Cluster, Node, Quota

FRAGMENTS: Final = {"start-file": "jobs/start/file.html"}
LIST_FRAGMENTS: Final = {"start-list": "jobs/start/list.html"}
BESIDES: Final = ("version", "place", "template")
"""What an address of a template says besides answers."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A template in the reader's words, and in which clusters of theirs it is known to work or not."""

    template: JobTemplate
    title: str
    about: str
    there: Sequence[str] = ()
    missing: Sequence[str] = ()
    unknown: Sequence[str] = ()
    row: Template | None = None


@require_safe
@signed_in
def start(request: SignedIn) -> HttpResponseBase:
    """What can be started: one's own, what one's workspaces keep, and what comes with the console."""
    clusters = _clusters(submission.quotas_open_to(request.user))
    asked = request.GET.get("q", "").strip()[:100]
    shipped = [_offer(Chosen(each), clusters) for each in SHIPPED.values()]
    kept = [_offer(each, clusters) for each in templates.list_offered(request.user, asked)]
    context = {
        "asked": asked,
        "mine": [each for each in kept if each.row and each.row.workspace is None],
        "shared": [each for each in kept if each.row and each.row.workspace is not None],
        "shipped": [each for each in shipped if _has(each, asked)],
    }
    return page(request, "jobs/start.html", context, fragments=LIST_FRAGMENTS)


def _has(offer: Offer, asked: str) -> bool:
    words = f"{offer.title} {offer.about} {offer.template.title} {offer.template.id}".casefold()
    return asked.casefold() in words


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def start_template(request: SignedIn, template: str) -> HttpResponseBase:
    """One template's questions, and what becomes of the answers."""
    chosen = find_template(request.user, template, request.GET.get("version", ""))
    if chosen.row is not None and chosen.row.template.retired_at is not None:
        return redirect("template", template)
    return _sent(request, chosen) if request.method == "POST" else _begun(request, chosen)


# --- the questions ---------------------------------------------------------------------------------------


def _begun(request: SignedIn, chosen: Chosen) -> HttpResponse:
    template = chosen.template
    form = form_for(request.user, template)
    said = linked(request.user, template, request.GET, BESIDES)
    tell(request, said)
    initial = {**said.answers, "key": new_key(), "place": request.GET.get("place", "")}
    if any(parameter.kind is Kind.JOBS for parameter in template.parameters):
        asked = [*request.GET.getlist("job"), *request.GET.getlist("jobs")]
        initial["jobs"] = own_jobs(request.user, asked)
        _tell_of_jobs(request, [each for each in asked if each not in initial["jobs"]])
    form.initial = initial
    return _page(request, chosen, form, filled(request.user, template, form.initial).text)


def _tell_of_jobs(request: SignedIn, left_out: Sequence[str]) -> None:
    """Which of the person's own jobs can't be chosen yet."""
    for job in Job.objects.visible_to(request.user).filter(owner=request.user, public_id__in=left_out):
        text = _("%(name)s has not started yet: it can be chosen here once it runs.")
        notes.info(request, text % {"name": job.name})


def tell(request: SignedIn, said: Linked) -> None:
    """What of a link was not taken."""
    if said.unknown:
        text = ngettext(
            "The template asks for nothing called %(names)s; that part of the link was left out.",
            "The template asks for nothing called %(names)s; those parts of the link were left out.",
            len(said.unknown),
        )
        notes.warning(request, text % {"names": ", ".join(said.unknown)[:200]})
    if said.wrong:
        labels = ", ".join(question(name) for name in said.wrong)
        text = _(
            "The link's answers for these can't be used, and the first ones stand in their place: %(labels)s."
        )
        notes.warning(request, text % {"labels": labels})


# --- the answers -----------------------------------------------------------------------------------------


def _sent(request: SignedIn, chosen: Chosen) -> HttpResponseBase:
    form = form_for(request.user, chosen.template, request.POST)
    if not form.is_valid():
        return _page(request, chosen, form, "", status=422)
    wanted = request.POST.get("do", "start")
    document = filled(request.user, chosen.template, form.cleaned_data, install=wanted == "install")
    if wanted == "edit":
        place = form.cleaned_data["place"]
        typed = drafts.Typed(
            document.pin(None), place=place, template=chosen.ref, sweep=chosen.template.sweep
        )
        kept = drafts.keep(request.user, "", typed)
        assert kept is not None  # a job file is never empty
        return redirect(address_of(kept.draft))
    if wanted == "show":
        return _page(request, chosen, form, document.text)
    return _started(request, chosen, form, document)


def _started(request: SignedIn, chosen: Chosen, form: TemplateForm, document: Document) -> HttpResponseBase:
    template, text, key = chosen.template, document.text, form.cleaned_data["key"]
    try:
        if arrays.of(document) is not None:
            asked = acting.Asked(document, form.chosen_place(), template=chosen.ref)
            return redirect("sweep", acting.submit(request.user, asked, key)[0].public_id)
        submitted = submission.submit(
            request.user,
            document,
            place=form.chosen_place(),
            idempotency_key=key,
            keep_original=True,
            template=chosen.ref,
        )
    except Refused as refused:
        found = examine(request.user, document, template=chosen.ref)
        problems = found.problems or problems_of(text, refused.problems)
        return _page(request, chosen, form, text, Findings(found.dialect, problems), status=422)
    except submission.Conflict:
        answers = request.POST.copy()
        answers["key"] = new_key()
        form = form_for(request.user, template, answers)
        notes.warning(request, _("You already started this with other answers. Start again for another one."))
        return _page(request, chosen, form, text, status=409)
    except Error as error:
        if not outage.is_outage(error):
            raise
        notes.error(request, _("The database is busy or away, and nothing was started. Start again."))
        return _page(request, chosen, form, text, status=503)
    job = submitted.job.public_id
    if not template.interactive:
        return redirect("job", job)
    to = f"?to={quote(template.opens)}" if template.opens else ""
    return redirect(reverse("job_opening", args=[job]) + to)


# --- where it works --------------------------------------------------------------------------------------


def _clusters(quotas: Iterable[Quota]) -> list[Cluster]:
    return list({quota.cluster_id: quota.cluster for quota in quotas}.values())


def _offer(chosen: Chosen, clusters: Sequence[Cluster]) -> Offer:
    template = chosen.template
    there: list[str] = []
    missing: list[str] = []
    unknown: list[str] = []
    nodes = Node.objects.filter(cluster__in=clusters).values_list("cluster_id", "programs")
    known: dict[int, set[str] | None] = {}
    for cluster_id, programs in nodes if template.programs else ():
        before = known.get(cluster_id)
        known[cluster_id] = before if programs is None else {*(before or ()), *programs}
    for cluster in clusters if template.programs else ():
        programs = known.get(cluster.pk)
        fits = there if programs and programs & set(template.programs) else missing
        (unknown if programs is None else fits).append(cluster.name)
    about = template.about if chosen.row else template_words(template.about)
    row = chosen.row.template if chosen.row else None
    return Offer(template, chosen.name, about, there, missing, unknown, row)


def _page(
    request: SignedIn,
    chosen: Chosen,
    form: TemplateForm,
    text: str,
    findings: Findings | None = None,
    *,
    status: int = 200,
) -> HttpResponse:
    context: dict[str, Any] = {
        "form": form,
        "offer": _offer(chosen, _clusters(form.quotas)),
        "chosen": chosen,
        "text": text,
        "findings": findings,
    }
    return page(request, "jobs/start_template.html", context, fragments=FRAGMENTS, status=status)
