"""What workers do, step by step: send, look, end, tidy.  Admission is in `jobs.scheduling.admitting`.

Each step loads in a short transaction, calls the engine outside any, and applies what it learnt guarded
by lease, version or state.  Every step may be killed at any instruction and run again by anybody: the
database says what is due, and an attempt's key says what the engine already has.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Final

import structlog
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.crypto import get_random_string

from jobs.assets import ownsecrets, resolving
from jobs.assets.uploads import supply
from jobs.backends.base import (
    Backend,
    Extending,
    Gone,
    Handle,
    Holding,
    NodeSeen,
    NotSent,
    Observation,
    Refused,
    Reserved,
    Several,
    Submission,
    Unknown,
    Unreachable,
    Unseen,
)
from jobs.backends.hands import Hands
from jobs.engines import backend_for
from jobs.faults import fault
from jobs.lifecycle import retries, transitions
from jobs.live import queue
from jobs.logs import redaction
from jobs.models import AssetTrial, Attempt, Event, Job, JobFile
from jobs.scheduling import admitting, observations, others
from jobs.spec import JobSpec
from jobs.states import EndKind, Phase, Reason, ReasonCode, State
from jobs.submission import afters, parts_of, sending
from quotas import encryption, ledger
from quotas.admission import snapshot
from quotas.clusters import gputypes, inventory, pace
from quotas.models import Cluster, Node, Request

log = structlog.get_logger(__name__)

LEASE: Final = timedelta(seconds=6)
"""How long a worker may take to hand one attempt over before another looks what became of it."""

CHOSEN: Final = 200
"""So many attempts are handed over before those are let go that wait for it."""

EACH: Final = 8
"""Where an engine takes several at the same time, so many times as many have their leases taken, rows read
and their handles noted together.
"""

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
    chosen = list(due[:CHOSEN])
    sent = sum(_hand_over(Cluster.objects.get(pk=cluster_id), chosen)) if chosen else 0
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


@transaction.atomic
def take_leases(attempt_ids: Collection[int]) -> dict[int, Lease]:
    """Claim attempts for LEASE of database time; those that somebody else holds are left out."""
    free = (
        Attempt.objects.filter(pk__in=attempt_ids, handle="", ended_at=None)
        .filter(Q(lease_until=None) | Q(lease_until__lt=Now()))
        .select_for_update(skip_locked=True, no_key=True)
        .order_by("id")
    )
    before = dict(free.values_list("pk", "lease_token"))
    token = get_random_string(16)
    Attempt.objects.filter(pk__in=before).update(lease_token=token, lease_until=Now() + LEASE)
    return {pk: Lease(token, again=bool(earlier)) for pk, earlier in before.items()}


class _Left(Exception):
    """Its engine was not asked: it did not answer for another one, or its lease may end meanwhile."""


class _Unwanted(Exception):
    """Its engine was not asked, as somebody wants its end."""


@dataclass(slots=True)
class _Given:
    """An attempt that is being handed over; `outcome` is what its engine calls it, or why it does not."""

    attempt: Attempt
    lease: Lease
    outcome: Future[Handle | Exception] = field(default_factory=Future)


def _hand_over(cluster: Cluster, attempt_ids: Sequence[int]) -> Iterator[int]:
    """Hand these over, and tell of every few how many were.

    Whoever holds a lease first asks the engine, if anybody held it before, whether it already has
    the key.  The engine's own claim for the key stops a frozen holder that wakes up late.

    An engine that takes several at the same time is asked by threads; meanwhile those before are noted, and
    those behind are made ready.  Once there is no answer the rest is left alone: each would be waited for.
    """
    try:
        backend = backend_for(cluster)
    except Unreachable as error:
        given = _leased(attempt_ids[:1])
        _set(given, error)
        yield _settled(given)
        return
    at_once = backend.at_once if isinstance(backend, Several) else 1
    few = at_once * EACH if at_once > 1 else 1
    silent, before = threading.Event(), list[_Given]()
    with Hands(at_once) as hands:
        for first in range(0, len(attempt_ids), few):
            given = _begun(backend, attempt_ids[first : first + few], hands, silent)
            yield _settled(before)
            before = given
            if silent.is_set():
                break
        yield _settled(before)


def _leased(attempt_ids: Collection[int]) -> list[_Given]:
    leases = take_leases(attempt_ids)
    rows = (
        Attempt.objects.filter(pk__in=leases)
        .select_related("job__cluster", "job__owner", "job__quota__workspace", "job__file")
        .prefetch_related("job__secrets", "job__asset_uses", "job__trees__tree__manifest")
    )
    return [_Given(attempt, leases[attempt.pk]) for attempt in rows.order_by("id")]


def _set(given: Iterable[_Given], error: Exception) -> None:
    for each in given:
        each.outcome.set_result(error)


def _begun(
    backend: Backend, attempt_ids: Collection[int], hands: Hands, silent: threading.Event
) -> list[_Given]:
    """Have the engine asked for those of the attempts that nobody else hands over."""
    until = time.monotonic() + LEASE.total_seconds() / 2
    given = _leased(attempt_ids)
    fault("submit.leased")
    again = [each for each in given if each.lease.again]
    try:
        known = backend.find([each.attempt.key for each in again]) if again else {}
    except Unreachable as error:
        silent.set()
        _set(again, error)
        _set([each for each in given if not each.lease.again], _Left())
        return given
    wanted = []
    for each in given:
        if handles := known.get(each.attempt.key):
            each.outcome.set_result(handles[0])
        elif each.attempt.end_wanted:
            each.outcome.set_result(_Unwanted())
        else:
            wanted.append(each)
    ready: list[tuple[_Given, Submission]] = []
    reserved = _reserved([each.attempt for each in wanted])
    for each, is_reserved in zip(wanted, _are_reserved(wanted), strict=True):
        if is_reserved:
            ready.append((each, replace(_submission(each.attempt), reserved=reserved[each.attempt.key])))
        else:
            each.outcome.set_result(NotSent(Reason(ReasonCode.NEW)))
    redaction.remember((each.attempt, _confided(submission)) for each, submission in ready)
    for place, (each, submission) in enumerate(ready):
        last = until if place else math.inf  # one is always asked for, however long the others took
        each.outcome = hands.do(partial(_asked, backend, each.attempt, submission, silent, last))
    return given


def _asked(
    backend: Backend, attempt: Attempt, submission: Submission, silent: threading.Event, until: float
) -> Handle | Exception:
    """What the engine says to one attempt; maybe in a thread, and without the database."""
    if silent.is_set() or time.monotonic() > until:
        return _Left()
    with structlog.contextvars.bound_contextvars(job=submission.job_id, attempt=attempt.number):
        fault("submit.before_engine")
        try:
            handle = backend.submit(submission)
        except (Refused, NotSent) as error:
            return error
        except (Unknown, Unreachable) as error:
            log.warning("submit_unconfirmed", error=str(error))
            silent.set()
            return error
        fault("submit.after_engine")
        return handle


def _settled(given: Sequence[_Given]) -> int:
    """Note what came of these; how many are done with."""
    outcomes = [(each, each.outcome.exception() or each.outcome.result()) for each in given]
    accepted = [(each, what) for each, what in outcomes if isinstance(what, str)]
    others = [(each, what) for each, what in outcomes if not isinstance(what, str)]
    count = _accepted(accepted) if accepted else 0
    return count + sum(_not_accepted(each, what) for each, what in others)


def _not_accepted(given: _Given, why: BaseException) -> bool:
    attempt, lease = given.attempt, given.lease
    if isinstance(why, Refused):
        return _refused(attempt, why.reason)
    if isinstance(why, NotSent):
        return _not_sent(attempt, why.reason)
    if isinstance(why, _Unwanted):
        return _ended_unsent(attempt)
    if isinstance(why, _Left):
        mine = Attempt.objects.filter(pk=attempt.pk, lease_token=lease.token)
        mine.update(lease_until=None, lease_token=lease.token if lease.again else "")
        return False
    if not isinstance(why, Unknown | Unreachable):
        raise why
    transitions.explain(attempt.job, Reason(ReasonCode.UNCONFIRMED, {"cluster": attempt.job.cluster.name}))
    return False


def _submission(attempt: Attempt) -> Submission:
    """Everything the engine needs."""
    job = attempt.job
    spec, options = job.file.spec, sending.options_of(job.dialect, job.file.extras)
    came_along = {secret.name: secret.reveal() for secret in job.secrets.all()}
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
        secrets={**ownsecrets.values_of(job.owner, spec), **came_along, **resolving.secrets_of(job)},
        endpoint_token=encryption.decrypt(attempt.endpoint_token),
        uploads=supply.supplied(job),
    )


def _reserved(attempts: Sequence[Attempt]) -> dict[str, tuple[Reserved, ...]]:
    """What admission gave each attempt where, its GPUs by the names that the engine has for them."""
    found = ledger.shares([attempt.key for attempt in attempts])
    raw: dict[str, str] = {}
    if any(share.amounts.gpu_count for shares in found.values() for share in shares):
        raw = inventory.raw_types(attempts[0].job.cluster_id)
    return {
        attempt.key: tuple(
            Reserved(
                share.node,
                {raw.get(kind, kind): count for kind, count in share.amounts.gpus.items() if count},
                tuple(share.indexes),
            )
            for share in found.get(attempt.key, ())
        )
        for attempt in attempts
    }


def _confided(submission: Submission) -> list[str]:
    """What no log may tell."""
    return [*submission.secrets.values(), submission.endpoint_token]


def _are_reserved(given: Iterable[_Given]) -> Iterator[bool]:
    """What is sent is what was reserved; else nothing is, and it waits with what its file asks for now.

    The two come apart when somebody gives a type of GPU another name, or changes the row by hand.
    """
    attempts = [each.attempt for each in given]
    known, asked = gputypes.names(), ledger.asked_for([attempt.key for attempt in attempts])
    for attempt in attempts:
        parts = parts_of(attempt.job.file.spec, known)
        same = attempt.key not in asked or asked[attempt.key] == [part.to_json() for part in parts]
        if not same and ledger.correct(attempt.key, parts):
            log.warning("reserved_something_else", attempt=attempt.key)
        yield same


@transaction.atomic
def _accepted(given: Sequence[tuple[_Given, Handle]]) -> int:
    """Note what the engine calls them, and that they wait there; how many nobody else had noted."""
    jobs = {job.pk: job for job in transitions.all_locked([each.attempt.job_id for each, _handle in given])}
    mine = []
    for each, handle in given:
        free = Attempt.objects.filter(pk=each.attempt.pk, handle="", ended_at=None)
        held = free.filter(lease_token=each.lease.token)
        if held.update(handle=handle, live=True, submitted_at=Now(), lease_until=None):
            mine.append(each.attempt)
    observations.lay_out(mine)
    for phase, wanted in ((Phase.ENV_PREPARING, False), (Phase.STOPPING, True)):
        some = [jobs[attempt.job_id] for attempt in mine if bool(attempt.end_wanted) is wanted]
        transitions.apply_to_all(
            some, State.PENDING, Reason(ReasonCode.STARTING), phase=phase, event=Event.Kind.ACCEPTED
        )
    return len(mine)


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
            if backend.can_shrink:
                observations.give_back(attempt, what)
    if untold := sorted({what.why for what in seen.values() if isinstance(what, Unseen)}):
        trouble(cluster_id, "; ".join(untold))


@contextmanager
def _timed(backend: Backend, cluster_id: int) -> Iterator[None]:
    """A look whose length decides when the next is due, where others wait for the same controller."""
    if not backend.has_scheduler:
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
        if not isinstance(backend, Extending):
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
        others.book_types(cluster, seen.jobs)
        others.record(cluster, theirs)
        nodes = others.nodes_used(seen, theirs)
    reports = [observations.node_report(node) for node in nodes]
    facilities = seen.facilities.to_json() if seen.facilities else None
    inventory.record(cluster, reports, held, [asdict(each) for each in seen.set_aside], facilities)


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
