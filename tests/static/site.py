"""A small real HTTP server with a log, a stream and fragments, as slow, broken or hostile as a test needs.

It speaks the contracts of static/console/live.js, log-source.js and editor-check.js, as docs/frontend.md
gives them.
"""

from __future__ import annotations

import codecs
import json
import mimetypes
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from django.contrib.staticfiles import finders

from tests.waiting import wait_for

CSP: Final = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
TICK_S: Final = 0.01
MERGED: Final = 300
"""Lines of one window of the merged logs."""

CHUNK: Final = 32 * 1024


class Site(ThreadingHTTPServer):
    """What the page under test talks to; tests set its attributes, and read what was asked of it."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages: dict[str, str] = {}
        self.log = bytearray()
        self.merged: list[tuple[int, str]] = []
        """The lines of all replicas: a rank, and a text."""
        self.state = "open"
        self.gap: tuple[int, int] | None = None
        self.attempt = 1
        self.run = 1
        self.streaming = True
        self.cut_streams = 0
        self.changes: list[tuple[str, dict[str, Any]]] = []
        self.checked: dict[str, Any] = {"dialect": "openpai-v1", "problems": [], "notes": []}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.posted: list[tuple[str, dict[str, str]]] = []
        self.open_streams = 0
        self.most_open_streams = 0
        self.passes = 0
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def asks(self, path: str) -> list[dict[str, str]]:
        """The queries of the GET requests for `path` so far."""
        return [query for asked, query in list(self.asked) if asked == path]

    def drop_streams(self) -> None:
        """Cut every open stream, as a restarted server or a proxy would."""
        self.cut_streams += 1

    def send_all(self) -> None:
        """Wait until a stream has looked at everything there was to send by now, and sent it."""
        seen = self.passes
        wait_for(lambda: self.passes >= seen + 2)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away is nothing to report."""


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    server: Site
    cut_before: int

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.cut_before = self.server.cut_streams  # first: whoever knows that it was asked may cut it
        self.server.asked.append((parts.path, query))
        if parts.path.startswith("/static/"):
            self._static(parts.path.removeprefix("/static/"))
        elif parts.path == "/logs":
            self._logs(query)
        elif parts.path == "/merged":
            self._merged(query)
        elif parts.path == "/stream":
            self._stream(query)
        elif parts.path in self.server.pages:
            self._send(self.server.pages[parts.path].encode(), {"Content-Security-Policy": CSP})
        elif parts.path.startswith("/fragment"):
            self._send(f"<b>{len(self.server.asks(parts.path))}</b>".encode())
        else:
            self._send(b"nothing here", status=404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        fields = {name: values[0] for name, values in parse_qs(body, keep_blank_values=True).items()}
        fields["X-CSRFToken"] = self.headers.get("X-CSRFToken", "")
        self.server.posted.append((self.path, fields))
        answer = {"text": '{"mended": true}'} if self.path == "/fix" else self.server.checked
        self._send(json.dumps(answer).encode(), {"Content-Type": "application/json"})

    def _send(self, body: bytes, headers: dict[str, str] | None = None, status: int = 200) -> None:
        self.send_response(status)
        every = {"Content-Type": "text/html; charset=utf-8", "Content-Length": str(len(body))}
        for name, value in (every | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _static(self, name: str) -> None:
        path = finders.find(name)
        if not isinstance(path, str):
            self._send(b"", status=404)
            return
        kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
        self._send(Path(path).read_bytes(), {"Content-Type": kind})

    def _logs(self, query: dict[str, str]) -> None:
        log = bytes(self.server.log)
        if "q" in query:
            self._search(log, query["q"])
            return
        if "line_at" in query or "line" in query:
            self._line(log, query)
            return
        offset = int(query["offset"])
        if offset < 0:
            offset = max(0, len(log) + offset)
            offset = log.rfind(b"\n", 0, offset) + 1
        data, after = self._bytes(log, offset, int(query["limit"]))
        headers = {
            "Content-Type": "text/plain; charset=utf-8",
            "X-Offset": str(offset),
            "X-Next-Offset": str(after),
            "X-Size": str(len(log)),
            "X-State": self.server.state,
            "X-Attempt": str(self.server.attempt),
            "X-Run": str(self.server.run),
        }
        self._send(data, headers)

    def _line(self, log: bytes, query: dict[str, str]) -> None:
        """The number of the line at a byte, or the first byte of a line."""
        if "line_at" in query:
            answer = {"line": log[: int(query["line_at"])].count(b"\n") + 1}
        else:
            before = log.split(b"\n", int(query["line"]) - 1)[:-1]
            answer = {"offset": sum(map(len, before)) + len(before)}
        self._send(json.dumps(answer).encode(), {"Content-Type": "application/json"})

    def _bytes(self, log: bytes, offset: int, limit: int) -> tuple[bytes, int]:
        """What a read answers, and the offset after it; in the gap that a cap left, a sentence."""
        if self.server.gap:
            start, end = self.server.gap
            if start <= offset < end:
                return b"\n[left out]\n", end
            limit = min(limit, start - offset) if offset < start else limit
        data = log[offset : offset + limit]
        return data, offset + len(data)

    def _search(self, log: bytes, wanted: str) -> None:
        matches, offset = [], 0
        for line in log.splitlines(keepends=True):
            if wanted.encode() in line:
                matches.append({"offset": offset, "text": line.decode("utf-8", "replace").rstrip("\n")})
            offset += len(line)
        answer = {"matches": matches, "next_offset": None}
        self._send(json.dumps(answer).encode(), {"Content-Type": "application/json"})

    def _merged(self, query: dict[str, str]) -> None:
        """A window of the merged lines, or those that are found; a cursor counts lines."""
        lines = self.server.merged
        place = int((query.get("before") or query.get("after") or "1.1.0").split(".")[-1])
        limit = int(query["limit"])
        if "q" in query or "level" in query:
            wanted = query.get("q", "Error")
            found = [at for at in range(place, len(lines)) if wanted in lines[at][1]][:limit]
            more = f"1.1.{found[-1] + 1}" if len(found) == limit else None
            self._json(
                {
                    "matches": [self._merged_line(at) for at in found],
                    "next": more,
                    "searched": len(lines),
                    "size": len(lines),
                }
            )
        elif "replica" in query:
            self._json(self._merged_window(int(query["offset"]), len(lines)))
        elif "before" in query:
            self._json(self._merged_window(max(0, place - MERGED), place))
        else:
            start = place if "after" in query else max(0, len(lines) - MERGED)
            self._json(self._merged_window(start, min(len(lines), start + MERGED)))

    def _merged_line(self, at: int) -> dict[str, Any]:
        rank, text = self.server.merged[at]
        time = "2026-01-01T12:00:00.000Z"
        return {"replica": f"worker/{rank}", "rank": rank, "offset": at, "time": time, "text": text}

    def _merged_window(self, start: int, end: int) -> dict[str, Any]:
        is_over = self.server.state != "open"
        return {
            "lines": [self._merged_line(at) for at in range(start, end)],
            "before": f"1.1.{start}" if start else None,
            "after": f"1.1.{end}",
            "replicas": 2,
            "total": 2,
            "state": "complete" if is_over else "open",
        }

    def _json(self, answer: dict[str, Any]) -> None:
        self._send(json.dumps(answer).encode(), {"Content-Type": "application/json"})

    def _stream(self, query: dict[str, str]) -> None:
        site = self.server
        if not site.streaming:
            self._send(b"", status=503)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        with site.lock:
            site.open_streams += 1
            site.most_open_streams = max(site.most_open_streams, site.open_streams)
        try:
            self._events(query)
        except OSError:
            pass  # the browser left
        finally:
            with site.lock:
                site.open_streams -= 1

    def _events(self, query: dict[str, str]) -> None:
        site = self.server
        told = int(query.get("since", "0-0").partition("-")[0])
        place = (site.attempt, site.run)
        same_run = (
            int(query.get("attempt", place[0])) == place[0] and int(query.get("run", place[1])) == place[1]
        )
        offset = int(query.get("offset", 0)) if same_run else 0
        at_line = int(query.get("after", "1.1.0").split(".")[-1])
        self._event("ping", {})
        next_ping = time.monotonic() + 1
        while site.streaming and site.cut_streams == self.cut_before:
            for at, (name, data) in enumerate(site.changes[told:], start=told + 1):
                self._event(name, data, f"{at}-0")
                told = at
            if "merged" in query:
                end = len(site.merged)
                if end > at_line:
                    self._event("merged", self._merged_window(at_line, end), f"1.1.{end}")
                at_line = end
            if "log" in query:
                if (site.attempt, site.run) != place:
                    place, offset = (site.attempt, site.run), 0
                offset = self._log_events(place, offset)
            site.passes += 1
            if time.monotonic() > next_ping:  # also how a browser that left is noticed
                self._event("ping", {})
                next_ping = time.monotonic() + 1
            time.sleep(TICK_S)

    def _log_events(self, place: tuple[int, int], offset: int) -> int:
        """Send what the log has after `offset`, whole characters only; answers the new offset."""
        site = self.server
        while chunk := bytes(site.log[offset : offset + CHUNK]):
            text, used = codecs.utf_8_decode(chunk, "replace", site.state != "open")
            if not used:
                break
            offset += used
            self._event("log", text, f"{place[0]}.{place[1]}.{offset}")
        if site.state != "open" and offset >= len(site.log):
            self._event("end", {"state": site.state})
        return offset

    def _event(self, name: str, data: object, identity: str = "") -> None:
        first = f"id: {identity}\n" if identity else ""
        self.wfile.write(f"{first}event: {name}\ndata: {json.dumps(data)}\n\n".encode())
        self.wfile.flush()
