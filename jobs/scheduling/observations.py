"""Observations of a backend, applied to the rows: replicas, endpoints, logs, and the job's state.

One transaction an attempt, begun by a conditional UPDATE of the observed version: of two workers with
different observations of the same attempt one wins, and the other observes again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import structlog
from django.db import transaction
from django.db.models import Manager, Model
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.crypto import get_random_string

from jobs import log_forwarding, training_metrics
from jobs.backends.base import EndpointSeen, NodeSeen, Observation, ReplicaSeen
from jobs.fault_tolerance.decisions import Fault, Rule
from jobs.fault_tolerance.policy import policy_of
from jobs.faults import fault
from jobs.lifecycle import retries, transitions
from jobs.live import timings, triggers
from jobs.logs import log_store
from jobs.models import Attempt, Endpoint, Event, Job, JobFile, LogStream, Replica, Run
from jobs.models.jobs import ALPHABET
from jobs.scheduling import fault_history, faulty_nodes, sanity_checks
from jobs.spec import JobSpec, resource_requests
from jobs.states import (
    END_REASON,
    ENDINGS,
    REPLICA_TERMINAL,
    EndKind,
    Phase,
    Reason,
    ReasonCode,
    ReplicaState,
    Retry,
    State,
)
from jobs.submission import amounts_of
from quotas import ledger
from quotas.amounts import Amounts
from quotas.clusters import gputypes
from quotas.clusters.inventory import NodeReport
from quotas.models import Admission

log = structlog.get_logger(__name__)

M = TypeVar("M", bound=Model)

TOLD_ONE_BY_ONE: Final = 64
"""Jobs with more replicas have no event for each replica's start and end."""

ENDS: Final = frozenset({State.SUCCEEDED, State.FAILED, State.STOPPED})


def lay_out(attempts: Sequence[Attempt], run: int = 1) -> None:
    """Write the rows of a run that begins, of each attempt: every replica, waiting, and its log, empty."""
    counts = ledger.granted_counts([attempt.key for attempt in attempts])
    replicas = [
        Replica(attempt=attempt, run=run, ordinal=ordinal, role=role, index=index)
        for attempt in attempts
        for ordinal, (role, index) in enumerate(
            _list_replicas(attempt.job.file.spec, counts.get(attempt.key))
        )
    ]
    streams = [
        LogStream(attempt=replica.attempt, run=run, role=replica.role, index=replica.index)
        for replica in replicas
    ]
    Run.objects.bulk_create([Run(attempt=attempt, number=run) for attempt in attempts], ignore_conflicts=True)
    Replica.objects.bulk_create(replicas, ignore_conflicts=True, batch_size=500)
    LogStream.objects.bulk_create(streams, ignore_conflicts=True, batch_size=500)
    log_forwarding.follow(attempts, run)
    training_metrics.follow(attempts, run)


def _list_replicas(spec: JobSpec, counts: Sequence[int] | None) -> Iterator[tuple[str, int]]:
    wanted = [role.replicas for role in spec.roles] if counts is None else counts
    return (
        (role.name, index) for role, count in zip(spec.roles, wanted, strict=True) for index in range(count)
    )


def assign(row: Model, values: Mapping[str, Any]) -> bool:
    """Set a row's fields, without saving it; return whether any value differed."""
    changed = {name: value for name, value in values.items() if getattr(row, name) != value}
    for name, value in changed.items():
        setattr(row, name, value)
    return bool(changed)


def moment(seconds: float | None) -> datetime | None:
    """Return the time of a backend's clock, given in seconds since 1970; None for None."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def apply(attempt: Attempt, seen: Observation, found: Fault | None = None) -> None:
    """Apply `seen` to the rows; do nothing when another worker was faster.

    `found` is why a failed attempt failed.
    """
    fault("observe.before_apply")
    try:
        with transaction.atomic():
            _apply(attempt, seen, found)
            fault("observe.before_commit")
    except transitions.Overtaken:
        log.info("overtaken", attempt=attempt.key)


def _apply(attempt: Attempt, seen: Observation, found: Fault | None) -> None:
    job = transitions.lock_job(attempt.job_id)
    mine = Attempt.objects.filter(pk=attempt.pk, live=True, observed_version=attempt.observed_version).update(
        observed_version=seen.version, gone_count=0
    )
    if not mine:
        return
    cluster = attempt.job.cluster  # a job never leaves its cluster
    attempt.refresh_from_db()
    job.cluster, attempt.job = cluster, job
    if attempt.number != job.attempt_number:
        return
    if seen.run > job.run_number:
        _begin_run(job, attempt, seen.run)
    changed = _apply_replicas(job, attempt, seen) | _record_checkpoint(job, attempt, seen)
    sanity_checks.record(job, attempt, seen)
    _rebook(attempt, seen)
    _state(job, attempt, seen, found)
    if job.cluster.admission == Admission.ENGINE and seen.state not in ENDS:
        _book_nodes(attempt, seen)
    if changed:
        transitions.tell(job)


def _begin_run(job: Job, attempt: Attempt, run: int) -> None:
    lay_out([attempt], run)
    Run.objects.filter(attempt=attempt, number__lt=run, ended_at=None).update(ended_at=Now())
    Job.objects.filter(pk=job.pk).update(run_number=run)
    job.run_number = run
    transitions.record(job, Event.Kind.REQUEUED, params={"run": run})


def _record_checkpoint(job: Job, attempt: Attempt, seen: Observation) -> bool:
    """Store from which checkpoint the attempt resumed; return whether that is new."""
    found = seen.resumed
    if (
        found is None
        or assign(attempt, {"resumed_from": found.name, "checkpoint_at": moment(found.saved_at)}) is False
    ):
        return False
    attempt.save(update_fields=["resumed_from", "checkpoint_at"])
    transitions.record(job, Event.Kind.RESUMED, params={"checkpoint": found.name})
    return True


# --- replicas --------------------------------------------------------------------------------------------


def _apply_replicas(job: Job, attempt: Attempt, seen: Observation) -> bool:
    """Write the changes of the replicas; return whether there were any."""
    rows = {
        (replica.role, replica.index): replica
        for replica in Replica.objects.filter(attempt=attempt, run=seen.run).order_by("ordinal")
    }
    changed: list[Replica] = []
    for observed in seen.replicas:
        replica = rows.get((observed.role, observed.index))
        if replica is None or (
            ReplicaState(replica.state) in REPLICA_TERMINAL and observed.state not in REPLICA_TERMINAL
        ):
            continue
        before = replica.state
        if assign(replica, _values(observed)):
            if before != observed.state and job.replicas_total <= TOLD_ONE_BY_ONE:
                _record_replica(job, observed)
            changed.append(replica)
    if changed:
        _save(Replica.objects, changed, list(_values(seen.replicas[0])))
        _count(job, rows.values())
    _logs(attempt, seen)
    return _endpoints(attempt, rows, seen) or bool(changed)


def _values(replica: ReplicaSeen) -> dict[str, Any]:
    return {
        "state": replica.state.value,
        "reason_code": replica.reason.code.value if replica.reason else "",
        "reason_params": dict(replica.reason.params) if replica.reason else {},
        "exit_code": replica.exit_code,
        "signal": replica.signal,
        "node": replica.node,
        "image_used": replica.image_used,
        "commit": replica.commit,
        "started_at": moment(replica.started_at),
        "ended_at": moment(replica.ended_at),
    }


def _record_replica(job: Job, replica: ReplicaSeen) -> None:
    where = {"role": replica.role, "index": replica.index}
    if replica.state is ReplicaState.RUNNING:
        transitions.record(job, Event.Kind.REPLICA_STARTED, params={**where, "node": replica.node})
    elif replica.state in REPLICA_TERMINAL:
        ended = {
            **where,
            "state": replica.state.value,
            "exit_code": replica.exit_code,
            "signal": replica.signal,
        }
        transitions.record(job, Event.Kind.REPLICA_ENDED, params=ended)


def _save(table: Manager[M], changed: Sequence[M], names: Sequence[str]) -> None:
    """Save fields of rows of one table; the usual single row without the conditions of a bulk update."""
    if len(changed) == 1:
        changed[0].save(update_fields=names)
    elif changed:
        table.bulk_update(changed, names, batch_size=200)


def _count(job: Job, replicas: Iterable[Replica]) -> None:
    """Store how many of the run's replicas, all of which are here, run and have failed."""
    counts = Counter(replica.state for replica in replicas)
    running, failed = counts[ReplicaState.RUNNING], counts[ReplicaState.FAILED]
    if (running, failed) != (job.replicas_running, job.replicas_failed):
        Job.objects.filter(pk=job.pk).update(replicas_running=running, replicas_failed=failed)
        job.replicas_running, job.replicas_failed = running, failed


def _logs(attempt: Attempt, seen: Observation) -> None:
    """Store the path of each log, and that the logs of ended replicas are complete."""
    rows = LogStream.objects.filter(attempt=attempt, run=seen.run, state=LogStream.State.OPEN)
    replicas = {(replica.role, replica.index): replica for replica in seen.replicas}
    changed = []
    for stream in rows:
        replica = replicas.get((stream.role, stream.index))
        if replica is None:
            continue
        path = log_store.relative_to_root(replica.log_path) if replica.log_path else ""
        ended = replica.state in REPLICA_TERMINAL
        if path != stream.live_path or ended:
            stream.live_path = path or stream.live_path
            stream.state = LogStream.State.COMPLETE if ended else stream.state
            changed.append(stream)
    _save(LogStream.objects, changed, ("live_path", "state"))


def _endpoints(attempt: Attempt, rows: dict[tuple[str, int], Replica], seen: Observation) -> bool:
    """Update the endpoint rows of the run; return whether anything changed."""
    if not any(each.endpoints or each.state is ReplicaState.RUNNING for each in seen.replicas):
        return False
    known = {
        (row.replica_id, row.label, row.ordinal): row
        for row in Endpoint.objects.filter(replica__attempt=attempt, replica__run=seen.run)
    }
    changed, gone = False, set(known)
    for observed in seen.replicas:
        replica = rows.get((observed.role, observed.index))
        if replica is None:
            continue
        for ordinal, port in _number(observed.endpoints):
            key = (replica.pk, port.label, ordinal)
            changed |= _endpoint(replica, known.get(key), port, ordinal)
            gone.discard(key)
        if observed.state is not ReplicaState.RUNNING:  # whoever has the link is to learn that it has ended
            gone -= {key for key in gone if key[0] == replica.pk}
    if gone:
        Endpoint.objects.filter(pk__in=[known[key].pk for key in gone]).delete()
    return changed or bool(gone)


def _number(ports: Iterable[EndpointSeen]) -> Iterator[tuple[int, EndpointSeen]]:
    """Yield each port with its number among those of its label."""
    ordinals = Counter[str]()
    for port in ports:
        yield ordinals[port.label], port
        ordinals[port.label] += 1


def _endpoint(replica: Replica, row: Endpoint | None, port: EndpointSeen, ordinal: int) -> bool:
    now = {
        "host": port.host,
        "port": port.port,
        "ready": port.ready,
        "source": port.source.value,
        "path": port.path,
        "token_name": port.token,
        "why": port.why.value if port.why else "",
        "why_params": dict(port.params),
    }
    if row is None:
        slug = get_random_string(16, ALPHABET)
        Endpoint.objects.create(replica=replica, label=port.label, ordinal=ordinal, slug=slug, **now)
        return True
    changed = assign(row, now)
    if changed:
        Endpoint.objects.filter(pk=row.pk).update(**now)
    return changed


# --- the job ---------------------------------------------------------------------------------------------


def give_back(attempt: Attempt, seen: Observation) -> None:
    """Release the resources of ended replicas, where the backend says on which nodes the others run."""
    going = [replica for replica in seen.replicas if replica.state not in REPLICA_TERMINAL]
    if not 0 < len(going) < len(seen.replicas) or not all(replica.node for replica in going):
        return
    with suppress(ValueError):  # it runs elsewhere than it was placed: all of it stays held
        ledger.shrink(attempt.key, list(_amounts_by_node(attempt, seen).items()))
    triggers.trigger_on_commit("drain", attempt.job.cluster_id)


def _amounts_by_node(attempt: Attempt, seen: Observation) -> dict[str, Amounts]:
    """Return the amounts of the replicas that are on a node and have not ended."""
    spec, known = JobFile.objects.get(job_id=attempt.job_id).spec, gputypes.names()
    each = {ask.role: gputypes.canonicalize(amounts_of(ask), known) for ask in resource_requests(spec)}
    found: dict[str, Amounts] = {}
    for replica in seen.replicas:
        if replica.node and replica.state not in REPLICA_TERMINAL:
            found[replica.node] = found.get(replica.node, Amounts()) + each[replica.role]
    return found


def _rebook(attempt: Attempt, seen: Observation) -> None:
    """Book the GPUs that the backend has allocated, where it reports their indexes."""
    devices: dict[str, list[int]] = {}
    for replica in seen.replicas:
        if replica.gpus and replica.node:
            devices.setdefault(replica.node, []).extend(replica.gpus)
    if devices:
        ledger.rebook(attempt.key, devices)


def _book_nodes(attempt: Attempt, seen: Observation) -> None:
    """Store on which nodes the attempt runs; one that was requeued is on none."""
    here = _amounts_by_node(attempt, seen)
    kinds = ledger.types_of(attempt.key) if any("" in each.gpus for each in here.values()) else {}
    ledger.record_placement(
        attempt.key, [(node, ledger.of_type(each, kinds)) for node, each in sorted(here.items())]
    )


def _state(job: Job, attempt: Attempt, seen: Observation, found: Fault | None) -> None:
    if seen.state in ENDS:
        _end(job, attempt, seen, found)
    elif State(job.state) is State.LOST:
        transitions.apply(
            job,
            seen.state,
            seen.reason,
            phase=seen.phase,
            event=Event.Kind.FOUND_AGAIN,
            columns={"ended_at": None},
        )
        Attempt.objects.filter(pk=attempt.pk).update(ended_at=None, reason_code="", reason_params={})
    elif seen.state is not State(job.state):
        _move(job, attempt, seen)
    else:
        transitions.explain(job, seen.reason, Phase.STOPPING if attempt.end_kind else seen.phase)


def _move(job: Job, attempt: Attempt, seen: Observation) -> None:
    """Move the job from PENDING to RUNNING, or back when the backend requeued it."""
    if seen.state is State.RUNNING:
        _note_start(job, attempt, seen)
    transitions.apply(
        job,
        seen.state,
        seen.reason,
        phase=Phase.STOPPING if attempt.end_kind else seen.phase,
        event=Event.Kind.STARTED if seen.state is State.RUNNING else None,
    )


def _note_start(job: Job, attempt: Attempt, seen: Observation) -> None:
    """Store when the job, its attempt and its run started, where that is not known yet."""
    if attempt.started_at is not None and seen.run == 1:
        return  # all were stored together
    began = _since(attempt, seen.started_at)
    if job.started_at is None:
        timings.record_start(job.cluster.slug, (began - job.created_at).total_seconds())
    for row in (job, attempt):
        if row.started_at is None:
            row.started_at = began
            row.save(update_fields=["started_at"])
    Run.objects.filter(attempt=attempt, number=seen.run, started_at=None).update(started_at=began)
    ledger.record_start(attempt.key, began)


def _end(job: Job, attempt: Attempt, seen: Observation, found: Fault | None) -> None:
    """End the attempt, and with it the job, or begin the next attempt."""
    reason, state = seen.reason, seen.state
    if attempt.end_wanted in END_REASON and seen.state is State.STOPPED:
        reason = intended_reason(attempt)
        state = ENDINGS[reason.code].state
    if seen.started_at is not None:
        _note_start(job, attempt, seen)
    over = _since(attempt, seen.ended_at)
    Run.objects.filter(attempt=attempt, ended_at=None).update(ended_at=over)
    settle(job, attempt, state, reason, at=over, found=found)


def _since(attempt: Attempt, seconds: float | None) -> datetime:
    """Return a time of the backend's clock, between the attempt's beginning and now; now for None."""
    now, reported = timezone.now(), moment(seconds)
    first = attempt.started_at or ledger.held_since(attempt.key)
    if reported is None:
        return now
    return min(now, reported if first is None else max(first, reported))


def settle(
    job: Job,
    attempt: Attempt,
    state: State,
    reason: Reason,
    *,
    at: datetime | None = None,
    found: Fault | None = None,
) -> None:
    """End an attempt in `state`; begin another one if the retry policy or the fault tolerance says so."""
    spec = JobFile.objects.get(job=job).spec
    end = None if attempt.end_wanted is EndKind.FAULT else attempt.end_wanted
    is_retried = retries.should_retry(spec.retry, reason.code, _count_ends(spec, attempt), end)
    if found is not None:
        role = next((each for each in spec.roles if each.name == found.role), None)
        is_retried = is_retried and (role is None or retries.allows(role.restart.condition, reason))
        is_retried = _decide(job, attempt, spec, found, is_retried=is_retried)
    if is_retried:
        pause = retries.delay(attempt.number, attempt.end_wanted)
        if attempt.end_kind:
            Attempt.objects.filter(pk=attempt.pk).update(end_kind="")
        transitions.queue_retry(job, attempt, reason, delay=pause, at=at)
        fault("retry.before_commit")
        return
    transitions.end(job, attempt, state, reason, at=at)


def _decide(job: Job, attempt: Attempt, spec: JobSpec, found: Fault, *, is_retried: bool) -> bool:
    """Store why an attempt failed and what is done about it; return whether the job is restarted.

    Its own retry policy may have decided that already; only the number of restarts in 24 hours binds it too.
    """
    Attempt.objects.filter(pk=attempt.pk).update(fault=found.to_json())
    policy = policy_of(spec)
    if policy is None:
        return is_retried
    history = fault_history.list_earlier(attempt, found)
    decision = history.decide(policy, found)
    is_cordoned = policy.replaces_nodes and faulty_nodes.cordon(job, found)
    restarts = decision.restarts or (is_retried and decision.rule is not Rule.WINDOW_SPENT)
    params = {
        **found.to_json(),
        "rule": decision.rule.value,
        "restarts": restarts,
        "used": decision.used,
        "limit": history.recent if decision.rule is Rule.WINDOW_SPENT else policy.restarts,
        **({"cordoned": found.node} if is_cordoned else {}),
    }
    transitions.record(job, Event.Kind.FAULT, params=params)
    fault("decide.before_commit")
    return restarts


def intended_reason(attempt: Attempt) -> Reason:
    """Return the reason of an intended end."""
    by = attempt.end_by.get_username() if attempt.end_by else None
    code = END_REASON.get(attempt.end_wanted or EndKind.USER_STOP, ReasonCode.USER_STOP)
    if attempt.end_wanted is EndKind.FAULT and attempt.fault:
        return _fault_reason(Fault.from_json(attempt.fault), attempt.end_why)
    if code is ReasonCode.IDLE:
        return Reason(code, {"limit_s": int(attempt.end_why)})
    if code is ReasonCode.EARLY_STOP:
        return Reason(code)
    return Reason(code, {"by": by})


def _fault_reason(found: Fault, why: str) -> Reason:
    """Return the reason of an end that fault tolerance wanted."""
    if found.code == ReasonCode.LOG_PATTERN:
        params = {"role": found.role, "index": found.index, "line": found.line}
        return Reason(ReasonCode.LOG_PATTERN, params)
    return Reason(ReasonCode.HANG, {"limit_s": int(why)} if why.isdecimal() else {})


def _count_ends(spec: JobSpec, attempt: Attempt) -> int:
    if attempt.number == 1:
        return 0
    earlier = Attempt.objects.filter(job_id=attempt.job_id, number__lt=attempt.number).exclude(reason_code="")
    codes = earlier.values_list("reason_code", flat=True)
    return sum(1 for code in codes if retries.kind_of(spec.retry, ReasonCode(code)) is Retry.COUNTED)


# --- nodes -----------------------------------------------------------------------------------------------


def node_report(node: NodeSeen) -> NodeReport:
    """Return a node as the inventory stores it."""
    counts: dict[str, int] = {}
    taken: dict[str, int] = {}
    for gpu in node.gpus:
        counts[gpu.type] = counts.get(gpu.type, 0) + 1
        if gpu.index not in node.free_gpus:
            taken[gpu.type] = taken.get(gpu.type, 0) + 1
    return NodeReport(
        name=node.name,
        amounts=Amounts(node.cpu_milli, node.memory_mib, counts),
        gpu_list=[{"index": g.index, "type": g.type, "memory_mib": g.memory_mib} for g in node.gpus],
        schedulable=node.schedulable,
        why=node.why,
        programs=node.programs,
        partitions=node.partitions,
        used=Amounts(
            max(0, node.cpu_milli - node.free_cpu_milli),
            max(0, node.memory_mib - node.free_memory_mib),
            taken,
        ),
    )
