"""Copying the output of a container: once, as far as it has come, or as it comes, to its end."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any, Final

from jobs.backends.base import Unreachable
from jobs.backends.kubernetes.client.api import Api, ApiError, Silent, path
from jobs.backends.kubernetes.logs.entries import NotALog
from jobs.backends.kubernetes.logs.log_file import LogFile, open_log, read_position
from jobs.backends.kubernetes.sessions import ContainerRef
from jobs.backends.kubernetes.status.replicas import TIME_LIMIT, read_pod

PAUSES_S: Final = (0.1, 0.3, 1.0, 2.0)
"""Pauses after failures, the last one again and again: what is rotated meanwhile is lost."""

SILENCE_S: Final = 30.0
"""After so long without output the kubelet is asked again: one may miss that it has begun another file."""


def catch_up(api: Api, ref: ContainerRef, log: Path, *, is_last: bool) -> bool:
    """Copy what a container has written; return whether the copy is complete.

    `is_last` tells that the container has ended.  Nothing is copied where another process or thread does so.
    Raises Unreachable.
    """
    with open_log(log) as file:
        if file is None:
            return read_position(log).is_complete
        _copy(api, ref, file, follow=False)
        if is_last:
            file.complete()
        return is_last


def follow(api: Api, ref: ContainerRef, log: Path, ended: threading.Event) -> None:
    """Copy what a container writes, until it has ended and all is copied, or until `ended`."""
    failures, was_silent, was_closed = 0, False, False
    while not ended.is_set():
        try:
            is_last = has_ended(api, ref)
            with open_log(log) as file:
                if file is None and read_position(log).is_complete:
                    return
                if file is not None:
                    is_unbroken = was_silent or (was_closed and is_last)  # else it may be the kubelet's end
                    was_silent = was_closed = False
                    was_closed = _copy(api, ref, file, follow=not is_last, is_unbroken=is_unbroken)
                    if is_last:
                        file.complete()
                        return
                    failures = 0 if was_closed else failures
        except Silent:
            failures, was_silent = 0, True
            continue
        except Unreachable:
            pass
        ended.wait(PAUSES_S[min(failures, len(PAUSES_S) - 1)])
        failures += 1


def _copy(api: Api, ref: ContainerRef, file: LogFile, *, follow: bool, is_unbroken: bool = False) -> bool:
    """Copy what the kubelet tells; return whether it has a log.  Raises Unreachable."""
    chunks = api.read_log(
        ref.namespace, ref.pod, ref.container, since=file.since, follow=follow, silence_s=SILENCE_S
    )
    try:
        file.copy(chunks, is_unbroken=is_unbroken)
    except (ApiError, NotALog):  # not begun yet, or gone with its pod
        return False
    return True


def has_ended(api: Api, ref: ContainerRef, *, was_there: bool = True) -> bool:
    """Return whether a container has ended, as one has that `was_there` and is gone.  Raises Unreachable."""
    try:
        pod = api.get(path("/api/v1/namespaces/{}/pods/{}", ref.namespace, ref.pod))
    except ApiError as error:
        if error.is_absent:
            return was_there
        raise Unreachable(str(error)) from error
    return is_over(pod, ref.container)


def is_over(pod: dict[str, Any], container: str) -> bool:
    """Return whether a container of a pod has ended.

    In Kubernetes 1.20 a pod beyond its time limit has failed, with a container that runs: it may write until
    its grace period is over.
    """
    state, status = container_state(pod, container), pod.get("status") or {}
    if status.get("reason") == TIME_LIMIT and "running" in state:
        return read_pod(pod, 0, time.time()).has_ended
    return "terminated" in state or status.get("phase") in ("Succeeded", "Failed")


def container_state(pod: dict[str, Any], container: str) -> dict[str, Any]:
    """Return the state of a container, {} where there is none yet."""
    for each in (pod.get("status") or {}).get("containerStatuses") or ():
        if each.get("name") == container:
            return dict(each.get("state") or {})
    return {}
