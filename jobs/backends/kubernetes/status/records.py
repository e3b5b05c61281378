"""The files of an attempt in the console's own folder.

<root>/<job id>/<attempt>/
    job.json          its record (`remote.records`)
    origin.json       what it was submitted as (`jobs.backends.origins`)
    namespace         that of its objects
    status.json       what was observed of its replicas, and why it is being ended
    listed            a resource version of lately, from which a watch goes on
    warning           a signal, and how many seconds before the time limit it is sent; until then
    stop              a request for its end: signal, and when it has to be over
    end.json          exists = it has ended: its last observation
    logs/             the output of its replicas
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from jobs.backends import origins
from jobs.backends.base import Observation, ReplicaSeen, Submission
from jobs.backends.kubernetes.config import KubernetesConfig
from jobs.backends.kubernetes.objects.environment import Peers
from jobs.backends.kubernetes.status.replicas import ReplicaStatus
from jobs.backends.remote import attempts, records
from jobs.node.supervisor.checkpoints import Checkpoint
from jobs.states import Phase, Reason, ReasonCode, ReplicaState, State

NAMESPACE: Final = "namespace"
STATUS: Final = "status.json"
LISTED: Final = "listed"
WARNING: Final = "warning"
STOP: Final = "stop"
END: Final = "end.json"


@dataclass(frozen=True, slots=True)
class AttemptStatus:
    """Observed states of an attempt's replicas, by their names in files.

    `ending` is why the rest of them is being ended: `verdict` or `stop`, "" for no reason.
    """

    replicas: Mapping[str, ReplicaStatus] = field(default_factory=dict)
    ending: str = ""


@dataclass(frozen=True, slots=True)
class StopRequest:
    """A request for an attempt's end: the signal, when it was made, and when the attempt has to be over."""

    signal: str
    since: float
    until: float


def write_submission(folder: Path, submission: Submission, config: KubernetesConfig, peers: Peers) -> None:
    """Write what is known of an attempt before it is submitted."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    attempts.write_text(folder / NAMESPACE, config.namespace_of(submission.workspace))
    attempts.write_text(folder / origins.FILE, json.dumps(origins.render(submission)))
    if (warning := submission.spec.end_signal) is not None:
        attempts.write_text(folder / WARNING, f"{warning.signal} {warning.seconds_before}")
    ports = [
        [(port.label, known[port.label][0]) for port in role.ports]
        for role, known in zip(submission.spec.roles, peers.ports, strict=True)
    ]
    kind = peers.kind.name if peers.kind else ""
    record = records.render(submission.spec, config.ports, ports, lambda _role: True, kind=kind)
    attempts.write_text(folder / records.FILE, record)


def read_status(folder: Path) -> AttemptStatus:
    """Return the status of an attempt, as far as it is recorded."""
    text = attempts.read_text(folder / STATUS)
    if not text:
        return AttemptStatus()
    value = json.loads(text)
    found = {name: ReplicaStatus.load(each) for name, each in value["replicas"].items()}
    return AttemptStatus(found, value["ending"])


def write_status(folder: Path, status: AttemptStatus) -> None:
    """Record the status of an attempt."""
    value = {
        "replicas": {name: each.dump() for name, each in status.replicas.items()},
        "ending": status.ending,
    }
    attempts.write_text(folder / STATUS, json.dumps(value))


def read_stop(folder: Path) -> StopRequest | None:
    """Return the request for an attempt's end, None for none."""
    words = (attempts.read_text(folder / STOP) or "").split()
    return StopRequest(words[0], float(words[1]), float(words[2])) if len(words) == 3 else None


def write_stop(folder: Path, request: StopRequest) -> None:
    """Record a request for an attempt's end."""
    attempts.write_text(folder / STOP, f"{request.signal} {request.since:.3f} {request.until:.3f}\n")


def read_warning(folder: Path) -> tuple[str, int] | None:
    """Return the signal before the time limit and its seconds, None where there is none to be sent."""
    words = (attempts.read_text(folder / WARNING) or "").split()
    return (words[0], int(words[1])) if len(words) == 2 else None


def remove_warning(folder: Path) -> None:
    """Record that the signal before the time limit is sent."""
    (folder / WARNING).unlink(missing_ok=True)


def read_end(folder: Path) -> Observation | None:
    """Return the last observation of an attempt that has ended, None for another."""
    text = attempts.read_text(folder / END)
    if not text:
        return None
    value = json.loads(text)
    resumed = value["resumed"] and Checkpoint(**value["resumed"])
    return Observation(
        State(value["state"]),
        _reason(value["reason"]),
        Phase(value["phase"]),
        tuple(map(_replica, value["replicas"])),
        version=value["version"],
        started_at=value["started_at"],
        ended_at=value["ended_at"],
        resumed=resumed,
    )


def write_end(folder: Path, seen: Observation) -> Observation:
    """Record the last observation of an attempt; return the recorded one, which may be an earlier one."""
    attempts.create(folder / END, json.dumps(asdict(seen)), durable=True)
    return read_end(folder) or seen


def _replica(value: Mapping[str, Any]) -> ReplicaSeen:
    reason = value["reason"]
    seen = ReplicaSeen(**{**value, "endpoints": (), "state": ReplicaState(value["state"])})
    return replace(seen, reason=reason and _reason(reason))


def _reason(value: Mapping[str, Any]) -> Reason:
    return Reason(ReasonCode(value["code"]), value["params"])
