"""Sweeps: the list, one with its jobs, and its actions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

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
from jobs.lifecycle import failure_lines, pending_reasons
from jobs.lifecycle.transitions import Overtaken
from jobs.live import bus
from jobs.models import Sweep, SweepRun
from jobs.states import TERMINAL, State
from jobs.submission.checks.findings import problems_of
from jobs.submission.sweeps import arrays, commands
from jobs.submission.sweeps.objective import LONGEST, Trial, list_trials
from jobs.training_metrics import results
from jobs.web.http import SignedIn, live, number, page, signed_in, slice_before, text_response
from jobs.web.job.page import job_file_name
from jobs.web.new_job.sweep_form import AtOnceForm
from quotas import audit
from quotas.access import Verb, can, rights
from quotas.models import User

PAGE: Final = 50

MOST_METRICS: Final = 5
"""Metrics of a sweep's table besides the objective."""


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


@dataclass(frozen=True, slots=True)
class SortColumn:
    """A column of a sweep's table; `url` leads to the order that its heading chooses.

    `order` is the one it has, as ARIA says it; `style` are CSS classes.
    """

    label: str
    url: str
    order: str = ""
    style: str = "num"


@require_safe
@signed_in
def sweep(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Show a sweep; its values, results and the comparison of jobs are for those who may read it."""
    around = live(request)
    found = _find(request.user, public_id)
    may = rights(request.user, found)
    runs = commands.latest(found)
    jobs = [run.job for run in runs]
    pending_reasons.load_reasons(jobs)
    failure_lines.load_failures(request.user, jobs)
    count = Counter(run.job.state for run in runs)
    ended = sum(count[state] for state in TERMINAL)
    context = {
        **around,
        "sweep": found,
        "readable": Verb.READ in may,
        "controllable": Verb.CONTROL in may,
        "states": _count_labels(count),
        "ended": ended,
        "total": len(runs),
        "percent": round(100 * ended / len(runs)) if runs else 0,
        "failed": count[State.FAILED],
        "going": len(runs) - ended,
        "chosen": request.GET.getlist("id")[:PAGE],
        "live_names": " ".join(["jobs", *(bus.job_name(run.job.public_id) for run in runs)]),
        "array_number": arrays.number_of(found.public_id) if found.file else None,
        "at_once": AtOnceForm(initial={"at_once": found.at_once}),
        **_table(request, found, runs, readable=Verb.READ in may),
    }
    return page(request, "jobs/sweep.html", context, fragments={"sweep-jobs": "jobs/sweeps/jobs.html"})


def _table(request: SignedIn, found: Sweep, runs: Sequence[SweepRun], *, readable: bool) -> dict[str, Any]:
    """Return the rows of the table in their order, and its columns.

    Whoever may not read the sweep gets no values and no results, in the order of the numbers.
    """
    chosen = list(dict.fromkeys(name[:LONGEST] for name in request.GET.getlist("metric")))[:MOST_METRICS]
    chosen = [name for name in chosen if name != found.objective] if readable else []
    metrics = [found.objective, *chosen] if found.objective and readable else chosen
    trials = list_trials(found, runs, chosen) if readable else [Trial(run, {}, is_best=False) for run in runs]
    keys = _sort_keys(found, metrics) if readable else {"number": _number}
    sort = request.GET.get("sort", "")
    if sort.lstrip("-") in keys:
        trials = _sorted(trials, keys[sort.lstrip("-")], is_descending=sort.startswith("-"))
    kept = [("metric", name) for name in chosen]

    def column(key: str, label: str, style: str = "num") -> SortColumn:
        then = f"-{key}" if sort == key else key
        order = {key: "ascending", f"-{key}": "descending"}.get(sort, "")
        return SortColumn(label, "?" + urlencode([("sort", then), *kept]), order, style)

    best = next((trial.run.job for trial in trials if trial.is_best), None)
    address = urlencode([*([("sort", sort)] if sort.lstrip("-") in keys else []), *kept])
    return {
        "rows": [
            (trial, [trial.run.values.get(name, "") for name in found.names], _cells(trial, metrics))
            for trial in trials
        ],
        "number_column": column("number", _("Number")),
        "value_columns": [column(f"value{at}", name, "mono") for at, name in enumerate(found.names)],
        "metric_columns": [
            column(f"{kind}{at}", label % {"metric": name})
            for at, name in enumerate(metrics)
            for kind, label in (("best", _("%(metric)s (best)")), ("last", _("%(metric)s (last)")))
        ],
        "metric_choices": _metric_choices(found, runs, chosen) if readable and not request.htmx else [],
        "best": best if best is not None and not best.deleted_at else None,
        "sort": sort,
        "sweep_url": reverse("sweep", args=[found.public_id]) + (f"?{address}" if address else ""),
    }


def _sort_keys(found: Sweep, metrics: Sequence[str]) -> dict[str, Callable[[Trial], Any]]:
    """Return what the table can be sorted by, as `sort` names it."""
    values = {f"value{at}": partial(_value, name) for at, name in enumerate(found.names)}
    results = {
        f"{kind}{at}": partial(_result, name, kind)
        for at, name in enumerate(metrics)
        for kind in ("best", "last")
    }
    return {"number": _number, **values, **results}


def _number(trial: Trial) -> int:
    return trial.run.number


def _value(name: str, trial: Trial) -> Any:
    return trial.run.values.get(name)


def _result(name: str, kind: str, trial: Trial) -> float | None:
    found = trial.results.get(name)
    if found is None:
        return None
    return found.best if kind == "best" else found.last


def _sorted(trials: Sequence[Trial], key: Callable[[Trial], Any], *, is_descending: bool) -> list[Trial]:
    """Return the trials in order: numbers before texts, those without a value last."""
    known = [trial for trial in trials if key(trial) is not None]

    def comparable(trial: Trial) -> tuple[bool, float, str]:
        value = key(trial)
        is_number = isinstance(value, int | float)
        return not is_number, value if is_number else 0, "" if is_number else str(value)

    rest = [trial for trial in trials if key(trial) is None]
    return sorted(known, key=comparable, reverse=is_descending) + rest


def _cells(trial: Trial, metrics: Sequence[str]) -> list[float | None]:
    return [_result(name, kind, trial) for name in metrics for kind in ("best", "last")]


def _metric_choices(found: Sweep, runs: Sequence[SweepRun], chosen: Sequence[str]) -> list[tuple[str, bool]]:
    """Return the metrics that may be shown besides the objective, and whether they are."""
    names = results.list_names([run.job_id for run in runs])
    return [(name, name in chosen) for name in names if name != found.objective]


@require_safe
@signed_in
def file(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Download the one file of all its jobs, where it was submitted as one."""
    found = _find(request.user, public_id, Verb.READ)
    if not found.file:
        raise Http404
    return text_response(arrays.file_of(found), job_file_name(found.name, arrays.DIALECT))


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
