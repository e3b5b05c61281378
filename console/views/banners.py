"""Banners on every page, for everybody or for one person."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from jobs.messages.amounts import moment
from quotas.access import workspaces_of
from quotas.models import Banner, Maintenance, ReadOnly, User, single_person
from quotas.models.single_person import Exposure

ANNOUNCED: Final = timedelta(days=7)
"""Maintenance is announced so long before."""

DISMISSED: Final = "dismissed"
MOST_DISMISSED: Final = 50


def list_notices(request: HttpRequest) -> list[dict[str, Any]]:
    """The most pressing first; four small queries."""
    found = [*_of_mode(), *_of_maintenance(), *_of_banners(request)]
    order = {"bad": 0, "warn": 1, "info": 2}
    return sorted(found, key=lambda each: order[each["level"]])


def dismiss(request: HttpRequest, pk: int) -> None:
    """Don't show that banner again in this sign-in; only what is merely to be known can be dismissed."""
    if Banner.objects.filter(pk=pk, level=Banner.Level.INFO).exists():
        known = [each for each in request.session.get(DISMISSED, []) if each != pk]
        request.session[DISMISSED] = [*known, pk][-MOST_DISMISSED:]


def _of_mode() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    exposures = single_person.read_note(settings.CONSOLE_HOME)
    if Exposure.FILES in exposures:
        text = _(
            "Single-user mode: jobs on this machine can read and change everything that the console can."
        )
        found.append({"level": "warn", "text": text})
    if Exposure.SIGN_INS in exposures and settings.CONSOLE_TRUST_EVERYBODY:
        text = _("No TLS: any job on this machine can take over the sessions of this console's users.")
        found.append({"level": "warn", "text": text})
    if Exposure.ACCOUNT in exposures and settings.CONSOLE_TRUST_EVERYBODY:
        text = _("Jobs on a Slurm cluster run as one user and can read and stop each other.")
        found.append({"level": "warn", "text": text})
    if Exposure.GROUPS in exposures and settings.CONSOLE_TRUST_EVERYBODY:
        text = _("Jobs on this machine have the group permissions of the console's user.")
        found.append({"level": "warn", "text": text})
    now = ReadOnly.objects.first()
    if now is not None:
        text = _("The console is read-only for now: %(why)s") % {"why": now.why}
        found.append({"level": "bad", "text": text})
    return found


def _of_maintenance() -> list[dict[str, Any]]:
    now = timezone.now()
    rows = Maintenance.objects.filter(until_at__gt=now, from_at__lt=now + ANNOUNCED).select_related("cluster")
    return [_describe_maintenance(row) for row in rows.order_by("from_at")[:5]]


def _describe_maintenance(row: Maintenance) -> dict[str, Any]:
    values = {
        "cluster": row.cluster.title if row.cluster else "",
        "begins": moment(row.from_at.isoformat()),
        "ends": moment(row.until_at.isoformat()),
        "text": row.localized_text,
    }
    if row.cluster:
        text = _("Maintenance of %(cluster)s from %(begins)s until %(ends)s: %(text)s")
    else:
        text = _("Maintenance from %(begins)s until %(ends)s: %(text)s")
    begun = row.from_at <= timezone.now()
    return {"level": "warn" if begun or row.keeps_free else "info", "text": text % values}


def _of_banners(request: HttpRequest) -> list[dict[str, Any]]:
    now = timezone.now()
    rows = Banner.objects.filter(
        Q(from_at=None) | Q(from_at__lte=now), Q(until_at=None) | Q(until_at__gt=now)
    )
    mine = Q(workspace=None, person=None)
    if isinstance(request.user, User):
        mine |= Q(person=request.user)
        mine |= Q(person=None, workspace__in=workspaces_of(request.user))
    dismissed = set(request.session.get(DISMISSED, [])) if hasattr(request, "session") else set()
    return [
        {
            "level": row.level,
            "text": row.localized_text,
            "dismiss": row.pk if row.level == Banner.Level.INFO else None,
        }
        for row in rows.filter(mine)[:20]
        if row.level != Banner.Level.INFO or row.pk not in dismissed
    ]
