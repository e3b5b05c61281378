"""Backend support in sentences: what becomes of a job's fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.language import gettext
from jobs.messages.sentences import mark as _

FATES: Final[Mapping[str, str]] = {
    "honoured": _("Applied."),
    "console": _("Applied by the console."),
    "approximated": _("Applied differently here."),
    "refused": _("Not taken here."),
    "kept": _("Kept for export, not applied here."),
}


def support_message(fate: str, why: str = "") -> str:
    """Return what becomes of a field, and the marked sentence `why` where there is more to say about it."""
    if not why:
        return gettext(FATES[fate])
    return gettext("%(fate)s %(why)s") % {"fate": gettext(FATES[fate]), "why": gettext(why)}
