"""Django admin of maintenance windows."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import admin, messages
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import ngettext

from jobs.admin import admin_actions
from quotas.admin.base import ModelAdmin
from quotas.admission import snapshot
from quotas.models import Maintenance

TOLD_OF_MAINTENANCE: Final = frozenset({"cluster", "from_at", "until_at", "text"})
"""Fields of a maintenance window whose change is announced."""


@admin.register(Maintenance)
class MaintenanceAdmin(ModelAdmin[Maintenance]):
    """Maintenance windows of one or all clusters; owners of jobs there are notified."""

    list_display = ("text", "cluster", "from_at", "until_at", "keeps_free", "lead_hours")
    list_filter = ("cluster",)
    list_select_related = ("cluster",)

    def save_model(self, request: HttpRequest, obj: Maintenance, form: Any, change: bool) -> None:
        """Notify owners only of a change."""
        with transaction.atomic():
            super().save_model(request, obj, form, change)
            notified = admin_actions.announce(obj) if TOLD_OF_MAINTENANCE & set(form.changed_data) else 0
        if blocked := snapshot.count_blocked_requests(obj):
            text = ngettext(
                "%(count)d waiting job can't start before the maintenance ends.",
                "%(count)d waiting jobs can't start before the maintenance ends.",
                blocked,
            )
            messages.warning(request, text % {"count": blocked})
        if notified:
            text = ngettext("%(count)d person notified.", "%(count)d people notified.", notified)
            messages.info(request, text % {"count": notified})
