"""What an admin does to many jobs at once, in Django admin: stop, hold, release, prioritise, move.

Each goes through the service that does it to one job, with the admin as the actor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from jobs import submission
from jobs.lifecycle.transitions import Overtaken
from jobs.messages import state_label
from jobs.models import Job
from jobs.states import FINAL, State
from quotas.admin.bulk import AdminForm, Question, WhyForm
from quotas.audit import acts
from quotas.audit.acts import Actor
from quotas.models import Act, Quota

HIGHEST: Final = 9


class PriorityForm(WhyForm):
    """The new priority."""

    priority = forms.IntegerField(
        label=gettext_lazy("Priority"), min_value=1, max_value=HIGHEST, help_text=gettext_lazy("9 is first.")
    )
    field_order = ("priority", "why")


class QuotaField(forms.ModelChoiceField[Quota]):
    """Quotas, each with where it is."""

    def label_from_instance(self, obj: Quota) -> str:
        return f"{obj.workspace.name} · {obj.cluster.name} · {obj.name}"


class MoveForm(WhyForm):
    """The quota, one of the workspaces and clusters of the chosen jobs."""

    quota = QuotaField(Quota.objects.none(), label=gettext_lazy("To quota"))
    field_order = ("quota", "why")

    def __init__(self, jobs: QuerySet[Job], *args: Any) -> None:
        super().__init__(*args)
        workspaces = jobs.order_by().values("workspace_id").distinct()
        clusters = jobs.order_by().values("cluster_id").distinct()
        chosen = self.fields["quota"]
        assert isinstance(chosen, forms.ModelChoiceField)
        chosen.queryset = (
            Quota.objects.filter(workspace__in=workspaces, cluster__in=clusters, accepts_jobs=True)
            .select_related("workspace", "cluster")
            .order_by("workspace__name", "name")
        )


class JobsAct(ABC):
    """One thing that may be done to many jobs."""

    name: str

    def form(self, jobs: QuerySet[Job], data: Any) -> AdminForm:
        """What else has to be known."""
        return WhyForm(data)

    @abstractmethod
    def question(self, jobs: Sequence[Job]) -> Question:
        """What would follow."""

    @abstractmethod
    def do(self, actor: Actor, job: Job, values: Mapping[str, Any]) -> bool:
        """Do it to one; whether that changed anything."""

    def carry_out(
        self, actor: Actor, jobs: Sequence[Job], values: Mapping[str, Any]
    ) -> tuple[int, list[str]]:
        """Do it to each; to how many, and why not to the others."""
        ids = [job.public_id for job in jobs]
        acts.write_down(actor, Act.Kind.JOBS, ", ".join(ids), act=self.name, jobs=ids)
        done, problems = 0, []
        for job in jobs:
            try:
                if self.do(actor, job, values):
                    done += 1
                else:
                    problems.append(_("There was nothing to change."))
            except submission.NotWaiting:
                problems.append(_("It does not wait, or is not held back."))
            except submission.NoRoomThere as problem:
                problems.append(str(problem))
            except Overtaken:
                problems.append(_("It was changing at that moment. Try again."))
        return done, problems


def _by_state(jobs: Sequence[Job]) -> str:
    counts = Counter(State(job.state) for job in jobs)
    return ", ".join(f"{state_label(state)}: {count}" for state, count in counts.items())


def _waiting(jobs: Sequence[Job]) -> list[str]:
    """How many of them it concerns: those that wait."""
    count = sum(job.state == State.QUEUED for job in jobs)
    text = ngettext(
        "%(count)d of them waits; it concerns no others.",
        "%(count)d of them wait; it concerns no others.",
        count,
    )
    return [text % {"count": count}]


class _Stop(JobsAct):
    name = "stop"

    def question(self, jobs: Sequence[Job]) -> Question:
        effects = [
            _by_state(jobs),
            _("Those that wait end at once. Those that run are asked to end; what they hold is free then."),
            _("Their owners read the reason in the job. Nothing is started again by itself."),
        ]
        return Question("stop_jobs", _("Stop jobs"), _("Stop them"), effects, danger=True)

    def do(self, actor: Actor, job: Job, values: Mapping[str, Any]) -> bool:
        if State(job.state) in FINAL:
            return False
        submission.stop(actor.user, job, why=actor.why)
        return True


class _Hold(JobsAct):
    name = "hold"

    def question(self, jobs: Sequence[Job]) -> Question:
        effects = [
            *_waiting(jobs),
            _("They don't start until somebody releases them; they keep their age."),
            _("Their owners read the reason in the job."),
        ]
        return Question("hold_jobs", _("Hold jobs back"), _("Hold them back"), effects)

    def do(self, actor: Actor, job: Job, values: Mapping[str, Any]) -> bool:
        submission.hold(actor.user, job, why=actor.why)
        return True


class _Release(_Hold):
    name = "release"

    def form(self, jobs: QuerySet[Job], data: Any) -> AdminForm:
        return AdminForm(data)

    def question(self, jobs: Sequence[Job]) -> Question:
        effects = [
            *_waiting(jobs),
            _("They start when their turn comes, at the place that their age gives them."),
        ]
        return Question("release_jobs", _("Release jobs"), _("Release them"), effects)

    def do(self, actor: Actor, job: Job, values: Mapping[str, Any]) -> bool:
        submission.release(actor.user, job)
        return True


class _Prioritise(JobsAct):
    name = "prioritise"

    def form(self, jobs: QuerySet[Job], data: Any) -> AdminForm:
        return PriorityForm(data)

    def question(self, jobs: Sequence[Job]) -> Question:
        effects = [
            *_waiting(jobs),
            _("A priority counts as one hour of waiting; nothing that runs is stopped for it."),
        ]
        return Question("prioritise_jobs", _("Change priority"), _("Change it"), effects)

    def do(self, actor: Actor, job: Job, values: Mapping[str, Any]) -> bool:
        return submission.prioritise(actor.user, job, values["priority"], why=actor.why)


class _Move(JobsAct):
    name = "move"

    def form(self, jobs: QuerySet[Job], data: Any) -> AdminForm:
        return MoveForm(jobs, data)

    def question(self, jobs: Sequence[Job]) -> Question:
        effects = [
            *_waiting(jobs),
            _(
                "Each is moved only within its workspace and cluster, where its owner may send jobs and "
                "where it fits."
            ),
            _("They keep their age."),
        ]
        return Question("move_jobs", _("Move jobs to another quota"), _("Move them"), effects)

    def do(self, actor: Actor, job: Job, values: Mapping[str, Any]) -> bool:
        return submission.move(actor.user, job, values["quota"], why=actor.why)


STOP, HOLD, RELEASE, PRIORITISE, MOVE = _Stop(), _Hold(), _Release(), _Prioritise(), _Move()
