"""Diagnosis of a failed attempt: whose error it was, by its reason and by the end of its output.

Logs are read outside of any transaction; what was found goes into the one that ends the attempt.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from jobs.backends.base import Observation, ReplicaSeen
from jobs.fault_tolerance import error_catalogue
from jobs.fault_tolerance.decisions import OWN_REASONS, PLATFORM_REASONS, Fault
from jobs.fault_tolerance.error_catalogue import Origin
from jobs.logs import log_store, tail
from jobs.models import Attempt, LogStream
from jobs.states import EndKind, ReplicaState, State

MOST_LOGS: Final = 8
"""Logs of so many replicas are looked at, those first that failed first."""


def diagnose(attempt: Attempt, seen: Observation) -> Fault | None:
    """Return why an attempt failed; None where it did not, or its job has no fault tolerance."""
    if not attempt.job.tolerates_faults or seen.state not in {State.FAILED, State.STOPPED}:
        return None
    if attempt.end_kind == EndKind.FAULT and attempt.fault:
        return Fault.from_json(attempt.fault)
    if seen.state is not State.FAILED or attempt.end_kind:
        return None
    failed = sorted(
        (replica for replica in seen.replicas if replica.state is ReplicaState.FAILED),
        key=lambda replica: (replica.ended_at is None, replica.ended_at),
    )
    first = failed[0] if failed else None
    role, index = (first.role, first.index) if first else ("", None)
    code = seen.reason.code
    if code in PLATFORM_REASONS or code in OWN_REASONS:
        origin = Origin.PLATFORM if code in PLATFORM_REASONS else Origin.OWN
        return Fault(code, origin, role=role, index=index)
    found = _find_in_logs(attempt, failed[:MOST_LOGS])
    return found or Fault(code, Origin.UNKNOWN, role=role, index=index)


def _find_in_logs(attempt: Attempt, failed: Iterable[ReplicaSeen]) -> Fault | None:
    """Return the first replica's error that the catalogue knows."""
    for replica in failed:
        if not replica.log_path:
            continue
        path = log_store.relative_to_root(replica.log_path)
        log = LogStream(attempt=attempt, role=replica.role, index=replica.index, live_path=path)
        found = error_catalogue.find_error(tail.last_lines(log, error_catalogue.LINES))
        if found is not None:
            return Fault(found.code, found.origin, found.line, replica.role, replica.index)
    return None
