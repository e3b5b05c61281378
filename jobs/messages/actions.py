"""Labels of the buttons beside a problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.dialects.base import Action
from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say

_LABELS: Final[Mapping[str, tuple[str, ...]]] = {
    "without_image": (_("Run without image"),),
    "without_gpu": (_("Run without GPU"),),
    "gpu_type": (_("Use %(value)s"),),
    "mount_address": (_("Use %(address)s"),),
    "mount_read_only": (_("Mount read-only"),),
    "without_mount": (_("Run without this data"),),
    "without_code": (_("Run without this code"),),
    "without_srun": (_("Remove srun"),),
    "without_modules": (_("Remove module commands"),),
    "instance_type": (_("Use %(value)s"), _("Use the default size")),
    "role": (_("Use role %(name)s"), _("Run without a role")),
    "quota": (_("Use cluster %(cluster)s"),),
}


def action_label(action: Action) -> str:
    """Return an action's label, an imperative; one that a console sent has its own label."""
    said = action.params.get("label")
    return str(said) if said else say(_LABELS[action.kind], {"value": action.value, **action.params})
