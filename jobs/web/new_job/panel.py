"""The panel beside a job file: its cost, its resources, its start, and its rendered scripts.

Asked anew after each change of the text or the place; works from the text alone, whatever form is above it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpResponseBase
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from jobs import submission
from jobs.dialects import sweep_words
from jobs.dialects.base import Problem
from jobs.messages import note_message, problem_message
from jobs.messages.dry_runs import dry_run_message
from jobs.messages.feasibility import PROBLEMS as NEVER
from jobs.models import DryRun
from jobs.submission import builder, dry_runs
from jobs.submission.checks import preview, suggested_actions
from jobs.submission.checks.preview import Parameters, Preview, Unreadable
from jobs.submission.checks.suggested_actions import SuggestedAction as Remedy
from jobs.submission.sweeps.parameter_text import SweepValues
from jobs.web.http import SignedIn, page, signed_in, text_response
from jobs.web.job.pending_reason import SuggestedAction, suggest
from jobs.web.new_job.drafts import find_origin, typed_document
from jobs.web.new_job.form.fields import find_input
from jobs.web.new_job.sweep_form import SweepForm, has_parameters
from quotas.models import User

COST: Final = "cost"
SENT: Final = "sent"
TABS: Final = (COST, SENT)


@dataclass(frozen=True, slots=True)
class PanelNotice:
    """The one sentence, and how good it is: a level of `components/notice.html`.

    `title` goes before it where it is about the first of many jobs.
    """

    level: str
    text: str
    title: str = ""

    @property
    def digest(self) -> str:
        """A digest of the text: an unchanged text is not read out again."""
        return sha256(f"{self.title}{self.text}".encode()).hexdigest()[:12]


@require_POST
@signed_in
def panel(request: SignedIn) -> HttpResponseBase:
    """`text`, `dialect`, `place`, `panel_tab` → a preview of the job; nothing is stored."""
    tab = request.POST.get("panel_tab", "")
    tab = tab if tab in TABS else COST
    shown = _panel_context(request)
    notice: PanelNotice = shown["notice"]
    context = {
        **shown,
        "tab": tab,
        "is_repeated": request.POST.get("panel_said") == notice.digest,
    }
    if tab == SENT and "preview" in shown:
        context |= _rendered_context(request.user, shown["preview"])
    return page(
        request, "jobs/new/panel_page.html", context, fragments={"job-panel": "jobs/new/panel_answer.html"}
    )


@require_POST
@signed_in
def script(request: SignedIn) -> HttpResponseBase:
    """The same fields, and `sent_role` → the script of that role, as a download."""
    found = _panel_context(request)
    roles = _rendered_context(request.user, found["preview"]).get("sent") if "preview" in found else None
    wanted = request.POST.get("sent_role", "")
    role = next((each for each in roles.roles if each.role == wanted), None) if roles else None
    if role is None:
        text = _("No script for this role: the job file was changed or has problems.")
        return text_response(text, status=422)
    return text_response(role.script, f"{re.sub(r'[^A-Za-z0-9._-]', '_', role.role)}.sh")


@require_POST
@signed_in
def dry_run_new(request: SignedIn) -> HttpResponseBase:
    """The same fields → a dry run that was asked for, and how it goes."""
    shown = _panel_context(request)
    if "preview" not in shown:
        return page(request, "jobs/new/panel_dry_run.html", {"unable": shown["notice"].text})
    found: Preview = shown["preview"]
    try:
        run = dry_runs.ask(request.user, found.quota, found.spec)
    except dry_runs.NotAllowed:
        raise PermissionDenied from None
    return page(request, "jobs/new/panel_dry_run.html", _dry_run_context(run))


@require_safe
@signed_in
def dry_run(request: SignedIn, pk: int) -> HttpResponseBase:
    """Show the progress and the findings of one's own dry run."""
    run = dry_runs.find(request.user, pk)
    if run is None:
        raise Http404
    return page(request, "jobs/new/panel_dry_run.html", _dry_run_context(run))


def _dry_run_context(run: DryRun) -> dict[str, Any]:
    levels = {True: "ok", None: "warn", False: "bad"}
    found = [
        (levels[each["ok"]], dry_run_message(each), find_input(each.get("pointer", "")))
        for each in run.findings
    ]
    return {"run": run, "found": found}


def _rendered_context(user: User, found: Preview) -> dict[str, Any]:
    """Return `sent`, or `unsent` with a notice."""
    try:
        return {"sent": builder.render(user, found.quota, found.spec, found.options)}
    except builder.NotRendered as none:
        cluster = found.quota.cluster.title
        text = str(none) or _("The script for %(cluster)s can't be shown.") % {"cluster": cluster}
        return {"unsent": PanelNotice("bad" if none.refused else "info", text)}


def _panel_context(request: SignedIn) -> dict[str, Any]:
    """Return the panel's context for a job file."""
    document = typed_document(request)
    if not document.text.strip():
        return {"notice": PanelNotice("info", _("The job's cost and estimated start appear here."))}
    try:
        parameters = _parameters(request)
    except ValidationError as wrong:
        return {"notice": PanelNotice("warn", wrong.messages[0], _("Sweep"))}
    try:
        found = preview.of_document(
            request.user,
            document,
            submission.parse_target(request.POST.get("place", "")),
            find_origin(request),
            keep_original="keep_original" in request.POST,
            parameters=parameters,
        )
    except Unreadable as unreadable:
        return _infeasible_context(unreadable) or {"notice": _problem_notice(unreadable)}
    unfilled = [note_message(note) for note in sweep_words.notes(found.spec)]
    return {
        "notice": _start_notice(found),
        "preview": found,
        "suggestions": _list_suggestions(request.user, found),
        "unfilled": unfilled,
    }


def _parameters(request: SignedIn) -> Parameters | None:
    """Return the parameters of a sweep, None for a single job.  Raises ValidationError."""
    if not has_parameters(request.POST.get("sweep_parameters", "")):
        return None
    form = SweepForm(request.POST)
    if not form.is_valid():
        raise ValidationError([error for errors in form.errors.values() for error in errors])
    typed: SweepValues = form.cleaned_data["sweep_parameters"]
    if not typed.grid and not typed.listed:  # the objective of an array
        return None
    return Parameters(typed.grid, typed.listed, form.cleaned_data["sweep_at_once"])


def _infeasible_context(unreadable: Unreadable) -> dict[str, Any]:
    """The first thing that the cluster will never run, with what can be done; empty where something else is
    wrong as well.
    """
    problems = unreadable.problems
    if not all(each.actions or each.code in NEVER for each in problems):
        return {}
    more = ngettext("And %(count)s more problem.", "And %(count)s more problems.", len(problems) - 1)
    text = problem_message(problems[0])
    text += " " + more % {"count": len(problems) - 1} if len(problems) > 1 else ""
    return {"notice": PanelNotice("bad", text), "actions": problems[0].actions}


def _problem_notice(unreadable: Unreadable) -> PanelNotice:
    problems = unreadable.problems
    if problems[0].pointer.startswith("/parameters"):
        return PanelNotice("warn", problem_message(problems[0]), _("Sweep"))
    return PanelNotice("warn", _describe_problems(problems))


def _describe_problems(problems: Sequence[Problem]) -> str:
    if len(problems) == 1 and problems[0].code in {"no_place", "no_such_place"}:
        return problem_message(problems[0])
    text = ngettext(
        "Fix 1 problem to see the preview.",
        "Fix %(count)s problems to see the preview.",
        len(problems),
    )
    return text % {"count": len(problems)}


def _start_notice(found: Preview) -> PanelNotice:
    """Whether it would start now, as a notice."""
    title = _describe_sweep(found) if found.sweep else ""
    if found.refused:
        return PanelNotice("bad", found.sentence, title)
    return PanelNotice("ok" if found.starts else "warn", found.sentence, title)


def _describe_sweep(found: Preview) -> str:
    """Return how many jobs a sweep has, and how many at a time."""
    if found.at_once == found.jobs:
        text = ngettext("Sweep of %(count)d job.", "Sweep of %(count)d jobs, all at once.", found.jobs)
    else:
        text = ngettext(
            "Sweep of %(count)d job, max %(at_once)d at once.",
            "Sweep of %(count)d jobs, max %(at_once)d at once.",
            found.jobs,
        )
    return text % {"count": found.jobs, "at_once": found.at_once}


def _list_suggestions(user: User, found: Preview) -> list[SuggestedAction]:
    """Return changes that would start the job now, if it would not start as it is."""
    if found.starts or found.refused:
        return []
    return [_suggestion(each, found) for each in suggested_actions.suggest_for_preview(user, found)]


def _suggestion(remedy: Remedy, found: Preview) -> SuggestedAction:
    words = {
        "replicas": _("Can start now with %(replicas)s"),
        "gpus": _("Can start now with %(gpus)s"),
        "gpu_type": _("Can start now on %(type)s GPUs"),
        "quota": _("Can start now in %(quota)s"),
    }
    with_gpus = [index for index, role in enumerate(found.spec.roles) if role.resources.gpus]
    fields = {
        "replicas": "f-roles-0-replicas",
        "gpus": "f-roles-0-gpus",
        "gpu_type": f"f-roles-{with_gpus[0] if with_gpus else 0}-gpu-type",
        "quota": "id_place",
    }
    return suggest(remedy, words, fields[remedy.kind])
