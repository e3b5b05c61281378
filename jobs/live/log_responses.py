"""The bytes of a log over HTTP, for pages and API alike: a slice, all of it, or what is found in it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import quote

from django.http import HttpResponse, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.utils.translation import gettext

from jobs.live.followed_logs import LogName, find
from jobs.live.thread_pool import run_in_thread
from jobs.logs import line_numbers, log_search, log_store, log_times, pattern_search
from jobs.models import Job, JobFile, LogStream

DEFAULT_LIMIT: Final = 256 * 1024
MOST_MATCHES: Final = 1000
LONGEST_WANTED: Final = 1000

LOG_HEADERS: Final = {
    # It is whatever a job wrote: text to look at, and nothing that a browser would act on.
    "Content-Type": "text/plain; charset=utf-8",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cache-Control": "no-store",
}


class NoSuchLog(Exception):
    """The job has no such replica, attempt or run."""


class BadNumber(ValueError):
    """The parameter of that name is no number that makes sense."""


class BadSearch(ValueError):
    """The search can't be done; the text is the sentence that says why."""


@dataclass(frozen=True, slots=True)
class LogRequest:
    """A log of a job, and a range of its bytes.  `run` and `attempt` None are the newest ones."""

    role: str
    index: int = 0
    attempt: int | None = None
    run: int | None = None
    stream: str = "output"
    offset: int = 0
    limit: int = DEFAULT_LIMIT
    has_times: bool = False
    """Whether each line is behind its time."""

    @classmethod
    def parse(cls, query: Mapping[str, str]) -> Self:
        """Read the parameters of the same names; raises BadNumber."""
        return cls(
            role=query.get("role", ""),
            index=number(query, "index") or 0,
            attempt=number(query, "attempt", least=1),
            run=number(query, "run", least=1),
            stream=query.get("stream") or "output",
            offset=number(query, "offset", least=None) or 0,
            limit=DEFAULT_LIMIT if (limit := number(query, "limit")) is None else limit,
            has_times=query.get("timestamps") == "true",
        )

    def of(self, job: Job) -> LogName:
        """The name of that log of `job`."""
        return LogName(job.pk, self.role, self.index, self.attempt, self.run, self.stream)


def number(query: Mapping[str, str], name: str, *, least: int | None = 0) -> int | None:
    """The whole number called `name`, None when it is absent or empty; raises BadNumber."""
    text = query.get(name, "")
    if not text:
        return None
    if not re.fullmatch(r"-?[0-9]{1,18}", text) or (least is not None and int(text) < least):
        raise BadNumber(name)
    return int(text)


def respond(job: Job, query: Mapping[str, str]) -> HttpResponseBase:
    """Answer what `query` requests of the job's logs.  Raises NoSuchLog, BadNumber or BadSearch.

    A slice, with `timestamps` a time before each line; with `download`, all of the log; as JSON with `q` the
    lines in which it is found (with `regex`, which match it) or with `level` those of the level, with `line`
    and `line_at` a line's offset and number, with `times` when the bytes of the slice came.
    """
    log_request = LogRequest.parse(query)
    row = _row(job, log_request)
    if "q" in query or query.get("level"):
        return _search(row, query, log_request)
    if query.get("line") or query.get("line_at"):
        return _locate_line(row, number(query, "line", least=1), number(query, "line_at"))
    if query.get("times"):
        return _times(row, log_request)
    if query.get("download"):
        return _download(job, row, log_request)
    return _slice(job, row, log_request)


def _row(job: Job, log_request: LogRequest) -> LogStream | None:
    """The log; None for a replica that has not begun to write."""
    row = find(log_request.of(job)).row
    if row is None and not _may_come(job, log_request):
        raise NoSuchLog
    return row


def _may_come(job: Job, log_request: LogRequest) -> bool:
    """Tell whether the job has such a replica, though it has not been started yet."""
    current = (log_request.attempt or job.attempt_number, log_request.run or job.run_number)
    if log_request.stream != "output" or current != (job.attempt_number, job.run_number):
        return False
    roles = JobFile.objects.get(job=job).spec.roles
    return any(role.name == log_request.role and log_request.index < role.replicas for role in roles)


def _slice(job: Job, row: LogStream | None, log_request: LogRequest) -> HttpResponse:
    if row is None:
        state = LogStream.State.GONE if job.is_ended else LogStream.State.OPEN
        found = log_store.Slice(b"", 0, 0, 0, state)
    else:
        found = _read(row, log_request)
    data = found.data
    if row is not None and log_request.has_times and len(data) == found.next_offset - found.offset:
        data = log_times.add_times(row, data, found.offset)
    response = HttpResponse(data, headers=LOG_HEADERS)
    response.headers["X-Offset"] = str(found.offset)
    response.headers["X-Next-Offset"] = str(found.next_offset)
    response.headers["X-Size"] = str(found.size)
    response.headers["X-State"] = str(found.state)
    response.headers["X-Attempt"] = str(row.attempt.number if row else job.attempt_number)
    response.headers["X-Run"] = str(row.run if row else job.run_number)
    return response


def _read(row: LogStream, log_request: LogRequest) -> log_store.Slice:
    try:
        return log_store.read(row, log_request.offset, log_request.limit)
    except log_store.Unsafe:
        return log_store.Slice(b"", 0, 0, 0, LogStream.State.GONE)


def _search(row: LogStream | None, query: Mapping[str, str], log_request: LogRequest) -> HttpResponse:
    pattern = search_pattern(query)
    if row is None or not pattern:
        return JsonResponse({"matches": [], "next_offset": None})
    most, start = max(1, min(log_request.limit, MOST_MATCHES)), max(0, log_request.offset)
    try:
        with explain_bad_search():
            if query.get("level") or query.get("regex"):
                found = pattern_search.search(row, pattern, start, most)
            else:
                found = log_search.search(row, query["q"][:LONGEST_WANTED], start, most)
    except log_store.Unsafe:
        found = log_search.Matches([], None)
    matches = [{"offset": match.offset, "text": match.text} for match in found.found]
    return JsonResponse({"matches": matches, "next_offset": found.next_offset})


def search_pattern(query: Mapping[str, str]) -> str:
    """Return the expression that `level`, or `q` with `regex` or as it is, asks for; "" for nothing.

    Raises BadSearch.
    """
    text, level = query.get("q", "")[:LONGEST_WANTED], query.get("level", "")
    if level and level not in pattern_search.LEVELS:
        raise BadSearch(gettext("Unknown level. Known levels: error, warning."))
    if level:
        return pattern_search.LEVELS[level]
    return text if query.get("regex") else pattern_search.escape(text)


@contextmanager
def explain_bad_search() -> Iterator[None]:
    """Raise BadSearch, with a sentence, for an expression that can't be searched for."""
    try:
        yield
    except pattern_search.BadPattern as error:
        sentence = gettext("Invalid regular expression: %(problem)s.")
        raise BadSearch(sentence % {"problem": str(error).rstrip(".")}) from error
    except pattern_search.PatternTooSlow as error:
        sentence = gettext("This regular expression takes too long on this log. Use a simpler one.")
        raise BadSearch(sentence) from error


def _locate_line(row: LogStream | None, line: int | None, offset: int | None) -> HttpResponse:
    """Answer the offset of a line, or the number of the line at an offset; null while it is being counted."""
    if row is None:
        return JsonResponse({"line": 1, "offset": 0})
    try:
        if line is not None:
            offset = line_numbers.offset_of(row, line)
        else:
            line = line_numbers.line_at(row, offset or 0)
    except log_store.Unsafe:
        line, offset = 1, 0
    return JsonResponse({"line": line, "offset": offset})


def _times(row: LogStream | None, log_request: LogRequest) -> HttpResponse:
    """Answer pairs of an offset and the Unix time, in milliseconds, at which the bytes from there on came."""
    start = max(0, log_request.offset)
    end = start + min(log_request.limit, log_store.MOST_AT_ONCE)
    moments = log_times.find_times(row, start, end) if row is not None else []
    return JsonResponse({"times": [[each.offset, each.ms] for each in moments]})


def _download(job: Job, row: LogStream | None, log_request: LogRequest) -> HttpResponseBase:
    name = f"{job.name}.{log_request.role}-{log_request.index}.log"
    headers = {**LOG_HEADERS, "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}"}
    if row is None:
        return HttpResponse(b"", headers=headers)
    try:
        size = log_search.whole_size(row)
    except log_store.Unsafe:
        return HttpResponse(b"", headers=headers)
    headers["Content-Length"] = str(size)
    return StreamingHttpResponse(_stream_bytes(row, size), headers=headers)


async def _stream_bytes(row: LogStream, size: int) -> AsyncIterator[bytes]:
    """`size` bytes of the log; each piece is read while the one before it is on its way."""
    rest = log_search.pieces(row)
    ahead = asyncio.create_task(run_in_thread(_next, rest))
    try:
        while size and (piece := await ahead):
            ahead = asyncio.create_task(run_in_thread(_next, rest))
            yield piece[:size]
            size -= len(piece[:size])
    finally:
        ahead.cancel()


def _next(rest: Iterator[tuple[int, bytes]]) -> bytes:
    return next(rest, (0, b""))[1]
