"""Faults and what was decided about them, as sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jobs.fault_tolerance.decisions import Fault, Rule
from jobs.language import gettext
from jobs.messages.sentences import mark as _
from jobs.states import ReasonCode

_CAUSES: Final[Mapping[str, str]] = {
    "gpu_memory": _("Out of GPU memory"),
    "shared_memory": _("Out of shared memory"),
    "device_assert": _("Assertion failed on the GPU"),
    "gpu_ecc": _("Uncorrectable GPU memory error"),
    "gpu_lost": _("GPU fault"),
    "collective_timeout": _("Collective operation timed out"),
    "nccl": _("NCCL error"),
    "network": _("Network error"),
    "storage": _("Storage error"),
    "disk_full": _("No space left"),
    "preempted": _("Node taken back"),
    "python": _("Python exception"),
    "arguments": _("Wrong arguments"),
    "command": _("Command not usable"),
    "shapes": _("Shapes don't match"),
    ReasonCode.EXIT_CODE: _("Failed, cause unknown"),
    ReasonCode.FOLDER_TOO_LARGE: _("Folder too large"),
    ReasonCode.HANG: _("No output: hanging"),
    ReasonCode.IMAGE_FAILED: _("Image not usable"),
    ReasonCode.LOG_PATTERN: _("Pattern in the log"),
    ReasonCode.MACHINE_RESTARTED: _("Machine restarted"),
    ReasonCode.MOUNT_FAILED: _("Mount not usable"),
    ReasonCode.NODE_LOST: _("Node lost"),
    ReasonCode.OUT_OF_MEMORY: _("Out of memory"),
    ReasonCode.PORT_CONFLICT: _("Port in use"),
    ReasonCode.SIGNALLED: _("Ended by a signal"),
    ReasonCode.START_FAILED: _("Not started"),
    ReasonCode.TOO_MANY_PORTS: _("Too many ports"),
    ReasonCode.WRAPPER_LOST: _("Monitoring process lost"),
}


def cause_label(code: str) -> str:
    """Return what a fault is called; a code of a later version is shown as it is."""
    return gettext(_CAUSES[code]) if code in _CAUSES else code


def fault_message(fault: Fault) -> str:
    """Return a fault in one line, with the line of output that shows it."""
    cause = cause_label(fault.code)
    return gettext(_("%(cause)s: %(line)s")) % {"cause": cause, "line": fault.line} if fault.line else cause


def decision_message(params: Mapping[str, Any]) -> tuple[str, str]:
    """Return what was decided about a fault, and its evidence."""
    words = {"cause": cause_label(str(params.get("code", ""))), **params}
    restarts = gettext(_("%(cause)s: the job is restarted")) % words
    match params.get("rule"):
        case Rule.PLATFORM:
            text = gettext(_("%(cause)s: an error of the platform, the job is restarted")) % words
        case Rule.RESTARTS_LEFT:
            number = int(params.get("used", 0)) + 1
            text = gettext(_("%(cause)s: restart %(number)s of %(limit)s")) % {**words, "number": number}
        case _ if params.get("restarts"):
            text = restarts
        case Rule.OWN_ERROR:
            text = gettext(_("%(cause)s: an error of the job's own program, not restarted")) % words
        case Rule.SAME_ERROR:
            text = gettext(_("%(cause)s: the same error again, not restarted")) % words
        case _:
            text = gettext(_("%(cause)s: no restarts left of %(limit)s")) % {"limit": 0, **words}
    return text, str(params.get("line") or "")
