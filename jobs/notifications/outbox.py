"""Outbox: events to notify people of, stored in the transaction that makes them true."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from jobs.live import triggers
from jobs.models import Event, Job, NotificationEvent
from jobs.models.kinds import Kind
from jobs.states import ReasonCode, State
from quotas.models import Quota, User

TAKEN_BACK: Final = frozenset({ReasonCode.PREEMPTED, ReasonCode.DRAINED})

_KINDS: Final[Mapping[str, Kind]] = {
    Event.Kind.STARTED: Kind.STARTED,
    Event.Kind.QUEUED_AGAIN: Kind.AGAIN,
    Event.Kind.REQUEUED: Kind.AGAIN,
    Event.Kind.LOST: Kind.LOST,
    Event.Kind.FOUND_AGAIN: Kind.FOUND,
}
_ENDS: Final[Mapping[str, Kind]] = {
    State.SUCCEEDED: Kind.SUCCEEDED,
    State.FAILED: Kind.FAILED,
    State.STOPPED: Kind.STOPPED,
}


def tell(
    people: Iterable[User], kind: Kind, params: Mapping[str, Any], job: Job | None = None, *, key: str = ""
) -> None:
    """Notify these people, on their page and on the channels that they chose for `kind`.

    Call it in the transaction that makes it true.  With `key` they are notified once, however often it is
    noticed.  `params` fill the kind's sentence and go to webhooks: names and numbers, never a secret.
    """
    keys = sorted({person.pk for person in people})
    if keys:
        _write(
            kind,
            {**(about(job) if job else {}), **params},
            key,
            job=job,
            workspace_id=job.workspace_id if job else None,
            people=keys,
        )


def of_event(job: Job, kind: str, params: Mapping[str, Any], actor: User | None) -> None:
    """Store the notification that an event of a job gives, if any."""
    notified = _kind_of(job, kind, params)
    if notified is None:
        return
    reason = {name: value for name, value in params.items() if name not in {"state", "reason"}}
    code = params.get("reason", "")
    if kind == Event.Kind.REQUEUED:
        reason = {}
    details = {**about(job), "reason": code, "reason_params": reason}
    _write(notified, details, "", job=job, workspace_id=job.workspace_id, actor=actor)


def of_waiting(job: Job, attempt: int, minutes: int) -> None:
    """Notify that the job has waited for `minutes`; once for each attempt and number of minutes."""
    details = {
        **about(job),
        "minutes": minutes,
        "reason": job.reason_code,
        "reason_params": job.reason_params,
    }
    key = f"waits:{job.pk}:{attempt}:{minutes}"
    _write(Kind.WAITS, details, key, job=job, workspace_id=job.workspace_id)


def of_quota(quota: Quota, before: int, percent: int, most: str) -> None:
    """Notify that a quota's use has risen from `before` to `percent`; `most` is the most used resource."""
    details = {
        "quota": quota.name,
        "cluster": quota.cluster.name,
        "workspace": quota.workspace.name,
        "before": before,
        "percent": percent,
        "resource": most,
    }
    _write(Kind.QUOTA, details, "", quota=quota, workspace_id=quota.workspace_id)


def about(job: Job) -> dict[str, Any]:
    """Return the job's values for a sentence that is made after it may have changed or gone."""
    return {
        "job": job.public_id,
        "name": job.name,
        "attempt": job.attempt_number,
        "failed": job.replicas_failed,
        "total": job.replicas_total,
    }


def _kind_of(job: Job, kind: str, params: Mapping[str, Any]) -> Kind | None:
    if kind == Event.Kind.ENDED:
        if params.get("reason") in TAKEN_BACK:
            return Kind.PREEMPTED
        return Kind.PARTLY if job.succeeded_with_failures else _ENDS.get(job.state)
    if kind == Event.Kind.QUEUED_AGAIN and params.get("code") in TAKEN_BACK:
        return Kind.PREEMPTED
    return _KINDS.get(kind)


def _write(kind: Kind, params: Mapping[str, Any], key: str, **columns: Any) -> None:
    row = NotificationEvent(kind=kind.value, params=dict(params), key=key or None, **columns)
    if key:
        NotificationEvent.objects.bulk_create([row], ignore_conflicts=True)
    else:
        row.save(force_insert=True)
    triggers.trigger_on_commit("notices")
