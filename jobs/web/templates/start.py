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
from jobs.submission.checks.findings import Findings, examine, problems_of
from jobs.submission.forms import (
    LinkAnswers,
    TemplateForm,
    answers_of_link,
    fill_template,
    form_for,
    new_key,
    own_jobs,
)
from jobs.submission.sweeps import arrays, commands
from jobs.submission.templates import Chosen, find_template
from jobs.web.http import SignedIn, page, signed_in
from jobs.web.new_job.drafts import draft_url
from quotas.models import Cluster, Node, Quota

LINK_KEYS: Final = ("version", "place", "template")
"""The keys of a template's link that are no answers."""


@dataclass(frozen=True, slots=True)
class TemplateOffer:
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
    """List the templates: one's own, those of one's workspaces, and built-in ones."""
    clusters = _clusters(submission.quotas_open_to(request.user))
    requested = request.GET.get("q", "").strip()[:100]
    shipped = [_offer(Chosen(each), clusters) for each in SHIPPED.values()]
    saved = [_offer(each, clusters) for each in templates.list_offered(request.user, requested)]
    context = {
        "asked": requested,
        "mine": [each for each in saved if each.row and each.row.workspace is None],
        "shared": [each for each in saved if each.row and each.row.workspace is not None],
        "shipped": [each for each in shipped if _has(each, requested)],
    }
    return page(request, "jobs/start.html", context, fragments={"start-list": "jobs/start/list.html"})


def _has(offer: TemplateOffer, requested: str) -> bool:
    words = f"{offer.title} {offer.about} {offer.template.title} {offer.template.id}".casefold()
    return requested.casefold() in words


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def start_template(request: SignedIn, template: str) -> HttpResponseBase:
    """Show a template's questions, and start a job from the answers."""
    chosen = find_template(request.user, template, request.GET.get("version", ""))
    if chosen.row is not None and chosen.row.template.retired_at is not None:
        return redirect("template", template)
    return _handle_post(request, chosen) if request.method == "POST" else _show_form(request, chosen)


# --- the questions ---------------------------------------------------------------------------------------


def _show_form(request: SignedIn, chosen: Chosen) -> HttpResponse:
    template = chosen.template
    form = form_for(request.user, template)
    link = answers_of_link(request.user, template, request.GET, LINK_KEYS)
    warn_about_link(request, link)
    initial = {**link.answers, "key": new_key(), "place": request.GET.get("place", "")}
    if any(parameter.kind is Kind.JOBS for parameter in template.parameters):
        requested = [*request.GET.getlist("job"), *request.GET.getlist("jobs")]
        initial["jobs"] = own_jobs(request.user, requested)
        _tell_of_jobs(request, [each for each in requested if each not in initial["jobs"]])
    form.initial = initial
    return _page(request, chosen, form, fill_template(request.user, template, form.initial).text)


def _tell_of_jobs(request: SignedIn, left_out: Sequence[str]) -> None:
    """Tell the person which of their jobs can't be chosen yet."""
    for job in Job.objects.visible_to(request.user).filter(owner=request.user, public_id__in=left_out):
        text = _("%(name)s has not started yet. You can select it here once it runs.")
        notes.info(request, text % {"name": job.name})


def warn_about_link(request: SignedIn, link: LinkAnswers) -> None:
    """Warn about the parts of a link that were not used."""
    if link.unknown:
        text = ngettext(
            "The template has no prompt named %(names)s; that part of the link was ignored.",
            "The template has no prompts named %(names)s; those parts of the link were ignored.",
            len(link.unknown),
        )
        notes.warning(request, text % {"names": ", ".join(link.unknown)[:200]})
    if link.wrong:
        labels = ", ".join(question(name) for name in link.wrong)
        text = _("The link has invalid values for %(labels)s; defaults are used instead.")
        notes.warning(request, text % {"labels": labels})


# --- the answers -----------------------------------------------------------------------------------------


def _handle_post(request: SignedIn, chosen: Chosen) -> HttpResponseBase:
    form = form_for(request.user, chosen.template, request.POST)
    if not form.is_valid():
        return _page(request, chosen, form, "", status=422)
    wanted = request.POST.get("do", "start")
    document = fill_template(request.user, chosen.template, form.cleaned_data, install=wanted == "install")
    if wanted == "edit":
        place = form.cleaned_data["place"]
        typed = drafts.DraftContent(
            document.pin(None), place=place, template=chosen.ref, sweep=chosen.template.sweep
        )
        saved = drafts.keep(request.user, "", typed)
        assert saved is not None  # a job file is never empty
        return redirect(draft_url(saved.draft))
    if wanted == "show":
        return _page(request, chosen, form, document.text)
    return _submit(request, chosen, form, document)


def _submit(request: SignedIn, chosen: Chosen, form: TemplateForm, document: Document) -> HttpResponseBase:
    template, text, key, place = chosen.template, document.text, form.cleaned_data["key"], form.chosen_place()
    try:
        if arrays.of(document) is not None:
            requested = commands.SweepRequest(document, place, template=chosen.ref)
            return redirect("sweep", commands.submit(request.user, requested, key)[0].public_id)
        submitted = submission.submit(
            request.user,
            document,
            place=place,
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
        notes.warning(request, _("Already started with other values. Start again to start another job."))
        return _page(request, chosen, form, text, status=409)
    except Error as error:
        if not outage.is_outage(error):
            raise
        notes.error(request, _("The database is unavailable; nothing was started. Try again."))
        return _page(request, chosen, form, text, status=503)
    job = submitted.job.public_id
    if not template.interactive:
        return redirect("job", job)
    to = f"?to={quote(template.opens)}" if template.opens else ""
    return redirect(reverse("job_opening", args=[job]) + to)


# --- where it works --------------------------------------------------------------------------------------


def _clusters(quotas: Iterable[Quota]) -> list[Cluster]:
    return list({quota.cluster_id: quota.cluster for quota in quotas}.values())


def _offer(chosen: Chosen, clusters: Sequence[Cluster]) -> TemplateOffer:
    """Return the template with the clusters that have its programs, that lack them, and that don't tell."""
    template, known = chosen.template, dict[int, set[str]]()
    by_fit: dict[bool | None, list[str]] = {True: [], False: [], None: []}
    if template.programs:
        nodes = Node.objects.filter(cluster__in=clusters)
        for cluster_id, programs in nodes.values_list("cluster_id", "programs"):
            if programs is not None:
                known.setdefault(cluster_id, set()).update(programs)
        for cluster in clusters:
            programs = known.get(cluster.pk)
            by_fit[None if programs is None else bool(programs & set(template.programs))].append(
                cluster.title
            )
    about = template.about if chosen.row else template_words(template.about)
    row = chosen.row.template if chosen.row else None
    return TemplateOffer(template, chosen.name, about, by_fit[True], by_fit[False], by_fit[None], row)


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
    return page(
        request,
        "jobs/start_template.html",
        context,
        fragments={"start-file": "jobs/start/file.html"},
        status=status,
    )
