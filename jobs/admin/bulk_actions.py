"""Bulk actions on jobs in Django admin: stop, hold, release, change priority, move to another quota.

Each applies the command for a single job, with the admin as the actor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, ngettext_lazy

from jobs import submission
from jobs.lifecycle.transitions import Overtaken
from jobs.messages import state_label
from jobs.models import Job
from jobs.states import FINAL, State
from quotas.admin import bulk
from quotas.admin.bulk import AdminForm, Question, WhyForm
from quotas.audit import action_record
from quotas.audit.action_record import Actor
from quotas.models import AdminAction, Quota

HIGHEST_PRIORITY: Final = 9


class PriorityForm(WhyForm):
    """The new priority."""

    priority = forms.IntegerField(
        label=gettext_lazy("Priority"),
        min_value=1,
        max_value=HIGHEST_PRIORITY,
        help_text=gettext_lazy("9 is highest."),
    )
    field_order = ("priority", "why")


class QuotaField(forms.ModelChoiceField[Quota]):
    """Quotas, each with its workspace and cluster."""

    def label_from_instance(self, obj: Quota) -> str:
        return f"{obj.workspace.title} · {obj.cluster.title} · {obj.name}"


class MoveForm(WhyForm):
    """The quota, one of the workspaces of the chosen jobs."""

    quota = QuotaField(Quota.objects.none(), label=gettext_lazy("Target quota"))
    field_order = ("quota", "why")

    def __init__(self, jobs: QuerySet[Job], *args: Any) -> None:
        super().__init__(*args)
        workspaces = jobs.order_by().values("workspace_id").distinct()
        chosen = self.fields["quota"]
        assert isinstance(chosen, forms.ModelChoiceField)
        chosen.queryset = (
            Quota.objects.filter(workspace__in=workspaces, accepts_jobs=True, cluster__enabled=True)
            .select_related("workspace", "cluster")
            .order_by("workspace__name", "name")
        )


def _count_by_state(jobs: Sequence[Job]) -> str:
    counts = Counter(State(job.state) for job in jobs)
    return ", ".join(f"{state_label(state)}: {count}" for state, count in counts.items())


def _count_queued(jobs: Sequence[Job]) -> str:
    count = sum(job.state == State.QUEUED for job in jobs)
    text = ngettext(
        "Applies to %(count)d waiting job; other jobs are not affected.",
        "Applies to %(count)d waiting jobs; other jobs are not affected.",
        count,
    )
    return text % {"count": count}


APPLIED: Final = ngettext_lazy("Applied to %(count)d job.", "Applied to %(count)d jobs.", "count")
"""What is said of an action without words of its own."""


@dataclass(frozen=True, slots=True)
class BulkAction:
    """An action on many jobs: `name` in the form, `verb` in the audit log.

    `apply` does it to one job and returns False where there was nothing to change; `summary` and `effects`
    tell what would follow, and `done` for how many jobs it was done.
    """

    name: str
    verb: str
    label: Any
    title: Promise
    button: Promise
    effects: tuple[Promise, ...]
    apply: Callable[[Actor, Job, Mapping[str, Any]], object]
    form: Callable[[QuerySet[Job], Any], AdminForm] = lambda _jobs, data: WhyForm(data)
    summary: Callable[[Sequence[Job]], str] = _count_queued
    is_dangerous: bool = False
    done: Any = APPLIED

    def question(self, jobs: Sequence[Job]) -> Question:
        """Return the question that the admin confirms."""
        effects = [self.summary(jobs), *map(str, self.effects)]
        return Question(self.name, str(self.title), str(self.button), effects, danger=self.is_dangerous)

    def run(
        self, model_admin: admin.ModelAdmin[Job], request: HttpRequest, queryset: QuerySet[Job]
    ) -> HttpResponse | None:
        """Ask for confirmation, or apply the confirmed action to each job."""
        jobs = queryset.select_related("owner", "workspace", "cluster", "quota")
        rows, values, page = bulk.confirm(
            model_admin, request, jobs, self.question, partial(self.form, queryset)
        )
        if values is None:
            return page
        actor = action_record.actor_of(request, values.get("why", ""))
        ids = [job.public_id for job in rows]
        action_record.write_down(actor, AdminAction.Kind.JOBS, ", ".join(ids), act=self.verb, jobs=ids)
        problems = list(filter(None, (self._problem(actor, job, values) for job in rows)))
        done = len(rows) - len(problems)
        bulk.tell(model_admin, request, str(self.done % {"count": done}) if done else "", problems)
        return None

    def _problem(self, actor: Actor, job: Job, values: Mapping[str, Any]) -> str:
        """Apply the action to one job; return why it could not be applied, or ""."""
        try:
            changed = self.apply(actor, job, values)
        except submission.NotWaiting:
            return _("Not waiting, or not on hold.")
        except (submission.AboveLimit, submission.CannotMove) as problem:
            return str(problem)
        except Overtaken:
            return _("The job was changing. Try again.")
        return _("Nothing to change.") if changed is False else ""


def _stop(actor: Actor, job: Job, _values: Mapping[str, Any]) -> object:
    if State(job.state) in FINAL:
        return False
    submission.stop(actor.user, job, why=actor.why)
    return True


ACTIONS: Final = (
    BulkAction(
        "stop_jobs",
        "stop",
        gettext_lazy("Stop"),
        gettext_lazy("Stop jobs"),
        gettext_lazy("Stop jobs"),
        (
            gettext_lazy(
                "Waiting jobs end immediately. Running jobs are asked to stop, and their resources are "
                "released when they end."
            ),
            gettext_lazy("Owners see the reason on the job page. Jobs are not restarted automatically."),
        ),
        _stop,
        summary=_count_by_state,
        is_dangerous=True,
        done=ngettext_lazy("%(count)d job is stopping.", "%(count)d jobs are stopping.", "count"),
    ),
    BulkAction(
        "hold_jobs",
        "hold",
        gettext_lazy("Hold"),
        gettext_lazy("Hold jobs"),
        gettext_lazy("Hold jobs"),
        (
            gettext_lazy("Jobs don't start until released. Their time in the queue is kept."),
            gettext_lazy("Owners see the reason on the job page."),
        ),
        lambda actor, job, _values: submission.hold(actor.user, job, why=actor.why),
        done=ngettext_lazy("%(count)d job held.", "%(count)d jobs held.", "count"),
    ),
    BulkAction(
        "release_jobs",
        "release",
        gettext_lazy("Release"),
        gettext_lazy("Release jobs"),
        gettext_lazy("Release jobs"),
        (
            gettext_lazy(
                "Jobs start when their turn comes. Their queue position depends on their time in the queue."
            ),
        ),
        lambda actor, job, _values: submission.release(actor.user, job),
        form=lambda _jobs, data: AdminForm(data),
        done=ngettext_lazy("%(count)d job released.", "%(count)d jobs released.", "count"),
    ),
    BulkAction(
        "prioritise_jobs",
        "prioritise",
        gettext_lazy("Change priority"),
        gettext_lazy("Change priority"),
        gettext_lazy("Change priority"),
        (gettext_lazy("One priority level counts as one hour of waiting. Running jobs are not stopped."),),
        lambda actor, job, values: submission.prioritise(actor.user, job, values["priority"], why=actor.why),
        form=lambda _jobs, data: PriorityForm(data),
        done=ngettext_lazy(
            "Priority of %(count)d job changed.", "Priority of %(count)d jobs changed.", "count"
        ),
    ),
    BulkAction(
        "move_jobs",
        "move",
        gettext_lazy("Move to another quota"),
        gettext_lazy("Move jobs to another quota"),
        gettext_lazy("Move jobs"),
        (
            gettext_lazy(
                "Jobs can move within their workspace, to a quota that their owner can use, that has room "
                "for them and whose cluster can run them."
            ),
            gettext_lazy("Their time in the queue is kept."),
        ),
        lambda actor, job, values: submission.move(actor.user, job, values["quota"], why=actor.why),
        form=MoveForm,
        done=ngettext_lazy("%(count)d job moved.", "%(count)d jobs moved.", "count"),
    ),
    BulkAction(
        "requeue_jobs",
        "requeue",
        gettext_lazy("Requeue"),
        gettext_lazy("Requeue jobs"),
        gettext_lazy("Requeue jobs"),
        (
            gettext_lazy("Waiting jobs wait anew, behind older jobs with the same priority."),
            gettext_lazy(
                "Started jobs are asked to stop and wait again. What they did not save in a checkpoint "
                "is lost."
            ),
        ),
        lambda actor, job, _values: submission.requeue(actor.user, job, why=actor.why),
        summary=_count_by_state,
        is_dangerous=True,
    ),
)


def admin_actions() -> list[Callable[..., HttpResponse | None]]:
    """Return the actions as Django admin takes them, for those who administer all jobs."""
    return [_admin_action(each) for each in ACTIONS]


def _admin_action(action: BulkAction) -> Callable[..., HttpResponse | None]:
    def run(model_admin: Any, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        return action.run(model_admin, request, queryset)

    run.__name__ = action.name
    return admin.action(run, description=action.label, permissions=["administer"])
