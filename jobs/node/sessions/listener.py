"""The session listener: a step that the job's own script starts, where the console can start none.

    srun
      └ this process        listens on its node, accepts who has the console's certificate
          └ a TLS proxy     one for each session
              └ the agent   runs that session

It listens in the port range of this cluster's jobs, writes its port into a file, and ends with the replica,
or when nobody has connected for a while.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import random
import select
import signal
import socket
import ssl
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Final, NoReturn

from jobs.node.sessions import agent, protocol, tls

IDLE_S: Final = 300.0
"""It ends after so long without a session."""

MAX_CONNECTIONS: Final = 64
"""So many connections are served at once, those that are not authenticated yet included."""

HANDSHAKE_S: Final = 5.0
_FLUSH_S: Final = 2.0

LEAVE_S: Final = 5.0
"""Sessions have this long to end after the replica: the job does not wait for the listener."""


def main(words: Sequence[str]) -> NoReturn:
    """Run the listener.

    `words` are the attempt's folder, the run's name, the replica's name, the request that is answered, the
    node's address, and the first and last port.
    """
    for number in agent.JOB_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    folder, run, name, request, address, first, last = words
    place = Path(folder, run)
    try:
        pid = int((place / "started" / name).read_text().split()[2])
        replica = agent.find_replica(pid)
        keys = json.loads(Path(folder, "door").read_text())
        used = _read_ports(place / "ports")
        ports = [port for port in range(int(first), int(last) + 1) if port not in used]
        with open_socket(address, ports) as server:
            _write(place / "doors" / name, f"{server.getsockname()[1]} {request}\n")
            _Listener(
                server, tls.listener_context(keys["own"], keys["console"]), keys["console"], replica.held
            ).serve()
    except agent.NoAccess as error:
        sys.stderr.write(f"{error.barrier} {error.detail}\n")
    except (OSError, ValueError, IndexError) as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
    sys.stderr.flush()
    os._exit(0)


def open_socket(address: str, ports: Iterable[int]) -> socket.socket:
    """Return a socket on one of the ports, at the node's address if it is numeric.  Raises OSError."""
    candidates = list(ports)
    random.shuffle(candidates)
    for family, host in _addresses(address):
        for port in candidates:
            try:
                both = not host and family == socket.AF_INET6
                return socket.create_server(
                    (host, port), family=family, backlog=MAX_CONNECTIONS, dualstack_ipv6=both
                )
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    break
    raise OSError(f"no port to listen on at {address}")


def _addresses(address: str) -> Iterator[tuple[socket.AddressFamily, str]]:
    """Yield where to listen: at the node's own address if it is one, else everywhere."""
    with contextlib.suppress(ValueError):
        yield (socket.AF_INET if ip_address(address).version == 4 else socket.AF_INET6), address
    if socket.has_dualstack_ipv6():
        yield socket.AF_INET6, ""
    yield socket.AF_INET, ""


def _read_ports(path: Path) -> frozenset[int]:
    try:
        return frozenset(map(int, path.read_text().split()))
    except FileNotFoundError:
        return frozenset()


def _write(path: Path, text: str) -> None:
    """Write a file atomically."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(text)
    new.replace(path)


class _Listener:
    """The listener of one replica."""

    def __init__(self, server: socket.socket, context: ssl.SSLContext, console: str, replica: int) -> None:
        self._server, self._context, self._console, self._replica = server, context, console, replica
        self._children: dict[int, int] = {}

    def serve(self) -> None:
        """Serve until the replica has ended, or there was no session for long."""
        until = time.monotonic() + IDLE_S
        while self._children or time.monotonic() < until:
            left = None if self._children else until - time.monotonic()
            waited = [self._replica, self._server.fileno(), *self._children]
            ready, _, _ = select.select(waited, [], [], left)
            if self._reap([fd for fd in ready if fd in self._children]):
                until = time.monotonic() + IDLE_S
            if self._replica in ready:
                break
            if self._server.fileno() in ready:
                self._accept()
        self._server.close()
        until = time.monotonic() + LEAVE_S
        while self._children and (left := until - time.monotonic()) > 0:
            ready, _, _ = select.select([*self._children], [], [], left)
            self._reap(ready)

    def _reap(self, ended: Iterable[int]) -> bool:
        """Reap ended children; return whether one of them had an authenticated session."""
        codes = []
        for fd in ended:
            os.close(fd)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(self._children.pop(fd), 0)[1]))
        return 0 in codes

    def _accept(self) -> None:
        try:
            connection, _ = self._server.accept()
        except OSError:  # the peer is gone already
            return
        with connection:
            if len(self._children) >= MAX_CONNECTIONS:
                return
            pid = os.fork()
            if pid:
                self._children[os.pidfd_open(pid)] = pid
                return
            code = 1
            try:
                self._server.close()
                for fd in self._children:
                    os.close(fd)
                self._run_session(connection)
                code = 0
            finally:
                os._exit(code)

    def _run_session(self, connection: socket.socket) -> None:
        """Run one session.  Raises OSError for a peer without the console's certificate."""
        connection.settimeout(HANDSHAKE_S)
        with self._context.wrap_socket(connection, server_side=True) as outer:
            tls.check_certificate(outer.getpeercert(binary_form=True), self._console)
            inner, theirs = socket.socketpair()
            if os.fork() == 0:
                inner.close()
                outer.close()
                for fd in (0, 1):
                    os.dup2(theirs.fileno(), fd)
                theirs.close()
                agent.main()
            theirs.close()
            _TlsProxy(outer, inner).run()


class _TlsProxy:
    """Copies bytes between the console's TLS connection and the agent of its session."""

    def __init__(self, outer: ssl.SSLSocket, inner: socket.socket) -> None:
        self._outer, self._inner = outer, inner
        self._in, self._out = b"", b""
        self._is_over = False
        for each in (outer, inner):
            each.setblocking(False)

    def run(self) -> None:
        """Copy until the session is over, or the console is gone."""
        try:
            while not (self._is_over and not self._out):
                self._wait()
                if not self._in and not self._receive():
                    break
                self._forward()
                if not self._is_over and not self._out:
                    self._fill()
                self._send()
        except OSError:
            pass
        self._inner.close()
        self._outer.settimeout(_FLUSH_S)
        with contextlib.suppress(OSError, ValueError):
            self._outer.unwrap()
        with contextlib.suppress(ChildProcessError):
            os.wait()

    def _wait(self) -> None:
        """Wait until one side can go on."""
        reading: list[socket.socket] = [] if self._in else [self._outer]
        writing: list[socket.socket] = [self._outer] if self._out else []
        if self._in:
            writing.append(self._inner)
        if not self._out and not self._is_over:
            reading.append(self._inner)
        if self._outer.pending() and not self._in:
            return
        ready = select.select(reading, writing, [], _FLUSH_S if self._is_over else None)
        if not any(ready):
            raise TimeoutError

    def _receive(self) -> bool:
        """Read from the console; return whether it is there."""
        try:
            self._in = self._outer.recv(protocol.CHUNK)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return True
        return bool(self._in)

    def _forward(self) -> None:
        try:
            if self._in:
                self._in = self._in[self._inner.send(self._in) :]
        except BlockingIOError:
            pass
        except OSError:  # the session is over; its last output may still be buffered
            self._in = b""

    def _fill(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._out = self._inner.recv(protocol.CHUNK)
            self._is_over = not self._out

    def _send(self) -> None:
        with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
            if self._out:
                self._out = self._out[self._outer.send(self._out) :]
