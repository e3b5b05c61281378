"""A door into a replica: a step that its job's own script starts, where no program of the console's gets in.

    srun
      └ this process        listens on its node, and lets in who has the console's certificate
          └ a pump          one for each session: TLS there, plain here
              └ beside      sees that session through

It listens where jobs of this cluster may listen at all, says on which port in a file, and ends with the
replica, or when nobody has come for a while.
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

from jobs.backends.slurm.sessions import beside, tls, wire

IDLE_S: Final = 300.0
"""So long it stays open for nobody."""

MOST: Final = 64
"""So many are served at once, and those among them who have not said who they are."""

HANDSHAKE_S: Final = 5.0
_LAST_WORDS_S: Final = 2.0

LEAVE_S: Final = 5.0
"""Who is inside when the replica ends has this long to hear of it: the job waits for no door."""


def main(words: Sequence[str]) -> NoReturn:
    """Be a door: `words` are the attempt's folder, the run's name, the replica's, which request it is, the
    node's address, and from where to where ports may be.
    """
    for number in beside.TOLD_TO_THE_JOB:
        signal.signal(number, signal.SIG_IGN)
    folder, run, name, asked, address, first, last = words
    place = Path(folder, run)
    try:
        pid = int((place / "started" / name).read_text().split()[2])
        replica = beside.find(pid)
        keys = json.loads(Path(folder, "door").read_text())
        theirs = _numbers(place / "ports")
        ports = [port for port in range(int(first), int(last) + 1) if port not in theirs]
        with listener(address, ports) as server:
            _write(place / "doors" / name, f"{server.getsockname()[1]} {asked}\n")
            _Door(server, tls.door(keys["own"], keys["console"]), keys["console"], replica.held).serve()
    except beside.Shut as error:
        sys.stderr.write(f"{error.barrier} {error.detail}\n")
    except (OSError, ValueError, IndexError) as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
    sys.stderr.flush()
    os._exit(0)


def listener(address: str, ports: Iterable[int]) -> socket.socket:
    """A socket on one of the ports, at the node's address as far as that is a number; OSError for none."""
    tried = list(ports)
    random.shuffle(tried)
    for family, host in _places(address):
        for port in tried:
            try:
                both = not host and family == socket.AF_INET6
                return socket.create_server((host, port), family=family, backlog=MOST, dualstack_ipv6=both)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    break
    raise OSError(f"no port to listen on at {address}")


def _places(address: str) -> Iterator[tuple[socket.AddressFamily, str]]:
    """Where to listen: everywhere, unless Slurm calls the node by an address that it has itself."""
    with contextlib.suppress(ValueError):
        yield (socket.AF_INET if ip_address(address).version == 4 else socket.AF_INET6), address
    if socket.has_dualstack_ipv6():
        yield socket.AF_INET6, ""
    yield socket.AF_INET, ""


def _numbers(path: Path) -> frozenset[int]:
    try:
        return frozenset(map(int, path.read_text().split()))
    except FileNotFoundError:
        return frozenset()


def _write(path: Path, text: str) -> None:
    """There at one instant, whole."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(text)
    new.replace(path)


class _Door:
    """Open, for one replica."""

    def __init__(self, server: socket.socket, context: ssl.SSLContext, console: str, replica: int) -> None:
        self._server, self._context, self._console, self._replica = server, context, console, replica
        self._inside: dict[int, int] = {}

    def serve(self) -> None:
        """Until the replica has ended, or nobody has been here for long; who is inside is never left."""
        until = time.monotonic() + IDLE_S
        while self._inside or time.monotonic() < until:
            left = None if self._inside else until - time.monotonic()
            waited = [self._replica, self._server.fileno(), *self._inside]
            ready, _, _ = select.select(waited, [], [], left)
            if self._bury([fd for fd in ready if fd in self._inside]):
                until = time.monotonic() + IDLE_S
            if self._replica in ready:
                break
            if self._server.fileno() in ready:
                self._let_in()
        self._server.close()
        until = time.monotonic() + LEAVE_S
        while self._inside and (left := until - time.monotonic()) > 0:
            ready, _, _ = select.select([*self._inside], [], [], left)
            self._bury(ready)

    def _bury(self, ended: Iterable[int]) -> bool:
        """Whether anybody who was let in has gone."""
        codes = []
        for fd in ended:
            os.close(fd)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(self._inside.pop(fd), 0)[1]))
        return 0 in codes

    def _let_in(self) -> None:
        try:
            connection, _ = self._server.accept()
        except OSError:  # it is gone already
            return
        with connection:
            if len(self._inside) >= MOST:
                return
            pid = os.fork()
            if pid:
                self._inside[os.pidfd_open(pid)] = pid
                return
            code = 1
            try:
                self._server.close()
                for fd in self._inside:
                    os.close(fd)
                self._attend(connection)
                code = 0
            finally:
                os._exit(code)

    def _attend(self, connection: socket.socket) -> None:
        """One session; OSError for a stranger's."""
        connection.settimeout(HANDSHAKE_S)
        with self._context.wrap_socket(connection, server_side=True) as outer:
            tls.check(outer.getpeercert(binary_form=True), self._console)
            inner, theirs = socket.socketpair()
            if os.fork() == 0:
                inner.close()
                outer.close()
                for fd in (0, 1):
                    os.dup2(theirs.fileno(), fd)
                theirs.close()
                beside.main()
            theirs.close()
            _Pump(outer, inner).run()


class _Pump:
    """Carries bytes between the console, by TLS, and the process that sees its session through."""

    def __init__(self, outer: ssl.SSLSocket, inner: socket.socket) -> None:
        self._outer, self._inner = outer, inner
        self._in, self._out = b"", b""
        self._over = False
        for each in (outer, inner):
            each.setblocking(False)

    def run(self) -> None:
        """Until the session is over, or the console gone, of which the session hears."""
        try:
            while not (self._over and not self._out):
                self._wait()
                if not self._in and not self._hear():
                    break
                self._type()
                if not self._over and not self._out:
                    self._fetch()
                self._send()
        except OSError:
            pass
        self._inner.close()
        self._outer.settimeout(_LAST_WORDS_S)
        with contextlib.suppress(OSError, ValueError):
            self._outer.unwrap()
        with contextlib.suppress(ChildProcessError):
            os.wait()

    def _wait(self) -> None:
        """Until one of them can go on."""
        reading: list[socket.socket] = [] if self._in else [self._outer]
        writing: list[socket.socket] = [self._outer] if self._out else []
        if self._in:
            writing.append(self._inner)
        if not self._out and not self._over:
            reading.append(self._inner)
        if self._outer.pending() and not self._in:
            return
        ready = select.select(reading, writing, [], _LAST_WORDS_S if self._over else None)
        if not any(ready):
            raise TimeoutError

    def _hear(self) -> bool:
        """Whether the console is there."""
        try:
            self._in = self._outer.recv(wire.PIECE)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return True
        return bool(self._in)

    def _type(self) -> None:
        try:
            if self._in:
                self._in = self._in[self._inner.send(self._in) :]
        except BlockingIOError:
            pass
        except OSError:  # the session is over, and what it said last may still be on its way
            self._in = b""

    def _fetch(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._out = self._inner.recv(wire.PIECE)
            self._over = not self._out

    def _send(self) -> None:
        with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
            if self._out:
                self._out = self._out[self._outer.send(self._out) :]
