"""Basic information: what the job is called, and where it runs."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from jobs.models import Job
from jobs.web.again import free_name
from jobs.web.forming.shown import Drawing, Group
from quotas.models import User


def model(user: User, drawing: Drawing) -> dict[str, Any]:
    """What the section's template draws."""
    name = drawing.values.get("name", "")
    taken = bool(name) and Job.objects.filter(owner=user, name=name).exists()
    free = free_name(user, name) if taken else ""
    hint = _("You have a job of this name already; %(free)s is free.") % {"free": free} if taken else ""
    about = drawing.several("description", "visibility", "workspace")
    return {
        "fields": (drawing.one("name", hint=hint, offered=free),),
        "groups": (Group("about", _("Tags, description, visibility"), about, (drawing.rows("tags"),)),),
    }
