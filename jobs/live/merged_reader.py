"""A follower of the merged logs of a job: a cursor, and the events after it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final

from django.db import DatabaseError

from jobs.live import merged_responses, sse
from jobs.live.log_responses import BadNumber
from jobs.live.merged_responses import MergedLogs
from jobs.live.thread_pool import run_in_thread
from jobs.logs import merged_logs
from jobs.models import Job

LIMIT: Final = 64 * 1024
"""The most bytes of the logs in one event."""

SOONEST_S: Final = 0.25
LATEST_S: Final = 1.0
"""Between two looks at the files: a line waits a second anyway, until those of its time are there."""

LOOK_AGAIN_S: Final = 2.0
"""The rows are read again after so long."""


def parse_merged_request(query: Mapping[str, str], last_event_id: str) -> dict[str, str] | None:
    """Return where to begin, for `merged=1`; None where that is not requested.  Raises BadNumber.

    The browser's own reconnection (`last_event_id`) knows better than the address.
    """
    if not query.get("merged"):
        return None
    if query.get("log"):
        raise BadNumber("log")
    names = ("after", "attempt", "run")
    wanted = {name: query[name] for name in names if query.get(name)}
    if merged_responses.is_cursor(last_event_id):
        wanted["after"] = last_event_id
    elif wanted.get("after", "start") != "start" and not merged_responses.is_cursor(wanted["after"]):
        raise BadNumber("after")
    return wanted


class MergedReader:
    """The events of the merged logs for one person.

    `merged`: a window of lines as `GET logs/merged` answers it, its id the cursor behind it.  The last one of
    a run has the state `complete` and no lines; where the job runs again, the lines of the next run follow.
    """

    def __init__(self, job: Job, wanted: Mapping[str, str], wake: asyncio.Event) -> None:
        self._job_pk = job.pk
        self._wanted = {"after": "start", **wanted}
        self._is_fixed = "attempt" in wanted or "run" in wanted
        self._wake = wake
        self._due = 0.0
        self._pause = SOONEST_S
        self._timer: asyncio.TimerHandle | None = None
        self._read_at = -LOOK_AGAIN_S
        self._rows: tuple[Job, MergedLogs | None] | None = None
        self._is_fresh = False
        self._is_told_end = False
        self.over = False
        """Whether everything was sent and nothing can follow."""

    async def take(self) -> bytes:
        """Return the next window as an event; empty when there are no new lines."""
        loop = asyncio.get_running_loop()
        if self.over or loop.time() < self._due:
            return b""
        try:
            answer = await run_in_thread(self._read)
        except (DatabaseError, Job.DoesNotExist):
            answer = None
        has_more = answer is not None and bool(answer["lines"])
        self._pause = SOONEST_S if has_more else min(LATEST_S, self._pause * 1.5)
        self._due = loop.time() + (0 if has_more else self._pause)
        await self.close()
        if not self.over:
            self._timer = loop.call_later(0 if has_more else self._pause, self._wake.set)
        return sse.event("merged", answer, answer["after"]) if answer is not None else b""

    async def close(self) -> None:
        """Cancel the timer; no events are taken any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _read(self) -> dict[str, Any] | None:
        """Return what to send now; None for nothing."""
        job, logs = self._find()
        if logs is None:
            self.over = job.is_ended
            return None
        after = logs.cursor_of(self._wanted["after"])
        if merged_logs.sizes(logs.streams) != after:
            answer = merged_responses.read_window(
                job, logs, {"after": logs.format_cursor(after), "limit": str(LIMIT)}
            )
            self._wanted["after"] = answer["after"]
            if answer["lines"]:
                return answer
        if self._has_newer_run(job, logs) or not logs.is_over(job):
            return None
        self.over = self._is_told_end
        if self._is_told_end:
            return None
        self._is_told_end = True
        return merged_responses.read_window(job, logs, {"after": self._wanted["after"], "limit": "1"})

    def _has_newer_run(self, job: Job, logs: MergedLogs) -> bool:
        """Go over to the newest run if there is a newer one; looked for as often as the rows are read."""
        if self._is_fixed or not self._is_fresh:
            return False
        self._is_fresh = False
        newest = merged_responses.find_logs(job, {})
        if newest is None or (newest.attempt, newest.run) == (logs.attempt, logs.run):
            return False
        self._wanted = {"after": newest.format_cursor(())}
        self._rows = None
        self._is_told_end = False
        return True

    def _find(self) -> tuple[Job, MergedLogs | None]:
        """Return the job and its logs, as they were read a moment ago."""
        if self._rows is None or time.monotonic() - self._read_at > LOOK_AGAIN_S:
            # The job first: what it wrote before it ended is then found.
            job = Job.objects.get(pk=self._job_pk)
            after = self._wanted["after"]
            query = {"after": after} if after != "start" else self._wanted
            self._rows = job, merged_responses.find_logs(job, query)
            self._read_at, self._is_fresh = time.monotonic(), True
        return self._rows
