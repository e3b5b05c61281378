"""From what a supervisor wrote to what the console is told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from jobs.backends.base import EndpointSeen, Observation, ReplicaSeen
from jobs.node import files
from jobs.node.processes import Identity
from jobs.node.supervisor import layout
from jobs.node.supervisor.plan import Plan, UnknownFormat
from jobs.node.supervisor.status import describe
from jobs.states import TERMINAL, Phase, PortSource, Reason, ReasonCode, State, TaskState, Unready

_REMEMBERED: Final = 16_384


@dataclass(frozen=True, slots=True)
class Sight:
    """An attempt as it was last written down, and by whom."""

    observation: Observation
    supervisor: Identity | None

    @property
    def over(self) -> bool:
        """Whether nothing will change any more."""
        return self.observation.state in TERMINAL


def look(attempt: Path) -> Sight | None:
    """What is written about an attempt; None when there is no such attempt.

    An attempt that did not change since the last look costs one stat.
    """
    try:
        stat = (attempt / layout.STATUS).stat()
    except (FileNotFoundError, NotADirectoryError):
        return _planned(attempt)
    return _read(str(attempt), stat.st_ino, stat.st_mtime_ns) or _planned(attempt)


@lru_cache(maxsize=_REMEMBERED)
def _read(attempt: str, inode: int, mtime_ns: int) -> Sight | None:
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
    )
    return Sight(observation, Identity.load(value["supervisor"]))


def _planned(attempt: Path) -> Sight | None:
    """An attempt that no supervisor has written about yet."""
    value = files.read(attempt / layout.PLAN)
    if value is None:
        return None
    plan = Plan.load(value)
    where = {"node": plan.house.node, "host": plan.house.host_ip, "logs": attempt / "logs"}
    replicas = tuple(
        _replica({**describe(place), "state": TaskState.WAITING}, where) for place in plan.replicas()
    )
    starting = Reason(ReasonCode.STARTING)
    observation = Observation(State.PENDING, starting, Phase.CREATING, replicas, version="planned")
    found = files.read(attempt / layout.SUPERVISOR)
    return Sight(observation, Identity.load(found) if found else None)


def _replica(value: Mapping[str, Any], where: Mapping[str, Any]) -> ReplicaSeen:
    state = TaskState(value["state"])
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
        endpoints=tuple(_endpoints(value, where["host"])),
    )


def _endpoints(value: Mapping[str, Any], host: str) -> Iterator[EndpointSeen]:
    """What is served; before anything was looked at, or once it has ended, what was asked for."""
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
