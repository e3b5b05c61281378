"""Quotas of all workspaces."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext as _text
from django.utils.translation import gettext_lazy as _

from quotas import ledger
from quotas.admin.base import TABLE_LIST, ModelAdmin, StackedInline
from quotas.admin.forms import JobPolicyForm, JobPolicyFormSet, QuotaForm
from quotas.admin.units import UnitFields, amount_column, types_column
from quotas.models import JobPolicy, Quota


class JobPolicyInline(StackedInline[JobPolicy, Quota]):
    """What everybody, a role or one user may ask for in the quota."""

    model = JobPolicy
    form = JobPolicyForm
    formset = JobPolicyFormSet
    fields = (
        ("role", "user"),
        ("highest_priority", "job_gpus"),
        ("time_limit_minutes", "default_minutes"),
        "gpu_types",
        ("waiting_jobs", "running_jobs"),
        "set_by",
    )
    readonly_fields = ("set_by",)
    autocomplete_fields = ("user",)
    extra = 0

    @admin.display(description=_("set by"))
    def set_by(self, policy: JobPolicy) -> str:
        """Return who set it."""
        return _text("Workspace") if policy.by_workspace else _text("Console")


@admin.register(Quota)
class QuotaAdmin(UnitFields, ModelAdmin[Quota]):
    """Quotas of all workspaces."""

    change_list_template = TABLE_LIST
    form = QuotaForm
    inlines = (JobPolicyInline,)
    list_display = (
        "name",
        "parent",
        "workspace",
        "cluster",
        "source",
        "kind",
        "gpus",
        "types",
        "cores",
        "memory",
        "most_jobs",
    )
    types, cores, memory = types_column, amount_column("cpu_milli"), amount_column("memory_mib")
    list_filter = ("cluster", "workspace", "source", "kind")
    list_select_related = ("parent", "workspace", "cluster")
    search_fields = ("name", "slug", "workspace__name")
    autocomplete_fields = ("parent", "idle_exempt_people")
    prepopulated_fields = {"slug": ("name",)}
    fieldsets = (
        (
            None,
            {
                "fields": (
                    ("name", "slug"),
                    "workspace",
                    "cluster",
                    "parent",
                    ("source", "kind"),
                    "accepts_jobs",
                )
            },
        ),
        (
            _("Limits"),
            {
                "fields": (
                    "gpus",
                    "gpus_by_type",
                    "cpu_milli",
                    "memory_mib",
                    "most_jobs",
                    ("gpu_hours", "period"),
                    "drain",
                )
            },
        ),
        (
            _("Limits per user"),
            {"fields": ("person_gpus", "person_cpu_milli", "person_memory_mib", "person_jobs")},
        ),
        (
            _("Order, idle resources and external schedulers"),
            {"fields": ("fair_share_weight", ("may_borrow", "least_running_minutes"), "most_pending")},
        ),
        (
            _("Idle jobs"),
            {
                "fields": (
                    ("idle_warn_minutes", "idle_release_minutes"),
                    ("idle_percent", "idle_extensions"),
                    "idle_exempt",
                    "idle_exempt_people",
                    "idle_exempt_roles",
                    "idle_exempt_labels",
                )
            },
        ),
    )

    def save_model(self, request: HttpRequest, obj: Quota, form: Any, change: bool) -> None:
        """Under the cluster's lock: no admission decides by what is about to change."""
        with ledger.lock_cluster(obj.cluster_id):
            super().save_model(request, obj, form, change)
