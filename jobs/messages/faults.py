"""Faults and what was decided about them, as sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jobs.fault_tolerance.decisions import Fault, Rule
from jobs.fault_tolerance.stacks import StackVerdict
from jobs.language import gettext
from jobs.messages.sentences import mark as _
from jobs.states import ReasonCode

_CAUSES: Final[Mapping[str, str]] = {
    "gpu_memory": _("Out of GPU memory"),
    "shared_memory": _("Out of shared memory"),
    "host_memory": _("Out of memory"),
    "device_assert": _("Assertion failed on the GPU"),
    "gpu_ecc": _("Uncorrectable GPU memory error"),
    "gpu_lost": _("GPU fault"),
    "gpu_setup": _("GPUs not usable as requested"),
    "gpu_kernel": _("Error in a GPU program"),
    "collective_timeout": _("Collective operation timed out"),
    "nccl": _("NCCL error"),
    "network": _("Network error"),
    "storage": _("Storage error"),
    "disk_full": _("No space left"),
    "preempted": _("Node taken back"),
    "time_limit": _("Time limit reached"),
    "access_denied": _("Access denied"),
    "not_finite": _("Loss is not a number"),
    "python": _("Python exception"),
    "arguments": _("Wrong arguments"),
    "command": _("Command not usable"),
    "shapes": _("Shapes don't match"),
    "node_drained": _("Node drained"),
    "workspace_pattern": _("Known error of the workspace"),
    "crash": _("Program crashed"),
    "killed": _("Killed from outside"),
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
    ReasonCode.SANITY_CHECK_FAILED: _("Sanity check failed"),
    ReasonCode.SIGNALLED: _("Ended by a signal"),
    ReasonCode.START_FAILED: _("Not started"),
    ReasonCode.TOO_MANY_PORTS: _("Too many ports"),
    ReasonCode.WRAPPER_LOST: _("Monitoring process lost"),
}


def cause_label(code: str) -> str:
    """Return what a fault is called; a code of a later version is shown as it is."""
    return gettext(_CAUSES[code]) if code in _CAUSES else code or gettext(_("Fault"))


def fault_message(fault: Fault) -> str:
    """Return a fault in one line, with the line of output that shows it."""
    cause = cause_label(fault.code)
    return gettext(_("%(cause)s: %(line)s")) % {"cause": cause, "line": fault.line} if fault.line else cause


def stacks_message(params: Mapping[str, Any]) -> tuple[str, str]:
    """Return what the stacks of a job's ranks tell, and the ranks that are elsewhere."""
    place = {"place": str(params.get("place") or ""), "ranks": params.get("ranks", 0)}
    suspects = [_suspect(each) for each in params.get("suspects", ())]
    match params.get("verdict"):
        case StackVerdict.COLLECTIVE:
            text = gettext(_("Stacks: all %(ranks)s ranks wait in %(place)s")) % place
        case StackVerdict.SUSPECTS if place["place"]:
            text = gettext(_("Stacks: some ranks are not with the others, which wait in %(place)s")) % place
        case StackVerdict.SUSPECTS:
            text = gettext(_("Stacks: ranks are stopped by a signal"))
        case StackVerdict.SAME_PLACE:
            text = gettext(_("Stacks: every rank is in %(place)s")) % place
        case StackVerdict.DIFFERENT:
            text = gettext(_("Stacks: the ranks are in different places"))
        case _:
            text = gettext(_("Stacks: none could be read"))
    return text, "; ".join(suspects)


def _suspect(each: Mapping[str, Any]) -> str:
    words = {
        "replica": f"{each.get('role')}-{each.get('index')}",
        "rank": each.get("rank") or "–",
        "node": each.get("node") or "–",
        "place": each.get("place"),
    }
    return gettext(_("%(replica)s (rank %(rank)s on %(node)s) is in %(place)s")) % words


def finding_message(params: Mapping[str, Any]) -> tuple[str, str]:
    """Return what was found while the job runs, without a decision, and its evidence."""
    if params.get("code") == "stacks":
        return stacks_message(params)
    if params.get("code") == "straggler":
        return _straggler_message(params)
    cause = cause_label(str(params.get("code", ""))) or gettext(_("Fault detected"))
    return cause, str(params.get("line") or "")


def _straggler_message(params: Mapping[str, Any]) -> tuple[str, str]:
    words = {"node": "–", **params, "replica": f"{params.get('role')}-{params.get('index')}"}
    text = gettext(_("Straggler: %(replica)s on %(node)s is slower than the other ranks")) % words
    detail = gettext(_("%(step_s)s s a step; the median of %(ranks)s ranks is %(median_s)s s"))
    return text, detail % words


def _replica_message(params: Mapping[str, Any]) -> str:
    """Return that only the failed replica is started again, by which row of the table."""
    words = {**params, "replica": f"{params.get('role')}-{params.get('index')}"}
    if params.get("rule") == Rule.PLATFORM:
        return gettext(_("%(cause)s: an error of the platform, only %(replica)s is restarted")) % words
    words["number"] = int(params.get("used", 0)) + 1
    text = gettext(_("%(cause)s: only %(replica)s is restarted (%(number)s of %(limit)s)"))
    return text % {"limit": 0, **words}


def decision_message(params: Mapping[str, Any]) -> tuple[str, str]:
    """Return what was decided about a fault, and its evidence; for one without a decision what was found."""
    if "rule" not in params:
        return finding_message(params)
    words = {"cause": cause_label(str(params.get("code", ""))), **params}
    if params.get("scope") == "replica":
        return _replica_message(words), str(params.get("line") or "")
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
        case Rule.WINDOW_SPENT:
            text = gettext(_("%(cause)s: %(limit)s restarts within 24 hours, not restarted again")) % words
        case Rule.SAME_ERROR:
            text = gettext(_("%(cause)s: the same error again, not restarted")) % words
        case _:
            text = gettext(_("%(cause)s: no restarts left of %(limit)s")) % {"limit": 0, **words}
    if params.get("cordoned"):
        text = gettext(_("%(decision)s; node %(cordoned)s is cordoned")) % {**params, "decision": text}
    return text, str(params.get("line") or "")
