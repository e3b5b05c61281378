"""The only writer of `Job.state`.

Each change is one UPDATE guarded by id, version and the states it may come from; the event, the
reservation and the attempt change in the same transaction; watchers are notified after the commit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef
from django.db.models.functions import Now
from django.utils.crypto import get_random_string

from jobs.lifecycle import dependencies
from jobs.live import bus, triggers
from jobs.models import Attempt, Event, Job
from jobs.notifications import outbox
from jobs.states import (
    TERMINAL,
    EndKind,
    Phase,
    Reason,
    ReasonCode,
    State,
    sources_of,
)
from quotas import audit, encryption, ledger
from quotas.models import Action, User

EXPLAINED_AT_ONCE: Final = 500
TOLD_BY_NAME: Final = 200
"""More changes at once are published to watchers of single jobs under the queue's own name."""


_AUDITED: Final = {
    Event.Kind.SUBMITTED: Action.SUBMIT,
    Event.Kind.END_WANTED: Action.STOP,
    Event.Kind.HELD: Action.HOLD,
    Event.Kind.RELEASED: Action.RELEASE,
    Event.Kind.SHARED: Action.SHARE,
}
"""People's commands on jobs, as actions of the audit log."""


class Overtaken(Exception):
    """The job was changed since it was loaded; nothing was written."""


def lock_job(job_id: int) -> Job:
    """Return the job as it is now, locked for this transaction.

    Lock order, against deadlocks: the job's row, then its attempt's, then the ledger's.
    """
    return Job.objects.select_for_update(no_key=True).get(pk=job_id)


def apply(
    job: Job,
    to: State,
    reason: Reason,
    *,
    phase: Phase,
    event: Event.Kind | None = None,
    actor: User | None = None,
    unless_end_wanted: bool = False,
    columns: Mapping[str, Any] | None = None,
) -> None:
    """Move `job` (as loaded) to `to`, or raise Overtaken.  Call inside a transaction.

    `unless_end_wanted` also refuses when the current attempt is to end: it belongs to every edge into and
    out of QUEUED.
    """
    rows = Job.objects.filter(pk=job.pk, version=job.version, state__in=[s.value for s in sources_of(to)])
    if unless_end_wanted:
        wanted = Attempt.objects.filter(job=OuterRef("pk"), number=OuterRef("attempt_number")).exclude(
            end_kind=""
        )
        rows = rows.filter(~Exists(wanted))
    values = {**_columns(to, phase, reason), **(columns or {})}
    if not rows.update(version=F("version") + 1, **values):
        raise Overtaken(job.public_id)
    _assign(job, values)
    if event is not None:
        record(job, event, params=_event_params(to, reason), actor=actor)
    tell(job)


def _columns(to: State, phase: Phase, reason: Reason) -> dict[str, Any]:
    return {
        "state": to.value,
        "phase": phase.value,
        "reason_code": reason.code.value,
        "reason_params": dict(reason.params),
    }


def _assign(job: Job, values: Mapping[str, Any]) -> None:
    """Make the loaded job what its row is after an update."""
    job.version += 1
    for name, value in values.items():
        setattr(job, name, value)


def _event_params(to: State, reason: Reason) -> dict[str, Any]:
    return {"state": to.value, "reason": reason.code.value, **reason.params}


def lock_jobs(job_ids: Collection[int]) -> list[Job]:
    """Return several jobs, locked in the order of their ids."""
    return list(Job.objects.select_for_update(no_key=True).filter(pk__in=job_ids).order_by("id"))


def apply_to_all(jobs: Sequence[Job], to: State, reason: Reason, *, phase: Phase, event: Event.Kind) -> None:
    """Apply a transition to jobs that this transaction has locked; a few queries, however many they are.

    Raises Overtaken when one of them is in another state.
    """
    if not jobs:
        return
    rows = Job.objects.filter(pk__in=[job.pk for job in jobs], state__in=[s.value for s in sources_of(to)])
    values = _columns(to, phase, reason)
    if rows.update(version=F("version") + 1, **values) != len(jobs):
        raise Overtaken(", ".join(job.public_id for job in jobs))
    params = _event_params(to, reason)
    Event.objects.bulk_create(
        Event(job=job, kind=event, params=params, attempt=job.attempt_number) for job in jobs
    )
    for job in jobs:
        _assign(job, values)
        outbox.of_event(job, event, params, None)
    _tell_all(jobs)


def explain(job: Job, reason: Reason, phase: Phase | None = None) -> None:
    """Change why the job is in its state, not the state.  Unchanged reasons cost nothing."""
    phase_now = phase.value if phase else job.phase
    if (job.reason_code, job.reason_params, job.phase) == (reason.code, dict(reason.params), phase_now):
        return
    changed = Job.objects.filter(pk=job.pk, version=job.version, state=job.state).update(
        reason_code=reason.code.value, reason_params=dict(reason.params), phase=phase_now
    )
    if changed:
        tell(job)


def explain_waiting(jobs: Sequence[Job], reason: Reason) -> None:
    """Store why these jobs, if still queued, are; a few queries, however many they are."""
    for first in range(0, len(jobs), EXPLAINED_AT_ONCE):
        some = jobs[first : first + EXPLAINED_AT_ONCE]
        Job.objects.filter(pk__in=[job.pk for job in some], state=State.QUEUED.value).exclude(
            phase=Phase.STOPPING.value
        ).update(reason_code=reason.code.value, reason_params=dict(reason.params))
    _tell_all(jobs)


def _tell_all(jobs: Sequence[Job]) -> None:
    for workspace_id in {job.workspace_id for job in jobs}:
        names = [bus.job_name(job.public_id) for job in jobs if job.workspace_id == workspace_id]
        bus.publish_on_commit(workspace_id, *names[:TOLD_BY_NAME], "jobs")


def record(
    job: Job,
    kind: Event.Kind,
    *,
    params: Mapping[str, Any] | None = None,
    actor: User | None = None,
    changes: Mapping[str, Any] | None = None,
) -> None:
    """Store an event of the current attempt and its notification, and a command's audit entry."""
    Event.objects.create(
        job=job, kind=kind, params=dict(params or {}), attempt=job.attempt_number, actor=actor
    )
    outbox.of_event(job, kind, params or {}, actor)
    if actor is not None and kind in _AUDITED:
        audit.log(_AUDITED[kind], job, details=params, changes=changes, actor=actor, name=job.public_id)


def tell(job: Job) -> None:
    """Notify the job's watchers after the commit."""
    bus.publish_on_commit(job.workspace_id, bus.job_name(job.public_id), "jobs")


def want_end(job: Job, attempt: Attempt, kind: EndKind, *, by: User | None = None, why: str = "") -> bool:
    """Record that the attempt is to end, unless that is recorded already; return whether it was not."""
    lock_job(job.pk)
    first = Attempt.objects.filter(pk=attempt.pk, end_kind="", ended_at=None).update(
        end_kind=kind.value, end_by=by, end_why=why, end_at=Now()
    )
    if not first:
        return False
    attempt.end_kind = kind.value
    record(job, Event.Kind.END_WANTED, params={"kind": kind.value, "why": why}, actor=by)
    Job.objects.filter(pk=job.pk).exclude(state__in=[s.value for s in TERMINAL]).update(
        phase=Phase.STOPPING.value, version=F("version") + 1
    )
    ledger.ask_back(attempt.key)
    tell(job)
    triggers.trigger_on_commit("observe", job.cluster_id)
    return True


def end(
    job: Job,
    attempt: Attempt,
    to: State,
    reason: Reason,
    *,
    actor: User | None = None,
    at: datetime | None = None,
) -> None:
    """End the attempt and its job: final state, event, reservation, logs to be stored.

    `at` is the time of the end by the backend, between its start and now; without it that is now.
    """
    with transaction.atomic(savepoint=False):  # whoever is overtaken writes nothing
        apply(
            job,
            to,
            reason,
            phase=Phase.ENDED,
            event=Event.Kind.LOST if to is State.LOST else Event.Kind.ENDED,
            actor=actor,
            columns={"ended_at": at or Now(), "replicas_running": 0},
        )
        close(job, attempt, reason, live=to is State.LOST, at=at)
        dependencies.decide(job)


def close(
    job: Job, attempt: Attempt, reason: Reason, *, live: bool = False, at: datetime | None = None
) -> None:
    """Close an attempt: its reservation ends and its logs are to be stored.

    A lost attempt stays `live`, so that it is adopted or ended if it reappears.
    """
    Attempt.objects.filter(pk=attempt.pk).update(
        live=live and bool(attempt.handle),
        ended_at=at or Now(),
        reason_code=reason.code.value,
        reason_params=dict(reason.params),
        lease_until=None,
    )
    if not live:
        ledger.close(attempt.key, at)
        triggers.seal_on_commit(attempt.pk)
        triggers.trigger_on_commit("drain", job.cluster_id)


def queue_retry(
    job: Job, attempt: Attempt, reason: Reason, *, delay: timedelta, at: datetime | None = None
) -> Attempt:
    """Retry automatically: close this attempt, as of `at`, and queue the next one.

    Call inside a transaction.
    """
    number = attempt.number + 1
    apply(
        job,
        State.QUEUED,
        Reason(ReasonCode.RETRYING, {"attempt": number, "code": reason.code.value}),
        phase=Phase.RESTARTING,
        event=Event.Kind.QUEUED_AGAIN,
        unless_end_wanted=True,
        columns={
            "attempt_number": number,
            "run_number": 1,
            "started_at": None,
            "idle_since": None,
            "replicas_running": 0,
            "replicas_failed": 0,
        },
    )
    close(job, attempt, reason, at=at)
    ledger.ask_again(attempt.key, key_of(job.public_id, number), delay=delay)
    return new_attempt(job, number)


def key_of(job_id: str, attempt: int) -> str:
    """Return the attempt's key at the backend: `<installation>-<public id>-<attempt>`."""
    return f"{settings.CONSOLE_INSTALLATION}-{job_id}-{attempt}"


def new_attempt(job: Job, number: int) -> Attempt:
    """Create a new attempt, with its own token for the endpoints on its ports."""
    token = encryption.encrypt(get_random_string(32))
    return Attempt.objects.create(
        job=job, number=number, key=key_of(job.public_id, number), endpoint_token=token
    )
