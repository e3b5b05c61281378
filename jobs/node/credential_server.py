"""The credential server: gives one replica the credentials of its job's role, where it has no own network.

It runs beside the replica as the job's user, listens on 127.0.0.1 at a port of its own, and needs only the
standard library: on Slurm it travels in the job's script.  The credentials are in a file that the console
renews.  Each server has a new token.  AWS's SDKs show it as a header and read it from a file that only the
job's user can read; Alibaba's send no header, so there it is the path.  Other users of the node are refused
by the user id that the kernel tells of their connection.

Its arguments are the provider, the file with the credentials and the file for the token.  It writes its
address to stdout, and ends with its parent process.
"""

from __future__ import annotations

import contextlib
import ctypes
import hmac
import http.server
import json
import os
import secrets
import signal
import socket
import sys
import time
from http import HTTPStatus
from pathlib import Path
from typing import Any

FILE = "role-credentials"
"""In an attempt's folder: the answer for SDKs, as the console renews it."""

MAX_FILE = 64 << 10
REQUEST_S = 2.0
AWS = "aws"
_TABLE = Path("/proc/net/tcp")
_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)


class CredentialServer(http.server.HTTPServer):
    """Serves the content of `source` to processes of the user `uid` that know the token.

    One request at a time, as beside some replicas no thread can be started.
    """

    def __init__(self, provider: str, source: Path, token: str, uid: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.provider, self.source, self.token, self.uid = provider, source, token, uid

    def verify_request(self, request: Any, client_address: object) -> bool:
        """Tell whether a connection is of the job's user; others are closed before anything is read."""
        return find_uid(request) in (None, self.uid)

    @property
    def url(self) -> str:
        """Return the address for the SDK."""
        return f"http://127.0.0.1:{self.server_address[1]}{self.path}"

    @property
    def path(self) -> str:
        """Return the path of the credentials: secret where there is no header."""
        return f"/v1/credentials/{AWS if self.provider == AWS else self.token}"

    def admits(self, path: str, authorization: str) -> bool:
        """Tell whether a request shows the token."""
        shown = authorization if self.provider == AWS else path.rpartition("/")[2]
        known = hmac.compare_digest(shown.encode("utf-8", "replace"), self.token.encode())
        return known and path == self.path

    def read(self) -> bytes | None:
        """Return the credentials; None while there are none that are still valid."""
        try:
            with self.source.open("rb") as file:
                text = file.read(MAX_FILE)
            until = str(json.loads(text)["Expiration"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return text if until > time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()) else None


class _Handler(http.server.BaseHTTPRequestHandler):
    server: CredentialServer
    timeout = REQUEST_S

    def do_GET(self) -> None:
        """Answer with the credentials, as the console wrote them."""
        if not self.server.admits(self.path, self.headers.get("Authorization", "")):
            self._answer(HTTPStatus.UNAUTHORIZED)
        elif (found := self.server.read()) is None:
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE)
        else:
            self._answer(HTTPStatus.OK, found)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the name of the base class
        """Log nothing: the path may be secret."""

    def _answer(self, status: HTTPStatus, body: bytes = b"") -> None:
        body = body or json.dumps({"error": status.phrase}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def find_uid(connection: socket.socket) -> int | None:
    """Return the user of the other end of a connection from this machine; -1 for an unknown one.

    None where the kernel does not tell (no table of connections).
    """
    wanted = [_render(*connection.getpeername()), _render(*connection.getsockname())]
    try:
        with _TABLE.open(encoding="ascii") as table:
            rows = [line.split() for line in table]
    except OSError:
        return None
    return next((int(row[7]) for row in rows if row[1:3] == wanted), -1)


def _render(host: str, port: int) -> str:
    """Return an address as the kernel's table has it."""
    return f"{int.from_bytes(socket.inet_aton(host), sys.byteorder):08X}:{port:04X}"


def write_token(path: Path) -> str:
    """Write a new token into a new file of this user alone, and return it."""
    token = secrets.token_urlsafe(32)
    path.unlink(missing_ok=True)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(file, "w", encoding="ascii") as written:
        written.write(token)
    return token


def main(provider: str, source: str, token_file: str) -> None:
    """Serve until the parent process is gone."""
    parent = os.getppid()
    for number in _SIGNALS:  # those of the job reach all of its processes
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, int(signal.SIGKILL))
    token = write_token(Path(token_file))
    with CredentialServer(provider, Path(source), token, os.getuid()) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        server.timeout = 1.0
        while os.getppid() == parent:
            server.handle_request()


if __name__ == "__main__":
    main(*sys.argv[1:])
