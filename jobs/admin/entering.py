"""The ways into running jobs: what they serve, by which keys people come, and who is inside."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from jobs.access import entries
from jobs.models import Endpoint, EndpointVisit, Entry, SshKey
from quotas.admin.base import MachineWritten, acting


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
