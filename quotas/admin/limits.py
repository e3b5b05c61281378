"""Quotas of all workspaces."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from quotas import ledger
from quotas.admin.base import TABLE_LIST, ModelAdmin
from quotas.admin.forms import QuotaForm
from quotas.models import Quota


@admin.register(Quota)
class QuotaAdmin(ModelAdmin[Quota]):
    """Quotas of all workspaces."""

    change_list_template = TABLE_LIST
    form = QuotaForm
    list_display = (
        "name",
        "parent",
        "workspace",
        "cluster",
        "source",
        "kind",
        "gpus",
        "cpu_milli",
        "memory_mib",
        "most_jobs",
    )
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
                    ("workspace", "cluster"),
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
        (_("Idle resources and external schedulers"), {"fields": ("may_borrow", "most_pending")}),
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
