"""Reports of use and cost: one's own, a workspace's for those who manage it, everybody's for admins."""

from __future__ import annotations

import json
from datetime import date
from typing import Any, Final

from django import forms
from django.conf import settings
from django.http import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy
from django.views.decorators.http import require_safe

from console.views.downloads import download
from jobs.web.http import SignedIn, page, signed_in
from quotas.access import managed_by, workspaces_of
from quotas.billing import costs
from quotas.billing.costs import DIMENSIONS, Report, ReportQuery
from quotas.models import Source, User

SHOWN: Final = 500
"""So many lines are shown; the files have all of them."""

DRAWN: Final = 4
"""So many lines are drawn, those with the most; the others are drawn as one."""


class ReportForm(forms.Form):
    """The parameters of a report."""

    since = forms.DateField(
        label=pgettext_lazy("a date", "From"), widget=forms.DateInput({"type": "date"}, "%Y-%m-%d")
    )
    until = forms.DateField(
        label=pgettext_lazy("a date", "To"), widget=forms.DateInput({"type": "date"}, "%Y-%m-%d")
    )
    by = forms.ChoiceField(label=gettext_lazy("Group by"))
    then = forms.ChoiceField(label=gettext_lazy("Then by"), required=False)
    workspace = forms.ChoiceField(label=gettext_lazy("Workspace"), required=False)
    person = forms.CharField(label=gettext_lazy("User"), max_length=150, required=False)
    source = forms.ChoiceField(label=gettext_lazy("Source"), required=False)

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        every = [("", _("All"))]
        spaces = [(each.slug, each.name) for each in workspaces_of(user).order_by("name")[:500]]
        choices: dict[str, list[tuple[str, Any]]] = {
            "by": list(DIMENSIONS.items()),
            "then": [("", _("No second grouping")), *DIMENSIONS.items()],
            "workspace": every + spaces,
            "source": [*every, *Source.choices],
        }
        for name, field in self.fields.items():
            if isinstance(field, forms.ChoiceField):
                field.choices = choices[name]
            field.widget.attrs["class"] = "form-select" if name in choices else "form-control"

    def clean(self) -> dict[str, Any]:
        """The first day comes before the last."""
        cleaned = super().clean() or {}
        since, until = cleaned.get("since"), cleaned.get("until")
        if since and until and since > until:
            self.add_error("until", _("The end date is before the start date."))
        return cleaned

    @property
    def report_query(self) -> ReportQuery:
        """Return the query of a valid form."""
        data = self.cleaned_data
        by = tuple(dict.fromkeys(name for name in (data["by"], data["then"]) if name))
        person = data["person"].strip()
        return ReportQuery(data["since"], data["until"], by, data["workspace"], person, data["source"])


@require_safe
@signed_in
def reports(request: SignedIn) -> HttpResponseBase:
    """The report as a table and a chart, or with `as` as a file."""
    form = ReportForm(request.user, {**_usual(request.user), **request.GET.dict()})
    if not form.is_valid():
        return page(request, "console/reports.html", {"form": form}, status=422)
    report_query = form.report_query
    found = costs.report(request.user, report_query)
    if request.GET.get("as") == "csv":
        name = f"usage-{report_query.since}-{report_query.until}"
        return download(found.pieces(), name, "csv")
    query = request.GET.copy()
    query["as"] = "csv"
    by_day = costs.by_day(request.user, report_query) if report_query.since != report_query.until else None
    context = {
        "form": form,
        "report": found,
        "headings": [DIMENSIONS[name] for name in report_query.by],
        "rows": found.rows[:SHOWN],
        "more": max(0, len(found.rows) - SHOWN),
        "chart": json.dumps(chart(by_day)) if by_day is not None and by_day.rows else "",
        "cores_drawn": not found.total.sums.gpu_seconds,
        "export_url": f"{reverse('reports')}?{query.urlencode()}",
        "currency": settings.CONSOLE_CURRENCY,
        "everybodys": managed_by(request.user).exists(),
    }
    return page(request, "console/reports.html", context)


def _usual(user: User) -> dict[str, str]:
    """This month, by person where the use of others is seen, else by GPU type."""
    today = costs.today()
    by = "person" if managed_by(user).exists() else "gpu_type"
    return {"since": today.replace(day=1).isoformat(), "until": today.isoformat(), "by": by}


def chart(report: Report) -> dict[str, list[list[float]]]:
    """GPU-hours of each day, or core-hours where there are none: [time, hours] by name."""
    cores = not report.total.sums.gpu_seconds
    totals: dict[str, float] = {}
    points: dict[str, dict[str, float]] = {}
    for row in report.rows:
        day, name = row.names[0], (row.names[1:] or ("",))[0] or "–"
        hours = row.figures["core_hours" if cores else "gpu_hours"]
        totals[name] = totals.get(name, 0) + hours
        points.setdefault(name, {})[day] = hours
    most = sorted(totals, key=lambda name: -totals[name])
    drawn = {name: points[name] for name in most[:DRAWN]}
    others: dict[str, float] = {}
    for name in most[DRAWN:]:
        for day, hours in points[name].items():
            others[day] = others.get(day, 0) + hours
    if others:
        drawn[_("Other")] = others
    return {
        name: [[_time(day), round(hours, 2)] for day, hours in sorted(days.items())]
        for name, days in drawn.items()
    }


def _time(day: str) -> float:
    return float((date.fromisoformat(day) - date(1970, 1, 1)).days * 86_400)
