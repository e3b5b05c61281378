"""Django admin of maintenance windows: what one would do is shown before it is saved."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext, ngettext

from jobs.admin import admin_actions
from jobs.admin.holders import name_jobs
from quotas.admin.base import ModelAdmin
from quotas.admission import snapshot
from quotas.models import Maintenance

TOLD_OF_MAINTENANCE: Final = frozenset({"cluster", "from_at", "until_at", "text"})
"""Fields of a maintenance window whose change is announced."""

SHOWN: Final = "shown"
EDIT: Final = "_edit"
"""Inputs of the preview: the window that was shown, and the button back to its form."""


class MaintenanceForm(forms.ModelForm[Maintenance]):
    """A window; the button of the preview that leads back to it saves nothing."""

    def clean(self) -> dict[str, Any] | None:
        """Keep what was typed where the person wants to change it."""
        cleaned = super().clean()
        if EDIT in self.data:
            raise ValidationError(gettext("Not saved yet. Change the window, then save it again."))
        return cleaned


@admin.register(Maintenance)
class MaintenanceAdmin(ModelAdmin[Maintenance]):
    """Maintenance windows of one or all clusters; owners of jobs there are notified."""

    form = MaintenanceForm
    list_display = ("text", "cluster", "from_at", "until_at", "keeps_free", "lead_hours")
    list_filter = ("cluster",)
    list_select_related = ("cluster",)

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show what a window would do before it is saved."""
        preview = self._preview(request, object_id) if request.method == "POST" else None
        if preview is not None:
            return preview
        answer: HttpResponse = super().changeform_view(request, object_id, form_url, extra_context)
        return answer

    def _preview(self, request: HttpRequest, object_id: str | None) -> HttpResponse | None:
        """Return the preview; None for a window that can't be saved, or was shown as it is."""
        stored = self.get_object(request, unquote(object_id)) if object_id else None
        allowed = (
            self.has_change_permission(request, stored) if object_id else self.has_add_permission(request)
        )
        if not allowed or (object_id and stored is None):
            return None  # Django answers
        bound = self.get_form(request, stored, change=stored is not None)(request.POST, instance=stored)
        if not bound.is_valid() or request.POST.get(SHOWN) == _digest(bound.instance):
            return None
        window: Maintenance = bound.instance
        context = {
            **self.admin_site.each_context(request),
            "opts": self.model._meta,  # noqa: SLF001  # so Django's own templates call it
            "title": gettext("Save the maintenance window?"),
            "window": window,
            "effects": list_effects(window),
            "sent": [
                (name, value)
                for name, values in request.POST.lists()
                for value in values
                if name not in {"csrfmiddlewaretoken", SHOWN}
            ],
            "shown_name": SHOWN,
            "shown": _digest(window),
            "edit": EDIT,
        }
        return TemplateResponse(request, "administration/window_preview.html", context)

    def save_model(self, request: HttpRequest, obj: Maintenance, form: Any, change: bool) -> None:
        """Notify owners only of a change."""
        with transaction.atomic():
            super().save_model(request, obj, form, change)
            notified = admin_actions.announce(obj) if TOLD_OF_MAINTENANCE & set(form.changed_data) else 0
        if notified:
            text = ngettext("%(count)d person notified.", "%(count)d people notified.", notified)
            messages.info(request, text % {"count": notified})


def list_effects(window: Maintenance) -> list[str]:
    """Return what the window would do, in sentences."""
    found = snapshot.preview_window(window)
    waits = len(found.blocked)
    runs = len(found.overlapping)
    effects = []
    if not window.keeps_free:
        effects.append(gettext("The window is only announced: it keeps no job from starting."))
    elif waits:
        text = ngettext(
            "%(count)d waiting job can't start before the maintenance ends: %(names)s",
            "%(count)d waiting jobs can't start before the maintenance ends: %(names)s",
            waits,
        )
        effects.append(text % {"count": waits, "names": name_jobs(found.blocked)})
    else:
        effects.append(gettext("No job that waits now is kept from starting."))
    if window.keeps_free and window.lead_hours:
        text = ngettext(
            "From %(count)d hour before the window on, jobs without a time limit don't start.",
            "From %(count)d hours before the window on, jobs without a time limit don't start.",
            window.lead_hours,
        )
        effects.append(text % {"count": window.lead_hours})
    if runs:
        text = ngettext(
            "%(count)d running job may still run when the maintenance begins; it is not stopped: %(names)s",
            "%(count)d running jobs may still run when the maintenance begins; they are not stopped: "
            "%(names)s",
            runs,
        )
        effects.append(text % {"count": runs, "names": name_jobs(found.overlapping)})
    else:
        effects.append(gettext("No job that runs now can still run when the maintenance begins."))
    zone = timezone.get_current_timezone_name()
    effects.append(gettext("Times are in the time zone %(zone)s.") % {"zone": zone})
    return effects


def _digest(window: Maintenance) -> str:
    """Return a digest of what the preview depends on, apart from the jobs."""
    values = (window.cluster_id, window.from_at, window.until_at, window.keeps_free, window.lead_hours)
    return hashlib.sha256(repr(values).encode()).hexdigest()[:16]
