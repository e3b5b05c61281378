"""Read-only admin pages of requests, reservations and usage."""

from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from quotas.admin.base import MachineWritten
from quotas.models import Request, Reservation, UsageDay, UsageHour


@admin.register(Request)
class RequestAdmin(MachineWritten):
    """Waiting requests, in the order of admission."""

    list_display = ("holder", "state", "cluster", "quota", "owner", "priority", "idle", "held", "since")
    list_filter = ("state", "cluster")
    list_select_related = ("cluster", "quota", "owner")
    search_fields = ("holder", "owner__username")


@admin.register(Reservation)
class ReservationAdmin(MachineWritten):
    """Active reservations."""

    list_display = (
        "request",
        "active",
        "cluster",
        "quota",
        "amounts",
        "borrowed",
        "created_at",
        "started_at",
        "asked_back_at",
        "released_at",
    )
    list_filter = ("active", "cluster")
    list_select_related = ("request", "cluster", "quota")
    search_fields = ("request__holder",)


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
