"""New job: paste, upload or start from an earlier one; check, keep as a draft, submit."""

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
from jobs.dialects.document import Document
from jobs.form.reading import Applied, read
from jobs.form.saying import GOES_ON_AS
from jobs.models import Draft, DraftVersion, Job, outage
from jobs.spec import Framework, JobSpec, Resources, TaskRole
from jobs.submission import drafts, templates
from jobs.submission.access import find_job, find_template
from jobs.submission.answers import filled, linked
from jobs.submission.findings import Findings, examine, problems_of
from jobs.submission.forms import SubmitForm, dialect_choices, new_key
from jobs.submission.sweeps import acting, arrays
from jobs.web.again import CodeChoice, again, code_choice, free_name
from jobs.web.drafts import address_of, origin, told, typed
from jobs.web.forming.form import ADD, GO_ON, REMOVE, draw, is_posted, posted
from jobs.web.forming.sections import SECTIONS
from jobs.web.forming.variables import VARIABLES
from jobs.web.history import compared
from jobs.web.http import SignedIn, page, signed_in
from jobs.web.start import BESIDES, tell
from jobs.web.sweep_form import Part, SweepForm, Typed, beginning, is_meant, part
from jobs.web.sweep_form import refused as refused_sweep
from quotas.access import Verb, can
from quotas.models import User

EXAMPLES: Final = {path.stem: path for path in (Path(__file__).parent / "examples").glob("*.json")}
LONGEST_NUMBER: Final = 5
NEW_NAME: Final = "job"
VIEWS: Final = ("form", "both", "file")
"""What a link may ask to be shown: `?view=form`, with `&unfold` all of it."""
FRAGMENTS: Final = {"mends": "jobs/new/mends.html"}


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def new(request: SignedIn) -> HttpResponseBase:
    """The form, and what becomes of it."""
    return _sent(request) if request.method == "POST" else _begun(request)


# --- the form, before anything was sent ------------------------------------------------------------------


_NOTHING: Final = Document("")


@dataclass(frozen=True, slots=True)
class Beginning:
    """What the form starts with.  `fresh`: nobody has written the text yet; a paste may replace it."""

    document: Document = _NOTHING
    origin: str = ""
    draft: Draft | None = None
    cursor: Position | None = None
    place: str = ""
    version: DraftVersion | None = None
    template: str = ""
    fresh: bool = False
    code: CodeChoice | None = None
    sweep: Part | None = None


def _begun(request: SignedIn) -> HttpResponse:
    start = _beginning(request)
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
        place = submission.place_at(str(initial["place"]))
        findings = examine(request.user, start.document, before, start.template, place)
    kept = drafts.Kept(start.draft) if start.draft else None
    return _page(request, form, start.document, findings, kept=kept, start=start)


def _beginning(request: SignedIn) -> Beginning:
    """From a draft, from an earlier job (`like`), from an example, or from nothing."""
    draft = drafts.find(request.user, request.GET.get("draft", ""))
    if draft is not None:
        return _of_draft(draft, request.GET.get("version", ""))
    if like := request.GET.get("like"):
        job = find_job(request.user, like)
        code = request.GET.get("code", "")
        copy = again(request.user, job, code)
        template = submission.template_of(request.user, job)
        return Beginning(
            _unpinned(copy.document),
            job.public_id,
            cursor=copy.cursor,
            template=template,
            code=code_choice(job, code),
        )
    if asked := request.GET.get("template"):
        return _of_template(request, asked)
    if (gpus := request.GET.get("gpus", "")).isdecimal() and len(gpus) < LONGEST_NUMBER:
        return Beginning(_wanting(int(gpus), request.GET.get("gpu_type", "")[:64]))
    if (example := EXAMPLES.get(request.GET.get("example", ""))) is not None:
        return Beginning(Document(example.read_text(encoding="utf-8")))
    return Beginning(_nothing_yet(request.user), fresh=True)


def _nothing_yet(user: User) -> Document:
    """A job file that can be filled in by the form."""
    name = free_name(user, NEW_NAME) if Job.objects.filter(owner=user, name=NEW_NAME).exists() else NEW_NAME
    role = TaskRole(
        name="Worker",
        command='echo "Hello World"',
        resources=Resources(cpu_milli=1000, memory_mib=2048),
    )
    spec = JobSpec(name=name, framework=Framework.PYTORCH, roles=(role,))
    return dialects.get(GOES_ON_AS).render(spec, {}).document.pin(None)


def _of_template(request: SignedIn, asked: str) -> Beginning:
    """The file that a template makes of a link's answers; nothing is kept, and nothing submitted."""
    chosen = find_template(request.user, asked, request.GET.get("version", ""))
    said = linked(request.user, chosen.template, request.GET, BESIDES)
    tell(request, said)
    document = _unpinned(filled(request.user, chosen.template, said.answers))
    return Beginning(document, template=chosen.ref, sweep=beginning(chosen.template.sweep))


def _of_draft(draft: Draft, version: str) -> Beginning:
    """The draft as it is, or with the text that it had in an earlier version."""
    row = draft.versions.filter(pk=int(version)).first() if version.isascii() and version.isdigit() else None
    kept = row or draft
    return Beginning(
        _unpinned(Document(kept.text, kept.dialect or None)),
        draft.origin.public_id if draft.origin else "",
        draft,
        place=draft.place,
        version=row,
        template=draft.template,
        sweep=beginning(kept.sweep, kept.at_once),
    )


def _unpinned(document: Document) -> Document:
    """The job file without a dialect of its own, where its text by itself is taken for that one."""
    unpinned = document.pin(None)
    is_pinned = document.given in dialects.NAMES and unpinned.known_dialect != document.given
    return document if is_pinned else unpinned


def _wanting(gpus: int, gpu_type: str) -> Document:
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


def _sent(request: SignedIn) -> HttpResponseBase:
    form = SubmitForm(request.user, request.POST, request.FILES)
    valid = form.is_valid()
    typed = str(form.cleaned_data.get("text", form.data.get("text", "")))
    try:
        document = form.chosen_document()
    except Refused as refused:
        return _page(
            request, form, Document(typed), Findings(problems=problems_of("", refused.problems)), status=422
        )
    applied = None
    if is_posted(request.POST) and valid and not form.cleaned_data.get("upload"):
        applied = posted(request.user, request.POST, document)
        form = _repinned(request, form, applied)
        document = applied.reading.document.pin(form.chosen_dialect())
    wanted = _wanted(request)
    if wanted == "save":
        return _saved(request, form, document, applied)
    if wanted == "check" or not valid:
        findings = _examined(request, form, document)
        return _page(request, form, document, findings, applied=applied, status=200 if valid else 422)
    if applied is not None and applied.problems:
        findings = _examined(request, form, document)
        kept = _kept(request, document)
        return _page(request, form, document, findings, applied=applied, kept=kept, status=422)
    of_array = arrays.of(document) is not None
    if of_array or is_meant(request.POST.get("sweep_parameters", "")):
        return _swept(request, form, document, of_array=of_array)
    return _submitted(request, form, document)


def _wanted(request: SignedIn) -> str:
    """What was pressed; a button beside a field asks for the page anew."""
    pressed = any(name in request.POST for name in (ADD, REMOVE, GO_ON))
    return "check" if pressed else request.POST.get("do", "submit")


def _repinned(request: SignedIn, form: SubmitForm, applied: Applied) -> SubmitForm:
    """The form with the dialect left to the text, where that has become another."""
    if form.chosen_dialect() in (None, applied.reading.dialect):
        return form
    data = request.POST.copy()
    data["dialect"] = ""
    again = SubmitForm(request.user, data, request.FILES)
    again.is_valid()
    return again


def _examined(request: SignedIn, form: SubmitForm, document: Document) -> Findings:
    template = str(form.cleaned_data.get("template", ""))
    return examine(request.user, document, origin(request), template, form.chosen_place())


def _submitted(request: SignedIn, form: SubmitForm, document: Document) -> HttpResponseBase:
    user, text, key = request.user, document.text, form.cleaned_data["key"]
    try:
        submitted = submission.submit(
            user,
            document,
            place=form.chosen_place(),
            idempotency_key=key,
            keep_original=form.cleaned_data["keep_original"],
            origin=origin(request),
            template=form.cleaned_data["template"],
        )
    except Refused as refused:
        found = _examined(request, form, document)
        problems = found.problems or problems_of(text, refused.problems)
        findings = Findings(found.dialect, problems, found.notes, found.mends)
        return _page(request, form, document, findings, kept=_kept(request, document), status=422)
    except submission.Conflict:
        found = _examined(request, form, document)
        _tell_of_the_first(request, key)
        return _page(
            request, _rekeyed(request, form), document, found, kept=_kept(request, document), status=409
        )
    except Error as error:
        if not outage.is_outage(error):
            raise
        return _away(request, form, document)
    drafts.done(user, request.POST.get("draft", ""), typed(request.POST, document))
    if not submitted.replayed:
        notes.success(request, _("Submitted %(name)s.") % {"name": submitted.job.name})
    return redirect("job", submitted.job.public_id)


def _swept(request: SignedIn, form: SubmitForm, document: Document, *, of_array: bool) -> HttpResponseBase:
    """Many jobs of the text, with the values that the page's part for sweeps says, or an array itself."""
    text = document.text
    said = SweepForm(request.POST, of_array=of_array)
    if not said.is_valid():
        found = _examined(request, form, document)
        kept = _kept(request, document)
        start = Beginning(sweep=Part(said, asked=True))
        return _page(request, form, document, found, kept=kept, start=start, status=422)
    typed_values: Typed = said.cleaned_data["sweep_parameters"]
    asked = acting.Asked(
        document,
        form.chosen_place(),
        typed_values.grid,
        typed_values.listed,
        said.cleaned_data["sweep_at_once"],
        form.cleaned_data["template"],
        origin(request),
        keep_original=not of_array or form.cleaned_data["keep_original"],
    )
    try:
        sweep, before = acting.submit(request.user, asked, form.cleaned_data["key"])
    except Refused as refused:
        found = _examined(request, form, document)
        if of_array and not found.problems:
            of_file = [each for each in refused.problems if not _is_of_sweep(each)]
            found = replace(found, problems=problems_of(text, of_file))
        # What is wrong with the file by itself is told beside it, with its lines.
        mine = [each for each in refused.problems if not found.problems or _is_of_sweep(each)]
        start = Beginning(sweep=refused_sweep(said, mine))
        return _page(request, form, document, found, kept=_kept(request, document), start=start, status=422)
    except submission.Conflict:
        found = _examined(request, form, document)
        notes.warning(
            request, _("You already submitted this page as a sweep. Submit again to start another one.")
        )
        return _page(
            request, _rekeyed(request, form), document, found, kept=_kept(request, document), status=409
        )
    except Error as error:
        if not outage.is_outage(error):
            raise
        return _away(request, form, document)
    drafts.done(request.user, request.POST.get("draft", ""), typed(request.POST, document))
    if not before:
        notes.success(request, _("Submitted %(name)s.") % {"name": sweep.name})
    return redirect("sweep", sweep.public_id)


def _away(request: SignedIn, form: SubmitForm, document: Document) -> HttpResponse:
    """The database can't be asked now."""
    found = _examined(request, form, document)
    notes.error(request, _("The database is busy or away, and nothing was submitted. Submit again."))
    return _page(request, form, document, found, status=503)


def _is_of_sweep(problem: Problem) -> bool:
    return problem.pointer.startswith("/parameters")


def _saved(
    request: SignedIn, form: SubmitForm, document: Document, applied: Applied | None
) -> HttpResponseBase:
    kept = _kept(request, document)
    if kept is None or kept.beside or (applied is not None and applied.problems):
        return _page(
            request,
            form,
            document,
            _examined(request, form, document),
            kept=kept,
            applied=applied,
        )
    notes.success(request, _("Saved as a draft."))
    return redirect(address_of(kept.draft))


def _kept(request: SignedIn, document: Document) -> drafts.Kept | None:
    """What was sent, as a draft."""
    pk = request.POST.get("draft", "")
    return drafts.keep(request.user, pk, typed(request.POST, document), origin(request))


def _before_url(request: SignedIn, origin: str) -> str:
    """Where the file of the job that this one comes from is, if the person may read it."""
    job = Job.objects.visible_to(request.user).filter(public_id=origin).first() if origin else None
    return reverse("job_file", args=[origin]) if job and can(request.user, Verb.READ, job) else ""


def _difference(request: SignedIn, origin: str, document: Document) -> dict[str, Any] | None:
    """What the text changes of the job that it was made from, if the person may read that."""
    job = Job.objects.visible_to(request.user).filter(public_id=origin).first() if origin else None
    if job is None or not can(request.user, Verb.READ, job):
        return None
    return compared(job, document)


def _tell_of_the_first(request: SignedIn, key: str) -> None:
    """The page was sent before, with another text: somebody went back and changed it."""
    first = Job.objects.filter(owner=request.user, idempotency_key=key).first()
    notes.warning(
        request,
        _("You already submitted this page as %(name)s. Submit again to start this as another job.")
        % {"name": first.name if first else "?"},
    )


def _rekeyed(request: SignedIn, form: SubmitForm) -> SubmitForm:
    data = request.POST.copy()
    data["key"] = new_key()
    return SubmitForm(request.user, data)


# --- the page --------------------------------------------------------------------------------------------


def _page(
    request: SignedIn,
    form: SubmitForm,
    document: Document,
    findings: Findings,
    *,
    kept: drafts.Kept | None = None,
    start: Beginning | None = None,
    applied: Applied | None = None,
    status: int = 200,
) -> HttpResponse:
    if kept is None and (draft := drafts.find(request.user, str(form["draft"].value() or ""))):
        kept = drafts.Kept(draft)
    start = start or Beginning()
    version = start.version
    sweep = start.sweep or part(request.POST)
    context: dict[str, Any] = {
        **told(kept),
        "version": version,
        "form": form,
        "text": document.text,
        "findings": findings,
        "cursor": start.cursor,
        "origin": form["origin"].value(),
        "chosen": templates.find(request.user, str(form["template"].value() or "")),
        "before_url": reverse("draft_file", args=[kept.draft.pk])
        if kept and (version or kept.beside)
        else _before_url(request, str(form["origin"].value() or "")),
        "difference": _difference(request, str(form["origin"].value() or ""), document),
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
        context["fields"] = draw(request.user, applied or Applied(read(document)), place, context["chosen"])
        context["begins_in_file"] = not context["fields"].problems
    return page(request, "jobs/new.html", context, fragments=FRAGMENTS, status=status)
