"""What people keep for their jobs: that it is there, and not what it says."""

from __future__ import annotations

from django.contrib import admin

from jobs.models import Draft, JobSecret, PersonalSecret
from quotas.admin.base import MachineWritten


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
