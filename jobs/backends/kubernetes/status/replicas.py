"""State mapping: from a pod, as the API server has it, to the state of its replica."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, Self

from jobs.backends.kubernetes.objects import transfers
from jobs.backends.kubernetes.objects.pods import ABOUT, CODE, DATA, OWN, PACKAGES, RESUME, find_main
from jobs.states import Params, Reason, ReasonCode, ReplicaState

Object = Mapping[str, Any]

IMAGE_WAIT_S: Final = 180
"""An image that can't be pulled for so long fails the replica; kubelets go on trying for ever."""

_IMAGE_WORDS: Final = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable"}
)
_IMAGE_FINAL: Final = frozenset({"InvalidImageName", "ErrImageNeverPull"})
_START_WORDS: Final = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
_NODE_WORDS: Final = frozenset(
    {
        *("Evicted", "NodeLost", "NodeShutdown", "Shutdown", "Terminated", "Preempting", "NodeAffinity"),
        *("OutOfcpu", "OutOfmemory", "OutOfpods", "UnexpectedAdmissionError", "TerminationByKubelet"),
    }
)
"""Reasons of a pod's end that are its node's, and not its own."""

TIME_LIMIT: Final = "DeadlineExceeded"
OUT_OF_MEMORY: Final = "OOMKilled"
UNKNOWN: Final = "ContainerStatusUnknown"
"""The kubelet has lost a container, and does not know how it ended.

Kubernetes 1.20 says so of an earlier container, and nothing of the present one.
"""
_CANNOT_START: Final = frozenset({"ContainerCannotRun", "StartError"})
_INTERRUPTED: Final = ("context canceled", "context deadline exceeded", "transport is closing")
"""What containerd says of a start that a kubelet began and did not wait for, as it was itself restarted."""
_SIGNALS: Final = frozenset(int(each) for each in signal.Signals)
_LONGEST_TEXT: Final = 500
_SHORT: Final = re.compile(r"Insufficient (?P<resource>[A-Za-z0-9./_-]+)")


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """One replica, as its pod tells, or as it was recorded.

    `word` is the engine's word while it waits, `detail` its text; `step` is the init container that runs, and
    `about` what that brings; `address` and `uid` are the pod's.  `commit` and `checkpoint` are what the init
    containers found.  `removed_at` is when somebody has asked for the pod's deletion.  Times are seconds
    since the epoch by the node's clock.
    """

    state: ReplicaState
    reason: Reason | None = None
    exit_code: int | None = None
    signal: int | None = None
    node: str = ""
    started_at: float | None = None
    ended_at: float | None = None
    address: str = ""
    is_ready: bool = False
    commit: str = ""
    checkpoint: str = ""
    step: str = ""
    about: str = ""
    word: str = ""
    detail: str = ""
    removed_at: float | None = None
    uid: str = ""

    @property
    def was_removed(self) -> bool:
        """Return whether the pod was deleted before its replica ended by itself."""
        return self.removed_at is not None and (self.ended_at is None or self.ended_at >= self.removed_at)

    @property
    def has_ended(self) -> bool:
        """Return whether the replica has ended."""
        return self.state not in (ReplicaState.WAITING, ReplicaState.RUNNING)

    def dump(self) -> dict[str, Any]:
        """Return it as JSON."""
        reason = self.reason and {"code": self.reason.code, "params": dict(self.reason.params)}
        return {**asdict(self), "reason": reason}

    @classmethod
    def load(cls, value: Mapping[str, Any]) -> Self:
        """Read it from JSON."""
        reason = value["reason"]
        return cls(
            **{
                **value,
                "state": ReplicaState(value["state"]),
                "reason": reason and Reason(ReasonCode(reason["code"]), reason["params"]),
            }
        )


def read_pod(pod: Object, memory_mib: int, now: float) -> ReplicaStatus:
    """Return the status of the replica of a pod that has so much memory."""
    about, status = pod["metadata"], pod.get("status") or {}
    main = _container(status, find_main(pod))
    state = main.get("state") or {}
    found = ReplicaStatus(
        ReplicaState.WAITING,
        node=(pod.get("spec") or {}).get("nodeName", ""),
        address=status.get("podIP", ""),
        is_ready=bool(main.get("ready")),
        commit=_message(status, CODE),
        checkpoint=_message(status, RESUME),
        removed_at=_removed_at(about),
        uid=about.get("uid", ""),
    )
    if ended := state.get("terminated"):
        found = _with_end(found, ended, memory_mib)
    elif running := state.get("running"):
        found = replace(found, state=ReplicaState.RUNNING, started_at=_seconds(running.get("startedAt")))
    if status.get("phase") == "Failed" or (status.get("reason") == TIME_LIMIT and found.has_ended):
        found = _with_pod_end(found, pod, status, now)
    if found.state is ReplicaState.WAITING:
        found = _with_waiting_reason(found, pod, status, state.get("waiting") or {}, now)
    return found


def _with_end(found: ReplicaStatus, ended: Object, memory_mib: int) -> ReplicaStatus:
    """Return the status of a replica whose main container has ended."""
    code, word = int(ended.get("exitCode") or 0), str(ended.get("reason", ""))
    number = code - 128 if code - 128 in _SIGNALS else None
    params: Params = {"exit_code": code}
    if word == UNKNOWN:
        reason = Reason(ReasonCode.NODE_LOST, {"node": found.node or None, "kubernetes": word})
    elif word == OUT_OF_MEMORY:
        reason = Reason(ReasonCode.OUT_OF_MEMORY, {"limit_mib": memory_mib, **params})
    elif word in _CANNOT_START and any(each in str(ended.get("message")) for each in _INTERRUPTED):
        about: Params = {"kubernetes": "StartInterrupted", "error": _short(ended.get("message"))}
        reason = Reason(ReasonCode.NODE_LOST, {"node": found.node or None, **about})
    elif word in _CANNOT_START:
        reason = Reason(ReasonCode.START_FAILED, {"error": _short(ended.get("message")), **params})
    elif number is not None:
        reason = Reason(ReasonCode.SIGNALLED, {"signal": number, **params})
    elif code:
        reason = Reason(ReasonCode.EXIT_CODE, params)
    else:
        reason = Reason(ReasonCode.COMPLETED)
    started_at = _seconds(ended.get("startedAt"))
    return replace(
        found,
        state=ReplicaState.FAILED if code else ReplicaState.SUCCEEDED,
        reason=reason,
        exit_code=code,
        signal=number,
        started_at=None if word in _CANNOT_START else started_at,
        ended_at=_seconds(ended.get("finishedAt")),
    )


def _with_pod_end(found: ReplicaStatus, pod: Object, status: Object, now: float) -> ReplicaStatus:
    """Return the status of a replica whose pod has failed, which may have another reason than its command."""
    word, message = str(status.get("reason", "")), _short(status.get("message"))
    ended_at = found.ended_at or _seconds(_last_change(status)) or now
    if word == TIME_LIMIT:
        spec = pod.get("spec") or {}
        limit_s, grace_s = spec.get("activeDeadlineSeconds"), spec.get("terminationGracePeriodSeconds") or 0
        began = _seconds(status.get("startTime")) or now
        if found.state is ReplicaState.RUNNING and now < began + (limit_s or 0) + grace_s:
            return found  # Kubernetes 1.20 says so when it sends SIGTERM, and tells no end of the container
        reason = Reason(ReasonCode.TIME_LIMIT, {"limit_s": limit_s})
        return replace(found, state=ReplicaState.STOPPED, reason=reason, ended_at=ended_at)
    if word in _NODE_WORDS:
        params: Params = {"node": found.node or None, "kubernetes": word, "error": message}
        reason = Reason(ReasonCode.NODE_LOST, params)
        return replace(found, state=ReplicaState.FAILED, reason=reason, ended_at=ended_at)
    if (failed := _failed_init(status)) is not None:
        return replace(found, state=ReplicaState.FAILED, reason=failed, ended_at=ended_at)
    if found.reason is None and not (word or message):
        reason = Reason(ReasonCode.NODE_LOST, {"node": found.node or None, "kubernetes": UNKNOWN})
        ended_at = max(ended_at, found.removed_at or 0)
        return replace(found, state=ReplicaState.FAILED, reason=reason, ended_at=ended_at)
    if found.reason is None:
        reason = Reason(ReasonCode.START_FAILED, {"error": message or word or "Failed", "exit_code": None})
        ended_at = max(ended_at, found.removed_at or 0)  # so ends what is deleted before it begins
        return replace(found, state=ReplicaState.FAILED, reason=reason, ended_at=ended_at)
    return found


def _failed_init(status: Object) -> Reason | None:
    """Return why an init container failed; None where none did."""
    for container in status.get("initContainerStatuses") or ():
        ended = (container.get("state") or {}).get("terminated") or {}
        code = int(ended.get("exitCode") or 0)
        if not code:
            continue
        message = str(ended.get("message") or "").strip()
        if container["name"] in OWN:  # whose message is what they have said at last
            message = message.rpartition("\n")[2]
        error = _short(message) or str(ended.get("reason", ""))
        params: Params = {"error": error, "exit_code": code}
        if container["name"] == CODE:
            return Reason(ReasonCode.CODE_FAILED, params)
        if container["name"] == PACKAGES:
            return Reason(ReasonCode.REQUIREMENTS_FAILED, params)
        if container["name"] in (DATA, RESUME):
            return Reason(ReasonCode.MOUNT_FAILED, {"error": error})
        return Reason(ReasonCode.INIT_CONTAINER_FAILED, {"container": container["name"], **params})
    return None


def _with_waiting_reason(
    found: ReplicaStatus, pod: Object, status: Object, waiting: Object, now: float
) -> ReplicaStatus:
    """Return the status of a replica that has not begun, with the reason that the engine gives."""
    for container in status.get("initContainerStatuses") or ():
        if each := (container.get("state") or {}).get("waiting"):
            waiting = each if each.get("reason") != "PodInitializing" else waiting
            break
        if (container.get("state") or {}).get("running"):
            found = replace(found, step=container["name"], about=_about(pod, container["name"]))
            break
    word, message = str(waiting.get("reason", "")), _short(waiting.get("message"))
    scheduled = next((each for each in _conditions(status) if each.get("type") == "PodScheduled"), {})
    if scheduled.get("status") == "False":
        return replace(found, word=_queue_word(scheduled), detail=_short(scheduled.get("message")))
    began = _seconds(scheduled.get("lastTransitionTime")) or _seconds(
        pod["metadata"].get("creationTimestamp")
    )
    is_late = began is not None and now - began > IMAGE_WAIT_S
    code = None
    if word in _IMAGE_FINAL or (word in _IMAGE_WORDS and is_late):
        code = ReasonCode.IMAGE_FAILED
    elif word in _START_WORDS and is_late:
        code = ReasonCode.START_FAILED
    if code is not None:
        reason = Reason(code, {"error": message or word, "exit_code": None})
        return replace(found, state=ReplicaState.FAILED, reason=reason, ended_at=now)
    return replace(found, word=word if found.node else "", detail=message)


def _about(pod: Object, step: str) -> str:
    """Return what an init container of the console's own brings, "" for others."""
    containers = (pod.get("spec") or {}).get("initContainers") or ()
    variables = next((each.get("env") or () for each in containers if each["name"] == step), ())
    wanted = {CODE: "CODE_URI", DATA: transfers.ABOUT, PACKAGES: ABOUT}.get(step)
    found = next((str(each.get("value") or "") for each in variables if each["name"] == wanted), "")
    return found.replace("$$", "$")  # as `pods.escape` had it


def _queue_word(scheduled: Object) -> str:
    """Return a word for why the scheduler places no pod, of those that `texts` has a sentence for."""
    message = str(scheduled.get("message", ""))
    if (missing := _SHORT.search(message)) is not None:
        return f"Insufficient {missing['resource']}"
    for part, word in (("taint", "Taints"), ("affinity", "NodeAffinity"), ("selector", "NodeAffinity")):
        if part in message:
            return word
    return str(scheduled.get("reason", "")) or "Unschedulable"


def _removed_at(about: Object) -> float | None:
    """Return when the deletion of a pod was asked for: its time to be gone, less its grace period."""
    gone_at = _seconds(about.get("deletionTimestamp"))
    return None if gone_at is None else gone_at - int(about.get("deletionGracePeriodSeconds") or 0)


def _container(status: Object, name: str) -> Object:
    every = (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ()))
    found: Object = next((each for each in every if each.get("name") == name), {})
    return found


def _message(status: Object, name: str) -> str:
    """Return what an init container of the console's own has found, in its termination message."""
    ended = (_container(status, name).get("state") or {}).get("terminated") or {}
    return "" if ended.get("exitCode") else _short(ended.get("message"))


def _conditions(status: Object) -> tuple[Object, ...]:
    return tuple(status.get("conditions") or ())


def _last_change(status: Object) -> str | None:
    times = [
        str(each["lastTransitionTime"]) for each in _conditions(status) if each.get("lastTransitionTime")
    ]
    return max(times, default=None)


def _short(text: object) -> str:
    """Return a text of the engine or of a program in it, on one line and not too long."""
    return " ".join(str(text or "").split())[:_LONGEST_TEXT]


def _seconds(text: object) -> float | None:
    """Return an API time in seconds since the epoch; None for none, and for one that was never set."""
    if not isinstance(text, str):
        return None
    found = datetime.fromisoformat(text).astimezone(UTC).timestamp()
    return found if found > 0 else None
