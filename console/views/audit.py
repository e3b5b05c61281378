"""The audit log of a workspace, for its admins; of everything, for the console's."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy
from django.views.decorators.http import require_safe

from console.views.downloads import TYPES, download
from jobs.web.http import SignedIn, page, signed_in
from quotas import audit
from quotas.access import administered_by
from quotas.audit import audit_log
from quotas.models import Action, User, Workspace


class AuditForm(forms.Form):
    """The filter of the audit log."""

    workspace = forms.ChoiceField(label=gettext_lazy("Workspace"), required=False)
    person = forms.CharField(label=gettext_lazy("User"), max_length=150, required=False)
    thing = forms.CharField(label=gettext_lazy("Object"), max_length=200, required=False)
    action = forms.ChoiceField(label=gettext_lazy("Actions taken"), required=False)
    since = forms.DateField(
        label=pgettext_lazy("a date", "From"),
        required=False,
        widget=forms.DateInput({"type": "date"}, "%Y-%m-%d"),
    )
    until = forms.DateField(
        label=pgettext_lazy("a date", "To"),
        required=False,
        widget=forms.DateInput({"type": "date"}, "%Y-%m-%d"),
    )
    refused = forms.BooleanField(label=gettext_lazy("Refused only"), required=False)

    def __init__(self, workspaces: list[Workspace], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, choices in (
            ("workspace", [(each.slug, each.name) for each in workspaces]),
            ("action", Action.choices),
        ):
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = [("", _("All")), *choices]
        for name, bound in self.fields.items():
            chosen = name in {"workspace", "action"}
            look = "form-check-input" if name == "refused" else "form-select" if chosen else "form-control"
            bound.widget.attrs["class"] = look

    @property
    def wanted(self) -> audit_log.AuditFilter:
        """Return the filter of a request; invalid values are ignored."""
        values = self.cleaned_data if self.is_valid() else getattr(self, "cleaned_data", {})
        until = values.get("until")
        return audit_log.AuditFilter(
            workspace=values.get("workspace", ""),
            person=values.get("person", "").strip(),
            thing=values.get("thing", "").strip(),
            action=values.get("action", ""),
            refused=values.get("refused", False),
            since=_midnight(values.get("since")),
            until=_midnight(until + timedelta(days=1)) if until else None,
        )


def _midnight(day: Any) -> datetime | None:
    return timezone.make_aware(datetime.combine(day, datetime.min.time())) if day else None


@require_safe
@signed_in
def audit_log_page(request: SignedIn) -> HttpResponseBase:
    """Fifty rows, the newest first."""
    form = AuditForm(_administered_workspaces(request.user), request.GET)
    before = request.GET.get("before", "")
    rows = audit_log.entries_of(request.user, form.wanted)
    found, after = audit_log.page_of(rows, int(before) if before.isascii() and before.isdigit() else None)
    query = request.GET.copy()
    query.pop("before", None)
    export = f"{reverse('audit_export')}?{query.urlencode()}"
    if after is not None:
        query["before"] = str(after)
    context = {
        "form": form,
        "rows": found,
        "next_url": f"{reverse('audit')}?{query.urlencode()}" if after is not None else "",
        "previous_url": "",
        "export_url": export,
        "everything": request.user.is_superuser,
    }
    return page(request, "console/audit.html", context)


@require_safe
@signed_in
def audit_export(request: SignedIn) -> HttpResponseBase:
    """The same rows, all of them, as CSV or JSON lines; the export is logged too."""
    form = AuditForm(_administered_workspaces(request.user), request.GET)
    kind = request.GET.get("as", "csv")
    kind = kind if kind in TYPES else "csv"
    rows = audit_log.entries_of(request.user, form.wanted)
    with transaction.atomic():
        audit.log(Action.EXPORT, details={"what": "audit", "as": kind, **request.GET.dict()})
    return download(audit_log.pieces(rows, kind), f"audit-{timezone.localdate():%Y-%m-%d}", kind)


def _administered_workspaces(user: User) -> list[Workspace]:
    """Raises PermissionDenied for whoever is an admin of nothing."""
    found = list(administered_by(user).order_by("name")[:500])
    if not found and not user.is_superuser:
        raise PermissionDenied(_("Only workspace admins can view the audit log."))
    return found
