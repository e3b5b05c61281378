"""A proxy before the tests' API server that refuses some requests, or loses their answers, as real ones do.

What it passes on the real API server answers.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

import httpx

from tests.kubernetes.cluster import Cluster

PASSED: Final = ("Authorization", "Content-Type", "Accept", "Accept-Encoding")
REASONS: Final = {
    HTTPStatus.GONE: "Expired",
    HTTPStatus.TOO_MANY_REQUESTS: "TooManyRequests",
    HTTPStatus.SERVICE_UNAVAILABLE: "ServiceUnavailable",
}
LOST: Final = "lost"
EXPIRED: Final = "expired"

Answer = HTTPStatus | str | None
"""What becomes of a request: a status, LOST (its answer), EXPIRED (its token), or None: it is passed on."""


@dataclass
class FaultyProxy:
    """The proxy at `url`: `decide` gets a request's method and its path."""

    url: str = ""
    decide: Callable[[str, str], Answer] = lambda _method, _path: None
    faults: int = 0
    """So many requests met a fault."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def judge(self, method: str, path: str) -> Answer:
        """Return what becomes of a request."""
        with self.lock:
            answer = self.decide(method, path)
            self.faults += answer is not None
            return answer


@contextmanager
def faulty_proxy(kubernetes: Cluster) -> Iterator[FaultyProxy]:
    """Give a proxy before a cluster, which passes everything on until it is told otherwise."""
    proxy, context = FaultyProxy(), kubernetes.connection.make_tls_context(None)
    with httpx.Client(base_url=kubernetes.server, verify=context, timeout=60, trust_env=False) as client:
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(proxy, client))
        server.daemon_threads = True
        own = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        own.load_cert_chain(kubernetes.folder / "keys/server.crt", kubernetes.folder / "keys/server.key")
        server.socket = own.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        proxy.url = f"https://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield proxy
        finally:
            server.shutdown()
            server.server_close()


def _handler(proxy: FaultyProxy, client: httpx.Client) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            becomes = proxy.judge(self.command, self.path)
            if isinstance(becomes, HTTPStatus):
                said = {"kind": "Status", "code": becomes, "reason": REASONS[becomes], "message": "a fault"}
                self._answer(becomes, json.dumps(said).encode())
                return
            headers = {name: self.headers[name] for name in PASSED if name in self.headers}
            if becomes == EXPIRED:
                headers["Authorization"] = "Bearer expired"
            try:
                got = client.request(self.command, self.path, content=body, headers=headers)
            except httpx.HTTPError:
                self.close_connection = True
                return
            if becomes == LOST:
                self.close_connection = True
            else:
                self._answer(got.status_code, got.content)

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PATCH = do_DELETE = _pass_on  # noqa: N815  # names of http.server

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # http.server's
            """Say nothing."""

    return Handler
