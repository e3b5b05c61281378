"""The panel beside a job file: what it costs, what it takes, whether it starts now, and what will be sent.

Asked anew after each change of the text or the place; works from the text alone, whatever form is above it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpResponse, HttpResponseBase
from django.utils.cache import patch_cache_control
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from jobs import dialects, submission
from jobs.dialects import sweep_words
from jobs.dialects.base import Problem
from jobs.dialects.document import Document
from jobs.messages import note_message, problem_message
from jobs.messages.dryruns import dry_run_message
from jobs.messages.feasibility import PROBLEMS as NEVER
from jobs.models import DryRun
from jobs.scheduling import dryruns
from jobs.submission import preview, remedies, sending
from jobs.submission.preview import Parameters, Preview, Unreadable
from jobs.submission.remedies import Remedy
from jobs.web.drafts import origin
from jobs.web.http import SignedIn, page, signed_in
from jobs.web.sweep_form import SweepForm, Typed, is_meant
from jobs.web.waiting import values_of
from quotas.models import User

COST: Final = "cost"
SENT: Final = "sent"
TABS: Final = (COST, SENT)
FRAGMENTS: Final = {"job-panel": "jobs/new/panel_answer.html"}


@dataclass(frozen=True, slots=True)
class Said:
    """The one sentence, and how good it is: a level of `components/notice.html`.

    `title` goes before it where it is about the first of many jobs.
    """

    level: str
    text: str
    title: str = ""

    @property
    def digest(self) -> str:
        """What tells this sentence from another: one that is known already is not read out again."""
        return sha256(f"{self.title}{self.text}".encode()).hexdigest()[:12]


@require_POST
@signed_in
def panel(request: SignedIn) -> HttpResponseBase:
    """`text`, `dialect`, `place`, `panel_tab` → what would become of it; nothing is stored."""
    tab = request.POST.get("panel_tab", "")
    tab = tab if tab in TABS else COST
    shown = asked(request)
    said: Said = shown["said"]
    context = {
        **shown,
        "tab": tab,
        "said_again": request.POST.get("panel_said") == said.digest,
    }
    if tab == SENT and "preview" in shown:
        context |= _what_is_sent(request.user, shown["preview"])
    return page(request, "jobs/new/panel_page.html", context, fragments=FRAGMENTS)


@require_POST
@signed_in
def sent(request: SignedIn) -> HttpResponseBase:
    """The same fields, and `sent_role` → what a replica of that role runs, to keep."""
    found = asked(request)
    roles = _what_is_sent(request.user, found["preview"]).get("sent") if "preview" in found else None
    wanted = request.POST.get("sent_role", "")
    role = next((each for each in roles.roles if each.role == wanted), None) if roles else None
    if role is None:
        text = _("Nothing can be sent of this role: the job file was changed, or has problems.")
        return HttpResponse(text, status=422, content_type="text/plain; charset=utf-8")
    response = HttpResponse(role.script, content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{file_name(role.role)}"'
    patch_cache_control(response, private=True, no_store=True)
    return response


@require_POST
@signed_in
def dry_run_new(request: SignedIn) -> HttpResponseBase:
    """The same fields → a dry run that was asked for, and how it goes."""
    shown = asked(request)
    if "preview" not in shown:
        return page(request, "jobs/new/panel_dry_run.html", {"unable": shown["said"].text})
    found: Preview = shown["preview"]
    try:
        run = dryruns.ask(request.user, found.quota, found.spec)
    except dryruns.NotAllowed:
        raise PermissionDenied from None
    return page(request, "jobs/new/panel_dry_run.html", _run(run))


@require_safe
@signed_in
def dry_run(request: SignedIn, pk: int) -> HttpResponseBase:
    """How one's own dry run goes, and what it found."""
    run = dryruns.find(request.user, pk)
    if run is None:
        raise Http404
    return page(request, "jobs/new/panel_dry_run.html", _run(run))


def _run(run: DryRun) -> dict[str, Any]:
    levels = {True: "ok", None: "warn", False: "bad"}
    return {"run": run, "found": [(levels[each["ok"]], dry_run_message(each)) for each in run.findings]}


def file_name(role: str) -> str:
    """What the script of a role is called."""
    return f"{re.sub(r'[^A-Za-z0-9._-]', '_', role)}.sh"


def _what_is_sent(user: User, found: Preview) -> dict[str, Any]:
    """`sent`, or `unsent` with what there is to say instead."""
    try:
        return {"sent": sending.rendered(user, found.quota, found.spec, found.options)}
    except sending.NotRendered as none:
        cluster = found.quota.cluster.name
        text = str(none) or _("What %(cluster)s is sent can't be shown.") % {"cluster": cluster}
        return {"unsent": Said("bad" if none.refused else "info", text)}


def asked(request: SignedIn) -> dict[str, Any]:
    """What the panel shows of a job file."""
    text, dialect = request.POST.get("text", "").replace("\r\n", "\n"), request.POST.get("dialect", "")
    if not text.strip():
        return {"said": Said("info", _("What the job costs, and whether it would start now, appears here."))}
    try:
        parameters = _parameters(request)
    except ValidationError as wrong:
        return {"said": Said("warn", wrong.messages[0], _("Sweep"))}
    try:
        found = preview.of_document(
            request.user,
            Document(text, dialect if dialect in dialects.NAMES else None),
            submission.place_at(request.POST.get("place", "")),
            origin(request),
            keep_original="keep_original" in request.POST,
            parameters=parameters,
        )
    except Unreadable as unreadable:
        return _never(unreadable) or {"said": _not_yet(unreadable)}
    unfilled = [note_message(note) for note in sweep_words.notes(found.spec)]
    return {
        "said": said(found),
        "preview": found,
        "offered": _offered(request.user, found),
        "unfilled": unfilled,
    }


def _parameters(request: SignedIn) -> Parameters | None:
    """Return what the page's part for sweeps varies, None for a single job.  Raises ValidationError."""
    if not is_meant(request.POST.get("sweep_parameters", "")):
        return None
    form = SweepForm(request.POST)
    if not form.is_valid():
        raise ValidationError([error for errors in form.errors.values() for error in errors])
    typed: Typed = form.cleaned_data["sweep_parameters"]
    return Parameters(typed.grid, typed.listed, form.cleaned_data["sweep_at_once"])


def _never(unreadable: Unreadable) -> dict[str, Any]:
    """The first thing that the cluster will never run, with what can be done; empty where something else is
    wrong as well.
    """
    problems = unreadable.problems
    if not all(each.actions or each.code in NEVER for each in problems):
        return {}
    more = ngettext("And %(count)s more problem.", "And %(count)s more problems.", len(problems) - 1)
    text = problem_message(problems[0])
    text += " " + more % {"count": len(problems) - 1} if len(problems) > 1 else ""
    return {"said": Said("bad", text), "actions": problems[0].actions}


def _not_yet(unreadable: Unreadable) -> Said:
    problems = unreadable.problems
    if problems[0].pointer.startswith("/parameters"):
        return Said("warn", problem_message(problems[0]), _("Sweep"))
    return Said("warn", _unreadable(problems))


def _unreadable(problems: Sequence[Problem]) -> str:
    if len(problems) == 1 and problems[0].code in {"no_place", "no_such_place"}:
        return problem_message(problems[0])
    text = ngettext(
        "Nothing can be said while the job file has a problem.",
        "Nothing can be said while the job file has %(count)s problems.",
        len(problems),
    )
    return text % {"count": len(problems)}


def said(found: Preview) -> Said:
    """Whether it would start now, as a notice."""
    title = _many(found) if found.sweep else ""
    if found.refused:
        return Said("bad", found.sentence, title)
    return Said("ok" if found.starts else "warn", found.sentence, title)


def _many(found: Preview) -> str:
    """Return how many jobs a sweep has, and how many at a time."""
    if found.at_once == found.jobs:
        text = ngettext(
            "A sweep of %(count)d job.", "A sweep of %(count)d jobs, all of them at a time.", found.jobs
        )
    else:
        text = ngettext(
            "A sweep of %(count)d job, at most %(at_once)d at a time.",
            "A sweep of %(count)d jobs, at most %(at_once)d of them at a time.",
            found.jobs,
        )
    return text % {"count": found.jobs, "at_once": found.at_once}


@dataclass(frozen=True, slots=True)
class Way:
    """What would start it now; `field` is the id of the form's field that says so."""

    remedy: Remedy
    label: str
    field: str


def _offered(user: User, found: Preview) -> list[Way]:
    """What would start it now, where it would not start as it is."""
    if found.starts or found.refused:
        return []
    return [_way(each, found) for each in remedies.of_preview(user, found)]


def _way(remedy: Remedy, found: Preview) -> Way:
    words = {
        "replicas": _("With %(replicas)s it would start now"),
        "gpus": _("With %(gpus)s it would start now"),
        "gpu_type": _("On %(type)s GPUs it would start now"),
        "quota": _("In %(quota)s it would start now"),
    }
    with_gpus = [index for index, role in enumerate(found.spec.roles) if role.resources.gpus]
    fields = {
        "replicas": "f-roles-0-replicas",
        "gpus": "f-roles-0-gpus",
        "gpu_type": f"f-roles-{with_gpus[0] if with_gpus else 0}-gpu-type",
        "quota": "id_place",
    }
    return Way(remedy, words[remedy.kind] % values_of(remedy), fields[remedy.kind])
