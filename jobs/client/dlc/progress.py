"""Waiting for the end of a job, and the log of a pod meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TextIO

from jobs.client.dlc import output
from jobs.client.dlc.api import Api, path_of
from jobs.client.dlc.failure import REFUSED

INTERVAL_S: Final = 2.0
ENDS: Final = frozenset({"Succeeded", "Failed", "Stopped"})
MAX_LINES: Final = "2000"


def states_of(api: Api, job: str, deadline: float | None = None) -> Iterator[str]:
    """Yield the status of a job until it has ended, or until the `deadline` of the monotonic clock."""
    while True:
        status = str(api.get("GetJob", path_of("jobs", job), NeedDetail="false").get("Status"))
        yield status
        if status in ENDS or (deadline is not None and time.monotonic() >= deadline):
            return
        time.sleep(INTERVAL_S)


def wait_for_end(
    api: Api,
    job: str,
    *,
    report: TextIO,
    deadline: float | None = None,
    look: Callable[[], None] = lambda: None,
) -> str:
    """Report each new status of a job until it has ended; return the last one.

    `look` is called after each status: it prints what is new meanwhile.
    """
    last = ""
    for status in states_of(api, job, deadline):
        if status != last:
            report.write(f"Job {job} is [{status}]\n")
            report.flush()
        last = status
        look()
    return last


class PodLog:
    """The log of a pod, of which `print_new` prints what it has not printed yet.

    The API gives a pod's newest lines and no place in its log: what is new stands behind the longest end of
    the former lines that the lines now begin with.
    """

    def __init__(self, api: Api, job: str, pod: str) -> None:
        self._api, self._path = api, path_of("jobs", job, "pods", pod, "logs")
        self._printed: list[str] = []

    def print_new(self) -> None:
        """Print the lines that were not there the last time."""
        answer = self._api.get("GetPodLogs", self._path, MaxLines=MAX_LINES)
        lines = [str(line) for line in answer.get("Logs") or ()]
        for line in new_lines(self._printed, lines):
            output.write(line.rstrip("\n"))
        self._printed = lines or self._printed


def new_lines(before: Sequence[str], now: Sequence[str]) -> Sequence[str]:
    """Return the lines of `now` behind the longest end of `before` that it begins with."""
    for start in range(len(before)):
        overlap = before[start:]
        if now[: len(overlap)] == overlap:
            return now[len(overlap) :]
    return now


def follow_log(api: Api, job: str, pod: str) -> int:
    """Print the log of a pod until the job has ended; return 0 if it succeeded."""
    log = PodLog(api, job, pod)
    last = ""
    for status in states_of(api, job):
        log.print_new()
        last = status
    return 0 if last == "Succeeded" else REFUSED
