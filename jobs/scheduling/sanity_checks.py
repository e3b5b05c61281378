"""Sanity checks as observed: stored, told as the phase of the job, and as the reason of an end.

The check is a part of each replica's command, so that nothing here starts or ends anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from jobs.backends.base import Observation, ReplicaSeen
from jobs.faults import fault
from jobs.lifecycle import transitions
from jobs.models import Attempt, Event, Job, SanityCheck
from jobs.node.frameworks.sanity import EXIT_CODE
from jobs.node.supervisor import sanity_file
from jobs.states import TERMINAL, Phase, Reason, ReasonCode, ReplicaState, State

MOST_REPLICAS: Final = 64
"""Replicas whose checks are stored one by one."""


def judge(seen: Observation) -> Observation:
    """Return the observation with the phase of a job that is checked, or the reason of one that failed it."""
    if all(each.sanity is None for each in seen.replicas):
        return seen
    failed = _find_faults(seen)
    if failed and seen.state in {State.FAILED, State.SUCCEEDED}:
        reason = Reason(ReasonCode.SANITY_CHECK_FAILED, _params(failed[0]))
        replicas = tuple(_with_reason(each, reason) for each in seen.replicas)
        return replace(seen, state=State.FAILED, reason=reason, replicas=replicas)
    if seen.phase is Phase.RUNNING and any(map(_is_checked_now, seen.replicas)):
        results = (each.sanity["phases"] for each in seen.replicas if each.sanity)
        phases: list[dict[str, Any]] = next(results, [])
        now = phases[-1]["phase"] if phases else sanity_file.PHASES[0]
        return replace(
            seen, phase=Phase.SANITY_CHECKING, reason=Reason(seen.reason.code, {"sanity_phase": now})
        )
    return seen


def _is_checked_now(replica: ReplicaSeen) -> bool:
    is_running = replica.state is ReplicaState.RUNNING
    return is_running and replica.sanity is not None and replica.sanity["status"] == sanity_file.RUNNING


def _with_reason(replica: ReplicaSeen, reason: Reason) -> ReplicaSeen:
    is_failed = replica.state is ReplicaState.FAILED and replica.exit_code == EXIT_CODE
    return replace(replica, reason=reason) if is_failed else replica


def _find_faults(seen: Observation) -> list[dict[str, Any]]:
    """Return the faults that the first replica which knows of any tells, with the names and nodes."""
    results = (each.sanity for each in seen.replicas if each.sanity is not None)
    told: list[dict[str, Any]] = next((each["failed"] for each in results if each["failed"]), [])
    found: list[dict[str, Any]] = []
    for failure in told:
        whose = [seen.replicas[rank] for rank in failure["ranks"] if rank < len(seen.replicas)]
        nodes = list(dict.fromkeys(each.node for each in whose if each.node))
        found.append({**failure, "names": [f"{each.role}-{each.index}" for each in whose], "nodes": nodes})
    return found


def _params(failure: dict[str, Any]) -> dict[str, str | None]:
    return {
        "check": failure["check"],
        "node": ", ".join(failure["nodes"]) or None,
        "names": ", ".join(failure["names"]) or None,
        "detail": failure["detail"],
    }


def record(job: Job, attempt: Attempt, seen: Observation) -> None:
    """Store what is known of the check of this run, if it has one; once it has ended, nothing changes."""
    if all(each.sanity is None for each in seen.replicas):
        return
    row = SanityCheck.objects.filter(attempt=attempt, run=seen.run).first()
    if row is not None and row.status != SanityCheck.Status.RUNNING:
        return
    row = row or SanityCheck(attempt=attempt, run=seen.run)
    row.failed = _find_faults(seen)
    row.status = _status(seen, has_failed=bool(row.failed))
    row.phases = next((each.sanity["phases"] for each in seen.replicas if each.sanity), [])
    row.replicas = list(_describe_replicas(seen))
    row.failed_nodes = sorted(
        {node for each in row.failed if len(each["ranks"]) == 1 for node in each["nodes"]}
    )
    row.save()
    if row.failed and not job.tolerates_faults:  # of others the decision is an event
        line = reason_line(_params(row.failed[0]))
        params = {"code": ReasonCode.SANITY_CHECK_FAILED.value, "line": line}
        transitions.record(job, Event.Kind.FAULT, params=params)
    fault("sanity.before_commit")


def reason_line(params: Any) -> str:
    """Return a failed check in one line, for events: node, check and detail."""
    return ": ".join(str(params[name]) for name in ("node", "check", "detail") if params.get(name))


def _status(seen: Observation, *, has_failed: bool) -> str:
    if has_failed:
        return SanityCheck.Status.FAILED
    known = [each.sanity["status"] for each in seen.replicas if each.sanity]
    if sanity_file.RUNNING not in known and len(known) == len(seen.replicas):
        return SanityCheck.Status.SUCCEEDED
    return SanityCheck.Status.STOPPED if seen.state in TERMINAL else SanityCheck.Status.RUNNING


def _describe_replicas(seen: Observation) -> Iterator[dict[str, Any]]:
    failed = {rank for failure in _find_faults(seen) for rank in failure["ranks"]}
    order = sorted(range(len(seen.replicas)), key=lambda rank: rank not in failed)
    for rank in order[:MOST_REPLICAS]:
        each = seen.replicas[rank]
        if each.sanity is not None:
            name = f"{each.role}-{each.index}"
            yield {"name": name, "node": each.node, "checks": each.sanity["checks"]}
