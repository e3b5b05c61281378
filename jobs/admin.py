"""Django admin of jobs and what belongs to them: everything to be seen, nothing to be broken."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from jobs import (
    assetsadmin,  # noqa: F401 registers its own
    bulk_acts,
    entries,
    house,
)
from jobs.messages import reason_message, state_label
from jobs.models import (
    Attempt,
    Draft,
    Endpoint,
    EndpointVisit,
    Entry,
    Event,
    Job,
    JobFile,
    JobSecret,
    LogChunk,
    LogStream,
    PersonalSecret,
    Run,
    SshKey,
    Task,
)
from jobs.states import FINAL, State
from quotas import acts, bulk
from quotas.access import administers
from quotas.adminbase import MachineWritten, ModelAdmin, TabularInline, acting
from quotas.models import Maintenance, User

TOLD_OF_MAINTENANCE: Final = frozenset({"cluster", "from_at", "until_at", "text"})
"""What of a maintenance window is news to people."""


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
        return self._act(request, queryset, bulk_acts.STOP)

    @admin.action(description=_("Hold back"), permissions=["administer"])
    def hold_jobs(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        """Keep those that wait from starting."""
        return self._act(request, queryset, bulk_acts.HOLD)

    @admin.action(description=_("Release"), permissions=["administer"])
    def release_jobs(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        """Let those that are held back start."""
        return self._act(request, queryset, bulk_acts.RELEASE)

    @admin.action(description=_("Change priority"), permissions=["administer"])
    def prioritise_jobs(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        """Of those that wait."""
        return self._act(request, queryset, bulk_acts.PRIORITISE)

    @admin.action(description=_("Move to another quota"), permissions=["administer"])
    def move_jobs(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        """Those that wait."""
        return self._act(request, queryset, bulk_acts.MOVE)

    def _act(
        self, request: HttpRequest, queryset: QuerySet[Job], act: bulk_acts.JobsAct
    ) -> HttpResponse | None:
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


@admin.register(LogStream)
class LogStreamAdmin(MachineWritten):
    """Logs: where they lie and how long they are, not what they say."""

    list_display = ("attempt", "run", "role", "index", "name", "state", "sealed", "size")
    list_filter = ("state", "sealed")
    list_select_related = ("attempt",)
    search_fields = ("attempt__key__startswith",)


@admin.register(LogChunk)
class LogChunkAdmin(MachineWritten):
    """Stored pieces of logs."""

    list_display = ("stream", "offset", "length", "storage_name")
    list_select_related = ("stream",)


@admin.register(Endpoint)
class EndpointAdmin(MachineWritten):
    """Ports of live replicas."""

    list_display = ("slug", "task", "label", "source", "host", "port", "ready", "why")
    list_filter = ("ready", "source")
    list_select_related = ("task",)
    search_fields = ("slug__exact",)


@admin.register(EndpointVisit)
class EndpointVisitAdmin(MachineWritten):
    """Who entered what a job serves, and when; what opens the way is kept nowhere."""

    list_display = ("user", "endpoint", "created_at", "entered_at")
    list_select_related = ("user", "endpoint")
    search_fields = ("user__username__exact", "endpoint__slug__exact")
    fields = ("user", "endpoint", "created_at", "entered_at")


@admin.register(SshKey)
class SshKeyAdmin(MachineWritten):
    """By which keys people come; an admin may take one away, which ends what came by it."""

    list_display = ("user", "title", "algorithm", "fingerprint", "job", "created_at", "last_used_at")
    list_select_related = ("user", "job")
    search_fields = ("user__username__exact", "fingerprint__exact")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_superuser)


@admin.register(Entry)
class EntryAdmin(MachineWritten):
    """Who is, and was, inside which job."""

    list_display = ("user", "task", "kind", "address", "begun_at", "ended_at", "why")
    list_filter = ("kind", "why", ("ended_at", admin.EmptyFieldListFilter))
    list_select_related = ("user", "task")
    search_fields = ("user__username__exact", "task__attempt__job__public_id__exact", "address__exact")
    fields = (
        *("user", "task", "kind", "address", "ssh_key", "begun_at", "seen_at", "ended_at", "why"),
        *("end_asked_at", "end_asked_by"),
    )
    actions = ("end",)

    @admin.action(description=_("End the chosen entries"), permissions=["view"])
    def end(self, request: HttpRequest, queryset: QuerySet[Entry]) -> None:
        """Put them out, within seconds."""
        count = entries.ask_end(queryset, acting(request))
        self.message_user(
            request, ngettext("%(n)d is being ended.", "%(n)d are being ended.", count) % {"n": count}
        )


@admin.register(Draft)
class DraftAdmin(MachineWritten):
    """That drafts exist; what they say is their owners' business."""

    list_display = ("owner", "name", "dialect", "version", "updated_at")
    list_select_related = ("owner",)
    search_fields = ("owner__username",)
    fields = ("owner", "workspace", "name", "dialect", "version", "created_at", "updated_at")


@admin.register(JobSecret)
class JobSecretAdmin(MachineWritten):
    """That a job has a secret, and its name."""

    list_display = ("job", "name", "created_at")
    list_select_related = ("job",)
    fields = ("job", "name", "created_at")


@admin.register(PersonalSecret)
class PersonalSecretAdmin(MachineWritten):
    """That a person keeps a secret, and its name."""

    list_display = ("owner", "name", "created_at")
    list_select_related = ("owner",)
    fields = ("owner", "name", "created_at")


@admin.register(Maintenance)
class MaintenanceAdmin(ModelAdmin[Maintenance]):
    """When a cluster, or every one, is worked on; whoever has a job there is told of it."""

    list_display = ("text", "cluster", "from_at", "until_at", "keeps_free", "lead_hours")
    list_filter = ("cluster",)
    list_select_related = ("cluster",)

    def save_model(self, request: HttpRequest, obj: Maintenance, form: Any, change: bool) -> None:
        """Tell them once: saving what did not change tells nobody."""
        with transaction.atomic():
            super().save_model(request, obj, form, change)
            told = house.announce(obj) if TOLD_OF_MAINTENANCE & set(form.changed_data) else 0
        if told:
            text = ngettext("%(count)d person was told.", "%(count)d people were told.", told)
            messages.info(request, text % {"count": told})
