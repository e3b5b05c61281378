"""State mapping: from the object of a Kubeflow kind, and its Workload of Kueue, to what replicas wait for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from jobs.backends.kubernetes.status.replicas import ReplicaStatus
from jobs.states import Reason, ReasonCode, ReplicaState

Object = Mapping[str, Any]

EVICTED: Final = "Evicted"


def read_job(job: Object, workload: Object | None, now: float) -> ReplicaStatus:
    """Return the status of a replica of an attempt that has no node yet."""
    if (failed := _find(job, "Failed")) is not None:
        reason = Reason(ReasonCode.START_FAILED, {"kubernetes": "OperatorFailed", "error": _tell(failed)})
        return ReplicaStatus(ReplicaState.FAILED, reason=reason, ended_at=now)
    if workload is not None and _find(workload, "Admitted") is None:
        word, detail = _read_workload(workload)
        return ReplicaStatus(ReplicaState.WAITING, word=word, detail=detail)
    if not list(_conditions(job)):
        return ReplicaStatus(ReplicaState.WAITING, word="OperatorSilent")
    return ReplicaStatus(ReplicaState.WAITING, word="OperatorPods")


def explain_eviction(workload: Object) -> str:
    """Return the word for why Kueue has ended a job's pods, "" where it has not."""
    if _find(workload, EVICTED) is None:
        return ""
    return "Preempted" if _find(workload, "Preempted") is not None else "KueueEvicted"


def _read_workload(workload: Object) -> tuple[str, str]:
    """Return the word and the text for why Kueue does not start a job."""
    if (evicted := _find(workload, EVICTED)) is not None:
        return "KueueEvicted", _tell(evicted)
    if _find(workload, "QuotaReserved") is not None:
        return "KueueChecks", ""
    reserved = next((each for each in _conditions(workload) if each.get("type") == "QuotaReserved"), {})
    return "KueueQuota", _tell(reserved)


def _find(item: Object, kind: str) -> Object | None:
    """Return the condition of a kind that holds."""
    held = (each for each in _conditions(item) if each.get("status") == "True")
    return next((each for each in held if each.get("type") == kind), None)


def _conditions(item: Object) -> Iterator[Object]:
    yield from (item.get("status") or {}).get("conditions") or ()


def _tell(condition: Object) -> str:
    """Return a condition's own text, on one line and not too long."""
    text = str(condition.get("message") or condition.get("reason") or "")
    return " ".join(text.split())[:500]
