"""The logs of all replicas of a run over HTTP, for pages and API alike: lines in the order of time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from django.http import JsonResponse

from jobs.live.log_responses import DEFAULT_LIMIT, BadNumber, number
from jobs.logs import log_store, log_times, merged_logs
from jobs.logs.merged_logs import Cursor, MergedLine, MergedWindow
from jobs.models import Attempt, Job, LogStream, Replica

MOST_REPLICAS: Final = 256
"""Replicas whose logs are merged, those of the lowest ranks."""

_CURSOR: Final = re.compile(r"([1-9][0-9]{0,8})\.([1-9][0-9]{0,8})((?:\.[0-9]{1,15}){0,256})")


def respond(job: Job, query: Mapping[str, str]) -> JsonResponse:
    """Answer a window of lines: the last ones, those `after` a cursor (or `start`), or those `before` one.

    `limit` is in bytes.  `attempt` and `run` are the newest ones unless they or a cursor are given.  Raises
    BadNumber.
    """
    limit = min(number(query, "limit", least=1) or DEFAULT_LIMIT, log_store.MOST_AT_ONCE)
    text = query.get("before") or query.get("after", "")
    found = _CURSOR.fullmatch(text)
    if text not in {"", "start"} and found is None:
        raise BadNumber("before" if query.get("before") else "after")
    attempt_number = int(found[1]) if found else number(query, "attempt", least=1)
    attempts = Attempt.objects.filter(job=job).order_by("-number")
    attempt = (attempts if attempt_number is None else attempts.filter(number=attempt_number)).first()
    run = int(found[2]) if found else number(query, "run", least=1)
    if attempt is None:
        return JsonResponse(_EMPTY)
    replicas, streams, total, run = _find_logs(attempt, run)
    window = _read(streams, query, tuple(map(int, found[3].split(".")[1:])) if found else (), limit)
    is_over = job.is_ended and all(each is None or each.state != LogStream.State.OPEN for each in streams)
    place = f"{attempt.number}.{run}"
    return JsonResponse(
        {
            "lines": [_shape(line, replicas[line.position]) for line in window.lines],
            "before": _format(place, window.before) if any(window.before) else None,
            "after": _format(place, window.after),
            "replicas": len(replicas),
            "total": total,
            "state": "complete" if is_over else "open",
        }
    )


_EMPTY: Final[dict[str, object]] = {
    "lines": [],
    "before": None,
    "after": "start",
    "replicas": 0,
    "total": 0,
    "state": "open",
}


def _find_logs(attempt: Attempt, run: int | None) -> tuple[list[Replica], list[LogStream | None], int, int]:
    """Return the replicas of a run, the log of each, how many replicas there are in all, and the run."""
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
    return replicas, streams, rows.count(), run


def _read(
    streams: Sequence[LogStream | None], query: Mapping[str, str], cursor: Cursor, limit: int
) -> MergedWindow:
    # Replicas that began since have no offset in the cursor yet.
    whole = (*cursor, *(0 for _ in streams[len(cursor) :]))[: len(streams)]
    if query.get("before"):
        return merged_logs.read_before(streams, whole, limit)
    if query.get("after"):
        has_open_lines = query.get("partial") == "true"
        return merged_logs.read_after(streams, whole, limit, has_open_lines=has_open_lines)
    return merged_logs.read_before(streams, merged_logs.sizes(streams), limit)


def _shape(line: MergedLine, replica: Replica) -> dict[str, object]:
    return {
        "replica": f"{replica.role}/{replica.index}",
        "rank": replica.ordinal,
        "offset": line.offset,
        "time": log_times.format_time(line.ms) if line.ms else None,
        "text": line.text.decode("utf-8", "replace"),
    }


def _format(place: str, cursor: Cursor) -> str:
    return ".".join([place, *map(str, cursor)])
