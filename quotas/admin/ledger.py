"""Read-only admin pages of usage."""

from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from quotas.admin.base import MachineWritten
from quotas.models import UsageDay, UsageHour


@admin.register(UsageDay)
class UsageDayAdmin(MachineWritten):
    """Usage and cost of each person by day."""

    list_display = ("day", "quota", "person", "gpu_type", "spec", "gpu_seconds", "cost_micro")
    list_select_related = ("quota", "person")
    search_fields = ("person__username__exact",)


@admin.register(UsageHour)
class UsageHourAdmin(MachineWritten):
    """Usage by hour."""

    list_display = ("quota", "hour", "resource", "seconds", "borrowed_seconds", "waiting")
    list_select_related = ("quota",)

    @admin.display(description=_("Resource"), ordering="gpu_type")
    def resource(self, row: UsageHour) -> str:
        """Return the GPU type, or that the row counts cores."""
        return row.gpu_type or gettext("CPU cores")
