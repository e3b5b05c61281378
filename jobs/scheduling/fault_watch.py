"""Detection of faults while a job runs: output that has stopped, and lines that its policy names.

Only jobs whose policy asks for it are looked at.  A pass costs one `fstat` for each of their logs, and reads
new bytes of those alone that have patterns.  The detection stores the fault and asks for the attempt's end in
one transaction, the first writer wins; what follows is decided when the end is observed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any, Final

import structlog
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from jobs.fault_tolerance import stragglers
from jobs.fault_tolerance.decisions import Fault
from jobs.fault_tolerance.error_catalogue import Origin
from jobs.fault_tolerance.policy import LONGEST_PATTERN, FaultPolicy, policy_of
from jobs.fault_tolerance.stragglers import Straggler
from jobs.faults import fault
from jobs.lifecycle import transitions
from jobs.logs import log_store
from jobs.models import Attempt, Event, JobFile, LogProgress, LogStream, Replica
from jobs.scheduling import fault_patterns, stack_dumps
from jobs.states import EndKind, ReasonCode, State

log = structlog.get_logger(__name__)

_WHY: Final = 500

SCAN_BYTES: Final = 1 << 20
"""Of one log in one pass; the next one goes on."""


def watch() -> None:
    """Look at the output of every running job whose policy asks for it."""
    attempts = list(_list_watched())
    specs = JobFile.objects.in_bulk([attempt.job_id for attempt in attempts])
    known = LogProgress.objects.in_bulk([attempt.pk for attempt in attempts])
    logs = _logs_of(attempts)
    for attempt in attempts:
        policy = policy_of(specs[attempt.job_id].spec)
        if policy is not None and policy.watches:
            _look(attempt, policy, logs.get(attempt.pk, ()), known.get(attempt.pk))


def _list_watched() -> Iterable[Attempt]:
    return (
        Attempt.objects.filter(
            live=True,
            end_kind="",
            job__state=State.RUNNING.value,
            job__tolerates_faults=True,
            number=F("job__attempt_number"),
        )
        .select_related("job__cluster")
        .order_by("id")
    )


def _logs_of(attempts: Iterable[Attempt]) -> Mapping[int, Sequence[LogStream]]:
    """Return the logs of each attempt's current run that can be read where they lie."""
    runs = {attempt.pk: attempt.job.run_number for attempt in attempts}
    found: dict[int, list[LogStream]] = {}
    rows = LogStream.objects.filter(attempt__in=runs, sealed=False).exclude(live_path="")
    for stream in rows.select_related("attempt").order_by("id"):
        if stream.run == runs[stream.attempt_id]:
            found.setdefault(stream.attempt_id, []).append(stream)
    return found


@dataclass(frozen=True, slots=True)
class _Log:
    """A log as it is now."""

    stream: LogStream
    key: str
    size: int


def _look(
    attempt: Attempt, policy: FaultPolicy, streams: Sequence[LogStream], before: LogProgress | None
) -> None:
    logs = list(_measure(streams))
    if not logs:
        return
    run = attempt.job.run_number
    if before is None or before.run != run:
        before, _made = LogProgress.objects.update_or_create(
            attempt=attempt, defaults={"run": run, "sizes": {}, "scanned": {}, "steps": {}, "grew_at": Now()}
        )
    steps = dict(before.steps)
    found, scanned = _scan(logs, policy, before.scanned, steps)
    if found is not None:  # without the progress, so that it is found again where this process is killed
        _end(attempt, found, found.line)
        return
    sizes = {each.key: each.size for each in logs}
    if sizes != before.sizes or scanned != before.scanned:
        grew = {"grew_at": Now()} if sizes != before.sizes else {}
        slow, steps = stragglers.find_new(steps)
        with transaction.atomic():
            rows = LogProgress.objects.filter(pk=attempt.pk)
            rows.update(sizes=sizes, scanned=scanned, steps=steps, **grew)
            for each in slow:
                _record_straggler(attempt, each)
    if sizes == before.sizes:
        _look_for_hang(attempt, policy, before)


def _measure(streams: Iterable[LogStream]) -> Iterator[_Log]:
    for stream in streams:
        try:
            with log_store.open_live(stream.live_path) as file:
                size = log_store.visible_size(stream, file)
        except (OSError, log_store.Unsafe):
            continue
        yield _Log(stream, f"{stream.role}/{stream.index}", size)


# --- patterns --------------------------------------------------------------------------------------------


def _scan(
    logs: Iterable[_Log], policy: FaultPolicy, before: Mapping[str, int], steps: dict[str, Any]
) -> tuple[Fault | None, dict[str, int]]:
    """Look through the new lines for the policy's patterns; return the first fault, and how far it came.

    Step times go into `steps` where the policy looks for stragglers.
    """
    scanned, found = dict(before), None
    fresh = _Fresh(logs, policy, scanned, steps)
    if policy.has_patterns:
        found = fault_patterns.find_line(policy, fresh.read())
    elif policy.finds_stragglers:
        deque(fresh.read(), maxlen=0)
    if found is None:
        return None, scanned
    stream = fresh.streams[found[0]]
    return Fault(ReasonCode.LOG_PATTERN, Origin.UNKNOWN, found[1], stream.role, stream.index), scanned


@dataclass(frozen=True, slots=True)
class _Fresh:
    """New whole lines of the logs; `scanned` and `steps` go on with each part read, which is of `streams`."""

    logs: Iterable[_Log]
    policy: FaultPolicy
    scanned: dict[str, int]
    steps: dict[str, Any]
    streams: list[LogStream] = field(default_factory=list)

    def read(self) -> Iterator[bytes]:
        """Yield at most SCAN_BYTES of each log that has new lines."""
        for each in self.logs:
            offset = self.scanned.get(each.key, 0)
            if offset >= each.size:
                continue
            part = log_store.read(each.stream, offset, SCAN_BYTES)
            whole = part.data.rfind(b"\n") + 1
            if not whole and len(part.data) > LONGEST_PATTERN:  # a line without end
                whole = len(part.data) - LONGEST_PATTERN
            if self.policy.finds_stragglers:
                self.steps[each.key] = stragglers.add(self.steps.get(each.key), part.data[:whole])
            self.scanned[each.key] = part.offset + whole
            if whole:
                self.streams.append(each.stream)
                yield part.data[:whole]


def _record_straggler(attempt: Attempt, found: Straggler) -> None:
    """Record a slow rank as an event, with its node."""
    role, _slash, index = found.key.rpartition("/")
    rows = Replica.objects.filter(attempt=attempt, run=attempt.job.run_number, role=role, index=int(index))
    node = rows.values_list("node", flat=True).first() or ""
    params = {"code": "straggler", "role": role, "index": int(index), "node": node, **asdict(found)}
    transitions.record(attempt.job, Event.Kind.FAULT, params=params)


# --- the end ---------------------------------------------------------------------------------------------


def _look_for_hang(attempt: Attempt, policy: FaultPolicy, progress: LogProgress) -> None:
    """End an attempt that has written nothing for too long, with the rank that the stacks show as evidence.

    Where the policy says so, it ends earlier: once the stacks show that the ranks wait for each other.
    """
    limit_s, found = policy.hang_s, None
    if _is_silent(attempt, policy, policy.hang_s):
        found = stack_dumps.find_evidence(attempt, progress)
    elif _is_silent(attempt, policy, policy.stack_s):
        limit_s = policy.stack_s
        found = stack_dumps.find_stack_hang(attempt, progress, policy.stack_s or 0)
    if found is not None:
        suspect = found.suspects[0] if found.suspects else None
        where = (suspect.role, suspect.index, suspect.node) if suspect else ("", None, "")
        _end(attempt, Fault(ReasonCode.HANG, Origin.UNKNOWN, "", *where), str(limit_s))


def _is_silent(attempt: Attempt, policy: FaultPolicy, seconds: int | None) -> bool:
    """Tell whether nothing was written for so long, by the database's clock."""
    if seconds is None:
        return False
    began = attempt.started_at or attempt.job.started_at
    if began is None or timezone.now() < began + timedelta(seconds=policy.startup_s):
        return False
    silent = Now() - timedelta(seconds=seconds)
    return LogProgress.objects.filter(pk=attempt.pk, grew_at__lte=silent).exists()


def _end(attempt: Attempt, found: Fault, why: str) -> None:
    with transaction.atomic():
        job = transitions.lock_job(attempt.job_id)
        if State(job.state) is not State.RUNNING or job.attempt_number != attempt.number:
            return
        if not transitions.want_end(job, attempt, EndKind.FAULT, why=why[:_WHY]):
            return
        Attempt.objects.filter(pk=attempt.pk).update(fault=found.to_json())
        fault("detect.before_commit")
    fault("detect.after_commit")
    log.info("fault_detected", attempt=attempt.key, fault=found.code)
