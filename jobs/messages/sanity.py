"""Words of the sanity check: its phases, checks and statuses."""

from __future__ import annotations

from typing import Final

from jobs.language import gettext
from jobs.messages.sentences import mark as _

_WORDS: Final = {
    "CheckInit": _("Join"),
    "DeviceCheck": _("Devices of each node"),
    "SingleNodeCommCheck": _("Communication within a node"),
    "TwoNodeCommCheck": _("Communication of pairs"),
    "AllNodeCommCheck": _("Communication of all replicas"),
    "cpu": _("CPU"),
    "memory": _("memory"),
    "disk": _("disk"),
    "gpu": _("GPU"),
    "loopback": _("loopback"),
    "network": _("network"),
    "pair": _("communication of a pair"),
    "all_reduce": _("all-reduce"),
    "timeout": _("timeout"),
    "Running": _("Running"),
    "Succeeded": _("Passed"),
    "Failed": _("Failed"),
    "Skipped": _("Not checked"),
}


def sanity_word(code: str) -> str:
    """Return a phase, check or status in the reader's language; one of a later version as it is."""
    return gettext(_WORDS[code]) if code in _WORDS else code
