"""Sentences about limits of job policies: which limit, whose it is, and who can change it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.language import gettext
from jobs.messages import amounts
from jobs.messages.sentences import mark as _

PROBLEMS: Final[Mapping[str, tuple[str, ...]]] = {
    "policy_highest_priority": (
        _(
            "Priority %(wanted)s is above the limit of %(limit)s for %(whose)s in quota %(quota)s. "
            "%(changer)s can change the limit."
        ),
    ),
    "policy_time_limit_minutes": (
        _(
            "A time limit of %(wanted)s is above the limit of %(limit)s for %(whose)s in quota %(quota)s. "
            "%(changer)s can change the limit."
        ),
    ),
    "policy_job_gpus": (
        _(
            "The job requests %(wanted)s; quota %(quota)s allows %(limit)s per job for %(whose)s. "
            "%(changer)s can change the limit."
        ),
    ),
    "policy_gpu_types": (
        _(
            "GPU type %(gpu_type)s is not allowed for %(whose)s in quota %(quota)s. Allowed: %(types)s. "
            "%(changer)s can change this."
        ),
        _(
            "Select a GPU type: quota %(quota)s allows only %(types)s for %(whose)s. %(changer)s can change "
            "this."
        ),
    ),
    "policy_waiting_jobs": (
        _(
            "%(waiting)s of yours already waiting and %(wanted)s requested; quota %(quota)s allows %(limit)s "
            "for %(whose)s. Wait until jobs start, or stop some. %(changer)s can change the limit."
        ),
    ),
}

ROLES: Final[Mapping[str, str]] = {
    "viewer": _("Viewer"),
    "developer": _("Algorithm developer"),
    "operator": _("Algorithm O&M admin"),
    "admin": _("Workspace admin"),
}


def describe_limit(code: str, params: Mapping[str, object]) -> dict[str, str]:
    """Return the words of a problem's sentence: its amounts, for whom the limit holds, and its changer."""
    words = {"whose": describe_subject(params), "changer": describe_changer(params)}
    for name in ("wanted", "limit", "waiting"):
        if name in params:
            words[name] = _amount(code, params[name])
    return words


def _amount(code: str, value: object) -> str:
    match code:
        case "policy_time_limit_minutes" if isinstance(value, int):
            return amounts.duration(value)
        case "policy_job_gpus":
            return amounts.quantity("gpu", value)
        case "policy_waiting_jobs":
            return amounts.quantity("jobs", value)
    return str(value)


def describe_subject(params: Mapping[str, object]) -> str:
    """Return for whom a limit holds."""
    if user := params.get("user"):
        return gettext("user %(name)s") % {"name": user}
    if role := params.get("role"):
        return gettext("role “%(name)s”") % {"name": gettext(ROLES.get(str(role), str(role)))}
    return gettext("all users")


def describe_changer(params: Mapping[str, object]) -> str:
    """Return who can change a limit."""
    if workspace := params.get("workspace"):
        return gettext("An admin of workspace %(name)s") % {"name": workspace}
    return gettext("A console admin")


_LIMITS: Final[Mapping[str, str]] = {
    "highest_priority": _("Priority up to %(value)s"),
    "time_limit_minutes": _("Time limit up to %(value)s"),
    "default_minutes": _("Default time limit: %(value)s"),
    "job_gpus": _("%(value)s per job"),
    "gpu_types": _("GPU types: %(value)s"),
    "waiting_jobs": _("Waiting per user: %(value)s"),
    "running_jobs": _("Running per user: %(value)s"),
}
LIMITS: Final = tuple(_LIMITS)
"""The fields of a policy that are limits."""


def limit_message(name: str, value: object) -> str:
    """Return a limit of a policy by its field, in a few words."""
    match name:
        case "time_limit_minutes" | "default_minutes" if isinstance(value, int):
            shown = amounts.duration(60 * value)
        case "job_gpus":
            shown = amounts.quantity("gpu", value)
        case "waiting_jobs" | "running_jobs":
            shown = amounts.quantity("jobs", value)
        case _:
            shown = ", ".join(value) if isinstance(value, tuple) else str(value)
    return gettext(_LIMITS[name]) % {"value": shown}
