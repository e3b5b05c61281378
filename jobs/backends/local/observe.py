"""Observations and logs of attempts, from what the agent and wrappers wrote."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from jobs.backends.base import EndpointSeen, FailedRun, LogSlice, LogState, Observation, ReplicaSeen
from jobs.node import files
from jobs.node.processes import Identity
from jobs.node.supervisor import checkpoints, layout
from jobs.node.supervisor.plan import Plan, UnknownFormat
from jobs.node.supervisor.status import describe
from jobs.states import TERMINAL, Phase, PortSource, Reason, ReasonCode, ReplicaState, State, Unready

_REMEMBERED: Final = 16_384


@dataclass(frozen=True, slots=True)
class AttemptView:
    """An attempt as it was last written down, and by whom, if by anybody."""

    observation: Observation
    writer: Identity | None

    @property
    def over(self) -> bool:
        """Tell whether nothing will change any more."""
        return self.observation.state in TERMINAL


def look(attempt: Path) -> AttemptView | None:
    """Return the last written state of an attempt; None when there is no such attempt.

    An attempt that did not change since the last look costs one stat.
    """
    try:
        stat = (attempt / layout.STATUS).stat()
    except (FileNotFoundError, NotADirectoryError):
        return _view_of_plan(attempt)
    return _read(str(attempt), stat.st_ino, stat.st_mtime_ns) or _view_of_plan(attempt)


@lru_cache(maxsize=_REMEMBERED)
def _read(attempt: str, inode: int, mtime_ns: int) -> AttemptView | None:
    path = Path(attempt)
    value = files.read(path / layout.STATUS)
    if value is None:
        return None
    if value["format"] != layout.FORMAT:
        raise UnknownFormat(value["format"])
    where = {"node": value["node"], "host": value["host"], "logs": path / "logs"}
    observation = Observation(
        state=State(value["state"]),
        reason=Reason(ReasonCode(value["code"]), value["params"]),
        phase=Phase(value["phase"]),
        replicas=tuple(_replica(replica, where) for replica in value["replicas"]),
        version=f"{inode:x}.{mtime_ns:x}",
        started_at=value["started_at"],
        ended_at=value["ended_at"],
        resumed=checkpoints.Checkpoint(**value["resumed"]) if value.get("resumed") else None,
    )
    return AttemptView(observation, Identity.load(value["supervisor"]))


def _view_of_plan(attempt: Path) -> AttemptView | None:
    """An attempt that no agent has written about yet."""
    plan = Plan.read(attempt)
    if plan is None:
        return None
    where = {"node": plan.house.node, "host": plan.house.host_ip, "logs": attempt / "logs"}
    replicas = tuple(
        _replica({**describe(plan, place), "state": ReplicaState.WAITING}, where) for place in plan.replicas()
    )
    starting = Reason(ReasonCode.STARTING)
    observation = Observation(State.PENDING, starting, Phase.CREATING, replicas, version="planned")
    return AttemptView(observation, None)


def _replica(value: Mapping[str, Any], where: Mapping[str, Any]) -> ReplicaSeen:
    state = ReplicaState(value["state"])
    return ReplicaSeen(
        role=value["role"],
        index=value["index"],
        state=state,
        reason=Reason(ReasonCode(value["code"]), value["params"]) if "code" in value else None,
        exit_code=value.get("exit_code"),
        signal=value.get("signal"),
        node=where["node"],
        started_at=value.get("at"),
        ended_at=value.get("ended_at"),
        log_path=str(where["logs"] / f"{value['name']}.output"),
        image_used=value.get("image_used"),
        commit=value.get("commit", ""),
        limits=value.get("limits", ""),
        gpus=tuple(value["gpus"]) if "gpus" in value else None,
        endpoints=tuple(_endpoints(value, value.get("host", where["host"]))),
        sanity=value.get("sanity"),
        failed_run=_failed_run(value["failed_run"]) if "failed_run" in value else None,
    )


def _failed_run(value: Mapping[str, Any]) -> FailedRun:
    reason = Reason(ReasonCode(value["code"]), value["params"])
    return FailedRun(value["run"], reason, value["exit_code"], value["signal"], value["ended_at"])


def _endpoints(value: Mapping[str, Any], host: str) -> Iterator[EndpointSeen]:
    """Yield served ports; before the first check, or after the end, the ports that were requested."""
    for each in value.get("served", ()):
        why = Unready(each["why"]) if each["why"] else None
        source = PortSource(each["source"])
        ready = why is None
        yield EndpointSeen(
            each["label"], host, each["port"], ready, source, each["path"], each["token"], why, each["params"]
        )
    if not value.get("served"):
        answering = value.get("ready", ())  # an earlier release's word
        for label, ports in value["ports"].items():
            for port in ports:
                yield EndpointSeen(label, host, port, ready=port in answering)


def read_log(attempt: Path, role: str, index: int, cursor: str, limit: int) -> LogSlice:
    """At most `limit` bytes from `cursor`, which is the number of bytes before it."""
    offset = int(cursor or "0")
    plan = Plan.read(attempt)
    place = plan.replica(role, index) if plan else None
    if place is None:
        return LogSlice(b"", cursor, LogState.GONE)
    is_held = plan is not None and plan.restarts_replicas  # its end counts with that of the attempt
    over = (attempt / (layout.END if is_held else f"replicas/{place.name}/{layout.EXIT}")).exists()
    data, size = _bytes(attempt / "logs" / f"{place.name}.output", offset, limit)
    if offset > size:
        return LogSlice(b"", str(size), LogState.TRUNCATED)
    end = offset + len(data)
    return LogSlice(data, str(end), LogState.COMPLETE if over and end >= size else LogState.OPEN)


def _bytes(path: Path, offset: int, limit: int) -> tuple[bytes, int]:
    """The bytes, and the file's size before they were read.  Only a plain file of our own is read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b"", 0
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_nlink != 1:
            return b"", 0
        return os.pread(fd, limit, offset), found.st_size
    finally:
        os.close(fd)
