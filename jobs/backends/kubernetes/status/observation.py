"""From the states of an attempt's replicas to its `Observation`, and the decision how it ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from jobs.backends.base import EndpointSeen, Observation, ReplicaSeen
from jobs.backends.kubernetes.objects.pods import CODE, DATA, PACKAGES, RESUME
from jobs.backends.kubernetes.status.records import AttemptStatus, StopRequest
from jobs.backends.kubernetes.status.replicas import ReplicaStatus
from jobs.backends.remote.records import AttemptRecord, RoleRecord
from jobs.node.supervisor.checkpoints import Checkpoint
from jobs.states import (
    Params,
    Phase,
    Reason,
    ReasonCode,
    Replica,
    ReplicaState,
    State,
    Unready,
    verdict,
)

LOGS: Final = "logs"

Decision = tuple[State, Reason]


def log_path(folder: Path, name: str) -> Path:
    """Return the copy of the output of a replica, by its name in files."""
    return folder / LOGS / f"{name}.output"


def decide(
    record: AttemptRecord, replicas: Mapping[str, ReplicaStatus], stop: StopRequest | None
) -> Decision | None:
    """Return how the attempt ends, as far as the ends of its replicas decide that; None while they don't.

    Ends are looked at in their order, so that one who looks late comes to the same decision.
    """
    ended = sorted(
        (
            (replicas[name], role, index)
            for role, index, name in record.replicas()
            if name in replicas and replicas[name].has_ended
        ),
        key=lambda each: each[0].ended_at or 0,
    )
    limits = (each.reason for each, _role, _index in ended if each.reason)
    if limit := next((reason for reason in limits if reason.code is ReasonCode.TIME_LIMIT), None):
        return State.STOPPED, limit
    few, many = 0, len(ended)
    if not _is_decided(record, ended):
        return (State.STOPPED, Reason(ReasonCode.USER_STOP, {"by": None})) if stop else None
    while few + 1 < many:
        middle = (few + many) // 2
        few, many = (few, middle) if _is_decided(record, ended[:middle]) else (middle, many)
    return _describe(record, ended[:many], stop)


_Ends = Sequence[tuple[ReplicaStatus, RoleRecord, int]]


def _is_decided(record: AttemptRecord, ends: _Ends) -> bool:
    return verdict(record.roles, _count(ends)).state is not None


def _count(ends: _Ends) -> Iterator[Replica]:
    return (Replica(role.name, index, each.state) for each, role, index in ends)


def _describe(record: AttemptRecord, ends: _Ends, stop: StopRequest | None) -> Decision:
    judged = verdict(record.roles, _count(ends))
    last, role, index = ends[-1]
    if judged.state is State.FAILED:
        reason = last.reason or Reason(ReasonCode.NODE_LOST)
        return State.FAILED, Reason(reason.code, {**reason.params, "role": role.name, "index": index})
    if any(each.state is ReplicaState.STOPPED for each, _role, _index in ends) and stop:
        return State.STOPPED, Reason(ReasonCode.USER_STOP, {"by": None})
    if judged.failed:
        counts = {"failed": judged.failed, "total": judged.total}
        return State.SUCCEEDED, Reason(ReasonCode.COMPLETED_WITH_FAILURES, counts)
    return State.SUCCEEDED, Reason(ReasonCode.COMPLETED)


def observe(
    record: AttemptRecord, status: AttemptStatus, stop: StopRequest | None, folder: Path
) -> Observation:
    """Return the observation of an attempt whose replicas have these states."""
    replicas = tuple(_replicas(record, status, folder))
    started_at = min((each.started_at for each in replicas if each.started_at), default=None)
    resumed = next(filter(None, (_checkpoint(each) for each in status.replicas.values())), None)
    every = [status.replicas.get(name, _UNSEEN) for _role, _index, name in record.replicas()]
    if all(each.has_ended for each in every):
        decision = decide(record, status.replicas, stop)
        state, reason = decision or (State.FAILED, Reason(ReasonCode.NODE_LOST))
        ended_at = max((each.ended_at for each in every if each.ended_at), default=None)
        ended = tuple(replace(each, endpoints=()) for each in replicas)
        seen = Observation(
            state, reason, Phase.ENDED, ended, started_at=started_at, ended_at=ended_at, resumed=resumed
        )
        return seen.with_version()
    is_ending = bool(status.ending) or stop is not None
    if started_at is None:
        reason, phase = _explain_waiting(every)
        phase = Phase.STOPPING if is_ending else phase
        return Observation(State.PENDING, reason, phase, replicas, resumed=resumed).with_version()
    phase = Phase.STOPPING if is_ending else Phase.RUNNING
    reason = Reason(ReasonCode.RUNNING)
    seen = Observation(State.RUNNING, reason, phase, replicas, started_at=started_at, resumed=resumed)
    return seen.with_version()


def observe_held(record: AttemptRecord, folder: Path) -> Observation:
    """Return the observation of an attempt that waits to be released."""
    replicas = tuple(_replicas(record, AttemptStatus(), folder))
    seen = Observation(State.PENDING, Reason(ReasonCode.STARTING), Phase.CREATING, replicas, held=True)
    return seen.with_version()


_STEPS: Final = {CODE: "code", DATA: "data", PACKAGES: "packages"}
"""Init containers of the console's own, as reasons name what they do."""

_UNSEEN: Final = ReplicaStatus(ReplicaState.WAITING)


def _explain_waiting(every: Sequence[ReplicaStatus]) -> tuple[Reason, Phase]:
    """Return why an attempt has not begun: the first replica without a node, or the first that prepares."""
    waiting = [each for each in every if each.state is ReplicaState.WAITING]
    placeless = next((each for each in waiting if each.word and not each.node), None)
    if placeless is not None:
        params: Params = {"kubernetes": placeless.word, "detail": placeless.detail}
        return Reason(ReasonCode.ENGINE_QUEUE, params), Phase.QUEUING
    for each in waiting:
        if each.step and each.step != RESUME:
            step = _STEPS.get(each.step, "init")
            about = each.about if each.step in _STEPS else each.step
            return Reason(ReasonCode.STARTING, {"step": step, "about": about}), Phase.ENV_PREPARING
        if each.word and each.detail:
            params = {"kubernetes": each.word, "detail": each.detail}
            return Reason(ReasonCode.STARTING, params), Phase.ENV_PREPARING
    has_node = any(each.node for each in every)
    return Reason(ReasonCode.STARTING), Phase.ENV_PREPARING if has_node else Phase.CREATING


def _replicas(record: AttemptRecord, status: AttemptStatus, folder: Path) -> Iterator[ReplicaSeen]:
    for role, index, name in record.replicas():
        found = status.replicas.get(name, _UNSEEN)
        yield ReplicaSeen(
            role=role.name,
            index=index,
            state=found.state,
            reason=found.reason,
            exit_code=found.exit_code,
            signal=found.signal,
            node=found.node,
            started_at=found.started_at,
            ended_at=found.ended_at,
            log_path=str(log_path(folder, name)),
            image_used=True if role.image else None,
            commit=found.commit,
            endpoints=tuple(_endpoints(role, found)),
        )


def _endpoints(role: RoleRecord, found: ReplicaStatus) -> Iterator[EndpointSeen]:
    """Yield the requested ports; the kubelet tells whether the first of them answers."""
    for label, port, _position in role.ports:
        is_running = found.state is ReplicaState.RUNNING
        why = Unready.STARTING if is_running else Unready.ENDED if found.has_ended else Unready.WAITING
        is_ready = is_running and found.is_ready
        yield EndpointSeen(label, found.address, port, ready=is_ready, why=None if is_ready else why)


def _checkpoint(found: ReplicaStatus) -> Checkpoint | None:
    """Return the checkpoint that an init container has found: its time and its name."""
    saved_at, _, name = found.checkpoint.partition(" ")
    return Checkpoint(name, float(saved_at)) if name and saved_at.isdigit() else None
