"""Why a cluster refused a job for good."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages import amounts
from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say

_SENTENCES: Final = {
    "no_secret": (
        _("Refused: the secret %(name)s has no value here; give it one and submit again."),
        _("Refused: a secret has no value here; give it one and submit again."),
    ),
    "mounts": (
        _("Refused: this cluster can't mount anything at %(path)s."),
        _("Refused: this cluster can't mount what the job names."),
    ),
    "no_image_engine": (
        _(
            "Refused: this cluster has nothing to run the image %(image)s with; an admin may install podman "
            "or docker, or allow plain processes."
        ),
        _("Refused: this cluster has nothing to run images with."),
    ),
    "exceeds_cluster": (
        _("Refused: it asks for %(wanted)s, and the whole cluster has %(total)s."),
        _("Refused: it asks for more than the whole cluster has."),
    ),
}
_OTHERWISE: Final = (_("Refused by the cluster: %(detail)s"), _("Refused by the cluster."))


def refusal(params: Mapping[str, object]) -> str:
    """The sentence for `REFUSED`; `detail` is the engine's own message."""
    templates = _SENTENCES.get(str(params.get("why")), _OTHERWISE)
    kind = params.get("resource") or params.get("kind")
    words = {name: amounts.quantity(kind, params[name]) for name in ("wanted", "total") if name in params}
    return say(templates, {**params, **words})
