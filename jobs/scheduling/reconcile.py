"""Reconcile pass of a worker: submit, observe, end.  Admission is in `jobs.scheduling.admission`.

Each step loads in a short transaction, calls the backend outside any, and applies the result guarded by
lease, version or state.  Every step may be killed at any instruction and run again by any worker: the
database says what is due, and an attempt's key says what the backend already has.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from functools import cache, partial
from typing import Final

import structlog
from django.db import transaction
from django.db.models import Case, Q, Value, When
from django.db.models.functions import Now
from django.db.models.lookups import Exact
from django.utils.crypto import get_random_string

from jobs.access import attempt_tokens
from jobs.access.attempt_tokens import Purpose
from jobs.access.instance_roles import credentials
from jobs.assets import personal_secrets, resolution, site_storage
from jobs.assets.uploads import supply
from jobs.backends.base import (
    Backend,
    ConcurrentSubmission,
    Extending,
    Gone,
    Handle,
    HeldSubmission,
    NodeSeen,
    NotSubmitted,
    Observation,
    Refused,
    Reserved,
    Submission,
    Unknown,
    Unreachable,
    Unseen,
)
from jobs.backends.thread_pool import ThreadPool
from jobs.clusters import backend_for
from jobs.facilities import StorageMapping
from jobs.faults import fault
from jobs.lifecycle import retries, transitions
from jobs.live import timings, triggers
from jobs.logs import redaction
from jobs.models import AssetCheck, Attempt, Event, Job, JobFile
from jobs.models.jobs import is_unfinished
from jobs.scheduling import (
    admission,
    external_jobs,
    fault_diagnosis,
    faulty_nodes,
    observations,
    replica_restarts,
    sanity_checks,
)
from jobs.spec import JobSpec
from jobs.states import EndKind, Phase, Reason, ReasonCode, State
from jobs.submission import builder, dependencies, node_checks, parts_of
from quotas import encryption, ledger
from quotas.admission import snapshot
from quotas.clusters import gputypes, inventory, poll_interval
from quotas.models import Cluster, Node, Request
from quotas.models.expressions import Unindexed

log = structlog.get_logger(__name__)

LEASE: Final = timedelta(seconds=6)
"""Time in which a worker submits an attempt before another one may take it over."""

CHOSEN: Final = 200
"""Attempts that are submitted before held ones are released."""

EACH: Final = 8
"""Batch size of leases, reads and writes, in multiples of the backend's parallel submissions."""

STOP_AGAIN: Final = timedelta(seconds=10)
"""Time after which a stop that has not been observed is requested again."""

GONE_TIMES: Final = 3
"""An attempt is lost once the backend did not know it in this many observations in a row."""


def drain(cluster_id: int) -> None:
    """Admit the attempts that may start now, and submit them, until there are no more."""
    while dependencies.settle(cluster_id) + admission.admit(cluster_id) + send(cluster_id):
        pass


# --- send ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to submit one attempt; `again` when another worker had it before."""

    token: str
    again: bool


def send(cluster_id: int) -> int:
    """Submit every admitted attempt without a lease; return how many."""
    due = (
        Attempt.objects.filter(
            is_unfinished("job__"), job__cluster_id=cluster_id, job__state=State.SUBMITTING
        )
        .filter(handle="", ended_at=None)
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
    """Release the attempts that the backend holds until their handle is stored.

    `observe` releases those that are missed here.
    """
    backend = backend_for(Cluster.objects.get(pk=cluster_id))
    if not isinstance(backend, HeldSubmission):
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
    """Claim attempts for LEASE of database time; those with another worker's lease are left out."""
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
    """The backend was not asked: it did not answer for another attempt, or the lease may expire."""


class _Unwanted(Exception):
    """The backend was not asked, as the attempt is to end."""


@dataclass(slots=True)
class _Given:
    """An attempt that is being submitted; `outcome` is its handle, or the error."""

    attempt: Attempt
    lease: Lease
    outcome: Future[Handle | Exception] = field(default_factory=Future)


def _hand_over(cluster: Cluster, attempt_ids: Sequence[int]) -> Iterator[int]:
    """Submit attempts in batches, and yield how many of each batch were settled.

    If another worker held the lease before, the backend is first asked whether it already has the key.  The
    backend's own claim for the key stops a frozen holder that wakes up late.

    A backend that takes several at the same time is called by threads; meanwhile the batch before is stored,
    and the next one prepared.  Where it takes them one by one, a batch is stored once it is submitted.
    Once there is no answer the rest is left alone: each would wait for a timeout.
    """
    try:
        backend = backend_for(cluster)
    except Unreachable as error:
        given = _lease(cluster, attempt_ids[:1])
        _set_outcome(given, error)
        yield _settle(given)
        return
    at_once = backend.at_once if isinstance(backend, ConcurrentSubmission) else 1
    few = at_once * EACH
    silent, before = threading.Event(), list[_Given]()
    with ThreadPool(at_once) as hands:
        for first in range(0, len(attempt_ids), few):
            given = _begin(backend, cluster, attempt_ids[first : first + few], hands, silent)
            yield _settle(before)
            before = given
            if at_once == 1:  # nothing goes on meanwhile, and leases are short
                yield _settle(before)
                before = []
            if silent.is_set():
                break
        yield _settle(before)


def _lease(cluster: Cluster, attempt_ids: Collection[int]) -> list[_Given]:
    leases = take_leases(attempt_ids)
    rows = (
        Attempt.objects.filter(pk__in=leases)
        .select_related("job__owner", "job__quota__workspace", "job__file")
        .prefetch_related("job__secrets", "job__asset_uses", "job__trees__tree__manifest")
    )
    given = [_Given(attempt, leases[attempt.pk]) for attempt in rows.order_by("id")]
    for each in given:
        each.attempt.job.cluster = cluster  # the same for all, with large columns
    return given


def _set_outcome(given: Iterable[_Given], error: Exception) -> None:
    for each in given:
        each.outcome.set_result(error)


def _begin(
    backend: Backend,
    cluster: Cluster,
    attempt_ids: Collection[int],
    hands: ThreadPool,
    silent: threading.Event,
) -> list[_Given]:
    """Lease attempts and begin to submit them."""
    until = time.monotonic() + LEASE.total_seconds() / 2
    given = _lease(cluster, attempt_ids)
    fault("submit.leased")
    again = [each for each in given if each.lease.again]
    try:
        known = backend.find([each.attempt.key for each in again]) if again else {}
    except Unreachable as error:
        silent.set()
        _set_outcome(again, error)
        _set_outcome([each for each in given if not each.lease.again], _Left())
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
    reserved = _reservations([each.attempt for each in wanted])
    avoided = faulty_nodes.list_avoided([each.attempt for each in wanted])
    counts = ledger.granted_counts([each.attempt.key for each in wanted])
    mappings = cache(site_storage.supply_mappings)  # the same for all jobs of a workspace
    for each, is_reserved in zip(wanted, _check_reserved(wanted), strict=True):
        if is_reserved:
            key = each.attempt.key
            submission = _submission(
                each.attempt, counts.get(key), avoided.get(each.attempt.pk, ()), mappings
            )
            ready.append((each, replace(submission, reserved=reserved[key])))
        else:
            each.outcome.set_result(NotSubmitted(Reason(ReasonCode.NEW)))
    redaction.store_secrets((each.attempt, _list_secrets(submission)) for each, submission in ready)
    for position, (each, submission) in enumerate(ready):
        last = until if position else math.inf  # one is always submitted, however long the others took
        each.outcome = hands.do(partial(_submit, backend, each.attempt, submission, silent, last))
    return given


def _submit(
    backend: Backend, attempt: Attempt, submission: Submission, silent: threading.Event, until: float
) -> Handle | Exception:
    """Submit one attempt; maybe in a thread, and without the database."""
    if silent.is_set() or time.monotonic() > until:
        return _Left()
    with structlog.contextvars.bound_contextvars(job=submission.job_id, attempt=attempt.number):
        fault("submit.before_engine")
        try:
            with timings.engine_call(attempt.job.cluster.slug, "submit"):
                handle = backend.submit(submission)
        except (Refused, NotSubmitted) as error:
            return error
        except (Unknown, Unreachable) as error:
            log.warning("submit_unconfirmed", error=str(error))
            silent.set()
            return error
        fault("submit.after_engine")
        return handle


def _settle(given: Sequence[_Given]) -> int:
    """Store the outcomes of submissions; return how many attempts are settled."""
    outcomes = [(each, each.outcome.exception() or each.outcome.result()) for each in given]
    accepted = [(each, what) for each, what in outcomes if isinstance(what, str)]
    failed = [(each, what) for each, what in outcomes if not isinstance(what, str)]
    count = _accept(accepted) if accepted else 0
    return count + sum(_settle_failed(each, what) for each, what in failed)


def _settle_failed(given: _Given, why: BaseException) -> bool:
    attempt, lease = given.attempt, given.lease
    if isinstance(why, Refused):
        return _end_refused(attempt, why.reason)
    if isinstance(why, NotSubmitted):
        return _queue_again(attempt, why.reason)
    if isinstance(why, _Unwanted):
        return _end_unsent(attempt)
    if isinstance(why, _Left):
        mine = Attempt.objects.filter(pk=attempt.pk, lease_token=lease.token)
        mine.update(lease_until=None, lease_token=lease.token if lease.again else "")
        return False
    if not isinstance(why, Unknown | Unreachable):
        raise why
    transitions.explain(attempt.job, Reason(ReasonCode.UNCONFIRMED, {"cluster": attempt.job.cluster.name}))
    return False


def _submission(
    attempt: Attempt,
    counts: Sequence[int] | None = None,
    avoided: Sequence[str] = (),
    mappings: Callable[[int, int], dict[str, StorageMapping]] = site_storage.supply_mappings,
) -> Submission:
    """Return the attempt's complete submission, with its secrets; it runs on none of the `avoided` nodes.

    `counts` are the granted replicas of each role, None for all.
    """
    job = attempt.job
    spec = node_checks.adapt(job.file.spec, attempt)
    if counts is not None:
        spec = spec.with_counts(counts)
    if avoided:
        spec = faulty_nodes.exclude_nodes(spec, avoided)
    options = builder.options_of(job.dialect, job.file.extras)
    role = credentials.role_of(job) if spec.instance_role else None
    job_secrets = {secret.name: secret.reveal() for secret in job.secrets.all()}
    return replace(
        builder.build_submission(
            job.owner, job.quota, spec, attempt.key, job.public_id, attempt.number, options, role
        ),
        secrets={**personal_secrets.values_of(job.owner, spec), **job_secrets, **resolution.secrets_of(job)},
        endpoint_token=encryption.decrypt(attempt.endpoint_token),
        role_token=attempt_tokens.make_token(attempt.key, Purpose.ROLE_CREDENTIALS) if role else "",
        tracking_token=attempt_tokens.make_token(attempt.key, Purpose.TRACKING),
        uploads=supply.supply_trees(job),
        storage=mappings(job.cluster_id, job.workspace_id) if spec.mounts or spec.code else {},
    )


def _reservations(attempts: Sequence[Attempt]) -> dict[str, tuple[Reserved, ...]]:
    """Return each attempt's reservations by node, with the backend's own names for GPU types."""
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


def _list_secrets(submission: Submission) -> list[str]:
    """Return the values that logs must not show."""
    own = (submission.endpoint_token, submission.role_token, submission.tracking_token)
    return [*submission.secrets.values(), *own]


def _check_reserved(given: Iterable[_Given]) -> Iterator[bool]:
    """Yield whether each job's resource requests are those that were reserved; correct the others' requests.

    They differ when an admin renames a type of GPU, or changes the row by hand.
    """
    attempts = [each.attempt for each in given]
    known, asked = gputypes.names(), ledger.stored_parts([attempt.key for attempt in attempts])
    for attempt in attempts:
        parts = parts_of(attempt.job.file.spec, known)
        same = attempt.key not in asked or asked[attempt.key] == [part.to_json() for part in parts]
        if not same and ledger.correct(attempt.key, parts):
            log.warning("reserved_something_else", attempt=attempt.key)
        yield same


@transaction.atomic
def _accept(given: Sequence[tuple[_Given, Handle]]) -> int:
    """Store the handles of accepted attempts and make their jobs PENDING; return how many were new."""
    jobs = {job.pk: job for job in transitions.lock_jobs([each.attempt.job_id for each, _handle in given])}
    leases = {each.lease.token for each, _handle in given}
    held = Attempt.objects.filter(
        pk__in=[each.attempt.pk for each, _handle in given],
        handle="",
        ended_at=None,
        lease_token__in=leases,
    )
    held_pks = set(held.select_for_update(no_key=True).order_by("id").values_list("pk", flat=True))
    handles = {each.attempt.pk: handle for each, handle in given if each.attempt.pk in held_pks}
    mine = [each.attempt for each, _handle in given if each.attempt.pk in held_pks]
    if handles:
        stored = Case(*(When(pk=pk, then=Value(handle)) for pk, handle in handles.items()))
        Attempt.objects.filter(pk__in=handles).update(
            handle=stored, live=True, submitted_at=Now(), lease_until=None
        )
    if any(attempt.job.file.spec.instance_role for attempt in mine):
        triggers.trigger_on_commit("renew_credentials", mine[0].job.cluster_id)
    observations.lay_out(mine)
    for phase, wanted in ((Phase.ENV_PREPARING, False), (Phase.STOPPING, True)):
        some = [jobs[attempt.job_id] for attempt in mine if bool(attempt.end_wanted) is wanted]
        transitions.apply_to_all(
            some, State.PENDING, Reason(ReasonCode.STARTING), phase=phase, event=Event.Kind.ACCEPTED
        )
    return len(mine)


def _end_refused(attempt: Attempt, reason: Reason) -> bool:
    with transaction.atomic():
        attempt.job.refresh_from_db()
        transitions.end(attempt.job, attempt, State.FAILED, reason)
    return True


def _end_unsent(attempt: Attempt) -> bool:
    """End an unwanted attempt that was never started, or queue it again if it only made room."""
    with transaction.atomic():
        attempt.job = transitions.lock_job(attempt.job_id)
        observations.settle(attempt.job, attempt, State.STOPPED, observations.intended_reason(attempt))
    return True


def _queue_again(attempt: Attempt, reason: Reason) -> bool:
    """Put an attempt that was certainly not started back into the queue."""
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
            _end_unsent(attempt)
    return False


# --- look ------------------------------------------------------------------------------------------------


def observe(cluster_id: int) -> None:
    """Observe every live attempt of the cluster, and apply what was seen."""
    attempts = list(
        Attempt.objects.filter(Exact(Unindexed("job__cluster_id"), cluster_id), live=True)
        .select_related("job__cluster", "job__owner")
        .order_by("id")
    )
    if not attempts:
        return
    try:
        backend = backend_for(attempts[0].job.cluster)
        end_wanted(backend, attempts)
        extend_wanted(backend, attempts)
        slug = attempts[0].job.cluster.slug
        with _poll_timer(backend, cluster_id), timings.engine_call(slug, "observe"):
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
        if isinstance(what, Gone):
            count_missing(attempt)
        elif isinstance(what, Observation):
            _apply(backend, attempt, what)
    if unseen := sorted({what.why for what in seen.values() if isinstance(what, Unseen)}):
        trouble(cluster_id, "; ".join(unseen))


def _apply(backend: Backend, attempt: Attempt, seen: Observation) -> None:
    """Apply an observation where it is new, and decide about the replicas that wait for it."""
    if seen.version != attempt.observed_version:
        judged = sanity_checks.judge(seen)
        observations.apply(attempt, judged, fault_diagnosis.diagnose(attempt, judged))
        if backend.can_shrink:
            observations.give_back(attempt, judged)
    try:
        replica_restarts.answer(backend, attempt, seen)
    except Unreachable as error:  # the next observation gives the order again
        trouble(attempt.job.cluster_id, str(error))


@contextmanager
def _poll_timer(backend: Backend, cluster_id: int) -> Iterator[None]:
    """Time an observation; its length decides when the next is due, where a controller is shared."""
    if not backend.has_scheduler:
        yield
        return
    began = time.monotonic()
    try:
        yield
    except Unreachable:
        poll_interval.record_failure(cluster_id)
        raise
    poll_interval.record_poll(cluster_id, time.monotonic() - began)


def _release_held(
    backend: Backend, attempts: Iterable[Attempt], seen: Mapping[Handle, Observation | Gone | Unseen]
) -> None:
    """Release held attempts whose worker stored the handle and was killed before it could release them."""
    held = []
    for attempt in attempts:
        what = seen[Handle(attempt.handle)]
        if isinstance(what, Observation) and what.held and not attempt.end_kind:
            held.append(Handle(attempt.handle))
    if held and isinstance(backend, HeldSubmission):
        backend.release(held)


def trouble(cluster_id: int, text: str) -> None:
    """Record that the backend did not answer, for admins; it means nothing for any job."""
    log.warning("cluster_away", cluster=cluster_id, error=text)
    Cluster.objects.filter(pk=cluster_id).update(trouble=text[:2000])


def count_missing(attempt: Attempt) -> None:
    """Count that the backend does not know the attempt; after GONE_TIMES in a row it is lost."""
    count = attempt.gone_count + 1
    Attempt.objects.filter(pk=attempt.pk, gone_count=attempt.gone_count).update(gone_count=count)
    job = attempt.job
    if count < GONE_TIMES or State(job.state) is State.LOST or attempt.number != job.attempt_number:
        return
    try:
        with transaction.atomic():
            if attempt.end_wanted:
                transitions.end(job, attempt, State.STOPPED, observations.intended_reason(attempt))
            else:
                transitions.end(
                    job, attempt, State.LOST, Reason(ReasonCode.LOST, {"cluster": job.cluster.name})
                )
    except transitions.Overtaken:
        log.info("overtaken", job=job.public_id)


def end_wanted(backend: Backend, attempts: Iterable[Attempt]) -> None:
    """Ask the backend to end the attempts that are to end, again every STOP_AGAIN."""
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
    """Ask the backend to end one attempt; the state changes only when the end is observed."""
    signal, grace_s = _end_signal(attempt, JobFile.objects.get(job_id=attempt.job_id).spec)
    fault("stop.before_engine")
    try:
        with timings.engine_call(attempt.job.cluster.slug, "stop"):
            backend.stop(Handle(attempt.handle), grace_s=grace_s, signal=signal)
    except Unreachable as error:
        Attempt.objects.filter(pk=attempt.pk).update(end_asked_at=None)
        trouble(attempt.job.cluster_id, str(error))
        return
    fault("stop.after_engine")
    transitions.record(attempt.job, Event.Kind.END_ASKED, params={"kind": EndKind(attempt.end_kind).value})


def extend_wanted(backend: Backend, attempts: Iterable[Attempt]) -> None:
    """Extend time limits at the backend; where it can't, take the extension back and record that."""
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


def _end_signal(attempt: Attempt, spec: JobSpec) -> tuple[str, int]:
    """Return the signal and the grace time in seconds; a preempted attempt gets its job's own signal."""
    if spec.end_signal is not None and attempt.end_wanted in retries.RETURNING:
        return spec.end_signal.signal, max(spec.grace_s, spec.end_signal.seconds_before)
    return "TERM", spec.grace_s


# --- inventory -------------------------------------------------------------------------------------------


def take_inventory(cluster_id: int) -> None:
    """Ask the cluster for its inventory, and store it."""
    cluster = Cluster.objects.get(pk=cluster_id)
    held = inventory.held_on(cluster)
    try:
        with timings.engine_call(cluster.slug, "inventory"):
            seen = backend_for(cluster).inventory()
    except Unreachable as error:
        trouble(cluster_id, str(error))
        return
    nodes: Iterable[NodeSeen] = seen.nodes
    if seen.jobs is not None:
        theirs = external_jobs.select_external(cluster, seen.jobs)
        external_jobs.book_types(cluster, seen.jobs)
        external_jobs.record(cluster, theirs)
        nodes = external_jobs.nodes_used(seen, theirs)
    reports = [observations.node_report(node) for node in nodes]
    facilities = seen.facilities.to_json() if seen.facilities else None
    inventory.record(cluster, reports, held, [asdict(each) for each in seen.set_aside], facilities)


# --- reconcile pass and cleanup -------------------------------------------------------------------------


def due_clusters() -> dict[triggers.Step, list[int]]:
    """Return the clusters for which each step is due, by the database alone."""
    unfinished = Job.objects.filter(is_unfinished()).order_by()
    waiting = unfinished.filter(state__in=["QUEUED", "SUBMITTING"]).values_list("cluster_id", flat=True)
    live = Attempt.objects.filter(live=True).order_by().values_list("job__cluster_id", flat=True)
    known = Node.objects.order_by().values_list("cluster_id", flat=True).distinct()
    checks = AssetCheck.objects.filter(ended_at=None).order_by().values_list("cluster_id", flat=True)
    return {
        "drain": sorted({*waiting, *snapshot.restless(), *checks.filter(state="waiting")}),
        "observe": sorted(
            {*live.exclude(job__cluster__in=poll_interval.clusters_not_due()), *checks.filter(state="trying")}
        ),
        # Nothing is admitted to a cluster of which nothing is known, a new one for instance.
        "inventory": sorted({*waiting} - {*known}),
    }


def sealable() -> list[int]:
    """Return the ended attempts whose logs are not stored yet."""
    rows = Attempt.objects.filter(ended_at__isnull=False, logs_sealed_at=None, live=False)
    return list(rows.order_by("ended_at").values_list("pk", flat=True)[:500])
