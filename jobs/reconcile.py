"""What workers do, step by step: send, look, end, tidy.  Admission is in `jobs.admitting`.

Each step loads in a short transaction, calls the engine outside any, and applies what it learnt guarded
by lease, version or state.  Every step may be killed at any instruction and run again by anybody: the
database says what is due, and an attempt's key says what the engine already has.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Final

import structlog
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.crypto import get_random_string

from jobs import (
    admitting,
    afters,
    observations,
    others,
    ownsecrets,
    queue,
    redaction,
    retries,
    sending,
    services,
    transitions,
)
from jobs.assets import resolving
from jobs.backends.base import (
    Backend,
    Capability,
    Extending,
    Gone,
    Handle,
    NodeSeen,
    NotSent,
    Observation,
    Refused,
    Submission,
    Unknown,
    Unreachable,
    Unseen,
)
from jobs.backends.holding import Holding
from jobs.engines import backend_for
from jobs.faults import fault
from jobs.models import AssetTrial, Attempt, Event, Job, JobFile, JobSecret
from jobs.spec import JobSpec
from jobs.states import EndKind, Phase, Reason, ReasonCode, State
from jobs.uploads import supply
from quotas import encryption, inventory, ledger, pace, snapshot
from quotas.models import Cluster, Node, Request

log = structlog.get_logger(__name__)

LEASE: Final = timedelta(seconds=6)
"""How long a worker may take to hand one attempt over before another looks what became of it."""

STOP_AGAIN: Final = timedelta(seconds=10)
"""A stop that has not been observed is asked again this often."""

GONE_TIMES: Final = 3
"""An attempt is lost once the engine did not know it this many looks in a row."""


def drain(cluster_id: int) -> None:
    """Admit whatever may start now, and hand it over, until nothing more does."""
    while afters.settle(cluster_id) + admitting.admit(cluster_id) + send(cluster_id):
        pass


# --- send ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to hand one attempt over; `again` when somebody else had it before."""

    token: str
    again: bool


def send(cluster_id: int) -> int:
    """Hand over every admitted attempt that nobody is handing over; answers how many."""
    due = (
        Attempt.objects.filter(
            job__cluster_id=cluster_id, job__state=State.SUBMITTING.value, handle="", ended_at=None
        )
        .filter(Q(lease_until=None) | Q(lease_until__lt=Now()))
        .order_by("id")
        .values_list("pk", flat=True)
    )
    chosen = list(due[:200])
    sent = 0
    with suppress(_NoAnswer):  # nor would it answer for the others: each would be waited for
        for pk in chosen:
            sent += _submit_one(pk)
    if sent:
        release(cluster_id, chosen)
    return sent


def release(cluster_id: int, attempt_ids: Collection[int]) -> None:
    """Let those of the attempts run that their engine holds until we have noted what it calls them.

    What is missed here, `observe` sees.
    """
    backend = backend_for(Cluster.objects.get(pk=cluster_id))
    if not isinstance(backend, Holding):
        return
    rows = Attempt.objects.filter(pk__in=attempt_ids, live=True, end_kind="").exclude(handle="")
    handles = [Handle(handle) for handle in rows.order_by("id").values_list("handle", flat=True)]
    if not handles:
        return
    fault("release.before_engine")
    try:
        backend.release(handles)
    except Unreachable as error:
        trouble(cluster_id, str(error))


def take_lease(attempt_id: int) -> Lease | None:
    """Claim the attempt for LEASE of database time; None when somebody else holds it."""
    before = Attempt.objects.values_list("lease_token", flat=True).get(pk=attempt_id)
    token = get_random_string(16)
    taken = (
        Attempt.objects.filter(pk=attempt_id, lease_token=before, handle="", ended_at=None)
        .filter(Q(lease_until=None) | Q(lease_until__lt=Now()))
        .update(lease_token=token, lease_until=Now() + LEASE)
    )
    return Lease(token, again=bool(before)) if taken else None


class _NoAnswer(Exception):
    """The engine did not say whether it took what was handed over."""


def submit_one(attempt_id: int) -> bool:
    """Hand one attempt over to its engine, exactly once; whether that was done now.

    Whoever holds the lease first asks the engine, if anybody held it before, whether it already has
    the key.  The engine's own claim for the key stops a frozen holder that wakes up late.
    """
    try:
        return _submit_one(attempt_id)
    except _NoAnswer:
        return False


def _submit_one(attempt_id: int) -> bool:
    lease = take_lease(attempt_id)
    if lease is None:
        return False
    attempt = Attempt.objects.select_related("job__cluster", "job__owner", "job__quota__workspace").get(
        pk=attempt_id
    )
    structlog.contextvars.bind_contextvars(job=attempt.job.public_id, attempt=attempt.number)
    fault("submit.leased")
    try:
        backend = backend_for(attempt.job.cluster)
        handle = _known(backend, attempt) if lease.again else None
        if handle is None and attempt.end_wanted:
            return _ended_unsent(attempt)
        if handle is None:
            fault("submit.before_engine")
            handle = backend.submit(_submission(attempt))
        fault("submit.after_engine")
    except Refused as refused:
        return _refused(attempt, refused.reason)
    except NotSent as not_sent:
        return _not_sent(attempt, not_sent.reason)
    except (Unknown, Unreachable) as error:
        log.warning("submit_unconfirmed", error=str(error))
        transitions.explain(
            attempt.job, Reason(ReasonCode.UNCONFIRMED, {"cluster": attempt.job.cluster.name})
        )
        raise _NoAnswer from error
    return _accepted(attempt, lease, handle)


def _known(backend: Backend, attempt: Attempt) -> Handle | None:
    found = backend.find([attempt.key]).get(attempt.key, ())
    return found[0] if found else None


def _submission(attempt: Attempt) -> Submission:
    """Everything the engine needs.  Raises NotSent when that is not what was reserved."""
    job = attempt.job
    file = JobFile.objects.get(job=job)
    spec, options = file.spec, sending.options_of(job.dialect, file.extras)
    _check_reserved(attempt, spec)
    came_along = {secret.name: secret.reveal() for secret in JobSecret.objects.filter(job=job)}
    secrets = {**ownsecrets.values_of(job.owner, spec), **came_along, **resolving.secrets_of(job)}
    token = encryption.decrypt(attempt.endpoint_token)
    redaction.remember(attempt, [*secrets.values(), token])
    return replace(
        sending.submission(
            job.owner,
            job.quota,
            spec,
            attempt.key,
            job.public_id,
            attempt.number,
            options,
        ),
        secrets=secrets,
        endpoint_token=token,
        uploads=supply.supplied(job),
    )


def _check_reserved(attempt: Attempt, spec: JobSpec) -> None:
    """What is sent is what was reserved; else nothing is, and it waits with what its file asks for now.

    The two come apart when somebody gives a type of GPU another name, or changes the row by hand.
    Raises NotSent.
    """
    if ledger.correct(attempt.key, services.parts_of(spec)):
        log.warning("reserved_something_else", attempt=attempt.key)
        raise NotSent(Reason(ReasonCode.NEW))


@transaction.atomic
def _accepted(attempt: Attempt, lease: Lease, handle: Handle) -> bool:
    transitions.locked(attempt.job_id)
    mine = Attempt.objects.filter(pk=attempt.pk, lease_token=lease.token, handle="", ended_at=None).update(
        handle=handle, live=True, submitted_at=Now(), lease_until=None
    )
    if not mine:
        return False
    observations.lay_out(attempt)
    phase = Phase.STOPPING if attempt.end_wanted else Phase.ENV_PREPARING
    _apply_fresh(attempt.job, State.PENDING, Reason(ReasonCode.STARTING), phase, Event.Kind.ACCEPTED)
    return True


def _apply_fresh(job: Job, to: State, reason: Reason, phase: Phase, event: Event.Kind) -> None:
    """Apply on the row as it is now: want_end may have raised its version meanwhile."""
    job.version = Job.objects.values_list("version", flat=True).get(pk=job.pk)
    transitions.apply(job, to, reason, phase=phase, event=event)


def _refused(attempt: Attempt, reason: Reason) -> bool:
    with transaction.atomic():
        attempt.job.refresh_from_db()
        transitions.end(attempt.job, attempt, State.FAILED, reason)
    return True


def _ended_unsent(attempt: Attempt) -> bool:
    """Somebody wants its end and nothing was started: it has ended, or queues again if it only made room."""
    with transaction.atomic():
        attempt.job = transitions.locked(attempt.job_id)
        observations.settle(attempt.job, attempt, State.STOPPED, observations.intended(attempt))
    return True


def _not_sent(attempt: Attempt, reason: Reason) -> bool:
    """Certainly nothing was started: back into the queue, looked at again by the next sweep."""
    try:
        with transaction.atomic():
            attempt.job.refresh_from_db()
            transitions.apply(attempt.job, State.QUEUED, reason, phase=Phase.QUEUING, unless_end_wanted=True)
            Attempt.objects.filter(pk=attempt.pk).update(lease_token="", lease_until=None)
            ledger.put_back(attempt.key)
            Request.objects.filter(holder=attempt.key).update(not_before=Now() + timedelta(seconds=2))
    except transitions.Overtaken:
        attempt.refresh_from_db()
        if attempt.end_wanted:
            _ended_unsent(attempt)
    return False


# --- look ------------------------------------------------------------------------------------------------


def observe(cluster_id: int) -> None:
    """One look at every live attempt of the cluster, and what follows from it."""
    attempts = list(
        Attempt.objects.filter(live=True, job__cluster_id=cluster_id)
        .select_related("job__cluster", "job__owner")
        .order_by("id")
    )
    if not attempts:
        return
    try:
        backend = backend_for(attempts[0].job.cluster)
        end_wanted(backend, attempts)
        extend_wanted(backend, attempts)
        with _timed(backend, cluster_id):
            seen = backend.observe([Handle(attempt.handle) for attempt in attempts])
    except Unreachable as error:
        trouble(cluster_id, str(error))
        return
    try:
        _release_held(backend, attempts, seen)
    except Unreachable as error:  # which may be about one person's jobs, and what was seen is true
        trouble(cluster_id, str(error))
    for attempt in attempts:
        what = seen[Handle(attempt.handle)]
        if isinstance(what, Unseen):
            continue
        if isinstance(what, Gone):
            gone(attempt)
        elif what.version != attempt.observed_version:
            observations.apply(attempt, what)
            if Capability.SHRINKS in backend.capabilities:
                observations.give_back(attempt, what)
    if untold := sorted({what.why for what in seen.values() if isinstance(what, Unseen)}):
        trouble(cluster_id, "; ".join(untold))


@contextmanager
def _timed(backend: Backend, cluster_id: int) -> Iterator[None]:
    """A look whose length decides when the next is due, where others wait for the same controller."""
    if Capability.SCHEDULES not in backend.capabilities:
        yield
        return
    began = time.monotonic()
    try:
        yield
    except Unreachable:
        pace.unanswered(cluster_id)
        raise
    pace.looked(cluster_id, time.monotonic() - began)


def _release_held(
    backend: Backend, attempts: Iterable[Attempt], seen: Mapping[Handle, Observation | Gone | Unseen]
) -> None:
    """Let those run whose submitter noted them and died before it could."""
    held = []
    for attempt in attempts:
        what = seen[Handle(attempt.handle)]
        if isinstance(what, Observation) and what.held and not attempt.end_kind:
            held.append(Handle(attempt.handle))
    if held and isinstance(backend, Holding):
        backend.release(held)


def trouble(cluster_id: int, text: str) -> None:
    """The engine did not answer: says nothing about any job, but admins should know."""
    log.warning("cluster_away", cluster=cluster_id, error=text)
    Cluster.objects.filter(pk=cluster_id).update(trouble=text[:2000])


def gone(attempt: Attempt) -> None:
    """The engine answered and does not know the attempt: lost, once that was said often enough."""
    count = attempt.gone_count + 1
    Attempt.objects.filter(pk=attempt.pk, gone_count=attempt.gone_count).update(gone_count=count)
    job = attempt.job
    if count < GONE_TIMES or State(job.state) is State.LOST or attempt.number != job.attempt_number:
        return
    try:
        with transaction.atomic():
            if attempt.end_wanted:
                transitions.end(job, attempt, State.STOPPED, observations.intended(attempt))
            else:
                transitions.end(
                    job, attempt, State.LOST, Reason(ReasonCode.LOST, {"cluster": job.cluster.name})
                )
    except transitions.Overtaken:
        log.info("overtaken", job=job.public_id)


def end_wanted(backend: Backend, attempts: Iterable[Attempt]) -> None:
    """Ask the engine to end what somebody wants to end, once and then now and again."""
    for attempt in attempts:
        if not attempt.end_kind:
            continue
        due = (
            Attempt.objects.filter(pk=attempt.pk)
            .filter(Q(end_asked_at=None) | Q(end_asked_at__lt=Now() - STOP_AGAIN))
            .update(end_asked_at=Now())
        )
        if due:
            end_one(backend, attempt)


def end_one(backend: Backend, attempt: Attempt) -> None:
    """Ask the engine to end one attempt; the state changes only when the end is observed."""
    signal, grace_s = _warning(attempt, JobFile.objects.get(job_id=attempt.job_id).spec)
    fault("stop.before_engine")
    try:
        backend.stop(Handle(attempt.handle), grace_s=grace_s, signal=signal)
    except Unreachable as error:
        Attempt.objects.filter(pk=attempt.pk).update(end_asked_at=None)
        trouble(attempt.job.cluster_id, str(error))
        return
    fault("stop.after_engine")
    transitions.record(attempt.job, Event.Kind.END_ASKED, params={"kind": EndKind(attempt.end_kind).value})


def extend_wanted(backend: Backend, attempts: Iterable[Attempt]) -> None:
    """Tell the engine of time that was added; where it can't be, take the wish back and say so."""
    for attempt in attempts:
        if attempt.extended_s <= attempt.extended_told_s or attempt.end_kind:
            continue
        mine = Attempt.objects.filter(pk=attempt.pk, extended_s=attempt.extended_s)
        if Capability.EXTENDS not in backend.capabilities or not isinstance(backend, Extending):
            if mine.update(extended_s=attempt.extended_told_s):
                transitions.record(attempt.job, Event.Kind.NOT_EXTENDED)
            continue
        limit = JobFile.objects.get(job_id=attempt.job_id).spec.time_limit_s
        if limit is not None:
            backend.extend(Handle(attempt.handle), limit + attempt.extended_s)
            mine.update(extended_told_s=attempt.extended_s)


def _warning(attempt: Attempt, spec: JobSpec) -> tuple[str, int]:
    """How the attempt is told, and how long it has then: as its job asked for when it has to make room."""
    if spec.end_signal is not None and attempt.end_wanted in retries.RETURNING:
        return spec.end_signal.signal, max(spec.grace_s, spec.end_signal.seconds_before)
    return "TERM", spec.grace_s


# --- inventory -------------------------------------------------------------------------------------------


def take_inventory(cluster_id: int) -> None:
    """Ask the cluster what it has, and remember it."""
    cluster = Cluster.objects.get(pk=cluster_id)
    held = inventory.held_on(cluster)
    try:
        seen = backend_for(cluster).inventory()
    except Unreachable as error:
        trouble(cluster_id, str(error))
        return
    nodes: Iterable[NodeSeen] = seen.nodes
    if seen.jobs is not None:
        theirs = others.of_others(cluster, seen.jobs)
        others.record(cluster, theirs)
        nodes = others.nodes_used(seen, theirs)
    reports = [observations.node_report(node) for node in nodes]
    inventory.record(cluster, reports, held, [asdict(each) for each in seen.set_aside])


# --- sweep and tidy --------------------------------------------------------------------------------------


def due_clusters() -> dict[queue.Step, list[int]]:
    """Which steps are due for which clusters, by the database alone."""
    unfinished = Job.objects.exclude(state__in=["SUCCEEDED", "FAILED", "STOPPED"]).order_by()
    waiting = unfinished.filter(state__in=["QUEUED", "SUBMITTING"]).values_list("cluster_id", flat=True)
    live = Attempt.objects.filter(live=True).order_by().values_list("job__cluster_id", flat=True)
    known = Node.objects.order_by().values_list("cluster_id", flat=True).distinct()
    trials = AssetTrial.objects.filter(ended_at=None).order_by().values_list("cluster_id", flat=True)
    return {
        "drain": sorted({*waiting, *snapshot.restless(), *trials.filter(state="waiting")}),
        "observe": sorted({*live.exclude(job__cluster__in=pace.resting()), *trials.filter(state="trying")}),
        # Nothing is admitted to a cluster of which nothing is known, a new one for instance.
        "inventory": sorted({*waiting} - {*known}),
    }


def sealable() -> list[int]:
    """Ended attempts whose logs are not stored yet."""
    rows = Attempt.objects.filter(ended_at__isnull=False, logs_sealed_at=None, live=False)
    return list(rows.order_by("id").values_list("pk", flat=True)[:500])
