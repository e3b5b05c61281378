"""My templates: the list, one with its versions and uses, and its forms."""

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
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.dialects.formats import FORMATS
from jobs.jobtemplates import JobTemplate
from jobs.jobtemplates.constraints import as_json_path
from jobs.models import Job, JobFile, Template, TemplateVersion
from jobs.submission import drafts, templates
from jobs.submission.access import Forbidden, find_job
from jobs.submission.checks.findings import Findings, problems_of
from jobs.submission.differences import Change, Line, changes, line_difference
from jobs.submission.templates import Chosen, find_template
from jobs.web.http import SignedIn, number, page, signed_in, text_response
from jobs.web.job.page import job_file_name
from jobs.web.templates.edit_form import WHO_FILLS, EditForm, content_of, list_extras, rows_of
from quotas.access import Verb, can, workspaces_of
from quotas.models import Workspace

MOST: Final = 500
MOST_USES: Final = 50


@require_safe
@signed_in
def template_list(request: SignedIn) -> HttpResponseBase:
    """List the templates of the person and their workspaces, and proposals to those they manage."""
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
    """Show a version of a template, its changes, its uses and its actions."""
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
    name = job_file_name(chosen.template.id, chosen.template.dialect) if "download" in request.GET else ""
    return text_response(chosen.template.text.strip() + "\n", name)


# --- keeping one -----------------------------------------------------------------------------------------


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def new(request: SignedIn) -> HttpResponseBase:
    """Create a template from a job, a draft, another template, or the New job page."""
    if request.method != "POST":
        return _form_page(request, EditForm(request.user, initial=_initial(request)), like=_like(request))
    if request.POST.get("do") != "keep":
        sent = request.POST
        sweep = sent.get("sweep", sent.get("sweep_parameters", ""))
        initial = {"text": sent.get("text", ""), "dialect": sent.get("dialect", ""), "sweep": sweep}
        return _form_page(request, EditForm(request.user, initial=_read_names(initial)))
    return _store(request, None)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def edit(request: SignedIn, template: str) -> HttpResponseBase:
    """The next version of a template."""
    row = _row(request, template)
    if not templates.keeps(request.user, row):
        raise PermissionDenied(
            _("Only the template's owner can change it. You can propose your own instead.")
        )
    if request.method == "POST":
        return _store(request, row)
    version = _version(row, request.GET.get("version", "")) or row.versions.get(number=row.default_number)
    chosen = templates.chosen(version)
    return _form_page(
        request, EditForm(request.user, initial=_of_version(chosen)), row=row, like=chosen.template
    )


def _store(request: SignedIn, row: Template | None) -> HttpResponseBase:
    form = EditForm(request.user, request.POST)
    before = templates.chosen(row.versions.get(number=row.default_number)).template if row else _like(request)
    if not form.is_valid():
        return _form_page(request, form, row=row, like=before, status=422)
    problems = None
    try:
        content = content_of(form, request.POST, before)
        if row is None:
            row = templates.create(request.user, form.about(), content, form.chosen_workspace())
        else:
            as_default = form.cleaned_data["as_default"]
            row = templates.change(request.user, row, form.about(), content, as_default=as_default)
    except Refused as refused:
        problems = Findings(problems=problems_of(form.cleaned_data["text"], refused.problems))
    except forms.ValidationError as error:
        form.add_error(None, error)
    except templates.TooMany:
        form.add_error(None, _("Template limit reached. Retire some templates first."))
    else:
        text = _("%(name)s saved as version %(number)s.")
        notes.success(request, text % {"name": row.name, "number": row.latest_number})
        return redirect("template", row.public_id)
    return _form_page(request, form, row=row, like=before, problems=problems, status=422)


def _initial(request: SignedIn) -> dict[str, Any]:
    """Return the form's initial values: of a job, a draft or a template."""
    if public_id := request.GET.get("job"):
        job = find_job(request.user, public_id)
        return _read_names({"text": JobFile.objects.get(job=job).text, "dialect": job.dialect})
    if draft := drafts.find(request.user, request.GET.get("draft", "")):
        return _read_names({"text": draft.text, "dialect": draft.dialect, "sweep": draft.sweep})
    if ref := request.GET.get("like"):
        found = templates.find(request.user, ref)
        if found is None:
            raise Http404
        return _of_version(found)
    return {}


def _like(request: SignedIn) -> JobTemplate | None:
    found = templates.find(request.user, request.GET.get("like", "-"))
    return found.template if found else None


def _read_names(initial: dict[str, Any]) -> dict[str, Any]:
    """With secret values out of the text, and called as the job is."""
    try:
        document = Document(initial["text"], initial["dialect"] or None)
        parsed = document.parsed
    except Refused:
        return initial
    names = {"text": parsed.text, "dialect": document.dialect, "name": parsed.spec.name[:80]}
    return {**initial, **names, "as_default": True}


def _of_version(chosen: Chosen) -> dict[str, Any]:
    template = chosen.template
    rules, more = list_extras(template, template.document.parsed.spec)
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
    form: EditForm,
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
        where = _apply_change(request, row, request.POST.get("do", ""))
    except Forbidden:
        raise PermissionDenied(
            _("Only the template's owner can change it. You can propose your own instead.")
        ) from None
    except templates.TooMany:
        notes.error(request, _("Template limit reached. Retire some templates first."))
        where = row
    return redirect("template", where.public_id) if where else redirect("templates")


def _apply_change(request: SignedIn, row: Template, action: str) -> Template | None:
    user = request.user
    if action == "default":
        if (version := number(request.POST.get("number"), 6)) is not None:
            templates.make_default(user, row, version)
    elif action in {"retire", "back"}:
        templates.retire(user, row, back=action == "back")
    elif action == "propose":
        workspace = workspaces_of(user).filter(slug=request.POST.get("workspace", "")).first()
        templates.propose(user, row, workspace)
        _confirm_proposal(request, workspace)
    elif action == "adopt":
        row = templates.adopt(user, row)
        notes.success(request, _("%(name)s now belongs to the workspace.") % {"name": row.name})
    elif action == "decline":
        templates.decline(user, row)
        return None
    else:
        raise Http404
    return row


def _confirm_proposal(request: SignedIn, workspace: Workspace | None) -> None:
    if workspace is not None:
        text = _("Managers of %(workspace)s can now see the template and take it over.")
        notes.success(request, text % {"workspace": workspace.title})


# --- what is shown ---------------------------------------------------------------------------------------


def _row(request: SignedIn, public_id: str) -> Template:
    rows = Template.objects.visible_to(request.user).select_related("owner", "workspace", "proposed_to")
    row = rows.filter(public_id=public_id).first()
    if row is None:
        raise Http404
    return row


def _version(row: Template, text: str) -> TemplateVersion | None:
    return row.versions.select_related("template", "made_by").filter(number=number(text, 6) or 0).first()


def _before(row: Template, version: TemplateVersion) -> TemplateVersion | None:
    return row.versions.filter(number__lt=version.number).order_by("-number").first()


def _changes(before: TemplateVersion | None, after: TemplateVersion) -> tuple[Change, ...]:
    if before is None:
        return ()
    old, new = (Document(each.content, each.dialect).parsed.spec for each in (before, after))
    return changes(old, new)


def _lines(before: TemplateVersion | None, after: TemplateVersion) -> list[Line]:
    """Return the difference of two versions by line, with their questions and constraints."""
    if before is None:
        return []
    return line_difference(_whole(before), _whole(after), context=2)


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
