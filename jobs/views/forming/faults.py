"""Fault tolerance and diagnosis."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from jobs.views.forming.shown import Drawing, Group
from quotas.models import User

CHECKS = ("fault-tolerance", "fault-arguments", "sanity-check", "sanity-arguments")
BESIDE = ("tensorboard", "tensorboard-path")


def model(_user: User, drawing: Drawing) -> dict[str, Any]:
    """What the section's template draws."""
    checks = Group("faults", _("Fault tolerance and sanity check"), drawing.several(*CHECKS))
    return {"groups": (checks, Group("tensorboard", "TensorBoard", drawing.several(*BESIDE)))}
