"""The last lines of a log, as plain text for a page's head."""

from __future__ import annotations

import re
from typing import Final

from jobs.logs import log_store
from jobs.models import Attempt, LogStream, Replica
from jobs.states import ReplicaState

LINES: Final = 20
REACH: Final = 16 * 1024
"""Bytes from the end; the store goes back from there to the beginning of a line."""

LONGEST_LINE: Final = 2000

_ESCAPES: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # OSC, DCS and other strings
    r"|\x1b[ -/]*[0-~]?"
)
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def last_lines(stream: LogStream, count: int = LINES) -> list[str]:
    """Return at most `count` lines from the end of `stream`; none where it can't be read."""
    try:
        data = log_store.read(stream, -REACH, REACH + log_store.LINE_REACH).data
    except log_store.Unsafe:
        return []
    lines = data.decode("utf-8", "replace").rstrip("\n").split("\n")
    return [plain(line)[:LONGEST_LINE] for line in lines[-count:]] if data else []


def plain(line: str) -> str:
    """Strip colours and control characters from a line, as a terminal would leave it.

    A progress bar writes over itself after each carriage return: what it wrote last is what counts.
    """
    last = line.rstrip("\r").rpartition("\r")[2]
    return _CONTROLS.sub("", _ESCAPES.sub("", last))


def first_failed(attempt: Attempt, run: int) -> Replica | None:
    """Return the replica of that run which failed first."""
    rows = Replica.objects.filter(attempt=attempt, run=run, state=ReplicaState.FAILED)
    return rows.order_by("ended_at", "ordinal").first()
