"""State mapping: from Slurm's lists and a run's status files to an `Observation`."""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from jobs.backends.base import Observation, ReplicaSeen
from jobs.backends.remote import attempts
from jobs.backends.remote.attempt_view import AttemptView, Outcome
from jobs.backends.remote.records import AttemptRecord, RoleRecord
from jobs.backends.remote.status_files import ReplicaEnd, RunStatus, last_run, read_run
from jobs.backends.slurm.client.listing import ListedJob
from jobs.backends.slurm.script import ports
from jobs.states import Params, Phase, Reason, ReasonCode, ReplicaState, State

WAITING: Final = frozenset(
    {"PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
)
ENDED: Final = {
    "CANCELLED": (State.STOPPED, ReasonCode.USER_STOP),
    "REVOKED": (State.STOPPED, ReasonCode.USER_STOP),
    "TIMEOUT": (State.STOPPED, ReasonCode.TIME_LIMIT),
    "DEADLINE": (State.STOPPED, ReasonCode.TIME_LIMIT),
    "PREEMPTED": (State.STOPPED, ReasonCode.PREEMPTED),
    "NODE_FAIL": (State.FAILED, ReasonCode.NODE_LOST),
    "BOOT_FAIL": (State.FAILED, ReasonCode.NODE_LOST),
    "OUT_OF_MEMORY": (State.FAILED, ReasonCode.OUT_OF_MEMORY),
}
"""States in which Slurm itself tells why a job ended; in others its replicas do."""

OVER: Final = frozenset({*ENDED, "COMPLETED", "FAILED", "LAUNCH_FAILED", "RECONFIG_FAIL"})
"""All states of an end.  A job in one that is not known here still goes on."""

NOTABLE: Final = frozenset({"CONFIGURING", "SUSPENDED", "STOPPED"})
"""States of a job that goes on which users are told."""

RELAY_EXIT_CODES: Final = {
    73: "COURIER_FOLDER",
    75: "COURIER_AWAY",
    77: "COURIER_REFUSED",
    127: "COURIER_PYTHON",
}
"""Exit codes of a script that the node relay did not let begin."""

NOT_RELAYED: Final = "UNBROUGHT"
"""The node relay did not reach the console at the end: only the exit code is known."""

STATE_LOST: Final = "REWOUND"
"""Slurm's controller crashed, forgot that it had started the job, and ended it.  No word of Slurm."""

KILL, TERM = int(signal.SIGKILL), int(signal.SIGTERM)

ROUND_S: Final = 600
"""Expected starts are rounded to ten minutes: they move with every pass of the scheduler."""


def from_listed(folder: Path, record: AttemptRecord, listed: ListedJob) -> Observation:
    """Return the observation of an attempt that Slurm knows."""
    run = listed.restarts + 1
    if listed.state in WAITING:
        return _SlurmAttempt(folder, record, RunStatus(), run, listed).observe_pending()
    view = _SlurmAttempt(folder, record, read_run(folder, run), run, listed)
    return view.observe_ended() if listed.state in OVER else view.observe_active()


def has_end(folder: Path) -> bool:
    """Return whether an attempt's status files say that it has ended."""
    return read_run(folder, last_run(folder)).over


def from_files(folder: Path, record: AttemptRecord, number: int) -> Observation | None:
    """Return the observation of an attempt that Slurm has forgotten; None when its files have no end."""
    run = last_run(folder)
    found = read_run(folder, run)
    if not found.over:
        return None
    listed = ListedJob(number, "", "COMPLETED", "")
    return _SlurmAttempt(folder, record, found, run, listed).observe_ended()


@dataclass(frozen=True, slots=True)
class _SlurmAttempt(AttemptView):
    """One run of an attempt, and what Slurm lists of it."""

    listed: ListedJob

    @property
    def engine_ended_at(self) -> float | None:
        """See `AttemptView`."""
        return self.listed.ended_at

    def observe_pending(self) -> Observation:
        """Return the observation of a job that waits."""
        listed, replicas = self.listed, tuple(self.list_replicas())
        is_first = self.run == 1
        if listed.is_held and is_first and attempts.read_text(self.folder / "released") is None:
            reason = Reason(ReasonCode.STARTING)
            return Observation(State.PENDING, reason, Phase.CREATING, replicas, self.run, held=True)
        params: dict[str, str | int | None] = {"slurm": listed.reason}
        if listed.starts_at is not None and listed.reason in ("Resources", "Priority", "BeginTime"):
            params["start"] = round_start(listed.starts_at)
        phase = Phase.QUEUING if is_first else Phase.RESTARTING
        return Observation(State.PENDING, Reason(ReasonCode.ENGINE_QUEUE, params), phase, replicas, self.run)

    def observe_active(self) -> Observation:
        """Return the observation of a job that has its nodes and has not ended."""
        params: Params = {"slurm": self.listed.state} if self.listed.state in NOTABLE else {}
        if self.found.started_at is not None:
            return self.observe_running(params)
        reason = Reason(ReasonCode.STARTING, {**self.find_step(), **params})
        replicas = tuple(self.list_replicas())
        return Observation(State.PENDING, reason, Phase.ENV_PREPARING, replicas, self.run)

    def find_outcome(self) -> Outcome:
        """See `AttemptView`; the other outcome is that of a job that Slurm ended as it had forgotten it."""
        outcome = AttemptView.find_outcome(self)
        if not (_may_be_cut(outcome[1]) and (self.folder / "rewound").exists()):
            return outcome
        if (self.folder / "stop").exists():
            return State.STOPPED, Reason(ReasonCode.USER_STOP, {"by": None})
        return State.FAILED, Reason(ReasonCode.NODE_LOST, {"slurm": STATE_LOST})

    def find_engine_outcome(self) -> Outcome | None:
        """See `AttemptView`."""
        if self.listed.state not in ENDED:
            return None
        state, code = ENDED[self.listed.state]
        return state, Reason(code, self._params(code))

    def explain_missing_end(self) -> Outcome:
        """See `AttemptView`."""
        listed, found = self.listed, self.found
        if not found.begun:
            word = listed.state if listed.reason in ("", "None") else listed.reason
            if self.record.apart:
                word = RELAY_EXIT_CODES.get(listed.exit_code or 0, word)
            params: Params = {"slurm": word, "exit_code": listed.exit_code, "error": word}
            return State.FAILED, Reason(ReasonCode.START_FAILED, params)
        by_itself = listed.state in ("COMPLETED", "FAILED") and listed.exit_code <= 128
        if not (self.record.apart and not found.over and by_itself):
            return State.FAILED, Reason(ReasonCode.WRAPPER_LOST, {"exit_code": listed.exit_code or None})
        params = {"slurm": NOT_RELAYED, "exit_code": listed.exit_code}
        if listed.exit_code:
            return State.FAILED, Reason(ReasonCode.EXIT_CODE, params)
        return State.SUCCEEDED, Reason(ReasonCode.COMPLETED, params)

    def _params(self, code: ReasonCode) -> Params:
        if code is ReasonCode.OUT_OF_MEMORY:
            limits = {role.memory_mib for role in self.record.roles}
            return {"limit_mib": limits.pop()} if len(limits) == 1 else {}
        more: Params = {}
        if code is ReasonCode.USER_STOP:
            more = {"by": None}
        elif code is ReasonCode.NODE_LOST:
            more = {"node": self.listed.nodes or None}
        return {"slurm": self.listed.state, **more}

    def complete_end(self, seen: ReplicaSeen, end: ReplicaEnd, role: RoleRecord) -> ReplicaSeen:
        """See `AttemptView`: Slurm ends steps for their memory, and when it ends the job."""
        if end.how == "lost" and self.listed.state == "OUT_OF_MEMORY":
            params: Params = {"limit_mib": role.memory_mib, "exit_code": end.code}
            seen = replace(seen, reason=Reason(ReasonCode.OUT_OF_MEMORY, params))
        if seen.signal is not None and self._engine_state() is State.STOPPED:
            return replace(seen, state=ReplicaState.STOPPED, reason=Reason(ReasonCode.JOB_ENDED))
        return seen

    def end_with_job(self, seen: ReplicaSeen, _state: State, reason: Reason) -> ReplicaSeen:
        """See `AttemptView`."""
        state = ReplicaState.STOPPED
        if reason.params.get("slurm") == NOT_RELAYED:
            state = ReplicaState.FAILED if reason.params["exit_code"] else ReplicaState.SUCCEEDED
        elif self._engine_state() is State.FAILED and seen.state is ReplicaState.RUNNING:
            state = ReplicaState.FAILED
        else:
            reason = Reason(ReasonCode.JOB_ENDED)
        return replace(seen, state=state, reason=reason, ended_at=self.listed.ended_at)

    def choose_port(self, requested: int, position: int) -> int:
        """See `AttemptView`."""
        return requested or ports.port_number(self.record.ports, self.listed.number, position)

    def _engine_state(self) -> State:
        return ENDED.get(self.listed.state, (State.FAILED,))[0]


def round_start(at: float) -> int:
    """Round an expected start up to `ROUND_S`."""
    return int(-(-at // ROUND_S) * ROUND_S)


def _may_be_cut(reason: Reason) -> bool:
    """Return whether something else than the job may have ended it."""
    killed = reason.code is ReasonCode.SIGNALLED and reason.params.get("signal") in (KILL, TERM)
    is_unknown = reason.code in (ReasonCode.WRAPPER_LOST, ReasonCode.START_FAILED)
    return killed or is_unknown or reason.params.get("slurm") == NOT_RELAYED
