"""Actions on jobs of a queue: first a page that says what follows, then each job by its command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.contrib import messages as notes
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST

from jobs import submission
from jobs.lifecycle.transitions import Overtaken
from jobs.models import Job
from jobs.search.job_pages import SHOWN
from jobs.web.http import SignedIn, page, signed_in
from quotas.access import administered_by, administers
from quotas.audit import action_record
from quotas.models import AdminAction, Quota, User

MOST_AT_ONCE: Final = 200
HIGHEST_PRIORITY: Final = 9

NOBODYS_RIGHT: Final = gettext_lazy("Only workspace admins and console admins can manage the queue.")


class ActionForm(forms.Form):
    """Nothing to fill in, for some jobs."""

    def __init__(self, _jobs: Sequence[Job], data: Any = None) -> None:
        super().__init__(data)


class ReasonForm(ActionForm):
    """The reason, which the owner reads."""

    why = forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=submission.LONGEST_REASON,
        help_text=gettext_lazy("The job owner sees it."),
        widget=forms.TextInput(attrs={"class": "form-control"}),
    )


class PriorityForm(ReasonForm):
    """The new priority."""

    priority = forms.IntegerField(
        label=gettext_lazy("Priority"),
        min_value=1,
        max_value=HIGHEST_PRIORITY,
        help_text=gettext_lazy("9 is highest."),
        widget=forms.NumberInput(attrs={"class": "form-control"}),
    )
    field_order = ("priority", "why")


class TargetField(forms.ModelChoiceField[Quota]):
    """Quotas, each with its workspace and cluster."""

    def label_from_instance(self, obj: Quota) -> str:
        return f"{obj.workspace.title} · {obj.cluster.title} · {obj.title}"


class MoveForm(ReasonForm):
    """The target quota: one of the jobs' workspaces, on any cluster."""

    quota = TargetField(
        Quota.objects.none(),
        label=gettext_lazy("Target quota"),
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    field_order = ("quota", "why")

    def __init__(self, jobs: Sequence[Job], data: Any = None) -> None:
        super().__init__(jobs, data)
        rows = Quota.objects.filter(
            workspace__in={job.workspace_id for job in jobs}, accepts_jobs=True, cluster__enabled=True
        )
        field = self.fields["quota"]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = rows.select_related("workspace", "cluster").order_by("workspace__name", "name")


@dataclass(frozen=True, slots=True)
class QueueAction:
    """An action on jobs of the queue; `effects` tell what follows.

    `apply` does it to one job and returns False where there was nothing to change.
    """

    name: str
    label: Promise
    effects: tuple[Promise, ...]
    apply: Callable[[User, Job, Mapping[str, Any]], object]
    form: type[ActionForm] = ReasonForm
    is_for_one: bool = False
    is_for_running: bool = False
    is_dangerous: bool = False


_NOTHING_STOPS = gettext_lazy("Running jobs are not stopped, and limits of quotas still hold.")

ACTIONS: Final = (
    QueueAction(
        "next",
        gettext_lazy("Run next"),
        (
            gettext_lazy(
                "Console admins put jobs first on the cluster, workspace admins first among the jobs of "
                "their workspace."
            ),
            _NOTHING_STOPS,
        ),
        lambda user, job, values: submission.run_next(user, job, why=values["why"]),
    ),
    QueueAction(
        "up",
        gettext_lazy("Move up"),
        (
            gettext_lazy("The job takes the position before it. This fixes the order up to there."),
            _NOTHING_STOPS,
        ),
        lambda user, job, values: submission.move_up(user, job, why=values["why"]),
        is_for_one=True,
    ),
    QueueAction(
        "down",
        gettext_lazy("Move down"),
        (gettext_lazy("The job takes the position behind it. This fixes the order up to there."),),
        lambda user, job, values: submission.move_down(user, job, why=values["why"]),
        is_for_one=True,
    ),
    QueueAction(
        "usual",
        gettext_lazy("Reset order"),
        (gettext_lazy("Priority, waiting time and fair share decide about the position again."),),
        lambda user, job, values: submission.clear_order(user, job, why=values["why"]),
    ),
    QueueAction(
        "prioritise",
        gettext_lazy("Change priority"),
        (gettext_lazy("One priority level counts as one hour of waiting. Running jobs are not stopped."),),
        lambda user, job, values: submission.prioritise(user, job, values["priority"], why=values["why"]),
        form=PriorityForm,
    ),
    QueueAction(
        "hold",
        gettext_lazy("Hold"),
        (
            gettext_lazy("Jobs don't start until released. Their time in the queue is kept."),
            gettext_lazy("Owners see the reason on the job page."),
        ),
        lambda user, job, values: submission.hold(user, job, why=values["why"]),
    ),
    QueueAction(
        "release",
        gettext_lazy("Release"),
        (
            gettext_lazy(
                "Jobs start when their turn comes. Their queue position depends on their time in the queue."
            ),
        ),
        lambda user, job, _values: submission.release(user, job),
        form=ActionForm,
    ),
    QueueAction(
        "move",
        gettext_lazy("Move to another quota or cluster"),
        (
            gettext_lazy(
                "Jobs can move within their workspace, to a quota that their owner can use, that has room "
                "for them and whose cluster can run them."
            ),
            gettext_lazy("Their time in the queue is kept."),
        ),
        lambda user, job, values: submission.move(user, job, values["quota"], why=values["why"]),
        form=MoveForm,
    ),
    QueueAction(
        "requeue",
        gettext_lazy("Requeue"),
        (gettext_lazy("Jobs wait anew from now on: behind older jobs with the same priority."),),
        lambda user, job, values: submission.requeue(user, job, why=values["why"]),
    ),
    QueueAction(
        "restart",
        gettext_lazy("Stop and requeue"),
        (
            gettext_lazy(
                "Jobs are asked to stop and wait again with their earlier waiting time. What they did not "
                "save in a checkpoint is lost."
            ),
        ),
        lambda user, job, values: submission.requeue(user, job, why=values["why"]),
        is_for_running=True,
        is_dangerous=True,
    ),
)


def list_actions(*, is_running: bool) -> list[QueueAction]:
    """Return the actions on running or on waiting jobs."""
    return [action for action in ACTIONS if action.is_for_running is is_running]


@require_POST
@signed_in
def change_queue(request: SignedIn) -> HttpResponseBase:
    """Ask for confirmation, or apply the confirmed action to the chosen jobs."""
    workspaces = administered_by(request.user)
    if not workspaces.exists():
        raise PermissionDenied(NOBODYS_RIGHT)
    action = next((each for each in ACTIONS if each.name == request.POST.get("act")), None)
    if action is None:
        raise BadRequest("no such act")
    back = _list_url(request)
    ids = request.POST.getlist("id")[:MOST_AT_ONCE]
    found = Job.objects.visible_to(request.user).filter(public_id__in=ids, workspace__in=workspaces)
    by_id = {job.public_id: job for job in found.select_related(*SHOWN)}
    jobs = [by_id[public_id] for public_id in ids if public_id in by_id]
    if not jobs:
        notes.error(request, _("Select jobs first."))
        return redirect(back)
    if action.is_for_one and len(jobs) > 1:
        notes.error(request, _("Select one job."))
        return redirect(back)
    is_confirmed = "confirmed" in request.POST
    form = action.form(jobs, request.POST if is_confirmed else None)
    if not (is_confirmed and form.is_valid()):
        context = {"action": action, "jobs": jobs, "form": form, "back": back}
        return page(request, "jobs/queue/confirm.html", context, status=422 if is_confirmed else 200)
    _apply(request, action, jobs, form.cleaned_data)
    return redirect(back)


def _apply(request: SignedIn, action: QueueAction, jobs: Sequence[Job], values: Mapping[str, Any]) -> None:
    """Apply an action to each job, record it, and tell what was done."""
    if administers(request.user):
        actor = action_record.actor_of(request, str(values.get("why", "")))
        ids = [job.public_id for job in jobs]
        action_record.write_down(actor, AdminAction.Kind.JOBS, ", ".join(ids), act=action.name, jobs=ids)
    # The last one that is put first is the first one: the order of the list is kept.
    ordered = list(reversed(jobs)) if action.name == "next" else jobs
    refusals = [_try(action, request.user, job, values) for job in ordered]
    done = [job.name for job, refusal in zip(ordered, refusals, strict=True) if not refusal]
    if done:
        text = ngettext("%(action)s: %(name)s.", "%(action)s: %(count)d jobs.", len(done))
        notes.success(request, text % {"action": action.label, "count": len(done), "name": done[0]})
    for why, count in Counter(filter(None, refusals)).items():
        text = ngettext("%(count)d unchanged: %(why)s", "%(count)d unchanged: %(why)s", count)
        notes.warning(request, text % {"count": count, "why": why})


def _try(action: QueueAction, user: User, job: Job, values: Mapping[str, Any]) -> str:
    """Apply the action to one job; return why it could not be applied, or ""."""
    try:
        changed = action.apply(user, job, values)
    except submission.NotWaiting:
        return _("Not waiting, or not on hold.")
    except submission.Forbidden:
        return _("Not allowed.")
    except (submission.CannotMove, submission.CannotReorder, submission.AboveLimit) as problem:
        return str(problem)
    except Overtaken:
        return _("The job was changing. Try again.")
    return _("Nothing to change.") if changed is False else ""


def _list_url(request: SignedIn) -> str:
    """Return the address of the list from which the action came."""
    wanted = request.POST.get("next", "")
    first = reverse("queue")
    is_ours = url_has_allowed_host_and_scheme(wanted, None) and wanted.startswith(first)
    return wanted if is_ours else first
