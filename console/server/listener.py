"""The sockets of the web server: how many connections one address has, TLS, and plain http led to https."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import uvicorn

from console.server.job_service import JobServiceListener

HEAD_SECONDS: Final = 20.0
"""How long a connection may take to say its first byte, and for the TLS handshake."""

HEAD_BYTES: Final = 16 * 1024
_TLS_HANDSHAKE: Final = 0x16
_PAUSE_SECONDS: Final = 0.1

Lead = Callable[[str, str], str]
"""Returns the https address for a Host header and a path."""


class Server(uvicorn.Server):
    """Uvicorn, with connections of ours: `share` of them for one address, but for the `exempt`.

    `job_service` is the path of the Unix socket at which it answers running jobs.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        share: int,
        exempt: Sequence[str] = (),
        tls: ssl.SSLContext | None = None,
        lead: Lead | None = None,
        job_service: Path | None = None,
    ) -> None:
        super().__init__(config)
        self._job_service = job_service
        self._share, self._exempt, self._tls, self._lead = share, frozenset(exempt), tls, lead

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept at the given sockets, or at the configured address."""
        listening = sockets or [self.config.bind_socket()]
        for each in listening:
            each.setblocking(False)
            each.listen(self.config.backlog)
        await super().startup(sockets=[])
        self.servers = [_Listener(self, each) for each in listening]  # type: ignore[misc]  # it has what is used
        if self._job_service is not None:
            service = JobServiceListener(self.server_state, self._job_service)
            self.servers.append(service)  # type: ignore[arg-type]  # likewise

    def make_protocol(self) -> asyncio.Protocol:
        """Return what reads one connection."""
        kind = self.config.http_protocol_class
        made: asyncio.Protocol = kind(  # type: ignore[call-arg]  # as uvicorn's own factory
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return made


class _Listener:
    """Accepts connections at one socket; as much of `asyncio.Server` as uvicorn uses."""

    def __init__(self, server: Server, listening: socket.socket) -> None:
        self.sockets = (listening,)
        self._server = server
        self._open: dict[str, set[asyncio.BaseTransport]] = defaultdict(set)
        self._beginning: dict[str, int] = defaultdict(int)
        self._tasks: set[asyncio.Task[None]] = set()
        self._accepting = asyncio.create_task(self._accept(listening))

    def close(self) -> None:
        self._accepting.cancel()
        for task in self._tasks:
            task.cancel()
        for each in self.sockets:
            each.close()

    async def wait_closed(self) -> None:
        await asyncio.gather(self._accepting, *self._tasks, return_exceptions=True)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, address = await loop.sock_accept(listening)
            except OSError:  # no descriptor is left, or whoever came has gone
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            host = str(address[0]) if isinstance(address, tuple) else ""
            if not self._may(host):
                connection.close()
                continue
            task = loop.create_task(self._begin(connection, host))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _may(self, host: str) -> bool:
        """Return whether one more connection of this address is within its share."""
        if host in self._server._exempt:  # noqa: SLF001  # one thing in two classes
            return True
        lasting = {each for each in self._open.pop(host, ()) if not each.is_closing()}
        if lasting:
            self._open[host] = lasting
        return len(lasting) + self._beginning.get(host, 0) < self._server._share  # noqa: SLF001

    async def _begin(self, connection: socket.socket, host: str) -> None:
        self._beginning[host] += 1
        try:
            transport = await self._connect(connection)
        except (OSError, TimeoutError):  # also every failure of the handshake
            connection.close()
        else:
            if transport is None:
                connection.close()
            else:
                self._open[host].add(transport)
        finally:
            self._beginning[host] -= 1
            if not self._beginning[host]:
                del self._beginning[host]

    async def _connect(self, connection: socket.socket) -> asyncio.BaseTransport | None:
        """Return the transport of a connection that uvicorn has taken; None for one that was led away."""
        server = self._server
        loop = asyncio.get_running_loop()
        with suppress(OSError):  # a Unix socket has no such option
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        tls = server._tls  # noqa: SLF001
        if tls is not None and await _first_byte(connection) != _TLS_HANDSHAKE:
            await asyncio.wait_for(self._lead_away(connection), HEAD_SECONDS)
            return None
        transport, _protocol = await loop.connect_accepted_socket(
            server.make_protocol,
            connection,
            ssl=tls,
            ssl_handshake_timeout=HEAD_SECONDS if tls is not None else None,
        )
        return transport

    async def _lead_away(self, connection: socket.socket) -> None:
        """Answer plain http with where https is."""
        loop = asyncio.get_running_loop()
        head = b""
        while b"\r\n\r\n" not in head and len(head) < HEAD_BYTES:
            piece = await loop.sock_recv(connection, HEAD_BYTES)
            if not piece:
                return
            head += piece
        await loop.sock_sendall(connection, _redirect(head, self._server._lead))  # noqa: SLF001


async def _first_byte(connection: socket.socket) -> int:
    """Return the first byte, which stays to be read; -1 at the end.  Raises TimeoutError, OSError."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def is_ready() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(connection, is_ready)
    try:
        await asyncio.wait_for(ready, HEAD_SECONDS)
    finally:
        loop.remove_reader(connection)
    return next(iter(connection.recv(1, socket.MSG_PEEK)), -1)


def _redirect(head: bytes, lead: Lead | None) -> bytes:
    lines = head.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    hosts = [line.partition(":")[2].strip() for line in lines[1:] if line.lower().startswith("host:")]
    path = words[1] if len(words) == 3 and words[1].startswith("/") and words[1].isprintable() else "/"
    text = b"This port speaks https.\n"
    where = lead(hosts[0] if len(hosts) == 1 else "", path) if lead is not None else ""
    status = "308 Permanent Redirect" if where else "400 Bad Request"
    headers = [f"HTTP/1.1 {status}", *([f"Location: {where}"] if where else []), "Connection: close"]
    headers += ["Content-Type: text/plain", f"Content-Length: {len(text)}", "", ""]
    return "\r\n".join(headers).encode("latin-1") + text
