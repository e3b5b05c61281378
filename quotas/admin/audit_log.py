"""The audit log, to be searched."""

from __future__ import annotations

from typing import Any

# Its own admin is registered first, so that it can be taken back.
import auditlog.admin  # noqa: F401
from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.text import Truncator
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from quotas.admin.base import MachineWritten
from quotas.audit import audit_log
from quotas.models import Action, AuditEntry


class ActionFilter(admin.SimpleListFilter):
    """Filter by action."""

    title = _("event")
    parameter_name = "action"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return Action.choices

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(action=self.value()) if self.value() else queryset


admin.site.unregister(AuditEntry)  # django-auditlog registers it, with a search that reads all of it


@admin.register(AuditEntry)
class AuditEntryAdmin(MachineWritten):
    """The audit log: found by person, thing, time and kind, along its indexes."""

    list_display = (
        "timestamp",
        "actor_name",
        "did",
        "is_refused",
        "object_repr",
        "workspace",
        "way_label",
        "remote_addr",
        "short",
    )
    list_display_links = ("timestamp",)
    list_filter = ("denied", ActionFilter, ("timestamp", admin.DateFieldListFilter))
    list_select_related = ("workspace", "content_type")
    search_fields = ("actor_name",)  # what is really searched: get_search_results
    search_help_text = _("Exact user name or object name.")
    fields = (
        *("timestamp", "actor_name", "did", "denied", "object_repr", "content_type", "object_pk"),
        *("workspace", "changes", "details", "way_label", "remote_addr", "token", "cid"),
    )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """By whom, about whom, or about what: whole names, which are indexed."""
        name = search_term.strip()
        if name:
            queryset = queryset.filter(audit_log.of_person(name) | Q(object_repr=name))
        return queryset, False

    @admin.display(description=_("event"), ordering="action")
    def did(self, entry: AuditEntry) -> str:
        return entry.did

    @admin.display(description=_("refused"))
    def is_refused(self, entry: AuditEntry) -> str:
        return gettext("Refused") if entry.denied else "–"

    @admin.display(description=_("via"))
    def way_label(self, entry: AuditEntry) -> str:
        return entry.came

    @admin.display(description=_("change"))
    def short(self, entry: AuditEntry) -> str:
        return Truncator("; ".join(entry.lines)).chars(120)
