"""Statuses and reasons of jobs and pods as PAI-DLC names them, and the rows that have a status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.db.models import Q

from jobs import messages
from jobs.lifecycle import pending_reasons
from jobs.models import Event, Job, Replica
from jobs.states import TERMINAL, Phase, Reason, ReasonCode, ReplicaState, State


@dataclass(frozen=True, slots=True)
class StatusRow:
    """A status, and the states and phases that it is of; without phases it is of any."""

    status: str
    states: frozenset[State]
    phases: frozenset[Phase] = frozenset()

    def covers(self, job: Job) -> bool:
        """Tell whether the job has this status."""
        return State(job.state) in self.states and (not self.phases or Phase(job.phase) in self.phases)

    @property
    def condition(self) -> Q:
        """Return the condition of the rows with this status."""
        states = Q(state__in=[state.value for state in self.states])
        return states & Q(phase__in=[phase.value for phase in self.phases]) if self.phases else states


_QUEUED: Final = frozenset({State.QUEUED})
_HANDED_OVER: Final = frozenset({State.SUBMITTING, State.PENDING})
_STARTED: Final = frozenset({State.RUNNING})
_OPEN: Final = frozenset(State) - TERMINAL

STATUSES: Final = (
    StatusRow("Succeeded", frozenset({State.SUCCEEDED})),
    # The vendor has no word for a lost job, and clients poll for an end.  A job that reappears runs again.
    StatusRow("Failed", frozenset({State.FAILED, State.LOST})),
    StatusRow("Stopped", frozenset({State.STOPPED})),
    StatusRow("Stopping", _OPEN, frozenset({Phase.STOPPING})),
    StatusRow("Restarting", _OPEN, frozenset({Phase.RESTARTING})),
    StatusRow("Bidding", _OPEN, frozenset({Phase.BIDDING})),
    StatusRow("SanityChecking", _OPEN, frozenset({Phase.SANITY_CHECKING})),
    StatusRow("SucceededReserving", _OPEN, frozenset({Phase.SUCCEEDED_RESERVING})),
    StatusRow("FailedReserving", _OPEN, frozenset({Phase.FAILED_RESERVING})),
    StatusRow("Creating", _QUEUED, frozenset({Phase.CREATING})),
    StatusRow("Queuing", _QUEUED),
    StatusRow("Queuing", _HANDED_OVER, frozenset({Phase.QUEUING})),
    StatusRow("EnvPreparing", _HANDED_OVER),
    StatusRow("EnvPreparing", _STARTED, frozenset({Phase.ENV_PREPARING})),
    StatusRow("Running", _STARTED),
)
"""The first row that covers a job has its status (the vendor's page, "Status")."""

NAMES: Final = tuple(dict.fromkeys(row.status for row in STATUSES))
"""All statuses."""

REASON_CODES: Final[Mapping[ReasonCode, str]] = {
    ReasonCode.COMPLETED: "JobSucceeded",
    ReasonCode.COMPLETED_WITH_FAILURES: "JobSucceeded",
    ReasonCode.SETTLED_SUCCEEDED: "JobSucceeded",
    ReasonCode.USER_STOP: "JobStoppedByUser",
    ReasonCode.ADMIN_STOP: "JobStoppedByAdmin",
    ReasonCode.SETTLED_STOPPED: "JobStoppedByAdmin",
    ReasonCode.TIME_LIMIT: "JobMaxRunningTimeExceeded",
    ReasonCode.REFUSED: "InvalidParameter",
    ReasonCode.EXIT_CODE: "JobFailed",
    ReasonCode.SETTLED_FAILED: "JobFailed",
}
"""ReasonCodes that the vendor documents, and some in its words; others are our own in its spelling."""

SUB_STATUSES: Final[Mapping[ReasonCode, str]] = {
    ReasonCode.HELD: "Held",
    ReasonCode.LOST: "Lost",
    ReasonCode.PREEMPTED: "Evicted",
    ReasonCode.DRAINED: "Evicted",
    ReasonCode.REQUEUED: "Evicted",
    ReasonCode.GROWTH: "Evicted",
}
"""SubStatuses; a job of another reason has none."""

_POD_STATUSES: Final[Mapping[ReplicaState, str]] = {
    ReplicaState.WAITING: "Pending",
    ReplicaState.RUNNING: "Running",
    ReplicaState.SUCCEEDED: "Succeeded",
    ReplicaState.FAILED: "Failed",
    ReplicaState.STOPPED: "Failed",
}
_EVICTIONS: Final = frozenset(
    {
        ReasonCode.PREEMPTED,
        ReasonCode.DRAINED,
        ReasonCode.REQUEUED,
        ReasonCode.GROWTH,
        ReasonCode.NODE_LOST,
    }
)

HISTORY: Final[Mapping[Event.Kind, str]] = {
    Event.Kind.SUBMITTED: "Queuing",
    Event.Kind.QUEUED_AGAIN: "Restarting",
    Event.Kind.ADMITTED: "EnvPreparing",
    Event.Kind.STARTED: "Running",
    Event.Kind.REQUEUED: "Restarting",
    Event.Kind.LOST: "Failed",
    Event.Kind.FOUND_AGAIN: "Running",
    Event.Kind.END_WANTED: "Stopping",
}
"""The status that begins with an event; the end of a job begins that of its state."""


def status_of(job: Job) -> str:
    """Return the status of a job."""
    return next(row.status for row in STATUSES if row.covers(job))


def match_status(status: str) -> Q:
    """Return the condition of the jobs with that status.

    The rows before it in the table come first, so theirs are left out.
    """
    found, earlier = Q(pk__in=()), Q(pk__in=())
    for row in STATUSES:
        if row.status == status:
            found |= row.condition & ~earlier
        earlier |= row.condition
    return found


def reason_code(code: str) -> str:
    """Return a reason's code in the vendor's spelling."""
    if not code:
        return ""
    known = ReasonCode(code)
    return REASON_CODES.get(known) or "".join(word.capitalize() for word in known.value.split("_"))


def describe_reason(job: Job) -> dict[str, str]:
    """Return why the job is in its status, and its SubStatus; `pending_reasons.load_reasons` comes first."""
    reason = pending_reasons.reason_of(job)
    return {
        "SubStatus": SUB_STATUSES.get(reason.code, ""),
        "ReasonCode": reason_code(reason.code),
        "ReasonMessage": message_of(reason),
    }


def message_of(reason: Reason) -> str:
    """Return the sentence of a reason; a person's stop in the vendor's own words."""
    if reason.code is ReasonCode.USER_STOP:
        return "Job is stopped by user."
    return messages.reason_message(reason.code, reason.params)


def pod_status(replica: Replica, job: Job) -> str:
    """Return the status of a pod; that of a lost job's is unknown."""
    state = ReplicaState(replica.state)
    if job.state == State.LOST and state is ReplicaState.RUNNING:
        return "Unknown"
    return _POD_STATUSES[state]


def pod_sub_status(replica: Replica) -> str:
    """Return the SubStatus of a pod."""
    return "Evicted" if replica.reason_code in _EVICTIONS else "Normal"
