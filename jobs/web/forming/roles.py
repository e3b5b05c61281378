"""Roles and permissions."""

from __future__ import annotations

from typing import Any, Final

from django.utils.translation import gettext as _

from jobs.assets import sight
from jobs.form.rules.faults import DEFAULT_ROLE
from jobs.models import AssetKind
from jobs.web.forming.shown import Drawing, Options
from quotas.models import User

MOST: Final = 50


def model(user: User, drawing: Drawing) -> dict[str, Any]:
    """What the section's template draws."""
    return {"fields": (drawing.one("instance-role", suggested=_roles(user, drawing)),)}


def _roles(user: User, drawing: Drawing) -> Options:
    """PAI's default role, and those that the workspace has registered."""
    quota = drawing.standing.quota
    known = sight.choices(user, quota.workspace if quota else None, AssetKind.ROLE)[:MOST]
    return [(DEFAULT_ROLE, _("PAI default role")), *((row.arn, row.name) for row in known)]
