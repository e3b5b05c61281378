"""Jobs, their files and their attempts: everything to be seen, nothing to be broken."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from jobs.admin import many
from jobs.messages import reason_message, state_label
from jobs.models import Attempt, Event, Job, JobFile, Run, Task
from jobs.states import FINAL, State
from quotas.access import administers
from quotas.admin import bulk
from quotas.admin.base import MachineWritten, TabularInline, acting
from quotas.audit import acts
from quotas.models import User


class AttemptInline(TabularInline[Attempt, Job]):
    """A job's attempts."""

    model = Attempt
    fields = ("number", "key", "handle", "live", "end_kind", "reason_code", "submitted_at", "ended_at")
    readonly_fields = fields
    extra = 0
    can_delete = False
    show_change_link = True

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class StateFilter(admin.SimpleListFilter):
    """By state; for what has not ended, by the index of that."""

    title = _("state")
    parameter_name = "state__exact"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(state.value, state_label(state)) for state in State]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        chosen = self.value()
        if chosen is None or chosen not in {state.value for state in State}:
            return queryset
        if State(chosen) not in FINAL:
            queryset = queryset.exclude(state__in=["SUCCEEDED", "FAILED", "STOPPED"])
        return queryset.filter(state=chosen)


@admin.register(Job)
class JobAdmin(MachineWritten):
    """Jobs of everybody; what people may do with them, they do on the job's page."""

    list_display = (
        "public_id",
        "name",
        "owner",
        "workspace",
        "cluster",
        "state_now",
        "why",
        "created_at",
    )
    list_filter = (StateFilter, "cluster", "workspace")
    list_select_related = ("owner", "workspace", "cluster")
    search_fields = ("public_id__exact", "owner__username__exact")
    search_help_text = _("A job's id, or the user name of its owner; names are searched on the page Jobs.")
    inlines = (AttemptInline,)
    actions = ("stop_jobs", "hold_jobs", "release_jobs", "prioritise_jobs", "move_jobs")

    @admin.display(description=_("state"), ordering="state")
    def state_now(self, job: Job) -> str:
        """As its page says it."""
        return state_label(job.state)

    @admin.display(description=_("reason"), ordering="reason_code")
    def why(self, job: Job) -> str:
        """The sentence, not its code."""
        return reason_message(job.reason_code, job.reason_params)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Job], search_term: str
    ) -> tuple[QuerySet[Job], bool]:
        """One index after the other: together they would read the whole table."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if Job.objects.filter(public_id=term).exists():
            return queryset.filter(public_id=term), False
        owner = User.objects.filter(username=term).first()
        return (queryset.filter(owner=owner) if owner else queryset.none()), False

    def has_administer_permission(self, request: HttpRequest) -> bool:
        """Who acts on everybody's jobs."""
        return administers(acting(request))

    @admin.action(description=_("Stop"), permissions=["administer"])
    def stop_jobs(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        """Ask for their ends."""
        return self._act(request, queryset, many.STOP)

    @admin.action(description=_("Hold back"), permissions=["administer"])
    def hold_jobs(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        """Keep those that wait from starting."""
        return self._act(request, queryset, many.HOLD)

    @admin.action(description=_("Release"), permissions=["administer"])
    def release_jobs(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        """Let those that are held back start."""
        return self._act(request, queryset, many.RELEASE)

    @admin.action(description=_("Change priority"), permissions=["administer"])
    def prioritise_jobs(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        """Of those that wait."""
        return self._act(request, queryset, many.PRIORITISE)

    @admin.action(description=_("Move to another quota"), permissions=["administer"])
    def move_jobs(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        """Those that wait."""
        return self._act(request, queryset, many.MOVE)

    def _act(self, request: HttpRequest, queryset: QuerySet[Job], act: many.JobsAct) -> HttpResponse | None:
        jobs = queryset.select_related("owner", "workspace", "cluster", "quota")
        rows, values, page = bulk.asked(self, request, jobs, act.question, partial(act.form, queryset))
        if values is None:
            return page
        done, problems = act.carry_out(acts.actor_of(request, values.get("why", "")), rows, values)
        bulk.tell(self, request, done, problems)
        return None


@admin.register(JobFile)
class JobFileAdmin(MachineWritten):
    """Job files as submitted, without the secrets."""

    list_display = ("job",)
    search_fields = ("job__public_id__exact",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("job").defer("text", "spec_json")


@admin.register(Attempt)
class AttemptAdmin(MachineWritten):
    """Attempts, and what they are called at their engines."""

    list_display = ("key", "job", "live", "end_kind", "reason_code", "submitted_at", "ended_at")
    list_filter = ("live", "end_kind", "reason_code")
    list_select_related = ("job",)
    search_fields = ("key__startswith", "handle__exact")


@admin.register(Run)
class RunAdmin(MachineWritten):
    """Runs of attempts."""

    list_display = ("attempt", "number", "started_at", "ended_at")
    list_select_related = ("attempt",)
    search_fields = ("attempt__key__startswith",)


@admin.register(Task)
class TaskAdmin(MachineWritten):
    """Replicas."""

    list_display = ("attempt", "run", "role", "index", "state", "exit_code", "node", "started_at", "ended_at")
    list_filter = ("state",)
    list_select_related = ("attempt",)
    search_fields = ("attempt__key__startswith", "node__exact")


@admin.register(Event)
class EventAdmin(MachineWritten):
    """What happened."""

    list_display = ("at", "job", "kind", "actor", "params")
    list_filter = ("kind",)
    list_select_related = ("job", "actor")
    search_fields = ("job__public_id__exact",)
