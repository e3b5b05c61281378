"""Logs of pods, from the log store, where the job's own secrets are masked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.utils import timezone

from jobs.api.vendors.aihc import names
from jobs.api.vendors.operations import Call, InvalidParameters, JsonObject, WrongValue
from jobs.live.followed_logs import LogName, find
from jobs.logs import log_search, log_store
from jobs.logs.tail import plain
from jobs.models import Job, LogStream, Replica
from quotas.access import Verb

MOST_LINES: Final = 10_000
DEFAULT_LINES: Final = 1000
MOST_BYTES: Final = 1024 * 1024
"""Bytes of a log that one request reads."""

_MARKER: Final = re.compile(r"[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class LogLines:
    """Lines of a log, and the offset of the byte after them; None where the log ends there."""

    lines: list[str]
    following: int | None


def describe_job_logs(call: Call) -> JsonObject:
    """Return a pod's log from its beginning or from `marker`, and the marker to go on with."""
    job, replica = _find(call)
    most, offset = call.values["maxLines"], _read_marker(call.values["marker"])
    keywords = call.values["keywords"] or ""
    found = LogLines([], None)
    row = _find_row(call, job, replica)
    if row is not None:
        found = _search(row, keywords, offset, most) if keywords else _read(row, offset, most)
    return {
        **_names(job, replica),
        "logs": _join(found.lines, call.values["chunkSize"]),
        "nextMarker": "" if found.following is None else str(found.following),
    }


def describe_pod_logs(call: Call) -> JsonObject:
    """Return the last lines of a pod's log, as version 1 does."""
    job, replica = _find(call)
    row = _find_row(call, job, replica)
    lines = [] if row is None else _tail(row, call.values["maxLines"])
    return {**_names(job, replica), "logs": _join(lines, call.values["chunk"])}


def _find(call: Call) -> tuple[Job, Replica]:
    job = names.find_job(call, Verb.READ)
    return job, names.find_replica(job, call.values["podName"])


def _names(job: Job, replica: Replica) -> JsonObject:
    return {"jobId": names.job_id(job), "podName": names.pod_name(job, replica.role, replica.index)}


def _find_row(call: Call, job: Job, replica: Replica) -> LogStream | None:
    """Return the log; None where there is none yet, or the pod did not run in the requested time.

    Lines have no times of their own: the log is within the range as a whole, or outside of it.
    """
    begin = names.read_time("startTime", call.values["startTime"])
    end = names.read_time("endTime", call.values["endTime"])
    if not _overlaps(replica, begin, end):
        return None
    return find(LogName(job.pk, replica.role, replica.index)).row


def _overlaps(replica: Replica, begin: datetime | None, end: datetime | None) -> bool:
    if end is not None and replica.started_at is not None and replica.started_at > end:
        return False
    return begin is None or (replica.ended_at or timezone.now()) >= begin


def _read_marker(text: Any) -> int:
    """Return the offset in a marker.  Raises InvalidParameters."""
    if not text:
        return 0
    if not _MARKER.fullmatch(text):
        raise InvalidParameters([WrongValue("marker", "nextMarker of an earlier answer")])
    return int(text)


def _read(row: LogStream, offset: int, most: int) -> LogLines:
    """Return at most `most` lines from `offset`, but no unfinished last line of a growing log."""
    try:
        part = log_store.read(row, offset, MOST_BYTES)
    except log_store.Unsafe:
        return LogLines([], None)
    pieces = part.data.split(b"\n")
    rest = pieces.pop()
    ends_log = part.next_offset >= part.size
    if rest and ((ends_log and part.state != LogStream.State.OPEN) or not pieces):
        pieces.append(rest)
        rest = b""
    taken = pieces[:most]
    if len(taken) == len(pieces):
        return LogLines(_decode(taken), None if ends_log else part.next_offset - len(rest))
    return LogLines(_decode(taken), part.offset + sum(len(piece) + 1 for piece in taken))


def _search(row: LogStream, text: str, offset: int, most: int) -> LogLines:
    try:
        matches = log_search.search(row, text, offset, most)
    except log_store.Unsafe:
        return LogLines([], None)
    return LogLines([plain(match.text) for match in matches.found], matches.next_offset)


def _tail(row: LogStream, most: int) -> list[str]:
    try:
        data = log_store.read(row, -MOST_BYTES, MOST_BYTES + log_store.LINE_REACH).data
    except log_store.Unsafe:
        return []
    return _decode(data.rstrip(b"\n").split(b"\n")[-most:]) if data else []


def _decode(pieces: list[bytes]) -> list[str]:
    return [plain(piece.decode("utf-8", "replace")) for piece in pieces]


def _join(lines: list[str], size: int) -> list[str]:
    """Return the lines, as many in one text as the caller wants."""
    return ["\n".join(lines[start : start + size]) for start in range(0, len(lines), size)]
