"""From what Slurm lists, and what a job's script wrote down, to what the console is told."""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from jobs.backends.base import EndpointSeen, Observation, ReplicaSeen
from jobs.backends.slurm.client.listing import Listed
from jobs.backends.slurm.script import layout
from jobs.backends.slurm.status import evidence
from jobs.backends.slurm.status.evidence import End, Evidence, Kept, Role
from jobs.states import Params, Phase, Reason, ReasonCode, State, TaskState, Unready

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
"""States in which Slurm itself says why a job ended; the replicas say it otherwise."""

OVER: Final = frozenset({*ENDED, "COMPLETED", "FAILED", "LAUNCH_FAILED", "RECONFIG_FAIL"})
"""All states of an end.  A job in one that is not known here still goes on."""

TOLD: Final = frozenset({"CONFIGURING", "SUSPENDED", "STOPPED"})
"""States of a job that goes on of which people are to know."""

PREVENTED: Final = {
    "mount": ReasonCode.MOUNT_FAILED,
    "code": ReasonCode.CODE_FAILED,
    "packages": ReasonCode.REQUIREMENTS_FAILED,
    "image": ReasonCode.IMAGE_FAILED,
}
"""What kept a replica's command from being started."""

STARTS: Final = {
    73: "COURIER_FOLDER",
    75: "COURIER_AWAY",
    77: "COURIER_REFUSED",
    127: "COURIER_PYTHON",
}
"""With what exit code a script ends that did not begin, where nodes share no folder with the console."""

UNBROUGHT: Final = "UNBROUGHT"
"""Its exit code is all that is known of an end: the console was away."""

REWOUND: Final = "REWOUND"
"""Not Slurm's word: its controller crashed, forgot that it had started the job, and ended it."""

KILL, TERM = int(signal.SIGKILL), int(signal.SIGTERM)

ROUND_S: Final = 600
"""Expected starts are told to ten minutes: they move at every look of the scheduler."""

_KILLERS: Final = frozenset(int(each) for each in signal.Signals)


def of_listed(folder: Path, kept: Kept, listed: Listed) -> Observation:
    """An attempt that Slurm knows."""
    run = listed.restarts + 1
    if listed.state in WAITING:
        return versioned(_waiting(folder, kept, listed, run))
    found = evidence.of_run(folder, run)
    if listed.state in OVER:
        return versioned(_ended(folder, kept, listed, found, run))
    return versioned(_going(folder, kept, listed, found, run))


def is_told(folder: Path) -> bool:
    """Whether what an attempt left behind says that it has ended."""
    return evidence.of_run(folder, evidence.last_run(folder)).over


def of_evidence(folder: Path, kept: Kept, number: int) -> Observation | None:
    """An attempt that Slurm has forgotten, by what it left behind; None when that does not tell its end."""
    run = evidence.last_run(folder)
    found = evidence.of_run(folder, run)
    if not found.over:
        return None
    return versioned(_ended(folder, kept, Listed(number, "", "COMPLETED", ""), found, run))


def _waiting(folder: Path, kept: Kept, listed: Listed, run: int) -> Observation:
    replicas = _replicas(folder, kept, listed, Evidence(), run)
    if listed.is_held and run == 1 and layout.text(folder / "released") is None:
        return Observation(
            State.PENDING, Reason(ReasonCode.STARTING), Phase.CREATING, replicas, run, held=True
        )
    params: dict[str, str | int | None] = {"slurm": listed.reason}
    if listed.starts_at is not None and listed.reason in ("Resources", "Priority", "BeginTime"):
        params["start"] = int(-(-listed.starts_at // ROUND_S) * ROUND_S)
    phase = Phase.QUEUING if run == 1 else Phase.RESTARTING
    return Observation(State.PENDING, Reason(ReasonCode.ENGINE_QUEUE, params), phase, replicas, run)


def _going(folder: Path, kept: Kept, listed: Listed, found: Evidence, run: int) -> Observation:
    replicas = _replicas(folder, kept, listed, found, run)
    began = min((at for _node, at in found.started.values()), default=None)
    told: Params = {"slurm": listed.state} if listed.state in TOLD else {}
    if began is None:
        reason = Reason(ReasonCode.STARTING, {**_step(kept, found), **told})
        return Observation(State.PENDING, reason, Phase.ENV_PREPARING, replicas, run)
    phase = Phase.STOPPING if found.ending else Phase.RUNNING
    reason = Reason(ReasonCode.RUNNING, told)
    return Observation(State.RUNNING, reason, phase, replicas, run, started_at=began)


def _step(kept: Kept, found: Evidence) -> Params:
    """What is being done for the first replica that waits for it."""
    waiting = (name for _role, _index, name in kept.replicas() if name not in found.ends)
    step = next((found.steps[name] for name in waiting if name in found.steps), None)
    return {"step": step[0], "about": step[1]} if step else {}


def _ended(folder: Path, kept: Kept, listed: Listed, found: Evidence, run: int) -> Observation:
    state, reason = _outcome(kept, listed, found)
    if _is_cut(reason) and (folder / "rewound").exists():
        state, reason = _of_rewound(folder)
    replicas = tuple(
        each if each.state not in (TaskState.WAITING, TaskState.RUNNING) else _cut_off(each, reason, listed)
        for each in _replicas(folder, kept, listed, found, run)
    )
    began = min((at for _node, at in found.started.values()), default=None)
    ended_at = found.ended_at or listed.ended_at
    return Observation(state, reason, Phase.ENDED, replicas, run, started_at=began, ended_at=ended_at)


def _of_rewound(folder: Path) -> tuple[State, Reason]:
    """How a job ended that Slurm ended because it had forgotten it; one whose end was wanted has it."""
    if (folder / "stop").exists():
        return State.STOPPED, Reason(ReasonCode.USER_STOP, {"by": None})
    return State.FAILED, Reason(ReasonCode.NODE_LOST, {"slurm": REWOUND})


def _is_cut(reason: Reason) -> bool:
    """Whether somebody else than the job may have ended it."""
    killed = reason.code is ReasonCode.SIGNALLED and reason.params.get("signal") in (KILL, TERM)
    is_untold = reason.code in (ReasonCode.WRAPPER_LOST, ReasonCode.START_FAILED)
    return killed or is_untold or reason.params.get("slurm") == UNBROUGHT


def _outcome(kept: Kept, listed: Listed, found: Evidence) -> tuple[State, Reason]:
    if found.ending == "asked":
        return State.STOPPED, Reason(ReasonCode.USER_STOP, {"by": None})
    if found.ending == "time":
        return State.STOPPED, Reason(ReasonCode.TIME_LIMIT, {"limit_s": kept.time_limit_s})
    if listed.state in ENDED:
        state, code = ENDED[listed.state]
        return state, Reason(code, _params(code, kept, listed))
    judged, by = evidence.decided(kept, found)
    if judged.state is State.FAILED:
        role, index = next((role, index) for role, index, name in kept.replicas() if name == by)
        reason = _why(found.ends[by], role)
        return State.FAILED, Reason(reason.code, {**reason.params, "role": role.name, "index": index})
    if judged.state is State.SUCCEEDED:
        failed = sum(1 for end in found.ends.values() if evidence.state_of(end) is TaskState.FAILED)
        if failed:
            counts = {"failed": failed, "total": judged.total}
            return State.SUCCEEDED, Reason(ReasonCode.COMPLETED_WITH_FAILURES, counts)
        return State.SUCCEEDED, Reason(ReasonCode.COMPLETED)
    return _untold(kept, listed, found)


def _untold(kept: Kept, listed: Listed, found: Evidence) -> tuple[State, Reason]:
    """An end of which the job itself has said nothing."""
    if not found.begun:
        word = listed.state if listed.reason in ("", "None") else listed.reason
        if kept.apart:
            word = STARTS.get(listed.exit_code or 0, word)
        return State.FAILED, Reason(
            ReasonCode.START_FAILED, {"slurm": word, "exit_code": listed.exit_code, "error": word}
        )
    by_itself = listed.state in ("COMPLETED", "FAILED") and listed.exit_code <= 128
    if kept.apart and not found.over and by_itself:
        return _of_exit_code(listed.exit_code)
    return State.FAILED, Reason(ReasonCode.WRAPPER_LOST, {"exit_code": listed.exit_code or None})


def _of_exit_code(code: int) -> tuple[State, Reason]:
    """An end that the console has only from Slurm."""
    told: Params = {"slurm": UNBROUGHT, "exit_code": code}
    return (
        (State.FAILED, Reason(ReasonCode.EXIT_CODE, told))
        if code
        else (
            State.SUCCEEDED,
            Reason(ReasonCode.COMPLETED, told),
        )
    )


def _params(code: ReasonCode, kept: Kept, listed: Listed) -> Params:
    told: dict[str, str | int | None] = {"slurm": listed.state}
    if code is ReasonCode.USER_STOP:
        return {**told, "by": None}
    if code is ReasonCode.NODE_LOST:
        return {**told, "node": listed.nodes or None}
    if code is ReasonCode.OUT_OF_MEMORY:
        limits = {role.memory_mib for role in kept.roles}
        return {"limit_mib": limits.pop()} if len(limits) == 1 else {}
    return told


def _replicas(folder: Path, kept: Kept, listed: Listed, found: Evidence, run: int) -> tuple[ReplicaSeen, ...]:
    return tuple(_replica(folder, kept, listed, found, run))


def _replica(folder: Path, kept: Kept, listed: Listed, found: Evidence, run: int) -> Iterator[ReplicaSeen]:
    logs = folder / layout.run_folder(run) / "logs"
    for role, index, name in kept.replicas():
        node, began = found.started.get(name, ("", None))
        end = found.ends.get(name)
        state = TaskState.RUNNING if began is not None else TaskState.WAITING
        seen = ReplicaSeen(
            role=role.name,
            index=index,
            state=state,
            node=node or found.hosts.get(name, ""),
            started_at=began,
            log_path=str(logs / f"{name}.output"),
            image_used=role.contained if role.image else None,
            endpoints=tuple(_endpoints(kept, listed, found, role, index, name)),
        )
        yield _with_end(seen, end, role, listed) if end is not None else seen


def _with_end(seen: ReplicaSeen, end: End, role: Role, listed: Listed) -> ReplicaSeen:
    reason = Reason(ReasonCode.JOB_ENDED) if end.how == "told" else _why(end, role)
    if end.how == "lost" and listed.state == "OUT_OF_MEMORY":
        reason = Reason(ReasonCode.OUT_OF_MEMORY, {"limit_mib": role.memory_mib, "exit_code": end.code})
    killer = end.code - 128
    state = evidence.state_of(end)
    if killer in _KILLERS and ENDED.get(listed.state, (State.FAILED,))[0] is State.STOPPED:
        state, reason = TaskState.STOPPED, Reason(ReasonCode.JOB_ENDED)
    return replace(
        seen,
        state=state,
        reason=reason,
        exit_code=end.code,
        signal=killer if killer in _KILLERS else None,
        ended_at=end.at,
    )


def _why(end: End, role: Role) -> Reason:
    """Why a replica ended as it did."""
    if end.code == 0:
        return Reason(ReasonCode.COMPLETED)
    if end.how in PREVENTED:
        return Reason(PREVENTED[end.how], {"error": end.detail})
    killer = end.code - 128
    if end.how == "lost":
        return Reason(ReasonCode.WRAPPER_LOST, {"exit_code": end.code})
    if killer in _KILLERS:
        return Reason(ReasonCode.SIGNALLED, {"signal": killer, "exit_code": end.code})
    return Reason(ReasonCode.EXIT_CODE, {"exit_code": end.code})


def _cut_off(seen: ReplicaSeen, reason: Reason, listed: Listed) -> ReplicaSeen:
    """A replica that had not ended when its job had."""
    if reason.params.get("slurm") == UNBROUGHT:
        state = TaskState.FAILED if reason.params["exit_code"] else TaskState.SUCCEEDED
        return replace(seen, state=state, reason=reason, ended_at=listed.ended_at)
    if ENDED.get(listed.state, (State.FAILED,))[0] is State.FAILED and seen.state is TaskState.RUNNING:
        return replace(seen, state=TaskState.FAILED, reason=reason, ended_at=listed.ended_at)
    ended = Reason(ReasonCode.JOB_ENDED)
    return replace(seen, state=TaskState.STOPPED, reason=ended, ended_at=listed.ended_at)


def _endpoints(
    kept: Kept, listed: Listed, found: Evidence, role: Role, index: int, name: str
) -> Iterator[EndpointSeen]:
    """The ports that were asked for; where they are, and whether they answer, is looked at in `serving`."""
    for label, number, which in role.numbers(kept.ports, listed.number, index):
        port = found.ports[which] if which < len(found.ports) else number
        why, params = Unready.WAITING, {}
        if name in found.ends:
            why = Unready.ENDED
        elif which in found.taken:
            why, params = Unready.TAKEN, {"port": port}
        elif name in found.started:
            why = Unready.STARTING
        yield EndpointSeen(label, "", port, ready=False, why=why, params=params)


def versioned(seen: Observation) -> Observation:
    """An observation with a version that changes whenever anything else does."""
    return replace(seen, version=hashlib.blake2b(repr(seen).encode(), digest_size=12).hexdigest())
