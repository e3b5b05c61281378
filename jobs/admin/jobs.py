"""Django admin of jobs and of their files, attempts, logs, drafts and secrets: read-only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.utils.html import format_html
from django.utils.text import Truncator
from django.utils.translation import gettext as _text
from django.utils.translation import gettext_lazy as _

from jobs.admin.bulk_actions import admin_actions
from jobs.admin.job_filters import (
    GpuFilter,
    OwnerFilter,
    PlaceFilter,
    PriorityFilter,
    ReasonFilter,
    StateFilter,
)
from jobs.lifecycle import pending_reasons
from jobs.lifecycle.transitions import key_of
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
from jobs.search import query
from jobs.search.job_csv import MOST, csv_of
from jobs.search.job_pages import JobListing, first_keys
from jobs.states import State
from quotas.access import administers
from quotas.admin.base import MachineWritten, TabularInline, signed_in_admin
from quotas.admission import queue_snapshot
from quotas.admission.queue_snapshot import QueuePlace
from quotas.models import User

SHOWN_REASON: Final = 60
"""Characters of a reason in the list."""

MOST_FOUND: Final = 1000
"""The newest so many of the jobs that a query finds are listed."""


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


@admin.register(Job)
class JobAdmin(MachineWritten):
    """All jobs; single ones are changed on their pages."""

    list_display = (
        "public_id",
        "name",
        "owner",
        "workspace",
        "cluster",
        "quota",
        "priority",
        "gpus_shown",
        "position",
        "state_now",
        "why",
        "created_at",
    )
    list_filter = (
        StateFilter,
        PriorityFilter,
        GpuFilter,
        PlaceFilter,
        OwnerFilter,
        "quota",
        "cluster",
        "workspace",
    )
    list_select_related = ("owner", "workspace", "cluster", "quota")
    change_list_template = "administration/job_list.html"
    search_fields = ("public_id__exact", "owner__username__exact", "name")
    search_help_text = _("Job ID, owner's user name, or a query as on the Jobs page: part of a name, gpu>4 …")
    inlines = (AttemptInline,)
    actions = admin_actions()

    @admin.display(description=_("state"), ordering="state")
    def state_now(self, job: Job) -> str:
        """Return the state as the job's page shows it."""
        return state_label(job.state)

    @admin.display(description=_("reason"), ordering="reason_code")
    def why(self, job: Job) -> str:
        """Return the reason as a sentence, with the current numbers of its queue."""
        reason = pending_reasons.reason_of(job)
        text = reason_message(reason.code, reason.params)
        return format_html('<span title="{}">{}</span>', text, Truncator(text).chars(SHOWN_REASON))

    @admin.display(description=_("GPUs"), ordering="gpus")
    def gpus_shown(self, job: Job) -> str:
        """Return the number of GPUs, with their type."""
        return f"{job.gpus} {job.gpu_type}".strip() if job.gpus else "–"

    @admin.display(description=_("position"))
    def position(self, job: Job) -> str:
        """Return the positions in the queue of the cluster and in that of the quota."""
        place: QueuePlace | None = getattr(job, "queue_place", None)
        if place is None or place.on_cluster is None:
            return "–"
        return _text("%(position)s (in quota: %(in_quota)s)") % {
            "position": place.on_cluster,
            "in_quota": place.in_quota,
        }

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Load the queues of the jobs on the page at once."""
        listed = super().get_changelist_instance(request)
        listed.result_list = list(listed.result_list)
        load_places(listed.result_list)
        return listed

    def get_urls(self) -> list[Any]:
        """Add the export of the list."""
        export = path("export/", self.admin_site.admin_view(self.export), name="jobs_job_export")
        return [export, *super().get_urls()]

    def export(self, request: HttpRequest) -> HttpResponse:
        """Return the jobs that the list's filters and search leave as CSV, at most MOST of them."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        rows = super().get_changelist_instance(request).get_queryset(request)
        response = HttpResponse(csv_of(rows[:MOST]), content_type="text/csv; charset=utf-8")
        response["Content-Disposition"] = 'attachment; filename="jobs.csv"'
        return response

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
        if owner is not None:
            return queryset.filter(owner=owner), False
        listing = JobListing(query.parse(term))
        admin_user = signed_in_admin(request)
        found = first_keys(admin_user, listing, MOST_FOUND, descending=True, is_limited=False)
        return queryset.filter(pk__in=found.keys), False

    def has_administer_permission(self, request: HttpRequest) -> bool:
        """Tell whether the user administers all jobs."""
        return administers(signed_in_admin(request))


def load_places(jobs: Sequence[Job]) -> None:
    """Set `queue_place` of those that wait, and load their reasons; a few queries for all."""
    waiting = [job for job in jobs if job.state == State.QUEUED]
    queues = queue_snapshot.queues_of({job.cluster_id for job in waiting}) if waiting else {}
    places = {each.holder: each for queue in queues.values() for each in queue_snapshot.places_in(queue)}
    for job in waiting:
        found = places.get(key_of(job.public_id, job.attempt_number))
        setattr(job, "queue_place", found)  # noqa: B010  # no field of the model
    pending_reasons.load_reasons(waiting)


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
    list_filter=("live", "end_kind", ReasonFilter),
    list_select_related=("job",),
    ordering=("-pk",),
    search_fields=("key__startswith", "handle__exact"),
)


admin.site.register(
    Run,
    MachineWritten,
    list_display=("attempt", "number", "started_at", "ended_at"),
    ordering=("-pk",),
    list_select_related=("attempt",),
    search_fields=("attempt__key__startswith",),
)


admin.site.register(
    Replica,
    MachineWritten,
    list_display=("attempt", "run", "role", "index", "state", "exit_code", "node", "started_at", "ended_at"),
    ordering=("-pk",),
    list_filter=("state",),
    list_select_related=("attempt",),
    search_fields=("attempt__key__startswith", "node__exact"),
)


admin.site.register(
    SanityCheck,
    MachineWritten,
    list_display=("attempt", "run", "status", "failed_nodes"),
    ordering=("-pk",),
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
    ordering=("-pk",),
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
