"""Sentences of notifications: on the page, in messages and in digests, in the reader's language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from jobs.messages import amounts
from jobs.messages.alerts import alert_words
from jobs.messages.reasons import reason_message
from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say
from jobs.models.kinds import Kind

Params = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NotificationWords:
    """The sentence of a notification, and further ones, which may be empty."""

    title: str
    text: str


_TITLES: Final[Mapping[str, tuple[str, ...]]] = {
    Kind.STARTED: (_("%(name)s started."),),
    Kind.SUCCEEDED: (_("%(name)s succeeded."),),
    Kind.PARTLY: (
        _("%(name)s succeeded, but %(failed_tasks)s of %(total)s failed."),
        _("%(name)s succeeded, but some replicas failed."),
    ),
    Kind.FAILED: (_("%(name)s failed."),),
    Kind.STOPPED: (_("%(name)s was stopped."),),
    Kind.PREEMPTED: (_("%(name)s was preempted."),),
    Kind.AGAIN: (_("%(name)s is being retried automatically."),),
    Kind.LOST: (_("%(name)s was lost."),),
    Kind.FOUND: (_("%(name)s was found again."),),
    Kind.WAITS: (
        _("%(name)s has been waiting for %(time)s."),
        _("%(name)s has been waiting for a long time."),
    ),
    Kind.IDLE: (
        _("%(name)s holds %(gpus_held)s, unused for %(time)s."),
        _("%(name)s has not used its resources for %(time)s."),
        _("%(name)s is not using its resources."),
    ),
    Kind.ALERT: (
        _("%(name)s: %(metric_name)s above %(above)s for %(time)s."),
        _("%(name)s: %(metric_name)s below %(below)s for %(time)s."),
    ),
    Kind.QUOTA: (
        _("Quota %(quota)s on %(cluster)s is %(percent)s%% used."),
        _("A quota is almost full."),
    ),
    Kind.MAINTENANCE: (
        _("Node %(node)s goes out of service at %(moment)s."),
        _("Node %(node)s is being taken out of service."),
        _("Maintenance of %(cluster)s begins at %(moment)s."),
        _("Maintenance announced."),
    ),
    Kind.MESSAGE: (_("Message from %(by)s."), _("Message from an admin.")),
    Kind.CHANNEL_OFF: (
        _("Channel %(channel)s was turned off: %(count)s consecutive messages could not be delivered."),
        _("A channel was turned off: messages could not be delivered."),
    ),
    Kind.SWEEP: (
        _("Sweep %(name)s: %(jobs_ended)s of %(jobs_total)s jobs ended, %(jobs_failed)s failed."),
        _("Sweep %(name)s: %(jobs_ended)s of %(jobs_total)s jobs ended."),
        _("Jobs of a sweep ended."),
    ),
}

_TEXTS: Final[Mapping[str, tuple[str, ...]]] = {
    Kind.QUOTA: (
        _("Almost full: %(resource_name)s. Jobs that request more than the remaining amount will wait."),
    ),
    Kind.ALERT: (_("Measured: %(seen_value)s."),),
    Kind.IDLE: (
        _("The job will be stopped at %(moment)s unless the resources are used before then."),
        _("Stop the job if it is no longer needed, so that others can use the resources."),
    ),
    Kind.CHANNEL_OFF: (_("Fix the cause, then turn the channel on again."),),
    Kind.SWEEP: (_("Last failed: %(failed_name)s."),),
}

_RESOURCES: Final[Mapping[str, str]] = {
    "cpu_milli": _("CPU cores"),
    "memory_mib": _("memory"),
    "gpu": _("GPUs"),
    "jobs": _("number of jobs"),
    "gpu_hours": _("GPU-hours"),
}
_OF_TYPE: Final = _("%(type)s GPUs")


def notification_words(kind: str, params: Params) -> NotificationWords:
    """Return an event in words; a kind of a later version is shown as it is."""
    words = {**params, **_in_words(params)}
    titles = _TITLES.get(kind)
    title = say(titles, words) if titles else kind
    return NotificationWords(title, _text(kind, params, words))


def _text(kind: str, params: Params, words: Mapping[str, object]) -> str:
    """Return the text that a person wrote, the job's reason and the kind's own text."""
    told = [str(params["text"])] if params.get("text") else []
    if params.get("reason"):
        told.append(reason_message(str(params["reason"]), params.get("reason_params") or {}))
    is_empty = kind == Kind.SWEEP and not params.get("failed_name")
    if kind in _TEXTS and not is_empty and (text := say(_TEXTS[kind], words)):
        told.append(text)
    return " ".join(told)


def _in_words(params: Params) -> dict[str, object]:
    """Return amounts, spans and times in words."""
    words: dict[str, object] = {}
    minutes, gpus, failed, total = (params.get(name) for name in ("minutes", "gpus", "failed", "total"))
    if isinstance(minutes, int):
        words["time"] = amounts.duration(60 * minutes)
    if isinstance(gpus, int) and gpus:
        words["gpus_held"] = amounts.quantity("gpu", gpus)
    if isinstance(failed, int) and isinstance(total, int):
        words["failed_tasks"], words["total"] = failed, amounts.tasks(total)
    if isinstance(until := params.get("until"), str) and until:
        words["moment"] = amounts.moment(until)
    if resource := str(params.get("resource") or ""):
        words["resource_name"] = say((_RESOURCES.get(resource, _OF_TYPE),), {"type": resource})
    return {**words, **alert_words(params)}
