"""Diagnosis of a failed attempt: why it failed, by its reason and by the end of its output.

Logs are read outside of any transaction; what was found goes into the one that ends the attempt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from jobs.backends.base import Observation, ReplicaSeen
from jobs.fault_tolerance import error_catalogue
from jobs.fault_tolerance.decisions import OWN_REASONS, PLATFORM_REASONS, Fault
from jobs.fault_tolerance.error_catalogue import Origin
from jobs.fault_tolerance.failure_lines import find_failure_line
from jobs.fault_tolerance.policy import policy_of
from jobs.logs import log_store, tail
from jobs.models import Attempt, FaultPattern, JobFile, LogStream
from jobs.node.supervisor.restart_lines import is_restart_line
from jobs.scheduling import fault_patterns, node_faults, sanity_checks
from jobs.states import EndKind, ReasonCode, ReplicaState, State

MOST_LOGS: Final = 8
"""Logs of so many replicas are looked at, those first that failed first."""

MOST_PATTERNS: Final = 100
"""Of a workspace."""


def diagnose(attempt: Attempt, seen: Observation) -> Fault | None:
    """Return why an attempt failed; None where it did not."""
    if seen.state not in {State.FAILED, State.STOPPED}:
        return None
    if attempt.end_kind == EndKind.FAULT and attempt.fault:
        detected = Fault.from_json(attempt.fault)
        if seen.state is State.STOPPED or detected.code != ReasonCode.HANG:
            return detected
        # It was silent, and then failed by itself before it was stopped: its own end says more.
    elif seen.state is not State.FAILED or attempt.end_kind:
        return None
    failed = sorted(
        (replica for replica in seen.replicas if replica.state is ReplicaState.FAILED),
        key=lambda replica: (replica.ended_at is None, replica.ended_at),
    )
    first = failed[0] if failed else None
    role, index, node = (first.role, first.index, first.node) if first else ("", None, "")
    code = seen.reason.code
    if code in PLATFORM_REASONS or code in OWN_REASONS:
        origin = Origin.PLATFORM if code in PLATFORM_REASONS else Origin.OWN
        is_checked = code is ReasonCode.SANITY_CHECK_FAILED
        line = sanity_checks.reason_line(seen.reason.params) if is_checked else ""
        return Fault(code, origin, line, role, index, node)
    found = node_faults.find_gpu_fault(attempt, failed) or _find_in_logs(attempt, code, failed[:MOST_LOGS])
    if found is None or found.origin is Origin.UNKNOWN:
        found = node_faults.find_drained(attempt, failed) or found
    return found or Fault(code, Origin.UNKNOWN, role=role, index=index, node=node)


def _find_in_logs(attempt: Attempt, code: str, failed: Sequence[ReplicaSeen]) -> Fault | None:
    """Return the first replica's error that the catalogue knows, else the first line written as an error.

    A line that the job's own policy names comes before all but errors of the platform.
    """
    rows = FaultPattern.objects.filter(workspace=attempt.job.workspace_id).order_by("pk")[:MOST_PATTERNS]
    own = [error_catalogue.plain_pattern(Origin(row.origin), row.text) for row in rows]
    policy = policy_of(JobFile.objects.get(job=attempt.job_id).spec) if attempt.job.tolerates_faults else None
    unknown: Fault | None = None
    for replica in failed:
        if not replica.log_path:
            continue
        path = log_store.relative_to_root(replica.log_path)
        log = LogStream(attempt=attempt, role=replica.role, index=replica.index, live_path=path)
        lines = _since_restart(tail.lines_at_end(log, error_catalogue.LINES))
        texts = [line.text for line in lines]
        where = (replica.role, replica.index, replica.node)
        found = error_catalogue.find_error(texts, own)
        if policy is not None and (found is None or found.origin is not Origin.PLATFORM):
            whole = "\n".join(texts).encode()
            if named := fault_patterns.find_line(policy, [whole] if texts else []):
                offset = _find_offset(lines, named[1])
                return Fault(ReasonCode.LOG_PATTERN, Origin.UNKNOWN, named[1], *where, offset)
        if found:
            return Fault(found.code, found.origin, found.line, *where, _find_offset(lines, found.line))
        if unknown is None and (line := find_failure_line(texts).strip()):
            unknown = Fault(code, Origin.UNKNOWN, line, *where, _find_offset(lines, line))
    return unknown


def _since_restart(lines: Sequence[tail.TailLine]) -> Sequence[tail.TailLine]:
    """Return the lines of the replica's last run, where it was started again alone."""
    first = max((at for at, line in enumerate(lines, 1) if is_restart_line(line.text)), default=0)
    return lines[first:]


def _find_offset(lines: Sequence[tail.TailLine], text: str) -> int | None:
    return next((line.offset for line in reversed(lines) if line.text.strip() == text), None)
