"""The New job page: paste, upload or copy a job file; check it, save it as a draft, submit it."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from django.contrib import messages as notes
from django.db import Error
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from jobs import dialects, submission
from jobs.dialects.base import Position, Problem, Refused
from jobs.dialects.dlc import limits
from jobs.dialects.document import Document
from jobs.form.dialect_support import DEFAULT_DIALECT
from jobs.form.file_form import FormResult, read
from jobs.models import Draft, DraftVersion, Job, Sweep, outage
from jobs.spec import Framework, JobSpec, Resources, RoleSpec
from jobs.submission import drafts, templates
from jobs.submission.access import find_job
from jobs.submission.checks.findings import Findings, examine, problems_of
from jobs.submission.forms import SubmitForm, answers_of_link, dialect_choices, fill_template, new_key
from jobs.submission.lineage import compare_with_job
from jobs.submission.sweeps import arrays, commands
from jobs.submission.sweeps.parameter_text import SweepValues
from jobs.web.http import SignedIn, page, signed_in
from jobs.web.new_job.copies import CodeChoice, code_choice, copy_job, free_name
from jobs.web.new_job.drafts import draft_context, draft_url, find_origin, read_typed
from jobs.web.new_job.form.sections import SECTIONS, VARIABLES
from jobs.web.new_job.form.view import ADD, CONVERT, REMOVE, apply_posted, build_form, is_posted
from jobs.web.new_job.sweep_form import (
    SweepForm,
    SweepPart,
    fill_part,
    has_parameters,
    initial_part,
    refused_part,
)
from jobs.web.templates.start import LINK_KEYS, warn_about_link
from quotas.access import Verb, can
from quotas.models import User

EXAMPLES: Final = {path.stem: path for path in (Path(__file__).parent / "examples").glob("*.json")}
LONGEST_NUMBER: Final = 5
NEW_NAME: Final = "job"
VIEWS: Final = ("form", "both", "file")
"""The views that a link may choose: `?view=form`, with `&unfold` all of it."""
FRAGMENTS: Final = {"fixes": "jobs/new/fixes.html"}


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def new(request: SignedIn) -> HttpResponseBase:
    """Show the form, and handle its buttons."""
    return _handle_post(request) if request.method == "POST" else _show_new(request)


# --- the form, before anything was posted ------------------------------------------------------------------


_NOTHING: Final = Document("")


@dataclass(frozen=True, slots=True)
class Beginning:
    """The initial content of the form.  `fresh`: the text is a default, and a paste may replace it."""

    document: Document = _NOTHING
    origin: str = ""
    draft: Draft | None = None
    cursor: Position | None = None
    place: str = ""
    version: DraftVersion | None = None
    template: str = ""
    fresh: bool = False
    code: CodeChoice | None = None
    sweep: SweepPart | None = None


def _show_new(request: SignedIn) -> HttpResponse:
    start = _find_beginning(request)
    initial = {
        "text": start.document.text,
        "dialect": start.document.given or "",
        "origin": start.origin,
        "draft": start.draft and start.draft.pk,
        "key": new_key(),
        "place": start.place or request.GET.get("place", ""),
        "template": start.template,
    }
    form = SubmitForm(request.user, initial=initial)
    findings = Findings()
    if start.document.text.strip():
        seen = Job.objects.visible_to(request.user)
        before = seen.filter(public_id=start.origin).first() if start.origin else None
        place = submission.parse_target(str(initial["place"]))
        findings = examine(request.user, start.document, before, start.template, place)
    saved = drafts.SavedDraft(start.draft) if start.draft else None
    return _page(request, form, start.document, findings, saved=saved, start=start)


def _find_beginning(request: SignedIn) -> Beginning:
    """From a draft, from an earlier job (`like`), from an example, or from nothing."""
    draft = drafts.find(request.user, request.GET.get("draft", ""))
    if draft is not None:
        return _of_draft(draft, request.GET.get("version", ""))
    if like := request.GET.get("like"):
        job = find_job(request.user, like)
        code = request.GET.get("code", "")
        copy = copy_job(request.user, job, code)
        template = submission.template_of(request.user, job)
        return Beginning(
            _unpin(copy.document),
            job.public_id,
            cursor=copy.cursor,
            template=template,
            code=code_choice(job, code),
        )
    if requested := request.GET.get("template"):
        return _of_template(request, requested)
    if (gpus := request.GET.get("gpus", "")).isdecimal() and len(gpus) < LONGEST_NUMBER:
        return Beginning(_file_with_gpus(int(gpus), request.GET.get("gpu_type", "")[:64]))
    if (example := EXAMPLES.get(request.GET.get("example", ""))) is not None:
        return Beginning(Document(example.read_text(encoding="utf-8")))
    return Beginning(_default_file(request.user), fresh=True)


def _default_file(user: User) -> Document:
    """A job file that can be filled in by the form; its time limit is the default of PAI-DLC's pages."""
    name = free_name(user, NEW_NAME) if Job.objects.filter(owner=user, name=NEW_NAME).exists() else NEW_NAME
    role = RoleSpec(
        name="Worker",
        command='echo "Hello World"',
        resources=Resources(cpu_milli=1000, memory_mib=2048),
    )
    time_limit_s = limits.DEFAULT_RUNNING_MINUTES.value * 60
    spec = JobSpec(name=name, framework=Framework.PYTORCH, roles=(role,), time_limit_s=time_limit_s)
    return dialects.get(DEFAULT_DIALECT).render(spec, {}).document.pin(None)


def _of_template(request: SignedIn, requested: str) -> Beginning:
    """Return the file that a template makes of a link's answers; nothing is stored or submitted."""
    chosen = templates.find_template(request.user, requested, request.GET.get("version", ""))
    link = answers_of_link(request.user, chosen.template, request.GET, LINK_KEYS)
    warn_about_link(request, link)
    document = _unpin(fill_template(request.user, chosen.template, link.answers))
    return Beginning(document, template=chosen.ref, sweep=initial_part(chosen.template.sweep))


def _of_draft(draft: Draft, version: str) -> Beginning:
    """The draft as it is, or with the text that it had in an earlier version."""
    row = draft.versions.filter(pk=int(version)).first() if version.isascii() and version.isdigit() else None
    saved = row or draft
    return Beginning(
        _unpin(Document(saved.text, saved.dialect or None)),
        draft.origin.public_id if draft.origin else "",
        draft,
        place=draft.place,
        version=row,
        template=draft.template,
        sweep=initial_part(saved.sweep, saved.at_once),
    )


def _unpin(document: Document) -> Document:
    """The job file without a dialect of its own, where its text by itself is taken for that one."""
    unpinned = document.pin(None)
    is_pinned = document.given in dialects.NAMES and unpinned.known_dialect != document.given
    return document if is_pinned else unpinned


def _file_with_gpus(gpus: int, gpu_type: str) -> Document:
    """The beginning of a job file that asks for these GPUs."""
    role = {"name": "main", "taskNumber": 1, "cpuNumber": 4, "memoryMB": 16384, "gpuNumber": gpus}
    file = {
        "jobName": "job",
        "image": "",
        "gpuType": gpu_type,
        "taskRoles": [{**role, "command": "nvidia-smi"}],
    }
    return Document(json.dumps(file, indent=2, ensure_ascii=False))


# --- what was sent ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PostedForm:
    """A posted form, its job file, and the changes by its fields."""

    request: SignedIn
    form: SubmitForm
    document: Document
    applied: FormResult | None = None

    def examine(self) -> Findings:
        """Return the findings about the job file."""
        template = str(self.form.cleaned_data.get("template", ""))
        origin, place = find_origin(self.request), self.form.chosen_place()
        return examine(self.request.user, self.document, origin, template, place)

    def save(self) -> drafts.SavedDraft | None:
        """Store the job file as a draft."""
        post = self.request.POST
        typed = read_typed(post, self.document)
        return drafts.keep(self.request.user, post.get("draft", ""), typed, find_origin(self.request))

    def page(
        self,
        status: int,
        findings: Findings | None = None,
        *,
        saved: drafts.SavedDraft | None = None,
        sweep: SweepPart | None = None,
        form: SubmitForm | None = None,
    ) -> HttpResponse:
        """Show the page again."""
        return _page(
            self.request,
            form or self.form,
            self.document,
            self.examine() if findings is None else findings,
            saved=saved,
            start=Beginning(sweep=sweep),
            applied=self.applied,
            status=status,
        )

    def report_outage(self, error: Error) -> HttpResponse:
        """Show the page after the database was away; raises any other error."""
        if not outage.is_outage(error):
            raise error
        notes.error(self.request, _("The database is unavailable; nothing was submitted. Try again."))
        return self.page(503)

    def repeat(self, text: str) -> HttpResponse:
        """Show the page with another key, after the same one was used for another text."""
        findings = self.examine()
        notes.warning(self.request, text)
        data = self.request.POST.copy()
        data["key"] = new_key()
        return self.page(409, findings, saved=self.save(), form=SubmitForm(self.request.user, data))


def _handle_post(request: SignedIn) -> HttpResponseBase:
    form = SubmitForm(request.user, request.POST, request.FILES)
    valid = form.is_valid()
    try:
        document = form.chosen_document()
    except Refused as refused:
        typed = Document(str(form.cleaned_data.get("text", form.data.get("text", ""))))
        return _page(request, form, typed, Findings(problems=problems_of("", refused.problems)), status=422)
    applied = None
    if is_posted(request.POST) and valid and not form.cleaned_data.get("upload"):
        applied = apply_posted(request.user, request.POST, document)
        form = _repin(request, form, applied)
        document = applied.reading.document.pin(form.chosen_dialect())
    posted = PostedForm(request, form, document, applied)
    wrong = applied is not None and bool(applied.problems)
    pressed = any(name in request.POST for name in (ADD, REMOVE, CONVERT))
    action = "check" if pressed else request.POST.get("do", "submit")
    if action == "save":
        return _save(posted, wrong=wrong)
    if action == "check" or not valid:
        return posted.page(200 if valid else 422)
    if wrong:
        return posted.page(422, saved=posted.save())
    if arrays.of(document) is not None or has_parameters(request.POST.get("sweep_parameters", "")):
        return _submit_sweep(posted)
    return _submit(posted)


def _repin(request: SignedIn, form: SubmitForm, applied: FormResult) -> SubmitForm:
    """Return the form without its dialect, where the text has become one of another dialect."""
    if form.chosen_dialect() in (None, applied.reading.dialect):
        return form
    data = request.POST.copy()
    data["dialect"] = ""
    again = SubmitForm(request.user, data, request.FILES)
    again.is_valid()
    return again


def _save(posted: PostedForm, *, wrong: bool) -> HttpResponseBase:
    saved = posted.save()
    if saved is None or saved.beside or wrong:
        return posted.page(200, saved=saved)
    notes.success(posted.request, _("Draft saved."))
    return redirect(draft_url(saved.draft))


def _submit(posted: PostedForm) -> HttpResponseBase:
    user, cleaned = posted.request.user, posted.form.cleaned_data
    try:
        submitted = submission.submit(
            user,
            posted.document,
            place=posted.form.chosen_place(),
            idempotency_key=cleaned["key"],
            keep_original=cleaned["keep_original"],
            origin=find_origin(posted.request),
            template=cleaned["template"],
        )
    except Refused as refused:
        found = posted.examine()
        problems = found.problems or problems_of(posted.document.text, refused.problems)
        return posted.page(422, replace(found, problems=problems), saved=posted.save())
    except submission.Conflict:
        first = Job.objects.filter(owner=user, idempotency_key=cleaned["key"]).first()
        text = _("Already submitted as %(name)s. Submit again to start another job.")
        return posted.repeat(text % {"name": first.name if first else "?"})
    except Error as error:
        return posted.report_outage(error)
    return _finish(posted, submitted.job, "job", is_new=not submitted.replayed)


def _submit_sweep(posted: PostedForm) -> HttpResponseBase:
    """Submit many jobs of the text, with the values of the page's part for sweeps, or an array itself."""
    post, cleaned, of_array = (
        posted.request.POST,
        posted.form.cleaned_data,
        arrays.of(posted.document) is not None,
    )
    form = SweepForm(post, of_array=of_array)
    if not form.is_valid():
        return posted.page(422, saved=posted.save(), sweep=SweepPart(form, is_submitted=True))
    values: SweepValues = form.cleaned_data["sweep_parameters"]
    requested = commands.SweepRequest(
        posted.document,
        posted.form.chosen_place(),
        values.grid,
        values.listed,
        form.cleaned_data["sweep_at_once"],
        cleaned["template"],
        find_origin(posted.request),
        keep_original=not of_array or cleaned["keep_original"],
        objective=values.objective,
    )
    try:
        sweep, before = commands.submit(posted.request.user, requested, cleaned["key"])
    except Refused as refused:
        found = posted.examine()
        if of_array and not found.problems:
            of_file = [each for each in refused.problems if not _is_of_sweep(each)]
            found = replace(found, problems=problems_of(posted.document.text, of_file))
        # A problem of the file by itself is told beside it, with its lines.
        others = [each for each in refused.problems if not found.problems or _is_of_sweep(each)]
        return posted.page(422, found, saved=posted.save(), sweep=refused_part(form, others))
    except submission.Conflict:
        return posted.repeat(_("Already submitted as a sweep. Submit again to start another sweep."))
    except Error as error:
        return posted.report_outage(error)
    return _finish(posted, sweep, "sweep", is_new=not before)


def _finish(posted: PostedForm, submitted: Job | Sweep, page: str, *, is_new: bool) -> HttpResponseBase:
    """Delete the draft, and redirect to the page of the job or sweep."""
    post = posted.request.POST
    drafts.discard(posted.request.user, post.get("draft", ""), read_typed(post, posted.document))
    if is_new:
        notes.success(posted.request, _("Submitted %(name)s.") % {"name": submitted.name})
    return redirect(page, submitted.public_id)


def _is_of_sweep(problem: Problem) -> bool:
    return problem.pointer.startswith("/parameters")


# --- the page --------------------------------------------------------------------------------------------


def _page(
    request: SignedIn,
    form: SubmitForm,
    document: Document,
    findings: Findings,
    *,
    saved: drafts.SavedDraft | None = None,
    start: Beginning | None = None,
    applied: FormResult | None = None,
    status: int = 200,
) -> HttpResponse:
    if saved is None and (draft := drafts.find(request.user, str(form["draft"].value() or ""))):
        saved = drafts.SavedDraft(draft)
    start = start or Beginning()
    version = start.version
    sweep = start.sweep or fill_part(request.POST)
    origin = _find_readable(request, str(form["origin"].value() or ""))
    before_url = reverse("job_file", args=[origin.public_id]) if origin else ""
    if saved and (version or saved.beside):
        before_url = reverse("draft_file", args=[saved.draft.pk])
    context: dict[str, Any] = {
        **draft_context(saved),
        "earlier_version": version,
        "form": form,
        "text": document.text,
        "findings": findings,
        "cursor": start.cursor,
        "origin": form["origin"].value(),
        "chosen": templates.find(request.user, str(form["template"].value() or "")),
        "before_url": before_url,
        "difference": compare_with_job(origin, document) if origin else None,
        "dialects": dialect_choices(),
        "examples": sorted(EXAMPLES),
        "fresh": start.fresh,
        "view": view if (view := request.GET.get("view", "")) in VIEWS else "",
        "unfolded": "unfold" in request.GET,
        "code": start.code,
        "sweep": sweep,
        "jobs": sweep.jobs if sweep.is_meant else findings.jobs,
        "sections": SECTIONS,
        "variables": VARIABLES,
    }
    if not (request.htmx and request.htmx.target in FRAGMENTS):
        place = str(form["place"].value() or "")
        context["fields"] = build_form(
            request.user, applied or FormResult(read(document)), place, context["chosen"]
        )
        context["begins_in_file"] = not context["fields"].problems
    return page(request, "jobs/new.html", context, fragments=FRAGMENTS, status=status)


def _find_readable(request: SignedIn, public_id: str) -> Job | None:
    """Return the job of that id, if the person may read it."""
    job = Job.objects.visible_to(request.user).filter(public_id=public_id).first() if public_id else None
    return job if job and can(request.user, Verb.READ, job) else None
