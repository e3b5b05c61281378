"""Django admin of jobs and of their files, attempts, logs, drafts and secrets: read-only."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from jobs.admin.bulk_actions import admin_actions
from jobs.messages import reason_message, state_label
from jobs.models import (
    Attempt,
    Draft,
    Event,
    Job,
    JobFile,
    JobSecret,
    LogChunk,
    LogStream,
    PersonalSecret,
    Replica,
    Run,
    SanityCheck,
)
from jobs.states import FINAL, State
from quotas.access import administers
from quotas.admin.base import MachineWritten, TabularInline, signed_in_admin
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
    """A filter by state; jobs that have not ended have an index of their own."""

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
    """All jobs; single ones are changed on their pages."""

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
    search_help_text = _("Job ID or owner's user name. To search by job name, use the Jobs page.")
    inlines = (AttemptInline,)
    actions = admin_actions()

    @admin.display(description=_("state"), ordering="state")
    def state_now(self, job: Job) -> str:
        """Return the state as the job's page shows it."""
        return state_label(job.state)

    @admin.display(description=_("reason"), ordering="reason_code")
    def why(self, job: Job) -> str:
        """Return the reason as a sentence."""
        return reason_message(job.reason_code, job.reason_params)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Job], search_term: str
    ) -> tuple[QuerySet[Job], bool]:
        """Search one index after the other: together they would read the whole table."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if Job.objects.filter(public_id=term).exists():
            return queryset.filter(public_id=term), False
        owner = User.objects.filter(username=term).first()
        return (queryset.filter(owner=owner) if owner else queryset.none()), False

    def has_administer_permission(self, request: HttpRequest) -> bool:
        """Tell whether the user administers all jobs."""
        return administers(signed_in_admin(request))


@admin.register(JobFile)
class JobFileAdmin(MachineWritten):
    """Job files as submitted, without the secrets."""

    list_display = ("job",)
    search_fields = ("job__public_id__exact",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("job").defer("text", "spec_json")


admin.site.register(
    Attempt,
    MachineWritten,
    list_display=("key", "job", "live", "end_kind", "reason_code", "submitted_at", "ended_at"),
    list_filter=("live", "end_kind", "reason_code"),
    list_select_related=("job",),
    search_fields=("key__startswith", "handle__exact"),
)


admin.site.register(
    Run,
    MachineWritten,
    list_display=("attempt", "number", "started_at", "ended_at"),
    list_select_related=("attempt",),
    search_fields=("attempt__key__startswith",),
)


admin.site.register(
    Replica,
    MachineWritten,
    list_display=("attempt", "run", "role", "index", "state", "exit_code", "node", "started_at", "ended_at"),
    list_filter=("state",),
    list_select_related=("attempt",),
    search_fields=("attempt__key__startswith", "node__exact"),
)


admin.site.register(
    SanityCheck,
    MachineWritten,
    list_display=("attempt", "run", "status", "failed_nodes"),
    list_filter=("status",),
    list_select_related=("attempt",),
    search_fields=("attempt__key__startswith",),
)


admin.site.register(
    Event,
    MachineWritten,
    list_display=("at", "job", "kind", "actor", "params"),
    list_filter=("kind",),
    list_select_related=("job", "actor"),
    search_fields=("job__public_id__exact",),
)


# Logs: their locations and sizes, without their contents.
admin.site.register(
    LogStream,
    MachineWritten,
    list_display=("attempt", "run", "role", "index", "name", "state", "sealed", "size"),
    list_filter=("state", "sealed"),
    list_select_related=("attempt",),
    search_fields=("attempt__key__startswith",),
)


admin.site.register(
    LogChunk,
    MachineWritten,
    list_display=("stream", "offset", "length", "storage_name"),
    list_select_related=("stream",),
)


# Drafts, without their contents.
admin.site.register(
    Draft,
    MachineWritten,
    list_display=("owner", "name", "dialect", "version", "updated_at"),
    list_select_related=("owner",),
    search_fields=("owner__username",),
    fields=("owner", "workspace", "name", "dialect", "version", "created_at", "updated_at"),
)


# Names of jobs' secrets, without their values.
admin.site.register(
    JobSecret,
    MachineWritten,
    list_display=("job", "name", "created_at"),
    list_select_related=("job",),
    fields=("job", "name", "created_at"),
)


# Names of personal secrets, without their values.
admin.site.register(
    PersonalSecret,
    MachineWritten,
    list_display=("owner", "name", "created_at"),
    list_select_related=("owner",),
    fields=("owner", "name", "created_at"),
)
