"""The logs of all replicas of a run over HTTP, for pages and API alike: lines in the order of time."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final
from urllib.parse import quote

from django.http import HttpResponseBase, JsonResponse, StreamingHttpResponse

from jobs.live.log_responses import (
    DEFAULT_LIMIT,
    LOG_HEADERS,
    MOST_MATCHES,
    BadNumber,
    explain_bad_search,
    number,
    search_pattern,
)
from jobs.live.thread_pool import run_in_thread
from jobs.logs import log_store, log_times, merged_logs, merged_search
from jobs.logs.merged_logs import Cursor, MergedLine, MergedWindow
from jobs.models import Attempt, Job, LogStream, Replica

MOST_REPLICAS: Final = 256
"""Replicas whose logs are merged, those of the lowest ranks."""

LINES_AT_ONCE: Final = 2000
"""Lines of one piece of a download."""

_CURSOR: Final = re.compile(r"([1-9][0-9]{0,8})\.([1-9][0-9]{0,8})((?:\.[0-9]{1,15}){0,256})")


@dataclass(frozen=True, slots=True)
class MergedLogs:
    """The replicas of one run of a job, and the log of each; None where it has not begun."""

    attempt: int
    run: int
    replicas: Sequence[Replica]
    streams: Sequence[LogStream | None]
    total: int
    """Replicas of the run, those included whose logs are not merged."""

    def is_over(self, job: Job) -> bool:
        """Tell whether no line can come any more."""
        return job.is_ended and all(
            each is None or each.state != LogStream.State.OPEN for each in self.streams
        )

    def cursor_of(self, text: str) -> Cursor:
        """Return the offsets that a cursor of this run holds; replicas that began since have none in it."""
        found = _CURSOR.fullmatch(text)
        offsets = tuple(map(int, found[3].split(".")[1:])) if found else ()
        return (*offsets, *(0 for _ in self.streams[len(offsets) :]))[: len(self.streams)]

    def format_cursor(self, cursor: Cursor) -> str:
        """Return a cursor as text: attempt, run, and the offset in each log."""
        return ".".join([f"{self.attempt}.{self.run}", *map(str, cursor)])


def respond(job: Job, query: Mapping[str, str]) -> HttpResponseBase:
    """Answer what `query` requests of the job's merged logs.  Raises BadNumber or BadSearch.

    A window of lines: the last ones, those `after` a cursor (or `start`), those `before` one, or those from
    the line at `offset` of a `replica` on; `limit` is in bytes.  With `q` (with `regex`, which match it) or
    `level` the lines in which it is found, from `after` on, at most `limit`.  With `download` all of it as
    text.  `attempt` and `run` are the newest ones unless they or a cursor are given.
    """
    logs = find_logs(job, query)
    if query.get("download"):
        return _download(job, logs)
    if "q" in query or query.get("level"):
        return _search(logs, query)
    return JsonResponse(read_window(job, logs, query) if logs else _EMPTY)


_EMPTY: Final[dict[str, object]] = {
    "lines": [],
    "before": None,
    "after": "start",
    "replicas": 0,
    "total": 0,
    "state": "open",
}


def is_cursor(text: str) -> bool:
    """Tell whether a text is a cursor of merged logs."""
    return _CURSOR.fullmatch(text) is not None


def find_logs(job: Job, query: Mapping[str, str]) -> MergedLogs | None:
    """Return the logs of the run that a cursor, or `attempt` and `run`, name; None where no attempt began.

    Raises BadNumber.
    """
    text = query.get("before") or query.get("after", "")
    found = _CURSOR.fullmatch(text)
    if text not in {"", "start"} and found is None:
        raise BadNumber("before" if query.get("before") else "after")
    attempt_number = int(found[1]) if found else number(query, "attempt", least=1)
    attempts = Attempt.objects.filter(job=job).order_by("-number")
    attempt = (attempts if attempt_number is None else attempts.filter(number=attempt_number)).first()
    run = int(found[2]) if found else number(query, "run", least=1)
    return _find_run(attempt, run) if attempt is not None else None


def _find_run(attempt: Attempt, run: int | None) -> MergedLogs:
    rows = Replica.objects.filter(attempt=attempt)
    if run is None:
        run = rows.order_by("-run").values_list("run", flat=True).first() or 1
    rows = rows.filter(run=run).order_by("ordinal")
    replicas = list(rows[:MOST_REPLICAS])
    logs = LogStream.objects.filter(attempt=attempt, run=run, name="output")
    by_name = {
        (log.role, log.index): log for log in logs.select_related("attempt").prefetch_related("chunks")
    }
    streams = [by_name.get((each.role, each.index)) for each in replicas]
    return MergedLogs(attempt.number, run, replicas, streams, rows.count())


def read_window(job: Job, logs: MergedLogs, query: Mapping[str, str]) -> dict[str, Any]:
    """Return a window of lines as JSON has it.  Raises BadNumber."""
    limit = min(number(query, "limit", least=1) or DEFAULT_LIMIT, log_store.MOST_AT_ONCE)
    window = _read(logs, query, limit)
    return {
        "lines": [_shape(line, logs.replicas[line.position]) for line in window.lines],
        "before": logs.format_cursor(window.before) if any(window.before) else None,
        "after": logs.format_cursor(window.after),
        "replicas": len(logs.replicas),
        "total": logs.total,
        "state": "complete" if logs.is_over(job) else "open",
    }


def _read(logs: MergedLogs, query: Mapping[str, str], limit: int) -> MergedWindow:
    streams = logs.streams
    if query.get("replica"):
        position = next(
            (at for at, each in enumerate(logs.replicas) if _name(each) == query["replica"]), None
        )
        if position is None:
            raise BadNumber("replica")
        start = merged_logs.cursor_at(streams, position, number(query, "offset") or 0)
        return merged_logs.read_after(streams, start, limit)
    if before := query.get("before"):
        return merged_logs.read_before(streams, logs.cursor_of(before), limit)
    if after := query.get("after"):
        has_open_lines = query.get("partial") == "true"
        return merged_logs.read_after(streams, logs.cursor_of(after), limit, has_open_lines=has_open_lines)
    return merged_logs.read_before(streams, merged_logs.sizes(streams), limit)


def _name(replica: Replica) -> str:
    return f"{replica.role}/{replica.index}"


def _shape(line: MergedLine, replica: Replica) -> dict[str, object]:
    return {
        "replica": _name(replica),
        "rank": replica.ordinal,
        "offset": line.offset,
        "time": log_times.format_time(line.ms) if line.ms else None,
        "text": line.text.decode("utf-8", "replace"),
    }


# --- search and download ---------------------------------------------------------------------------------


def _search(logs: MergedLogs | None, query: Mapping[str, str]) -> JsonResponse:
    pattern = search_pattern(query)
    if logs is None or not pattern:
        return JsonResponse({"matches": [], "next": None, "searched": 0, "size": 0})
    most = max(1, min(number(query, "limit") or MOST_MATCHES, MOST_MATCHES))
    with explain_bad_search():
        found = merged_search.search(logs.streams, pattern, logs.cursor_of(query.get("after", "")), most)
    return JsonResponse(
        {
            "matches": [_shape(line, logs.replicas[line.position]) for line in found.found],
            "next": logs.format_cursor(found.next) if found.next else None,
            "searched": found.searched,
            "size": found.size,
        }
    )


def _download(job: Job, logs: MergedLogs | None) -> StreamingHttpResponse:
    """Answer all lines, each behind its time and its replica."""
    name = quote(f"{job.name}.all.log", safe="")
    headers = {**LOG_HEADERS, "Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
    return StreamingHttpResponse(_stream_text(logs), headers=headers)


async def _stream_text(logs: MergedLogs | None) -> AsyncIterator[bytes]:
    if logs is None:
        return
    lines = merged_logs.iterate_lines(logs.streams)
    while piece := await run_in_thread(_next_text, logs, lines):
        yield piece


def _next_text(logs: MergedLogs, lines: Iterator[MergedLine]) -> bytes:
    """Return the next lines as text; empty at the end."""
    names = [_name(each) for each in logs.replicas]
    return b"".join(
        b"%b %b %b\n"
        % (
            log_times.format_time(line.ms).encode() if line.ms else b"-",
            names[line.position].encode(),
            line.text,
        )
        for line in islice(lines, LINES_AT_ONCE)
    )
