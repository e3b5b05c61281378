"""Templates that people keep: the list, one with its versions, who uses it, and what becomes of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.contrib import messages as notes
from django.core.exceptions import PermissionDenied
from django.db.models import Count, QuerySet
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.utils.cache import patch_cache_control
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.dialects.formats import FORMATS
from jobs.jobtemplates import JobTemplate
from jobs.jobtemplates.constraints import as_json_path
from jobs.models import Job, JobFile, Template, TemplateVersion
from jobs.submission import drafts, templates
from jobs.submission.access import find_job, find_template
from jobs.submission.changes import Change, changes
from jobs.submission.comparison import Line, line_difference
from jobs.submission.findings import Findings, problems_of
from jobs.submission.templates import Chosen
from jobs.web.files import file_name
from jobs.web.http import SignedIn, page, signed_in
from jobs.web.template_form import WHO_FILLS, KeepForm, beside, content_of, rows_of
from quotas.access import Verb, can, workspaces_of
from quotas.models import Workspace

MOST: Final = 500
MOST_USES: Final = 50


@require_safe
@signed_in
def listed(request: SignedIn) -> HttpResponseBase:
    """What the person and their workspaces keep, and what was proposed to those that they keep."""
    rows = Template.objects.visible_to(request.user).select_related("owner", "workspace", "proposed_to")
    rows = rows.annotate(uses=Count("versions__uses")).order_by("retired_at", "name", "pk")[:MOST]
    found = list(rows)
    return page(
        request,
        "jobs/templates.html",
        {
            "mine": [each for each in found if each.workspace is None and each.owner_id == request.user.pk],
            "shared": [each for each in found if each.workspace is not None],
            "proposed": [
                each for each in found if each.workspace is None and each.owner_id != request.user.pk
            ],
        },
    )


@require_safe
@signed_in
def template(request: SignedIn, template: str) -> HttpResponseBase:
    """One template: a version of it, what that changed, who uses which, and what can be done."""
    row = _row(request, template)
    version = _version(row, request.GET.get("version", "")) or row.versions.get(number=row.default_number)
    other = _version(row, request.GET.get("with", "")) or _before(row, version)
    versions = row.versions.select_related("made_by").annotate(count=Count("uses")).order_by("-number")
    chosen = templates.chosen(version)
    return page(
        request,
        "jobs/templates/template.html",
        {
            "template": row,
            "version": version,
            "versions": versions[:MOST],
            "chosen": chosen,
            "constraints": _constraints(chosen),
            "syntax": FORMATS[version.dialect].syntax,
            "other": other,
            "changes": _changes(other, version),
            "lines": _lines(other, version),
            "uses": _uses(request, row)[:MOST_USES],
            "keeps": templates.keeps(request.user, row),
            "may_adopt": row.proposed_to is not None and can(request.user, Verb.MANAGE, row.proposed_to),
            "proposable": workspaces_of(request.user).order_by("name")[:MOST],
        },
    )


@require_safe
@signed_in
def template_file(request: SignedIn, template: str) -> HttpResponseBase:
    """A version's job file, as it is before anything is answered."""
    chosen = find_template(request.user, template, request.GET.get("version", ""))
    response = HttpResponse(chosen.template.text.strip() + "\n", content_type="text/plain; charset=utf-8")
    if "download" in request.GET:
        name = file_name(chosen.template.id, chosen.template.dialect)
        response["Content-Disposition"] = f'attachment; filename="{name}"'
    patch_cache_control(response, private=True, no_store=True)
    return response


# --- keeping one -----------------------------------------------------------------------------------------


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def new(request: SignedIn) -> HttpResponseBase:
    """A template from a job, a draft, another template, or what stands in the New job page."""
    if request.method != "POST":
        return _form_page(request, KeepForm(request.user, initial=_beginning(request)), like=_like(request))
    if request.POST.get("do") != "keep":
        sent = request.POST
        sweep = sent.get("sweep", sent.get("sweep_parameters", ""))
        initial = {"text": sent.get("text", ""), "dialect": sent.get("dialect", ""), "sweep": sweep}
        return _form_page(request, KeepForm(request.user, initial=_named(initial)))
    return _kept(request, None)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def edit(request: SignedIn, template: str) -> HttpResponseBase:
    """The next version of a template."""
    row = _row(request, template)
    if not templates.keeps(request.user, row):
        raise PermissionDenied(_("Only who keeps a template changes it: propose your own instead."))
    if request.method == "POST":
        return _kept(request, row)
    version = _version(row, request.GET.get("version", "")) or row.versions.get(number=row.default_number)
    chosen = templates.chosen(version)
    return _form_page(
        request, KeepForm(request.user, initial=_of_version(chosen)), row=row, like=chosen.template
    )


def _kept(request: SignedIn, row: Template | None) -> HttpResponseBase:
    form = KeepForm(request.user, request.POST)
    before = templates.chosen(row.versions.get(number=row.default_number)).template if row else _like(request)
    if not form.is_valid():
        return _form_page(request, form, row=row, like=before, status=422)
    try:
        content = content_of(form, request.POST, before)
        if row is None:
            row = templates.create(request.user, form.about(), content, form.chosen_workspace())
        else:
            as_default = form.cleaned_data["as_default"]
            row = templates.change(request.user, row, form.about(), content, as_default=as_default)
    except Refused as refused:
        problems = problems_of(form.cleaned_data["text"], refused.problems)
        return _form_page(
            request, form, row=row, like=before, problems=Findings(problems=problems), status=422
        )
    except forms.ValidationError as error:
        form.add_error(None, error)
        return _form_page(request, form, row=row, like=before, status=422)
    except templates.TooMany:
        form.add_error(None, _("There are too many of them already: retire some first."))
        return _form_page(request, form, row=row, like=before, status=422)
    notes.success(
        request,
        _("%(name)s is kept as version %(number)s.") % {"name": row.name, "number": row.latest_number},
    )
    return redirect("template", row.public_id)


def _beginning(request: SignedIn) -> dict[str, Any]:
    """What the form begins with: the file of a job or draft, or a template's own."""
    if public_id := request.GET.get("job"):
        job = find_job(request.user, public_id)
        return _named({"text": JobFile.objects.get(job=job).text, "dialect": job.dialect})
    if draft := drafts.find(request.user, request.GET.get("draft", "")):
        return _named({"text": draft.text, "dialect": draft.dialect, "sweep": draft.sweep})
    if ref := request.GET.get("like"):
        found = templates.find(request.user, ref)
        if found is None:
            raise Http404
        return _of_version(found)
    return {}


def _like(request: SignedIn) -> JobTemplate | None:
    found = templates.find(request.user, request.GET.get("like", "-"))
    return found.template if found else None


def _named(initial: dict[str, Any]) -> dict[str, Any]:
    """With secret values out of the text, and called as the job is."""
    try:
        document = Document(initial["text"], initial["dialect"] or None)
        parsed = document.parsed
    except Refused:
        return initial
    said = {"text": parsed.text, "dialect": document.dialect, "name": parsed.spec.name[:80]}
    return {**initial, **said, "as_default": True}


def _of_version(chosen: Chosen) -> dict[str, Any]:
    template = chosen.template
    rules, more = beside(template, template.document.parsed.spec)
    return {
        "name": chosen.name,
        "description": template.about,
        "icon": template.icon,
        "text": template.text,
        "dialect": template.dialect,
        "sweep": template.sweep,
        "constraints": json.dumps(rules, indent=2) if rules else "",
        "questions": json.dumps(more, indent=2, ensure_ascii=False) if more else "",
        "as_default": True,
    }


def _form_page(
    request: SignedIn,
    form: KeepForm,
    *,
    row: Template | None = None,
    like: JobTemplate | None = None,
    problems: Findings | None = None,
    status: int = 200,
) -> HttpResponse:
    text, dialect = str(form["text"].value() or ""), str(form["dialect"].value() or "")
    rows = []
    found = problems or Findings()
    try:
        if text.strip():
            document = Document(text.replace("\r\n", "\n"), dialect or None)
            rows = rows_of(document.parsed.spec, request.POST, like)
    except (Refused, KeyError) as error:
        if isinstance(error, Refused) and not found.problems:
            found = Findings(problems=problems_of(text, error.problems))
    context = {
        "form": form,
        "template": row,
        "like": request.GET.get("like", ""),
        "text": text,
        "rows": rows,
        "who_fills": WHO_FILLS,
        "findings": found,
    }
    return page(request, "jobs/templates/edit.html", context, status=status)


# --- what becomes of it ----------------------------------------------------------------------------------


@require_POST
@signed_in
def change(request: SignedIn, template: str) -> HttpResponseBase:
    """Make a version the default, retire it or bring it back, propose it, or answer a proposal."""
    row = _row(request, template)
    try:
        where = _changed(request, row, request.POST.get("do", ""))
    except templates.Forbidden:
        raise PermissionDenied(_("Only who keeps a template changes it: propose your own instead.")) from None
    except templates.TooMany:
        notes.error(request, _("There are too many of them already: retire some first."))
        where = row
    return redirect("template", where.public_id) if where else redirect("templates")


def _changed(request: SignedIn, row: Template, asked: str) -> Template | None:
    user = request.user
    if asked == "default":
        number = request.POST.get("number", "")
        if number.isascii() and number.isdigit() and len(number) < 7:
            templates.make_default(user, row, int(number))
    elif asked in {"retire", "back"}:
        templates.retire(user, row, back=asked == "back")
    elif asked == "propose":
        workspace = workspaces_of(user).filter(slug=request.POST.get("workspace", "")).first()
        templates.propose(user, row, workspace)
        _say_proposed(request, workspace)
    elif asked == "adopt":
        row = templates.adopt(user, row)
        notes.success(request, _("%(name)s belongs to the workspace from now on.") % {"name": row.name})
    elif asked == "decline":
        templates.decline(user, row)
        return None
    else:
        raise Http404
    return row


def _say_proposed(request: SignedIn, workspace: Workspace | None) -> None:
    if workspace is not None:
        text = _("Those who keep %(workspace)s see it now, and may take it over.")
        notes.success(request, text % {"workspace": workspace.name})


# --- what is shown ---------------------------------------------------------------------------------------


def _row(request: SignedIn, public_id: str) -> Template:
    rows = Template.objects.visible_to(request.user).select_related("owner", "workspace", "proposed_to")
    row = rows.filter(public_id=public_id).first()
    if row is None:
        raise Http404
    return row


def _version(row: Template, number: str) -> TemplateVersion | None:
    if not (number.isascii() and number.isdigit() and len(number) < 7):
        return None
    return row.versions.select_related("template", "made_by").filter(number=int(number)).first()


def _before(row: Template, version: TemplateVersion) -> TemplateVersion | None:
    return row.versions.filter(number__lt=version.number).order_by("-number").first()


def _changes(before: TemplateVersion | None, after: TemplateVersion) -> tuple[Change, ...]:
    if before is None:
        return ()
    old, new = (Document(each.content, each.dialect).parsed.spec for each in (before, after))
    return changes(old, new)


def _lines(before: TemplateVersion | None, after: TemplateVersion) -> list[Line]:
    """The difference between two versions, questions and constraints too, each line with what it is."""
    if before is None:
        return []
    old, new = _whole(before), _whole(after)
    return line_difference(old, new, context=2)


def _whole(version: TemplateVersion) -> list[str]:
    more = {"parameters": version.parameters, "constraints": version.constraints}
    if sweep := version.metadata.get("sweep"):
        more["sweep"] = sweep.splitlines()
    return [*version.content.splitlines(), *json.dumps(more, indent=1, ensure_ascii=False).splitlines()]


def _constraints(chosen: Chosen) -> list[Mapping[str, str]]:
    """Each constraint with its field, and as PAI-DLC would spell it."""
    template = chosen.template
    return [
        {"path": path, "rule": rule.value, "json_path": as_json_path(path, template.dialect)}
        for path, rule in template.constraints.items()
    ]


def _uses(request: SignedIn, row: Template) -> QuerySet[Job]:
    """The jobs that came from it, as far as the person sees them, the latest first."""
    rows = Job.objects.visible_to(request.user).filter(from_template__version__template=row)
    return rows.select_related("owner", "from_template").order_by("-pk")
