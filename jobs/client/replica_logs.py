"""Logs of replicas: one as its bytes, or all of them by time, each line behind its replica's name."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any, Final

from jobs.client.api import Console
from jobs.client.job_stream import Screen, exit_code
from jobs.client.progress import INTERRUPTED, tell_end
from jobs.language import gettext as _

PAUSE_S: Final = 1.0
"""Seconds between two requests for new lines of all replicas."""


def read(console: Console, job: str, log: str, *, timestamps: bool = False) -> Iterator[bytes]:
    """Yield what there is of the log of a replica, ROLE/INDEX.  Raises RequestRefused."""
    role, _slash, index = log.rpartition("/")
    offset, is_open = 0, True
    while is_open:
        params = {"role": role, "index": index, "offset": offset, **_times(timestamps)}
        response = console.request("GET", f"/jobs/{job}/logs", params=params)
        if not response.content:
            return
        yield response.content
        offset = int(response.headers["X-Next-Offset"])
        has_more = offset < int(response.headers.get("X-Size", offset))
        is_open = response.headers["X-State"] == "open" or has_more


def _times(wanted: bool) -> dict[str, str]:
    return {"timestamps": "true"} if wanted else {}


def print_all(console: Console, job: str, screen: Screen, *, following: bool, timestamps: bool) -> int:
    """Print the logs of all replicas by time; return the job's exit status if they are followed, else 0."""
    cursor, warned = "start", False
    while True:
        partial = {} if following else {"partial": "true"}
        page = console.get(f"/jobs/{job}/logs/merged", after=cursor, **partial)
        if page["replicas"] < page["total"] and not warned:
            warned = True
            text = _("Only the first %(count)s of %(total)s replicas are shown.")
            screen.say(text % {"count": page["replicas"], "total": page["total"]})
        _write(page["lines"], timestamps=timestamps)
        is_new, cursor = page["after"] != cursor, page["after"]
        if is_new and page["lines"]:
            continue
        if not following:
            return 0
        if page["state"] == "complete":
            ended = console.get(f"/jobs/{job}")
            tell_end(ended, screen)
            return exit_code(ended)
        try:
            time.sleep(PAUSE_S)
        except KeyboardInterrupt:
            return INTERRUPTED


def _write(lines: list[dict[str, Any]], *, timestamps: bool) -> None:
    for line in lines:
        moment = f"{line['time']} " if timestamps and line["time"] else ""
        text = f"[{line['replica']}] {moment}{line['text']}\n"
        sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass"))
    sys.stdout.flush()
