"""The file that `observe` reads: everything there is to tell about an attempt, rewritten at a change.

Not flushed to the disk: after a crash of the machine the supervisor writes it anew from the files
that were.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from jobs.node.files import Folder
from jobs.node.processes import Identity
from jobs.node.supervisor import layout
from jobs.node.supervisor.decision import Ended, Ending
from jobs.node.supervisor.plan import Plan, PlannedReplica
from jobs.node.supervisor.replica_handle import ReplicaHandle
from jobs.node.wrapper.launch_arguments import group_name
from jobs.node.wrapper.outcome import Cause
from jobs.states import Phase, Reason, ReasonCode, ReplicaState, State

PAUSE_S: Final = 0.1
"""Changes that follow each other are written together, at most this often."""


class Status:
    """Writes the file when told that something changed; `me` is the supervisor, for others to look up."""

    def __init__(self, plan: Plan, folder: Folder, me: Identity) -> None:
        self._plan, self._folder, self._me = plan, folder, me
        self._changed = True
        self._not_before = 0.0

    def mark_changed(self) -> None:
        """Something is different now."""
        self._changed = True

    def find_due_time(self) -> float | None:
        """Return when the file is to be written, in seconds since the boot; None when it is up to date."""
        return self._not_before if self._changed else None

    def write(self, handles: Sequence[ReplicaHandle], ending: Ending | None) -> None:
        """Write it: the attempt goes on."""
        started = any(one.run > 1 or (one.started and layout.NEVER not in one.started) for one in handles)
        state = State.RUNNING if started else State.PENDING
        phase = Phase.STOPPING if ending else Phase.RUNNING if started else Phase.ENV_PREPARING
        reason = Reason(ReasonCode.RUNNING) if started else _starting_reason(handles)
        self._write(handles, state, phase, ending.reason if ending else reason, None)

    def write_end(
        self, handles: Sequence[ReplicaHandle], state: State, reason: Reason, ended_at: float
    ) -> None:
        """Write it for the last time."""
        self._write(handles, state, Phase.ENDED, reason, ended_at)

    def _write(
        self,
        handles: Sequence[ReplicaHandle],
        state: State,
        phase: Phase,
        reason: Reason,
        ended_at: float | None,
    ) -> None:
        firsts = [one.first_started or one.started for one in handles]
        begun = [first["at"] for first in firsts if first and "at" in first]
        value = {
            "format": layout.FORMAT,
            "supervisor": self._me.dump(),
            "node": self._plan.house.node,
            "host": self._plan.house.host_ip,
            "state": state,
            "phase": phase,
            "code": reason.code,
            "params": dict(reason.params),
            "started_at": min(begun, default=None),
            "ended_at": ended_at,
            "resumed": self._folder.read(layout.RESUMED) or {},
            "replicas": [_replica(one) for one in handles],
        }
        self._folder.write(layout.STATUS, value, durable=ended_at is not None)
        self._changed = False
        self._not_before = time.monotonic() + PAUSE_S
        if self._plan.house.bell:
            ring(Path(self._plan.house.bell))


def _starting_reason(handles: Sequence[ReplicaHandle]) -> Reason:
    """Return the step that the first waiting replica is at."""
    step = next((one.step for one in handles if one.exit is None and one.step), {})
    return Reason(ReasonCode.STARTING, step)


def _replica(one: ReplicaHandle) -> dict[str, Any]:
    value = describe(one.plan, one.place)
    ended = one.find_end()
    if ended is not None:
        state, reason = ended.judge()
        value |= {
            "state": state,
            "code": reason.code,
            "params": {**reason.params, **(describe_kept(one) if state is ReplicaState.FAILED else {})},
            "exit_code": ended.exit.code,
            "signal": ended.exit.signal,
            "ended_at": ended.exit.ended_at,
        }
    elif one.exit is not None:
        failed = Ended(one.place, one.exit)
        value["state"] = ReplicaState.WAITING
        value["failed_run"] = {
            "run": one.run,
            "code": failed.judge()[1].code,
            "params": dict(failed.judge()[1].params),
            "exit_code": one.exit.code,
            "signal": one.exit.signal,
            "ended_at": one.exit.ended_at,
        }
    else:
        value["state"] = ReplicaState.RUNNING if one.running else ReplicaState.WAITING
    if one.started and "at" in one.started:
        names = ("at", "limits", "image_used", "commit")
        value |= {name: one.started[name] for name in names if name in one.started}
    if one.sanity is not None:
        value["sanity"] = one.sanity
    if one.running:
        value["served"] = [each.dump() for each in one.served]
    return value


def describe_kept(one: ReplicaHandle) -> dict[str, str | int]:
    """Return what is kept of a failed replica because its job asks for it, and for how long.

    Its container only where its command had been started in one.
    """
    plan, place = one.plan, one.place
    if not plan.keep_failed_s:
        return {}
    found: dict[str, str | int] = {
        "kept_s": plan.keep_failed_s,
        "kept_folder": f"jobs/{plan.job}/{plan.attempt}/work/{place.name}",
    }
    ran = one.exit is not None and one.exit.cause in (Cause.COMMAND, Cause.MEMORY)
    if ran and place.role.image and plan.house.engine and one.started and "at" in one.started:
        name = group_name(plan, place)
        found["kept_container"] = shlex.join([*plan.house.engine, "export", f"--output={name}.tar", name])
    return found


def describe(plan: Plan, place: PlannedReplica) -> dict[str, Any]:
    """Return what the plan says of a replica."""
    ports = {label: list(place.slot.ports[label]) for label in place.role.labels}
    gpus = list(place.slot.gpus)
    value = {"role": place.role.name, "index": place.index, "name": place.name, "ports": ports, "gpus": gpus}
    return {**value, "host": plan.address(place.position)} if plan.network else value


def ring(bell: Path) -> None:
    """Tell whoever watches the bell that something changed; it may be nobody's."""
    with suppress(OSError):  # a hint must never end a job
        bell.touch(mode=0o600)
