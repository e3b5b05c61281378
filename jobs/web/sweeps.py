"""Sweeps: the list, one with its jobs, and its actions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.contrib import messages as notes
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from jobs import messages
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.lifecycle import pending_reasons
from jobs.lifecycle.transitions import Overtaken
from jobs.live import bus
from jobs.models import JobFile, Sweep, SweepRun
from jobs.states import TERMINAL, State
from jobs.submission.checks.findings import problems_of
from jobs.submission.lineage import compare_with_job
from jobs.submission.sweeps import arrays, commands
from jobs.web.http import SignedIn, live, number, page, signed_in, slice_before, text_response
from jobs.web.job.page import job_file_name
from jobs.web.new_job.sweep_form import AtOnceForm
from quotas import audit
from quotas.access import Verb, can, rights, those
from quotas.models import User

PAGE: Final = 50
COMPARED: Final = 2


@require_safe
@signed_in
def sweep_list(request: SignedIn) -> HttpResponseBase:
    """Those of the person's workspaces, the newest first."""
    before = request.GET.get("before", "")
    rows = Sweep.objects.visible_to(request.user).select_related("owner", "workspace")
    shown, following = slice_before(rows, before, PAGE)
    states = commands.count_states(shown)
    context = {
        "rows": [(sweep, _count_labels(states.get(sweep.pk, Counter()))) for sweep in shown],
        "previous_url": reverse("sweeps") if number(before) else "",
        "next_url": f"{reverse('sweeps')}?before={following}" if following else "",
    }
    return page(request, "jobs/sweeps.html", context)


def _count_labels(count: Counter[str]) -> list[tuple[str, int]]:
    return [(messages.state_label(state), count[state]) for state in State if count[state]]


# --- one of them -----------------------------------------------------------------------------------------


@require_safe
@signed_in
def sweep(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Show a sweep; its values and the comparison of two jobs are for those who may read it."""
    around = live(request)
    found = _find(request.user, public_id)
    may = rights(request.user, found)
    runs = commands.latest(found)
    pending_reasons.load_reasons([run.job for run in runs])
    count = Counter(run.job.state for run in runs)
    ended = sum(count[state] for state in TERMINAL)
    context = {
        **around,
        "sweep": found,
        "readable": Verb.READ in may,
        "controllable": Verb.CONTROL in may,
        "rows": [(run, [run.values.get(name, "") for name in found.names]) for run in runs],
        "states": _count_labels(count),
        "ended": ended,
        "total": len(runs),
        "percent": round(100 * ended / len(runs)) if runs else 0,
        "failed": count[State.FAILED],
        "going": len(runs) - ended,
        "chosen": {number(each) for each in request.GET.getlist("of")[:PAGE]},
        "sweep_url": reverse("sweep", args=[public_id]),
        "live_names": " ".join(["jobs", *(bus.job_name(run.job.public_id) for run in runs)]),
        "array_number": arrays.number_of(found.public_id) if found.file else None,
        "at_once": AtOnceForm(initial={"at_once": found.at_once}),
    }
    if Verb.READ in may and not request.htmx and "of" in request.GET:
        context["comparison"] = _comparison(request.user, found, runs, context["chosen"])
    return page(request, "jobs/sweep.html", context, fragments={"sweep-jobs": "jobs/sweeps/jobs.html"})


@require_safe
@signed_in
def file(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Download the one file of all its jobs, where it was submitted as one."""
    found = _find(request.user, public_id, Verb.READ)
    if not found.file:
        raise Http404
    return text_response(arrays.file_of(found), job_file_name(found.name, arrays.DIALECT))


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two jobs of a sweep: their different values, and the difference of their files."""

    first: SweepRun
    second: SweepRun
    values: Sequence[tuple[str, Any, Any]]
    difference: dict[str, Any]


def _comparison(
    user: User, sweep: Sweep, runs: Sequence[SweepRun], chosen: set[int | None]
) -> Comparison | None:
    """None unless two were chosen whose files the person may read."""
    runs_by_job = {run.job_id: run for run in runs if run.number in chosen and run.job.deleted_at is None}
    jobs = those(user, Verb.READ, [run.job for run in runs_by_job.values()])
    if len(jobs) != COMPARED:
        return None
    first, second = (runs_by_job[job.pk] for job in jobs)
    pairs = ((name, first.values.get(name, ""), second.values.get(name, "")) for name in sweep.names)
    text = JobFile.objects.get(job=second.job).text
    return Comparison(
        first,
        second,
        [(name, old, new) for name, old, new in pairs if old != new],
        compare_with_job(first.job, Document(text, second.job.dialect)),
    )


def _find(user: User, public_id: str, verb: Verb = Verb.LIST) -> Sweep:
    """The sweep; Http404 when the person may not know of it, PermissionDenied when they may not do that."""
    rows = Sweep.objects.visible_to(user).select_related("owner", "workspace")
    found = rows.filter(public_id=public_id).first()
    if found is None:
        audit.log_refusal(public_id, actor=user, details={"verb": verb})
        raise Http404
    if verb is not Verb.LIST and not can(user, verb, found):
        audit.log_refusal(found.public_id, thing=found, actor=user, details={"verb": verb})
        raise PermissionDenied(
            _("Only %(owner)s and the admins of %(workspace)s can do this with the sweep.")
            % {"owner": found.owner.get_username(), "workspace": found.workspace.title}
        )
    return found


# --- what is done to it ----------------------------------------------------------------------------------


@require_POST
@signed_in
def stop(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Ask for the end of all its jobs."""
    found = _find(request.user, public_id, Verb.CONTROL)
    try:
        count = commands.stop(request.user, found)
    except Overtaken:
        notes.error(request, _("Some jobs were changing state and couldn't be stopped. Try again."))
    else:
        text = ngettext("Stopping %(count)d job.", "Stopping %(count)d jobs.", count)
        notes.success(request, text % {"count": count})
    return redirect("sweep", public_id)


@require_POST
@signed_in
def again(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Run its failed jobs again, all or none."""
    found = _find(request.user, public_id, Verb.CONTROL)
    try:
        made = commands.again(request.user, found)
    except Refused as refused:
        for problem in problems_of("", refused.problems):
            notes.error(request, problem.message)
    else:
        text = ngettext("%(count)d job rerun.", "%(count)d jobs rerun.", len(made))
        notes.success(request, text % {"count": len(made)})
    return redirect("sweep", public_id)


@require_POST
@signed_in
def change(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Let another number of its jobs be under way at a time."""
    found = _find(request.user, public_id, Verb.CONTROL)
    form = AtOnceForm(request.POST)
    if form.is_valid():
        commands.change(request.user, found, form.cleaned_data["at_once"])
        text = ngettext(
            "At most %(count)d job can run at once.",
            "At most %(count)d jobs can run at once.",
            form.cleaned_data["at_once"],
        )
        notes.success(request, text % {"count": form.cleaned_data["at_once"]})
    else:
        for message in form.errors.get("at_once", ()):
            notes.error(request, str(message))
    return redirect("sweep", public_id)
