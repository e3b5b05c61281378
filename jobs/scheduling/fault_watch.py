"""Detection of faults while a job runs: output that has stopped, and lines that its policy names.

Only jobs whose policy asks for it are looked at.  A pass costs one `fstat` for each of their logs, and reads
new bytes of those alone that have patterns.  The detection stores the fault and asks for the attempt's end in
one transaction, the first writer wins; what follows is decided when the end is observed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import structlog
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from jobs.fault_tolerance.decisions import Fault
from jobs.fault_tolerance.error_catalogue import Origin
from jobs.fault_tolerance.policy import LONGEST_PATTERN, FaultPolicy, policy_of
from jobs.lifecycle import transitions
from jobs.logs import log_store
from jobs.models import Attempt, JobFile, LogProgress, LogStream
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
        .select_related("job")
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
            attempt=attempt, defaults={"run": run, "sizes": {}, "scanned": {}, "grew_at": Now()}
        )
    fault, scanned = _scan(logs, policy, before.scanned)
    sizes = {each.key: each.size for each in logs}
    if sizes != before.sizes or scanned != before.scanned:
        grew = {"grew_at": Now()} if sizes != before.sizes else {}
        LogProgress.objects.filter(pk=attempt.pk).update(sizes=sizes, scanned=scanned, **grew)
    if fault is not None:
        _end(attempt, fault, fault.line)
    elif sizes == before.sizes and _hangs(attempt, policy):
        _end(attempt, Fault(ReasonCode.HANG, Origin.UNKNOWN), str(policy.hang_s))


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
    logs: Iterable[_Log], policy: FaultPolicy, before: Mapping[str, int]
) -> tuple[Fault | None, dict[str, int]]:
    """Look through the new lines for the policy's patterns; return the first fault, and how far it came."""
    scanned = dict(before)
    patterns = [pattern.encode() for pattern in policy.patterns]
    if not patterns:
        return None, scanned
    for each in logs:
        offset = scanned.get(each.key, 0)
        if offset >= each.size:
            continue
        part = log_store.read(each.stream, offset, SCAN_BYTES)
        whole = part.data.rfind(b"\n") + 1
        if not whole and len(part.data) > LONGEST_PATTERN:  # a line without end
            whole = len(part.data) - LONGEST_PATTERN
        line = _find_line(part.data[:whole], patterns)
        if line is not None:
            stream = each.stream
            return Fault(ReasonCode.LOG_PATTERN, Origin.UNKNOWN, line, stream.role, stream.index), scanned
        scanned[each.key] = part.offset + whole
    return None, scanned


def _find_line(data: bytes, patterns: Iterable[bytes]) -> str | None:
    """Return the first line with one of the patterns."""
    places = [place for pattern in patterns if (place := data.find(pattern)) >= 0]
    if not places:
        return None
    begin = data.rfind(b"\n", 0, min(places)) + 1
    end = data.find(b"\n", min(places))
    return data[begin : end if end >= 0 else None].decode("utf-8", "replace").strip()


# --- the end ---------------------------------------------------------------------------------------------


def _hangs(attempt: Attempt, policy: FaultPolicy) -> bool:
    """Tell whether nothing was written for too long, by the database's clock."""
    if policy.hang_s is None:
        return False
    began = attempt.started_at or attempt.job.started_at
    if began is None or timezone.now() < began + timedelta(seconds=policy.startup_s):
        return False
    silent = Now() - timedelta(seconds=policy.hang_s)
    return LogProgress.objects.filter(pk=attempt.pk, grew_at__lte=silent).exists()


def _end(attempt: Attempt, fault: Fault, why: str) -> None:
    with transaction.atomic():
        job = transitions.lock_job(attempt.job_id)
        if State(job.state) is not State.RUNNING or job.attempt_number != attempt.number:
            return
        if not transitions.want_end(job, attempt, EndKind.FAULT, why=why[:_WHY]):
            return
        Attempt.objects.filter(pk=attempt.pk).update(fault=fault.to_json())
        log.info("fault_detected", attempt=attempt.key, fault=fault.code)
