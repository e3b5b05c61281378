"""Following a job: its state in a line, its log as it is written, its endpoints, its end.

The log comes over Server-Sent Events.  Each piece says up to which byte it goes, so that after a broken
connection it goes on there: nothing twice, nothing left out.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TextIO

import httpx

from jobs.client.api import Console, Outage
from jobs.language import gettext as _
from jobs.states import TERMINAL, State

SILENCE_S: Final = 20.0
"""The console says something every two seconds; after such a silence it is asked anew."""

ENDPOINTS_S: Final = 15.0
"""Seconds between two looks at the endpoints of a running job."""

GONE: Final = "gone"
FAILED_ANYHOW: Final = 1


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a stream."""

    name: str
    data: Any
    identity: str


class Screen:
    """Standard output is the log's alone; what is said besides goes to standard error.

    On a terminal, what waits has one line that is written over.
    """

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self._out, self._err = out or sys.stdout, err or sys.stderr
        self._over = ""
        self._line_open = False
        self.tty = self._err.isatty()

    def say(self, text: str) -> None:
        """A line for the person."""
        self._wipe()
        self._err.write(f"{text}\n")
        self._err.flush()

    def now(self, text: str) -> None:
        """Show a status line, which the next one replaces."""
        if text == self._over:
            return
        if self.tty and not self._line_open:
            self._err.write(f"\r\x1b[K{text}")
        elif not self.tty and text:
            self._err.write(f"{text}\n")
        self._err.flush()
        self._over = text

    def log(self, text: str) -> None:
        """A piece of the log, as it is."""
        self._wipe()
        buffer = getattr(self._out, "buffer", None)
        if buffer is not None:
            buffer.write(text.encode("utf-8", "surrogatepass"))
        else:
            self._out.write(text)
        self._out.flush()
        self._line_open = not text.endswith("\n")

    def _wipe(self) -> None:
        if self._over and self.tty:
            self._err.write("\r\x1b[K")
            self._err.flush()
            self._over = ""


class Watch:
    """A job, and the log of one of its replicas."""

    def __init__(
        self, console: Console, screen: Screen, job: str, log: str, *, timestamps: bool = False
    ) -> None:
        self._console, self._screen, self._job, self._log = console, screen, job, log
        self._timestamps = timestamps
        self._last = ""
        self._state = ""
        self._told: set[str] = set()
        self._look_at = 0.0

    def to_the_end(self) -> dict[str, Any]:
        """The job once it has ended and its log was shown whole."""
        outage = Outage(self._console.server, self._screen.say)
        while True:
            try:
                for event in self._events():
                    outage.back()
                    self._take(event)
            except httpx.TransportError as error:
                outage.wait(error)
                continue
            job: dict[str, Any] = self._console.get(f"/jobs/{self._job}")
            if State(job["state"]) in TERMINAL:
                self._screen.now("")
                return job

    def _events(self) -> Iterator[Event]:
        query: dict[str, Any] = {"log": self._log, "offset": 0} if self._log else {}
        query |= {"timestamps": "true"} if self._timestamps else {}
        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": self._last} if self._last else {})}
        timeout = httpx.Timeout(SILENCE_S, connect=10)
        address = f"/jobs/{self._job}/stream"
        with self._console.stream(address, params=query, headers=headers, timeout=timeout) as response:
            yield from parse_events(response.iter_raw())

    def _take(self, event: Event) -> None:
        if event.identity:
            self._last = event.identity
        match event.name:
            case "log":
                self._screen.log(event.data)
            case "state":
                self._state_is(event.data)
            case "attempt":
                self._screen.say(_("--- attempt %(attempt)s, run %(run)s ---") % event.data)
            case "ping" if self._state == State.RUNNING and time.monotonic() >= self._look_at:
                self._endpoints()
            case _:
                pass

    def _state_is(self, job: dict[str, Any]) -> None:
        self._state = job["state"]
        if self._state in {State.QUEUED, State.SUBMITTING, State.PENDING}:
            params = {"name": job["name"], "state": job["phase"], "why": job["reason"]["message"]}
            self._screen.now(_("%(name)s · %(state)s · %(why)s") % params)
        else:
            self._screen.now("")
        if self._state == State.RUNNING:
            self._endpoints()

    def _endpoints(self) -> None:
        self._look_at = time.monotonic() + ENDPOINTS_S
        job = self._console.get(f"/jobs/{self._job}")
        for replica in job.get("tasks") or ():
            for endpoint in replica["endpoints"]:
                key = f"{replica['role']}/{replica['index']}/{endpoint['label']}"
                if endpoint["ready"] and key not in self._told:
                    self._told.add(key)
                    where = endpoint["url"] or f"{endpoint['host']}:{endpoint['port']}"
                    self._screen.say(f"{endpoint['label']}: {where}")


def parse_events(pieces: Iterator[bytes]) -> Iterator[Event]:
    """The events of a stream.  Lines end at line feeds alone: a log may have every other line end in it."""
    rest = b""
    fields: dict[str, str] = {}
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if line:
                name, _colon, value = line.decode("utf-8", "replace").partition(": ")
                fields[name] = value
            elif fields:
                yield Event(
                    fields.get("event", ""), json.loads(fields.get("data", "null")), fields.get("id", "")
                )
                fields = {}


def exit_code(job: dict[str, Any]) -> int:
    """Return the exit status for scripts: 0 for a success, else that of the first failed replica.

    After signal n that is 128+n.
    """
    if job["state"] == State.SUCCEEDED:
        return 0
    codes = [replica["exit_code"] for replica in job.get("tasks") or () if replica["exit_code"]]
    return int(codes[0]) if codes else FAILED_ANYHOW
