"""Views of attempts by their records and status files, as parts of an `Observation`.

An engine adds its own word: a subclass tells how the engine lists the job, and how it ended where the files
don't say.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from jobs.backends.base import EndpointSeen, Observation, ReplicaSeen
from jobs.backends.remote import attempts
from jobs.backends.remote.records import AttemptRecord, RoleRecord
from jobs.backends.remote.replica_ends import describe_end, killing_signal, read_failed_run
from jobs.backends.remote.status_files import ReplicaEnd, RunStatus, decide
from jobs.node.supervisor import sanity_file
from jobs.node.supervisor.checkpoints import Checkpoint
from jobs.states import Params, Phase, Reason, ReasonCode, ReplicaState, State, Unready

_OVER: Final = frozenset(ReplicaState) - {ReplicaState.WAITING, ReplicaState.RUNNING}

Outcome = tuple[State, Reason]

_MAX_CODE: Final = 255
_MAX_TIME: Final = 1 << 32


@dataclass(frozen=True, slots=True)
class AttemptView(ABC):
    """One run of an attempt: its record and its status files."""

    folder: Path
    record: AttemptRecord
    found: RunStatus
    run: int

    @property
    @abstractmethod
    def engine_ended_at(self) -> float | None:
        """When the job ended by the engine's word."""

    @property
    def resumed(self) -> Checkpoint | None:
        """The checkpoint that the run resumes from."""
        return self.found.resumed

    @abstractmethod
    def find_engine_outcome(self) -> Outcome | None:
        """Return how the job ended where the engine itself ended it, None otherwise."""

    @abstractmethod
    def explain_missing_end(self) -> Outcome:
        """Return how a job ended whose files don't tell that."""

    @abstractmethod
    def end_with_job(self, seen: ReplicaSeen, state: State, reason: Reason) -> ReplicaSeen:
        """Return a replica that had not ended when its job ended so."""

    def choose_port(self, requested: int, _position: int) -> int:
        """Return the number of a port that the run has not told."""
        return requested

    def complete_end(self, seen: ReplicaSeen, _end: ReplicaEnd, _role: RoleRecord) -> ReplicaSeen:
        """Return an ended replica with what the engine knows of its end."""
        return seen

    def observe_ended(self) -> Observation:
        """Return the observation of a job that has ended."""
        state, reason = self.find_outcome()
        replicas = tuple(
            each if each.state in _OVER else self.end_with_job(each, state, reason)
            for each in self.list_replicas()
        )
        return Observation(
            state,
            reason,
            Phase.ENDED,
            replicas,
            self.run,
            started_at=self.found.started_at,
            ended_at=self.found.ended_at or self.engine_ended_at,
            resumed=self.resumed,
        )

    def observe_running(self, params: Params) -> Observation:
        """Return the observation of a job whose first replica has started."""
        return Observation(
            State.RUNNING,
            Reason(ReasonCode.RUNNING, params),
            Phase.STOPPING if self.found.ending else Phase.RUNNING,
            tuple(self.list_replicas()),
            self.run,
            started_at=self.found.started_at,
            resumed=self.resumed,
        )

    def find_outcome(self) -> Outcome:
        """Return how the job ended: as it was told to, by the engine, or by its replicas."""
        found = self.found
        if found.ending == "asked":
            return State.STOPPED, Reason(ReasonCode.USER_STOP, {"by": None})
        if found.ending == "time":
            return State.STOPPED, Reason(ReasonCode.TIME_LIMIT, {"limit_s": self.record.time_limit_s})
        if outcome := self.find_engine_outcome():
            return outcome
        judged, by = decide(self.record, found)
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
        return self.explain_missing_end()

    def find_step(self) -> Params:
        """Return what is done for the first replica that waits for it."""
        steps, ends = self.found.steps, self.found.ends
        waiting = (name for _role, _index, name in self.record.replicas() if name not in ends)
        step = next((steps[name] for name in waiting if name in steps), None)
        return {"step": step[0], "about": step[1]} if step else {}

    def list_replicas(self) -> Iterator[ReplicaSeen]:
        """Yield each replica as its files tell of it."""
        found, run = self.found, self.folder / attempts.run_name(self.run)
        for role, index, name in self.record.replicas():
            node, began = found.started.get(name, ("", None))
            is_checked = began is not None and self.record.checks_nodes
            seen = ReplicaSeen(
                role=role.name,
                index=index,
                state=ReplicaState.RUNNING if began is not None else ReplicaState.WAITING,
                node=node or found.hosts.get(name, ""),
                started_at=began,
                log_path=str(run / "logs" / f"{name}.output"),
                image_used=role.contained if role.image else None,
                endpoints=tuple(self._endpoints(role, index, name)),
                sanity=_read_sanity(run / "work" / name) if is_checked else None,
            )
            end = found.ends.get(name)
            if end is not None:
                seen = self.complete_end(_with_end(seen, end), end, role)
            elif name in found.failed and found.failed[name][1].code and not found.ending:
                failed = read_failed_run(*found.failed[name])
                seen = replace(seen, state=ReplicaState.WAITING, failed_run=failed)
            yield seen

    def _endpoints(self, role: RoleRecord, index: int, name: str) -> Iterator[EndpointSeen]:
        """Yield the requested ports; a probe tells where they are and whether they answer.

        Where something listened already the run chose another number, and wrote that into a file.
        """
        found = self.found
        for label, requested, position in role.ports:
            which = role.offset + index * role.each + position
            told = which < len(found.ports)
            port = found.ports[which] if told else self.choose_port(requested, which)
            why, params = Unready.WAITING, {}
            if name in found.ends:
                why = Unready.ENDED
            elif which in found.taken:
                why, params = Unready.TAKEN, {"port": port}
            elif name in found.started:
                why = Unready.STARTING
            yield EndpointSeen(label, "", port, ready=False, why=why, params=params)


def check_plausible(seen: Observation) -> None:
    """Raise ValueError for an observation made of forged files: of what no replica can be."""
    times = [seen.started_at, seen.ended_at]
    for each in seen.replicas:
        times += [each.started_at, each.ended_at]
        if not 0 <= (each.exit_code or 0) <= _MAX_CODE or len(each.node) > _MAX_CODE:
            raise ValueError(each.role)
    if any(at is not None and not 0 <= at < _MAX_TIME for at in times):
        raise ValueError(times)


def _read_sanity(work: Path) -> Mapping[str, Any]:
    """Return the result of the check that the replica's command begins with."""
    return sanity_file.read(work, None) or sanity_file.NOT_BEGUN


def _with_end(seen: ReplicaSeen, end: ReplicaEnd) -> ReplicaSeen:
    reason = Reason(ReasonCode.JOB_ENDED) if end.how == "told" else describe_end(end)
    number = killing_signal(end.code)
    return replace(seen, state=end.state, reason=reason, exit_code=end.code, signal=number, ended_at=end.at)
