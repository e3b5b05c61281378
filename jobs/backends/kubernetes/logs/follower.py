"""Following a cluster: its pods are watched, and the output of those that run is copied, each by a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from jobs.backends.base import Unreachable
from jobs.backends.kubernetes.client.api import Api, ApiError, Expired
from jobs.backends.kubernetes.handles import KEY_LABEL
from jobs.backends.kubernetes.logs import copies
from jobs.backends.kubernetes.logs.log_file import read_position
from jobs.backends.kubernetes.objects.pods import find_main
from jobs.backends.kubernetes.sessions import ContainerRef
from jobs.backends.kubernetes.status.observation import log_path
from jobs.backends.kubernetes.status.observer import list_pods
from jobs.backends.remote import attempts
from jobs.backends.remote.attempts import InvalidKey
from jobs.backends.remote.records import read_record

PODS: Final = "/api/v1/pods"
WATCH_S: Final = 300


class Follower:
    """Follows the pods of a console on one cluster; `root` is the folder of its attempts.

    `make_api` is called for each watch, as credentials in files are replaced now and then.
    """

    def __init__(self, make_api: Callable[[], Api], root: Path, changed: Callable[[], None]) -> None:
        self._make_api, self._root, self._changed = make_api, root, changed
        self._copying: dict[str, threading.Thread] = {}
        self._ended = threading.Event()

    def run(self, ended: threading.Event) -> None:
        """Follow until `ended`."""
        self._ended = ended
        failures = 0
        while not ended.is_set():
            try:
                self._watch()
                failures = 0
            except Expired:
                pass
            except (ApiError, Unreachable):
                ended.wait(copies.PAUSES_S[min(failures, len(copies.PAUSES_S) - 1)])
                failures += 1

    def _watch(self) -> None:
        api = self._make_api()
        listing = api.list(PODS, labels=KEY_LABEL)
        self._copying = {uid: thread for uid, thread in self._copying.items() if thread.is_alive()}
        for pod in listing.items:
            self._look(api, pod)
        self._changed()
        for change in api.watch(PODS, listing.resource_version, labels=KEY_LABEL, timeout_s=WATCH_S):
            if self._ended.is_set():
                return
            if change.kind != "BOOKMARK":
                self._look(api, change.object)
                self._changed()

    def _look(self, api: Api, pod: dict[str, Any]) -> None:
        """Begin to copy the output of a pod that has some."""
        about = pod["metadata"]
        uid, ref = about["uid"], ContainerRef(about["namespace"], about["name"], find_main(pod))
        state = copies.container_state(pod, ref.container)
        if uid in self._copying or not state.keys() & {"running", "terminated"}:
            return
        log = find_log(self._root, about["labels"][KEY_LABEL], about["name"])
        if log is None or read_position(log).is_complete:
            return
        thread = threading.Thread(
            target=copies.follow, args=[api, ref, log, self._ended], daemon=True, name=about["name"]
        )
        self._copying[uid] = thread
        thread.start()


def find_log(root: Path, key: str, pod: str) -> Path | None:
    """Return the log of a pod's replica, None where the attempt is of another console."""
    try:
        folder = attempts.attempt_folder(root, key)
    except InvalidKey:
        return None
    if (record := read_record(folder)) is None:
        return None
    names = {name: replica for _role, replica, name in list_pods(record, key)}
    return log_path(folder, names[pod]) if pod in names else None
