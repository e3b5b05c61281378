"""When clusters are worked on."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import admin, messages
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import ngettext

from jobs.admin import house
from quotas.admin.base import ModelAdmin
from quotas.admission import snapshot
from quotas.models import Maintenance

TOLD_OF_MAINTENANCE: Final = frozenset({"cluster", "from_at", "until_at", "text"})
"""What of a maintenance window is news to people."""


@admin.register(Maintenance)
class MaintenanceAdmin(ModelAdmin[Maintenance]):
    """When a cluster, or every one, is worked on; whoever has a job there is told of it."""

    list_display = ("text", "cluster", "from_at", "until_at", "keeps_free", "lead_hours")
    list_filter = ("cluster",)
    list_select_related = ("cluster",)

    def save_model(self, request: HttpRequest, obj: Maintenance, form: Any, change: bool) -> None:
        """Tell them once: saving what did not change tells nobody."""
        with transaction.atomic():
            super().save_model(request, obj, form, change)
            told = house.announce(obj) if TOLD_OF_MAINTENANCE & set(form.changed_data) else 0
        if kept := snapshot.kept_by(obj):
            text = ngettext(
                "%(count)d waiting job can't start before it is over.",
                "%(count)d waiting jobs can't start before it is over.",
                kept,
            )
            messages.warning(request, text % {"count": kept})
        if told:
            text = ngettext("%(count)d person was told.", "%(count)d people were told.", told)
            messages.info(request, text % {"count": told})
