"""Body formats of log sinks, and what their servers' answers mean.

Loki's push API in JSON (`POST /loki/api/v1/push`), Elasticsearch's and OpenSearch's `_bulk`, and JSON lines.
In each a record is encoded by itself, so that a batch can be bounded by its bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from jobs.log_forwarding.lines import LogLine
from jobs.models import LogSink
from jobs.notifications.transports.outcome import of_answer
from jobs.outbound.egress import Answer

REFUSALS: Final = frozenset({400, 413, 422})
"""Statuses that are about the batch; every other error is about the server, or about the sink's settings."""

CONFLICT: Final = 409
"""Elasticsearch has a document of that id already: it came with an earlier try."""

BUSY: Final = 429
SERVER_ERROR: Final = 500


@dataclass(frozen=True, slots=True)
class LogSource:
    """A log: its key for documents' ids, its labels with the sink's, and more about its job."""

    key: str
    labels: Mapping[str, str]
    about: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A line of a log and its time, in nanoseconds since 1970."""

    source: LogSource
    line: LogLine
    at_ns: int

    def message(self) -> dict[str, Any]:
        """Return what is not the same for all lines of the log."""
        more = {"partial": True} if self.line.is_partial else {}
        return {"message": self.line.text, "offset": self.line.offset, **more}


@dataclass(frozen=True, slots=True)
class PostOutcome:
    """Meaning of an answer: all is well if `error`, a code of `jobs.messages.deliveries`, is empty.

    One that `is_refused` is not accepted by itself later on.  `rejected` are the positions of records without
    which the batch was accepted.
    """

    error: str = ""
    detail: str = ""
    pause_s: int = 0
    is_refused: bool = False
    rejected: frozenset[int] = field(default_factory=frozenset)

    @property
    def is_accepted(self) -> bool:
        """Tell whether the server has the batch, without those that it rejected for good."""
        return not self.error or bool(self.rejected)


class BodyFormat(Protocol):
    """A body format."""

    content_type: str

    def encode(self, record: LogEntry) -> bytes:
        """Return a record's own part of the body."""

    def join(self, parts: Sequence[tuple[LogSource, Sequence[bytes]]]) -> bytes:
        """Return the body of encoded records, those of a log together."""

    def read_answer(self, answer: Answer, count: int) -> PostOutcome:
        """Return what the answer to `count` records means."""


def _compact(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def format_time(at_ns: int) -> str:
    """Return a time in ISO 8601, in UTC, with nine digits of the second."""
    seconds, nanoseconds = divmod(at_ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{nanoseconds:09d}Z"


def _read_status(answer: Answer) -> PostOutcome:
    outcome = of_answer(answer)
    if not outcome.error:
        return PostOutcome()
    words = " ".join(answer.body[:200].decode("utf-8", "replace").split())
    detail = f"{outcome.detail}: {words}" if outcome.detail and words else outcome.detail
    return PostOutcome(outcome.error, detail, outcome.pause_s, is_refused=answer.status in REFUSALS)


class JsonLines:
    """A JSON object on each line."""

    content_type = "application/x-ndjson"

    def encode(self, record: LogEntry) -> bytes:
        """Return the record as one line."""
        source = record.source
        return _compact(
            {"time": format_time(record.at_ns), **source.labels, **source.about, **record.message()}
        )

    def join(self, parts: Sequence[tuple[LogSource, Sequence[bytes]]]) -> bytes:
        """Return the lines."""
        return b"".join(encoded + b"\n" for _source, records in parts for encoded in records)

    def read_answer(self, answer: Answer, count: int) -> PostOutcome:
        """Return the meaning of the status."""
        return _read_status(answer)


class Loki:
    """Loki: a stream for each log, with the log's labels; each line is a JSON object, for `| json`.

    A batch that comes too late for Loki's order is refused with 400, and gets a new time when it is tried
    again.
    """

    content_type = "application/json"

    def encode(self, record: LogEntry) -> bytes:
        """Return the record as an entry of its stream."""
        line = _compact({**record.message(), **record.source.about}).decode()
        return _compact([str(record.at_ns), line])

    def join(self, parts: Sequence[tuple[LogSource, Sequence[bytes]]]) -> bytes:
        """Return the streams."""
        streams = (
            b'{"stream":' + _compact(source.labels) + b',"values":[' + b",".join(records) + b"]}"
            for source, records in parts
        )
        return b'{"streams":[' + b",".join(streams) + b"]}"

    def read_answer(self, answer: Answer, count: int) -> PostOutcome:
        """Return the meaning of the status."""
        return _read_status(answer)


class Elasticsearch:
    """Documents that are created by ids made of log and offset, so that a repetition changes nothing.

    The index, or the data stream, is in the sink's address.
    """

    content_type = "application/x-ndjson"

    def encode(self, record: LogEntry) -> bytes:
        """Return the record as an action and a document."""
        source = record.source
        action = {"create": {"_id": f"{source.key}-{record.line.offset}"}}
        document = {
            "@timestamp": format_time(record.at_ns),
            **source.labels,
            **source.about,
            **record.message(),
        }
        return _compact(action) + b"\n" + _compact(document)

    def join(self, parts: Sequence[tuple[LogSource, Sequence[bytes]]]) -> bytes:
        """Return the lines."""
        return b"".join(encoded + b"\n" for _source, records in parts for encoded in records)

    def read_answer(self, answer: Answer, count: int) -> PostOutcome:
        """Return the meaning of the status and, below 300, of each document's own."""
        outcome = _read_status(answer)
        return outcome if outcome.error else self._read_items(answer.body, count)

    def _read_items(self, body: bytes, count: int) -> PostOutcome:
        try:
            content = json.loads(body)
            if content["errors"] is False:
                return PostOutcome()
            items = [next(iter(item.values())) for item in content["items"]]
            statuses = [int(item["status"]) for item in items]
        except (ValueError, KeyError, TypeError, AttributeError, StopIteration):
            return PostOutcome("answer")
        if len(statuses) != count:
            return PostOutcome("answer")
        bad = [at for at, status in enumerate(statuses) if status >= 300 and status != CONFLICT]
        later = [at for at in bad if statuses[at] == BUSY or statuses[at] >= SERVER_ERROR]
        if not bad:
            return PostOutcome()
        first = (later or bad)[0]
        detail = f"{statuses[first]} {_compact(items[first].get('error', '')).decode()}"[:300]
        if later:
            return PostOutcome("busy" if statuses[first] == BUSY else "trouble", detail)
        return PostOutcome("rejected", detail, rejected=frozenset(bad))


FORMATS: Final[Mapping[str, BodyFormat]] = {
    LogSink.Format.LOKI: Loki(),
    LogSink.Format.ELASTICSEARCH: Elasticsearch(),
    LogSink.Format.NDJSON: JsonLines(),
}
