"""State mapping: from Slurm's lists and a run's status files to an `Observation`."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from jobs.backends.base import EndpointSeen, Observation, ReplicaSeen
from jobs.backends.remote import attempts
from jobs.backends.remote.records import AttemptRecord, RoleRecord
from jobs.backends.remote.replica_ends import describe_end, killing_signal, read_failed_run
from jobs.backends.remote.status_files import ReplicaEnd, RunStatus, decide, last_run, read_run
from jobs.backends.slurm.client.listing import ListedJob
from jobs.backends.slurm.script import ports
from jobs.node.supervisor import sanity_file
from jobs.states import Params, Phase, Reason, ReasonCode, ReplicaState, State, Unready

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
        return _AttemptView(folder, record, listed, RunStatus(), run).observe_pending()
    view = _AttemptView(folder, record, listed, read_run(folder, run), run)
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
    return _AttemptView(folder, record, ListedJob(number, "", "COMPLETED", ""), found, run).observe_ended()


@dataclass(frozen=True, slots=True)
class _AttemptView:
    """One run of an attempt: its record, what Slurm lists, and its status files."""

    folder: Path
    record: AttemptRecord
    listed: ListedJob
    found: RunStatus
    run: int

    def observe_pending(self) -> Observation:
        """Return the observation of a job that waits."""
        listed, replicas = self.listed, tuple(self._replicas())
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
        replicas, began = tuple(self._replicas()), self.found.started_at
        params: Params = {"slurm": self.listed.state} if self.listed.state in NOTABLE else {}
        if began is None:
            reason = Reason(ReasonCode.STARTING, {**self._step(), **params})
            return Observation(State.PENDING, reason, Phase.ENV_PREPARING, replicas, self.run)
        phase = Phase.STOPPING if self.found.ending else Phase.RUNNING
        reason = Reason(ReasonCode.RUNNING, params)
        resumed = self.found.resumed
        return Observation(
            State.RUNNING, reason, phase, replicas, self.run, started_at=began, resumed=resumed
        )

    def observe_ended(self) -> Observation:
        """Return the observation of a job that has ended."""
        state, reason = self._outcome()
        if _may_be_cut(reason) and (self.folder / "rewound").exists():
            state, reason = self._outcome_after_loss()
        is_over = frozenset(ReplicaState) - {ReplicaState.WAITING, ReplicaState.RUNNING}
        replicas = tuple(
            each if each.state in is_over else self._with_job_end(each, reason) for each in self._replicas()
        )
        ended_at = self.found.ended_at or self.listed.ended_at
        began = self.found.started_at
        return Observation(
            state,
            reason,
            Phase.ENDED,
            replicas,
            self.run,
            started_at=began,
            ended_at=ended_at,
            resumed=self.found.resumed,
        )

    def _step(self) -> Params:
        """Return what is done for the first replica that waits for it."""
        steps = self.found.steps
        waiting = (name for _role, _index, name in self.record.replicas() if name not in self.found.ends)
        step = next((steps[name] for name in waiting if name in steps), None)
        return {"step": step[0], "about": step[1]} if step else {}

    def _outcome_after_loss(self) -> tuple[State, Reason]:
        """Return how a job ended that Slurm ended because it had forgotten it."""
        if (self.folder / "stop").exists():
            return State.STOPPED, Reason(ReasonCode.USER_STOP, {"by": None})
        return State.FAILED, Reason(ReasonCode.NODE_LOST, {"slurm": STATE_LOST})

    def _outcome(self) -> tuple[State, Reason]:
        found, listed = self.found, self.listed
        if found.ending == "asked":
            return State.STOPPED, Reason(ReasonCode.USER_STOP, {"by": None})
        if found.ending == "time":
            return State.STOPPED, Reason(ReasonCode.TIME_LIMIT, {"limit_s": self.record.time_limit_s})
        if listed.state in ENDED:
            state, code = ENDED[listed.state]
            return state, Reason(code, self._params(code))
        judged, by = decide(self.record, found)
        if judged.state is State.FAILED:
            role, index = next((role, index) for role, index, name in self.record.replicas() if name == by)
            reason = describe_end(found.ends[by])
            return State.FAILED, Reason(reason.code, {**reason.params, "role": role.name, "index": index})
        if judged.state is State.SUCCEEDED:
            failed = sum(end.state is ReplicaState.FAILED for end in found.ends.values())
            if failed:
                counts = {"failed": failed, "total": judged.total}
                return State.SUCCEEDED, Reason(ReasonCode.COMPLETED_WITH_FAILURES, counts)
            return State.SUCCEEDED, Reason(ReasonCode.COMPLETED)
        return self._outcome_without_end()

    def _outcome_without_end(self) -> tuple[State, Reason]:
        """Return how a job ended whose files don't tell that."""
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

    def _replicas(self) -> Iterator[ReplicaSeen]:
        found, logs = self.found, self.folder / attempts.run_name(self.run) / "logs"
        for role, index, name in self.record.replicas():
            node, began = found.started.get(name, ("", None))
            seen = ReplicaSeen(
                role=role.name,
                index=index,
                state=ReplicaState.RUNNING if began is not None else ReplicaState.WAITING,
                node=node or found.hosts.get(name, ""),
                started_at=began,
                log_path=str(logs / f"{name}.output"),
                image_used=role.contained if role.image else None,
                endpoints=tuple(self._endpoints(role, index, name)),
                sanity=self._sanity(name) if began is not None and self.record.checks_nodes else None,
            )
            end = found.ends.get(name)
            if end is not None:
                seen = self._with_end(seen, end, role)
            elif name in found.failed and not found.ending:
                seen = replace(
                    seen, state=ReplicaState.WAITING, failed_run=read_failed_run(*found.failed[name])
                )
            yield seen

    def _sanity(self, name: str) -> Mapping[str, Any]:
        """Return the result of the check that the replica's command begins with."""
        folder = self.folder / attempts.run_name(self.run) / "work" / name
        return sanity_file.read(folder, None) or sanity_file.NOT_BEGUN

    def _with_end(self, seen: ReplicaSeen, end: ReplicaEnd, role: RoleRecord) -> ReplicaSeen:
        state = end.state
        reason = Reason(ReasonCode.JOB_ENDED) if end.how == "told" else describe_end(end)
        if end.how == "lost" and self.listed.state == "OUT_OF_MEMORY":
            params: Params = {"limit_mib": role.memory_mib, "exit_code": end.code}
            reason = Reason(ReasonCode.OUT_OF_MEMORY, params)
        number = killing_signal(end.code)
        if number is not None and self._engine_state() is State.STOPPED:
            state, reason = ReplicaState.STOPPED, Reason(ReasonCode.JOB_ENDED)
        return replace(seen, state=state, reason=reason, exit_code=end.code, signal=number, ended_at=end.at)

    def _with_job_end(self, seen: ReplicaSeen, reason: Reason) -> ReplicaSeen:
        """Return a replica that had not ended when its job had."""
        state = ReplicaState.STOPPED
        if reason.params.get("slurm") == NOT_RELAYED:
            state = ReplicaState.FAILED if reason.params["exit_code"] else ReplicaState.SUCCEEDED
        elif self._engine_state() is State.FAILED and seen.state is ReplicaState.RUNNING:
            state = ReplicaState.FAILED
        else:
            reason = Reason(ReasonCode.JOB_ENDED)
        return replace(seen, state=state, reason=reason, ended_at=self.listed.ended_at)

    def _engine_state(self) -> State:
        return ENDED.get(self.listed.state, (State.FAILED,))[0]

    def _endpoints(self, role: RoleRecord, index: int, name: str) -> Iterator[EndpointSeen]:
        """Yield the requested ports; `endpoints` tells where they are and whether they answer.

        Where something listened already the script chose another number, and wrote that into a file.
        """
        found, listed = self.found, self.listed
        for label, requested, position in role.ports:
            which = role.offset + index * role.each + position
            usual = requested or ports.port_number(self.record.ports, listed.number, which)
            port = found.ports[which] if which < len(found.ports) else usual
            why, params = Unready.WAITING, {}
            if name in found.ends:
                why = Unready.ENDED
            elif which in found.taken:
                why, params = Unready.TAKEN, {"port": port}
            elif name in found.started:
                why = Unready.STARTING
            yield EndpointSeen(label, "", port, ready=False, why=why, params=params)


def round_start(at: float) -> int:
    """Round an expected start up to `ROUND_S`."""
    return int(-(-at // ROUND_S) * ROUND_S)


def _may_be_cut(reason: Reason) -> bool:
    """Return whether something else than the job may have ended it."""
    killed = reason.code is ReasonCode.SIGNALLED and reason.params.get("signal") in (KILL, TERM)
    is_unknown = reason.code in (ReasonCode.WRAPPER_LOST, ReasonCode.START_FAILED)
    return killed or is_unknown or reason.params.get("slurm") == NOT_RELAYED
