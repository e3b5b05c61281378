"""Django admin of fault detection: error patterns of workspaces, and stack dumps."""

from __future__ import annotations

from django.contrib import admin

from jobs.models import FaultPattern, ReplicaRestart, StackDump
from quotas.admin.base import MachineWritten, ModelAdmin


@admin.register(FaultPattern)
class FaultPatternAdmin(ModelAdmin[FaultPattern]):
    """Error messages that a workspace adds to the catalogue."""

    fields = ("workspace", "text", "origin")
    list_display = ("text", "workspace", "origin")
    list_filter = ("workspace", "origin")
    list_select_related = ("workspace",)


# Decisions about failed replicas.
admin.site.register(
    ReplicaRestart,
    MachineWritten,
    list_display=("attempt", "role", "index", "failed_run", "restarts", "created_at"),
    list_select_related=("attempt",),
    fields=("attempt", "run", "role", "index", "failed_run", "restarts", "fault", "due_at", "created_at"),
)

# Stack dumps, without their contents.
admin.site.register(
    StackDump,
    MachineWritten,
    list_display=("attempt", "run", "asked_by", "state", "created_at", "ended_at"),
    list_select_related=("attempt", "asked_by"),
    fields=("attempt", "run", "asked_by", "state", "created_at", "begun_at", "ended_at"),
)
