"""Logs: where they lie, not what they say."""

from __future__ import annotations

from django.contrib import admin

from jobs.models import LogChunk, LogStream
from quotas.admin.base import MachineWritten


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
