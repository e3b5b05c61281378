"""Django admin of access to running jobs: endpoints, SSH keys and sessions."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from jobs.access import sessions
from jobs.models import AccessSession, Endpoint, EndpointVisit, SshKey
from quotas.admin.base import MachineWritten, signed_in_admin

admin.site.register(
    Endpoint,
    MachineWritten,
    list_display=("slug", "replica", "label", "source", "host", "port", "ready", "why"),
    list_filter=("ready", "source"),
    list_select_related=("replica",),
    search_fields=("slug__exact",),
)


admin.site.register(
    EndpointVisit,
    MachineWritten,
    list_display=("user", "endpoint", "created_at", "entered_at"),
    list_select_related=("user", "endpoint"),
    search_fields=("user__username__exact", "endpoint__slug__exact"),
    fields=("user", "endpoint", "created_at", "entered_at"),
)


@admin.register(SshKey)
class SshKeyAdmin(MachineWritten):
    """SSH keys; removing one ends the sessions that it opened."""

    list_display = ("user", "title", "algorithm", "fingerprint", "job", "created_at", "last_used_at")
    list_select_related = ("user", "job")
    search_fields = ("user__username__exact", "fingerprint__exact")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_superuser)


@admin.register(AccessSession)
class EntryAdmin(MachineWritten):
    """Sessions in jobs, open and ended."""

    list_display = ("user", "replica", "kind", "address", "begun_at", "ended_at", "why")
    list_filter = ("kind", "why", ("ended_at", admin.EmptyFieldListFilter))
    list_select_related = ("user", "replica")
    search_fields = ("user__username__exact", "replica__attempt__job__public_id__exact", "address__exact")
    fields = (
        *("user", "replica", "kind", "address", "ssh_key", "begun_at", "seen_at", "ended_at", "why"),
        *("end_asked_at", "end_asked_by"),
    )
    actions = ("end",)

    @admin.action(description=_("End selected sessions"), permissions=["view"])
    def end(self, request: HttpRequest, queryset: QuerySet[AccessSession]) -> None:
        """End the sessions, within seconds."""
        count = sessions.ask_end(queryset, signed_in_admin(request))
        self.message_user(
            request, ngettext("Ending %(n)d session.", "Ending %(n)d sessions.", count) % {"n": count}
        )
