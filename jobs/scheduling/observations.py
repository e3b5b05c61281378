"""What an engine told, written into the rows: replicas, endpoints, logs, and the job's state.

One transaction an attempt, begun by a conditional UPDATE of the observed version: of two workers with
different looks at the same attempt one wins, and the other looks again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import structlog
from django.db import transaction
from django.db.models import Count, Q
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.crypto import get_random_string

from jobs import logs
from jobs.asked import asked
from jobs.backends.base import EndpointSeen, NodeSeen, Observation, ReplicaSeen
from jobs.faults import fault
from jobs.lifecycle import retries, transitions
from jobs.live import queue
from jobs.models import Attempt, Endpoint, Event, Job, JobFile, LogStream, Run, Task
from jobs.models.jobs import ALPHABET
from jobs.spec import JobSpec
from jobs.states import (
    END_REASON,
    TASK_TERMINAL,
    EndKind,
    Phase,
    Reason,
    ReasonCode,
    Retry,
    State,
    TaskState,
)
from jobs.submission import amounts_of
from quotas import ledger
from quotas.amounts import Amounts
from quotas.clusters import gputypes
from quotas.clusters.inventory import NodeReport
from quotas.models import Admission

log = structlog.get_logger(__name__)

TOLD_ONE_BY_ONE: Final = 64
"""Jobs with more replicas have no event for each replica's start and end."""

ENDS: Final = frozenset({State.SUCCEEDED, State.FAILED, State.STOPPED})


def lay_out(attempts: Sequence[Attempt], run: int = 1) -> None:
    """Write the rows of a run that begins, of each attempt: every replica, waiting, and its log, empty."""
    files = JobFile.objects.in_bulk([attempt.job_id for attempt in attempts])
    places = [
        (attempt, ordinal, role, index)
        for attempt in attempts
        for ordinal, (role, index) in enumerate(_places(files[attempt.job_id].spec))
    ]
    Run.objects.bulk_create([Run(attempt=attempt, number=run) for attempt in attempts], ignore_conflicts=True)
    Task.objects.bulk_create(
        [
            Task(attempt=attempt, run=run, ordinal=ordinal, role=role, index=index)
            for attempt, ordinal, role, index in places
        ],
        ignore_conflicts=True,
        batch_size=500,
    )
    LogStream.objects.bulk_create(
        [
            LogStream(attempt=attempt, run=run, role=role, index=index)
            for attempt, _ordinal, role, index in places
        ],
        ignore_conflicts=True,
        batch_size=500,
    )


def _places(spec: JobSpec) -> Iterator[tuple[str, int]]:
    return ((role.name, index) for role in spec.roles for index in range(role.replicas))


def apply(attempt: Attempt, seen: Observation) -> None:
    """Make the rows say what `seen` says; does nothing when another worker was faster."""
    fault("observe.before_apply")
    try:
        with transaction.atomic():
            _apply(attempt, seen)
            fault("observe.before_commit")
    except transitions.Overtaken:
        log.info("overtaken", attempt=attempt.key)


def _apply(attempt: Attempt, seen: Observation) -> None:
    job = transitions.locked(attempt.job_id)
    mine = Attempt.objects.filter(pk=attempt.pk, live=True, observed_version=attempt.observed_version).update(
        observed_version=seen.version, gone_count=0
    )
    if not mine:
        return
    attempt.refresh_from_db()
    if attempt.number != job.attempt_number:
        return
    if seen.run > job.run_number:
        _begin_run(job, attempt, seen.run)
    changed = _tasks(job, attempt, seen)
    _rebook(attempt, seen)
    _state(job, attempt, seen)
    if job.cluster.admission == Admission.ENGINE and seen.state not in ENDS:
        _place(attempt, seen)
    if changed:
        transitions.tell(job)


def _begin_run(job: Job, attempt: Attempt, run: int) -> None:
    lay_out([attempt], run)
    Run.objects.filter(attempt=attempt, number__lt=run, ended_at=None).update(ended_at=Now())
    Job.objects.filter(pk=job.pk).update(run_number=run)
    job.run_number = run
    transitions.record(job, Event.Kind.REQUEUED, params={"run": run})


# --- replicas --------------------------------------------------------------------------------------------


def _tasks(job: Job, attempt: Attempt, seen: Observation) -> bool:
    """Write what changed of the replicas; whether anything did."""
    rows = {(task.role, task.index): task for task in Task.objects.filter(attempt=attempt, run=seen.run)}
    changed: list[Task] = []
    for replica in seen.replicas:
        task = rows.get((replica.role, replica.index))
        if task is not None and _differs(task, replica):
            _event(job, task, replica)
            _copy(task, replica)
            changed.append(task)
    if changed:
        Task.objects.bulk_update(changed, _COLUMNS, batch_size=200)
        _count(job, attempt, seen.run)
    _logs(attempt, seen)
    return _endpoints(attempt, rows, seen) or bool(changed)


_COLUMNS: Final = (
    "state",
    "reason_code",
    "reason_params",
    "exit_code",
    "signal",
    "node",
    "image_used",
    "commit",
    "started_at",
    "ended_at",
)


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
        "started_at": _time(replica.started_at),
        "ended_at": _time(replica.ended_at),
    }


def _differs(task: Task, replica: ReplicaSeen) -> bool:
    if TaskState(task.state) in TASK_TERMINAL and replica.state not in TASK_TERMINAL:
        return False
    return any(getattr(task, name) != value for name, value in _values(replica).items())


def _copy(task: Task, replica: ReplicaSeen) -> None:
    for name, value in _values(replica).items():
        setattr(task, name, value)


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _event(job: Job, task: Task, replica: ReplicaSeen) -> None:
    if task.state == replica.state or job.tasks_total > TOLD_ONE_BY_ONE:
        return
    where = {"role": task.role, "index": task.index}
    if replica.state is TaskState.RUNNING:
        transitions.record(job, Event.Kind.TASK_STARTED, params={**where, "node": replica.node})
    elif replica.state in TASK_TERMINAL:
        ended = {
            **where,
            "state": replica.state.value,
            "exit_code": replica.exit_code,
            "signal": replica.signal,
        }
        transitions.record(job, Event.Kind.TASK_ENDED, params=ended)


def _count(job: Job, attempt: Attempt, run: int) -> None:
    counts = Task.objects.filter(attempt=attempt, run=run).aggregate(
        running=Count("pk", filter=Q(state=TaskState.RUNNING)),
        failed=Count("pk", filter=Q(state=TaskState.FAILED)),
    )
    Job.objects.filter(pk=job.pk).update(tasks_running=counts["running"], tasks_failed=counts["failed"])
    job.tasks_running, job.tasks_failed = counts["running"], counts["failed"]


def _logs(attempt: Attempt, seen: Observation) -> None:
    """Remember where each log lies, and that the logs of ended replicas are whole."""
    rows = LogStream.objects.filter(attempt=attempt, run=seen.run, state=LogStream.State.OPEN)
    replicas = {(replica.role, replica.index): replica for replica in seen.replicas}
    changed = []
    for stream in rows:
        replica = replicas.get((stream.role, stream.index))
        if replica is None:
            continue
        path = logs.relative_to_root(replica.log_path) if replica.log_path else ""
        ended = replica.state in TASK_TERMINAL
        if path != stream.live_path or ended:
            stream.live_path = path or stream.live_path
            stream.state = LogStream.State.COMPLETE if ended else stream.state
            changed.append(stream)
    LogStream.objects.bulk_update(changed, ("live_path", "state"), batch_size=200)


def _endpoints(attempt: Attempt, rows: dict[tuple[str, int], Task], seen: Observation) -> bool:
    """Make the endpoint rows of the run what was seen; whether anything changed."""
    known = {
        (row.task_id, row.label, row.ordinal): row
        for row in Endpoint.objects.filter(task__attempt=attempt, task__run=seen.run)
    }
    changed, gone = False, set(known)
    for replica in seen.replicas:
        task = rows.get((replica.role, replica.index))
        if task is None:
            continue
        for ordinal, port in _numbered(replica.endpoints):
            key = (task.pk, port.label, ordinal)
            changed |= _endpoint(task, known.get(key), port, ordinal)
            gone.discard(key)
        if replica.state is not TaskState.RUNNING:  # whoever has the link is to learn that it has ended
            gone -= {key for key in gone if key[0] == task.pk}
    if gone:
        Endpoint.objects.filter(pk__in=[known[key].pk for key in gone]).delete()
    return changed or bool(gone)


def _numbered(ports: Iterable[EndpointSeen]) -> Iterator[tuple[int, EndpointSeen]]:
    """Each with its number among those of its label."""
    ordinals: dict[str, int] = {}
    for port in ports:
        ordinal = ordinals.get(port.label, 0)
        ordinals[port.label] = ordinal + 1
        yield ordinal, port


def _endpoint(task: Task, row: Endpoint | None, port: EndpointSeen, ordinal: int) -> bool:
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
        Endpoint.objects.create(task=task, label=port.label, ordinal=ordinal, slug=slug, **now)
        return True
    if all(getattr(row, name) == value for name, value in now.items()):
        return False
    Endpoint.objects.filter(pk=row.pk).update(**now)
    return True


# --- the job ---------------------------------------------------------------------------------------------


def give_back(attempt: Attempt, seen: Observation) -> None:
    """What ended replicas held is free for others, where the engine says on which node the rest runs."""
    going = [replica for replica in seen.replicas if replica.state not in TASK_TERMINAL]
    if not 0 < len(going) < len(seen.replicas) or not all(replica.node for replica in going):
        return
    spec, known = JobFile.objects.get(job_id=attempt.job_id).spec, gputypes.names()
    asks = {ask.role: ask for ask in asked(spec)}
    left: dict[str, Amounts] = {}
    for replica in going:
        each = gputypes.renamed(amounts_of(asks[replica.role]), known)
        left[replica.node] = left.get(replica.node, Amounts()) + each
    with suppress(ValueError):  # it runs elsewhere than it was placed: all of it stays held
        ledger.shrink(attempt.key, list(left.items()))
    queue.kick_on_commit("drain", attempt.job.cluster_id)


def _rebook(attempt: Attempt, seen: Observation) -> None:
    """Book the GPUs that the engine has given, where it tells them by index."""
    devices: dict[str, list[int]] = {}
    for replica in seen.replicas:
        if replica.gpus and replica.node:
            devices.setdefault(replica.node, []).extend(replica.gpus)
    if devices:
        ledger.rebook(attempt.key, devices)


def _place(attempt: Attempt, seen: Observation) -> None:
    """Write down on which nodes the engine has it; one that was requeued is on none."""
    spec, known = JobFile.objects.get(job_id=attempt.job_id).spec, gputypes.names()
    asks = {ask.role: ask for ask in asked(spec)}
    here: dict[str, Amounts] = {}
    for replica in seen.replicas:
        if replica.node and replica.state not in TASK_TERMINAL:
            each = gputypes.renamed(amounts_of(asks[replica.role]), known)
            here[replica.node] = here.get(replica.node, Amounts()) + each
    kinds = ledger.types_of(attempt.key) if any("" in each.gpus for each in here.values()) else {}
    ledger.place(attempt.key, [(node, ledger.of_type(each, kinds)) for node, each in sorted(here.items())])


def _state(job: Job, attempt: Attempt, seen: Observation) -> None:
    if seen.state in ENDS:
        _end(job, attempt, seen)
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
    """PENDING → RUNNING, or back when the engine requeued it."""
    columns: dict[str, Any] = {}
    if seen.state is State.RUNNING:
        began = _since(attempt, seen.started_at)
        if job.started_at is None:
            columns["started_at"] = began
        Attempt.objects.filter(pk=attempt.pk, started_at=None).update(started_at=began)
        Run.objects.filter(attempt=attempt, number=seen.run, started_at=None).update(started_at=began)
        ledger.started(attempt.key, began)
    transitions.apply(
        job,
        seen.state,
        seen.reason,
        phase=Phase.STOPPING if attempt.end_kind else seen.phase,
        event=Event.Kind.STARTED if seen.state is State.RUNNING else None,
        columns=columns,
    )


def _end(job: Job, attempt: Attempt, seen: Observation) -> None:
    """The attempt has ended: another one, or the job's end."""
    reason = seen.reason
    if attempt.end_wanted in END_REASON and seen.state is State.STOPPED:
        reason = intended(attempt)
    if seen.started_at is not None:
        began = _since(attempt, seen.started_at)
        if job.started_at is None:
            Job.objects.filter(pk=job.pk).update(started_at=began)
            job.started_at = began
        if attempt.started_at is None:
            Attempt.objects.filter(pk=attempt.pk).update(started_at=began)
            attempt.started_at = began
        Run.objects.filter(attempt=attempt, number=seen.run, started_at=None).update(started_at=began)
        ledger.started(attempt.key, began)
    over = _since(attempt, seen.ended_at)
    Run.objects.filter(attempt=attempt, ended_at=None).update(ended_at=over)
    settle(job, attempt, seen.state, reason, at=over)


def _since(attempt: Attempt, seconds: float | None) -> datetime:
    """Return a moment by the engine's clock, between the attempt's beginning and now; now without one."""
    now, told = timezone.now(), _time(seconds)
    first = attempt.started_at or ledger.held_since(attempt.key)
    if told is None:
        return now
    return min(now, told if first is None else max(first, told))


def settle(job: Job, attempt: Attempt, state: State, reason: Reason, *, at: datetime | None = None) -> None:
    """The attempt has ended in `state`: another one if the job's retry policy says so, or the job's end."""
    spec = JobFile.objects.get(job=job).spec
    if retries.wanted(spec.retry, reason.code, _counted(spec, attempt), attempt.end_wanted):
        pause = retries.delay(attempt.number, attempt.end_wanted)
        if attempt.end_kind:
            Attempt.objects.filter(pk=attempt.pk).update(end_kind="")
        transitions.again(job, attempt, reason, delay=pause, at=at)
        return
    transitions.end(job, attempt, state, reason, at=at)


def intended(attempt: Attempt) -> Reason:
    """What an end is called that somebody wanted."""
    by = attempt.end_by.get_username() if attempt.end_by else None
    code = END_REASON.get(attempt.end_wanted or EndKind.USER_STOP, ReasonCode.USER_STOP)
    if code is ReasonCode.IDLE:
        return Reason(code, {"limit_s": int(attempt.end_why)})
    return Reason(code, {"by": by})


def _counted(spec: JobSpec, attempt: Attempt) -> int:
    earlier = Attempt.objects.filter(job_id=attempt.job_id, number__lt=attempt.number).exclude(reason_code="")
    codes = earlier.values_list("reason_code", flat=True)
    return sum(1 for code in codes if retries.kind_of(spec.retry, ReasonCode(code)) is Retry.COUNTED)


# --- nodes -----------------------------------------------------------------------------------------------


def node_report(node: NodeSeen) -> NodeReport:
    """A node as the inventory keeps it."""
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
