"""Quotas: their use, their queues, and a what-if form."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from django import forms
from django.http import HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from jobs import submission
from jobs.lifecycle import pending_reasons
from jobs.live import bus
from jobs.models import Attempt, Job
from jobs.states import State
from jobs.web.http import SignedIn, live, page, set_choices, signed_in
from quotas.admission import ResourceShape, Waiting, queue_snapshot, snapshot, whatif
from quotas.amounts import Amounts, Part
from quotas.clusters import gputypes
from quotas.ledger import reports
from quotas.models import Quota, User
from quotas.models.expressions import Literal

SHOWN_DAYS: Final = 14
MOST_PEOPLE: Final = 5
MOST_WAITING: Final = 5
MOST_IDLE: Final = 5


@dataclass(slots=True)
class QuotaRow:
    """A quota with its bars, its users, and its queue: the numbers, and the next jobs."""

    use: reports.QuotaUse
    depth: int = 0
    people: Sequence[reports.PersonUse] = ()
    waiting: int = 0
    waiting_gpus: int = 0
    next: list[Job] = field(default_factory=list)
    idle: list[Job] = field(default_factory=list)
    history: str = ""


class WhatIf(forms.Form):
    """The what-if form: could this job run now."""

    quota = forms.ChoiceField(label=gettext_lazy("Resource quota"))
    replicas = forms.IntegerField(label=gettext_lazy("Replicas"), min_value=1, max_value=2000, initial=1)
    gpus = forms.IntegerField(label=gettext_lazy("GPUs per replica"), min_value=0, max_value=1000, initial=1)
    gpu_type = forms.CharField(label=gettext_lazy("GPU type"), max_length=64, required=False)
    cores = forms.IntegerField(
        label=gettext_lazy("CPU cores per replica"), min_value=1, max_value=100_000, initial=4
    )
    memory_gib = forms.IntegerField(
        label=gettext_lazy("Memory per replica (GiB)"), min_value=1, max_value=1_000_000, initial=16
    )
    hours = forms.IntegerField(
        label=gettext_lazy("Run time (hours)"), min_value=1, max_value=10_000, required=False
    )
    priority = forms.IntegerField(label=gettext_lazy("Priority"), min_value=1, max_value=9, initial=1)

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.quotas = {
            submission.target_address(quota): quota for quota in submission.quotas_open_to(user)[:200]
        }
        labels = [
            (address, f"{quota.workspace.title} · {quota.cluster.title} · {quota.title}")
            for address, quota in self.quotas.items()
        ]
        set_choices(self.fields["quota"], labels)
        for name, bound in self.fields.items():
            bound.widget.attrs["class"] = "form-select" if name == "quota" else "form-control"


@require_safe
@signed_in
def quotas(request: SignedIn) -> HttpResponseBase:
    """Show the quotas of the person's workspaces, and answer the what-if form."""
    context: dict[str, Any] = {**live(request), "live_names": f"jobs {bus.QUEUE}"}
    part = request.htmx.target if request.htmx else None
    if part != "what-if":
        context["quotas"] = _list_quotas(request.user)
    if part != "quotas-list":
        is_asked = "quota" in request.GET
        form = WhatIf(request.user, request.GET if is_asked else None)
        context |= {
            "form": form,
            "answer": answer(request.user, form) if is_asked and form.is_valid() else None,
        }
    return page(
        request,
        "jobs/quotas.html",
        context,
        fragments={"quotas-list": "jobs/quotas/list.html", "what-if": "jobs/quotas/what_if.html"},
    )


# --- who uses what, what waits ---------------------------------------------------------------------------


def _list_quotas(user: User) -> list[QuotaRow]:
    uses = {use.quota.pk: use for use in reports.quotas_of(user)}
    people = reports.people_in(list(uses))
    history = reports.history_of(list(uses), timezone.now() - timedelta(days=SHOWN_DAYS))
    queues = queue_snapshot.queues_of({use.quota.cluster_id for use in uses.values()})
    shown = {
        key: QuotaRow(use, people=people.get(key, [])[:MOST_PEOPLE], history=json.dumps(history.get(key, {})))
        for key, use in uses.items()
    }
    next_holders: dict[str, int] = {}
    for queue in queues.values():
        for verdict in queue.verdicts.values():
            row = shown.get(verdict.quota_id)
            if row is None:
                continue
            row.waiting += 1
            row.waiting_gpus += verdict.gpus
            if row.waiting <= MOST_WAITING:
                next_holders[verdict.holder] = verdict.quota_id
    _add_waiting(user, shown, next_holders)
    _add_idle(user, shown)
    return _as_tree(shown)


def _add_waiting(user: User, shown: Mapping[int, QuotaRow], holders: Mapping[str, int]) -> None:
    ids = dict(Attempt.objects.filter(key__in=list(holders)).values_list("key", "job_id"))
    jobs = Job.objects.visible_to(user).select_related("owner", "cluster").in_bulk(list(ids.values()))
    pending_reasons.load_reasons(jobs.values())
    for holder, quota_id in holders.items():
        if ids.get(holder) in jobs:
            shown[quota_id].next.append(jobs[ids[holder]])


def _add_idle(user: User, shown: Mapping[int, QuotaRow]) -> None:
    """Add the idle jobs directly in each quota, the longest idle first."""
    rows = Job.objects.visible_to(user).filter(quota__in=list(shown), state=Literal(State.RUNNING))
    rows = rows.filter(idle_since__isnull=False).select_related("owner").order_by("idle_since", "pk")
    for job in rows:
        idle = shown[job.quota_id].idle
        if len(idle) < MOST_IDLE:
            idle.append(job)


def _as_tree(shown: Mapping[int, QuotaRow]) -> list[QuotaRow]:
    """Each quota before those in it."""
    below: dict[int | None, list[QuotaRow]] = {}
    for row in shown.values():
        parent = row.use.quota.parent_id
        below.setdefault(parent if parent in shown else None, []).append(row)
    ordered: list[QuotaRow] = []

    def visit(rows: Sequence[QuotaRow], depth: int) -> None:
        for row in rows:
            row.depth = depth
            ordered.append(row)
            visit(below.get(row.use.quota.pk, []), depth + 1)

    visit(below.get(None, []), 0)
    return ordered


# --- what if ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WhatIfAnswer:
    """Whether a job would start now, and why not."""

    starts: bool
    text: str


def answer(user: User, form: WhatIf) -> WhatIfAnswer:
    """Return what admission would decide about such a job now; nothing is stored."""
    values = form.cleaned_data
    quota: Quota = form.quotas[values["quota"]]
    kind = gputypes.canonical(values["gpu_type"].strip(), gputypes.names())
    each = Amounts(
        values["cores"] * 1000, values["memory_gib"] * 1024, {kind: values["gpus"]} if values["gpus"] else {}
    )
    now = snapshot.take(quota.cluster, asking=user)
    question = Waiting(
        whatif.ASKING,
        quota.pk,
        ResourceShape((Part(values["replicas"], each),)),
        values["priority"],
        now.now,
        user.pk,
        values["hours"] and values["hours"] * 3600,
    )
    outcome = whatif.preview_request(now, question)
    return WhatIfAnswer(starts=outcome.starts, text=pending_reasons.outlook(quota.cluster.title, outcome))
