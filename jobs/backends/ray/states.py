"""State mapping: from Ray's word about a job and an attempt's status files to an `Observation`."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from jobs.backends.base import EndpointSeen, Gone, Observation, ReplicaSeen
from jobs.backends.ray.client import RayJob
from jobs.backends.remote import attempts, status_files
from jobs.backends.remote.records import AttemptRecord, RoleRecord
from jobs.backends.remote.replica_ends import describe_end, killing_signal, read_failed_run
from jobs.backends.remote.status_files import ReplicaEnd, RunStatus
from jobs.node.supervisor import sanity_file
from jobs.node.supervisor.checkpoints import Checkpoint
from jobs.states import Params, Phase, Reason, ReasonCode, ReplicaState, State, Unready

RUN: Final = 1
"""Ray starts no job a second time."""

RESUMED: Final = "resumed.json"
MISSED: Final = "missed"
"""In an attempt's folder: when Ray's job was first seen ended without an end in the files."""

LATE_S: Final = 30.0
"""Ends may be on their way from the nodes for so long after Ray's job."""

PLACING, PREPARING = "PLACING", "PREPARING"
"""Words for a job that waits at Ray: for its placement group, and for its driver."""

LOST, RUNTIME_ENV = "DRIVER_LOST", "DRIVER_FAILED"
"""Words for a job whose driver was killed, or could not begin."""

_OVER: Final = frozenset(ReplicaState) - {ReplicaState.WAITING, ReplicaState.RUNNING}
_LONGEST: Final = 500


def observe(folder: Path, record: AttemptRecord, job: RayJob | None) -> Observation | Gone:
    """Return the observation of an attempt; `job` is None where Ray answered and knows none."""
    view = AttemptView(folder, record, status_files.read_run(folder, RUN), job)
    if view.found.over:
        return view.observe_ended()
    if job is not None and job.is_active:
        return view.observe_active()
    names = {name for _role, _index, name in record.replicas()}
    all_ended = names <= view.found.ends.keys()
    if job is None and not all_ended:
        return Gone.GONE
    if not all_ended and view.found.begun and not _is_late(folder):
        return view.observe_active()
    return view.observe_ended()


def _is_late(folder: Path) -> bool:
    """Return whether Ray's job was seen ended long enough ago."""
    attempts.create(folder / MISSED, f"{time.time():.3f}")
    since = attempts.read_text(folder / MISSED)
    return since is not None and time.time() > float(since) + LATE_S


def has_ended(folder: Path) -> bool:
    """Return whether the attempt's files have its end."""
    return status_files.read_run(folder, RUN).over


@dataclass(frozen=True, slots=True)
class AttemptView:
    """An attempt: its record, its status files, and its job as Ray lists it."""

    folder: Path
    record: AttemptRecord
    found: RunStatus
    job: RayJob | None

    def observe_active(self) -> Observation:
        """Return the observation of a job that has not ended."""
        found, replicas = self.found, tuple(self._replicas())
        began, resumed = found.started_at, self._read_checkpoint()
        if began is not None:
            phase = Phase.STOPPING if found.ending else Phase.RUNNING
            reason = Reason(ReasonCode.RUNNING)
            return Observation(State.RUNNING, reason, phase, replicas, RUN, started_at=began, resumed=resumed)
        if found.hosts:
            reason = Reason(ReasonCode.STARTING, self._step())
            return Observation(State.PENDING, reason, Phase.ENV_PREPARING, replicas, RUN, resumed=resumed)
        word = PLACING if found.begun else PREPARING
        reason = Reason(ReasonCode.ENGINE_QUEUE, {"ray": word})
        phase = Phase.QUEUING if found.begun else Phase.CREATING
        return Observation(State.PENDING, reason, phase, replicas, RUN, resumed=resumed)

    def observe_ended(self) -> Observation:
        """Return the observation of a job that has ended."""
        state, reason = self._outcome()
        replicas = tuple(
            each if each.state in _OVER else self._with_job_end(each, state, reason)
            for each in self._replicas()
        )
        ended_at = self.found.ended_at or (self.job.ended_at if self.job else None) or self._last_end()
        return Observation(
            state,
            reason,
            Phase.ENDED,
            replicas,
            RUN,
            started_at=self.found.started_at,
            ended_at=ended_at,
            resumed=self._read_checkpoint(),
        )

    def _last_end(self) -> float | None:
        return max((end.at for end in self.found.ends.values()), default=None)

    def _outcome(self) -> tuple[State, Reason]:
        found = self.found
        if found.ending == "asked":
            return State.STOPPED, Reason(ReasonCode.USER_STOP, {"by": None})
        if found.ending == "time":
            return State.STOPPED, Reason(ReasonCode.TIME_LIMIT, {"limit_s": self.record.time_limit_s})
        if not found.over and self._was_stopped():
            return State.STOPPED, Reason(ReasonCode.USER_STOP, {"by": None})
        judged, by = status_files.decide(self.record, found)
        if judged.state is State.FAILED:
            role, index = next((role, index) for role, index, name in self.record.replicas() if name == by)
            reason = describe_end(found.ends[by])
            return State.FAILED, Reason(reason.code, {**reason.params, "role": role.name, "index": index})
        if judged.state is State.SUCCEEDED:
            failed = sum(end.state is ReplicaState.FAILED for end in found.ends.values())
            if failed:
                counts: Params = {"failed": failed, "total": judged.total}
                return State.SUCCEEDED, Reason(ReasonCode.COMPLETED_WITH_FAILURES, counts)
            return State.SUCCEEDED, Reason(ReasonCode.COMPLETED)
        return self._outcome_without_end()

    def _outcome_without_end(self) -> tuple[State, Reason]:
        """Return how a job ended whose files don't tell that."""
        job = self.job
        message = job.message.strip().splitlines() if job else []
        params: Params = {
            "ray": LOST if self.found.begun else RUNTIME_ENV,
            "error": message[-1].strip()[:_LONGEST] if message else "",
            "exit_code": job.exit_code if job else None,
        }
        code = ReasonCode.WRAPPER_LOST if self.found.begun else ReasonCode.START_FAILED
        return State.FAILED, Reason(code, params)

    def _was_stopped(self) -> bool:
        """Return whether a user ended the job, in the console or by Ray's own commands."""
        is_by_ray = self.job is not None and self.job.status == "STOPPED"
        return is_by_ray or (self.folder / "stop").exists()

    def _step(self) -> Params:
        """Return what is done for the first replica that waits for it."""
        steps, ends = self.found.steps, self.found.ends
        waiting = (name for _role, _index, name in self.record.replicas() if name not in ends)
        step = next((steps[name] for name in waiting if name in steps), None)
        return {"step": step[0], "about": step[1]} if step else {}

    def _read_checkpoint(self) -> Checkpoint | None:
        text = attempts.read_text(self.folder / RESUMED)
        return Checkpoint(**json.loads(text)) if text else None

    def _replicas(self) -> Iterator[ReplicaSeen]:
        found, logs = self.found, self.folder / attempts.run_name(RUN) / "logs"
        for role, index, name in self.record.replicas():
            node, began = found.started.get(name, ("", None))
            seen = ReplicaSeen(
                role=role.name,
                index=index,
                state=ReplicaState.RUNNING if began is not None else ReplicaState.WAITING,
                node=node or found.hosts.get(name, ""),
                started_at=began,
                log_path=str(logs / f"{name}.output"),
                image_used=False if role.image else None,
                endpoints=tuple(self._endpoints(role, index, name)),
                sanity=self._sanity(name) if began is not None and self.record.checks_nodes else None,
            )
            end = found.ends.get(name)
            if end is not None:
                seen = _with_end(seen, end)
            elif name in found.failed and found.failed[name][1].code and not found.ending:
                failed = read_failed_run(*found.failed[name])
                seen = replace(seen, state=ReplicaState.WAITING, failed_run=failed)
            yield seen

    def _sanity(self, name: str) -> Mapping[str, Any]:
        """Return the result of the check that the replica's command begins with."""
        folder = self.folder / attempts.run_name(RUN) / "work" / name
        return sanity_file.read(folder, None) or sanity_file.NOT_BEGUN

    def _with_job_end(self, seen: ReplicaSeen, state: State, reason: Reason) -> ReplicaSeen:
        """Return a replica that had not ended when its job had."""
        is_failed = state is State.FAILED and seen.state is ReplicaState.RUNNING
        ended = ReplicaState.FAILED if is_failed else ReplicaState.STOPPED
        why = reason if is_failed else Reason(ReasonCode.JOB_ENDED)
        return replace(seen, state=ended, reason=why, ended_at=self.job.ended_at if self.job else None)

    def _endpoints(self, role: RoleRecord, index: int, name: str) -> Iterator[EndpointSeen]:
        """Yield the requested ports; a probe tells where they are and whether they answer."""
        found = self.found
        for label, requested, position in role.ports:
            which = role.offset + index * role.each + position
            port = found.ports[which] if which < len(found.ports) else requested
            why, params = Unready.WAITING, {}
            if name in found.ends:
                why = Unready.ENDED
            elif which in found.taken:
                why, params = Unready.TAKEN, {"port": port}
            elif name in found.started:
                why = Unready.STARTING
            yield EndpointSeen(label, "", port, ready=False, why=why, params=params)


def _with_end(seen: ReplicaSeen, end: ReplicaEnd) -> ReplicaSeen:
    reason = Reason(ReasonCode.JOB_ENDED) if end.how == "told" else describe_end(end)
    number = killing_signal(end.code)
    return replace(seen, state=end.state, reason=reason, exit_code=end.code, signal=number, ended_at=end.at)
