"""Labels of states and phases."""

from __future__ import annotations

from typing import Final

from jobs.language import gettext
from jobs.messages.sentences import mark as _
from jobs.states import Phase, ReplicaState, State

_STATES: Final = {
    State.QUEUED: _("Queued"),
    State.SUBMITTING: _("Submitting"),
    State.PENDING: _("Pending"),
    State.RUNNING: _("Running"),
    State.SUCCEEDED: _("Succeeded"),
    State.FAILED: _("Failed"),
    State.STOPPED: _("Stopped"),
    State.LOST: _("Lost"),
}
_TASK_STATES: Final = {
    ReplicaState.WAITING: _("Waiting"),
    ReplicaState.RUNNING: _("Running"),
    ReplicaState.SUCCEEDED: _("Succeeded"),
    ReplicaState.FAILED: _("Failed"),
    ReplicaState.STOPPED: _("Stopped"),
}
_PHASES: Final = {
    Phase.CREATING: _("Creating"),
    Phase.QUEUING: _("Queuing"),
    Phase.BIDDING: _("Bidding"),
    Phase.ENV_PREPARING: _("Preparing the environment"),
    Phase.SANITY_CHECKING: _("Checking the nodes"),
    Phase.RUNNING: _("Running"),
    Phase.RESTARTING: _("Restarting"),
    Phase.STOPPING: _("Stopping"),
    Phase.SUCCEEDED_RESERVING: _("Succeeded, resources kept"),
    Phase.FAILED_RESERVING: _("Failed, resources kept"),
    Phase.ENDED: _("Ended"),
}


def state_label(state: State | str) -> str:
    """Return the label of a job's state."""
    return gettext(_STATES[State(state)])


def replica_state_label(state: ReplicaState | str) -> str:
    """Return the label of a replica's state."""
    return gettext(_TASK_STATES[ReplicaState(state)])


def phase_label(phase: Phase | str) -> str:
    """Return the label of a job's phase."""
    return gettext(_PHASES[Phase(phase)])
