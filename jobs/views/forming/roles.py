"""Roles and permissions."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from jobs.views.forming.shown import Drawing, Group
from quotas.models import User


def model(_user: User, drawing: Drawing) -> dict[str, Any]:
    """What the section's template draws."""
    return {"groups": (Group("role", _("Instance RAM role"), drawing.several("instance-role")),)}
