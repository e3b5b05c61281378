"""Backend support in sentences: what becomes of a job's fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.language import gettext
from jobs.messages.sentences import mark as _

FATES: Final[Mapping[str, str]] = {
    "honoured": _("Applied."),
    "console": _("Applied by the console."),
    "approximated": _("Applied differently on this cluster."),
    "refused": _("Not supported on this cluster."),
    "kept": _("No effect on this cluster (kept for export)."),
}


def support_message(fate: str, why: str = "") -> str:
    """Return what becomes of a field, and the marked sentence `why` where there is more to say about it."""
    if not why:
        return gettext(FATES[fate])
    return gettext("%(fate)s %(why)s") % {"fate": gettext(FATES[fate]), "why": gettext(why)}
