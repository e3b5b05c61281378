"""Fault tolerance and diagnosis."""

from __future__ import annotations

from typing import Any, Final

from django.utils.translation import gettext as _

from jobs.form import arguments
from jobs.web.forming.shown import Drawing, Group, told_once
from quotas.models import User

FAULTS: Final = (*(f"fault-{each.name}" for each in arguments.AIMASTER), "fault-arguments")
SANITY: Final = (*(f"sanity-{each.name}" for each in arguments.SANITY_CHECK), "sanity-arguments")
BESIDE = ("tensorboard", "tensorboard-path")


def model(_user: User, drawing: Drawing) -> dict[str, Any]:
    """What the section's template draws."""
    return {
        "fields": drawing.several("fault-tolerance", "sanity-check"),
        "groups": (
            told_once(Group("faults", _("Arguments of automatic fault tolerance"), drawing.several(*FAULTS))),
            told_once(Group("sanity", _("Arguments of the sanity check"), drawing.several(*SANITY))),
            told_once(Group("tensorboard", "TensorBoard", drawing.several(*BESIDE))),
        ),
    }
