"""One channel of an SSH connection: between the client and what runs in the job."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import asyncssh
from asyncssh.forward import SSHForwarder
from asyncssh.misc import SoftEOFReceived

from jobs.access.terminal_gateway.session import JobSession
from jobs.backends.sessions import Ended, Session, SessionKind, SessionRequest, Size, Terminal

READ_BYTES: Final = 64 * 1024
REST_SECONDS: Final = 1.0
"""After the end of the main process, a channel ends when nothing has come for so long.

What it left behind may keep the output open; what it wrote itself may be slow to reach the client.
"""

SFTP: Final = "sftp"
MOST_FORWARDS: Final = 200
"""Forwarded connections of one client at a time."""

NOT_BEGUN: Final = 126
LOST: Final = 255

_ALLOWED: Final = re.compile(r"LANG|LC_[A-Z]+|COLORTERM|TZ")
_TERMINAL_NAME: Final = re.compile(r"[A-Za-z0-9._+-]{1,64}")
_LONGEST_VARIABLE: Final = 256


class Process(asyncssh.SSHServerProcess[bytes]):
    """A channel with everything on it left to whoever `serves` it, SFTP too, which runs in the job."""

    def __init__(self, serves: Callable[[Process], Awaitable[None]]) -> None:
        super().__init__(lambda _process: serves(self), None, 0, allow_scp=False)

    def subsystem_requested(self, subsystem: str) -> bool:
        return subsystem == SFTP

    def session_started(self) -> None:
        """Start the process as the base class does for what is no subsystem."""
        channel, connection = self._chan, self._conn
        assert connection is not None
        streams = asyncssh.SSHReader(self, channel), asyncssh.SSHWriter(self, channel)
        errors = asyncssh.SSHWriter(self, channel, asyncssh.EXTENDED_DATA_STDERR)
        work = self._start_process(*streams, errors)
        assert work is not None
        connection.create_task(work)


async def serve(process: Process, job_session: JobSession) -> None:
    """Run what the client asks for, and carry until it ends.  Raises Shut."""
    session = await job_session.run(read_request(process))
    feeding = asyncio.ensure_future(_feed(process, session))
    over = asyncio.Event()
    carrying = asyncio.gather(
        _carry(session.read, process.stdout, over), _carry(session.read_error, process.stderr, over)
    )
    try:
        ended = await session.wait()
        over.set()
        await carrying
        _tell(process, ended)
    finally:
        feeding.cancel()
        carrying.cancel()
        await asyncio.gather(feeding, carrying, return_exceptions=True)
        job_session.leave(session)


def refuse(process: Process, message: str) -> None:
    """Answer with the reason why nothing is run."""
    process.stderr.write(f"{message}\r\n".encode())
    process.exit(NOT_BEGUN)


def read_request(process: Process) -> SessionRequest:
    """Read from a channel's requests what to run."""
    env = {name: value for name, value in _variables(process) if _ALLOWED.fullmatch(name)}
    if process.subsystem is not None:
        return SessionRequest(SessionKind.FILES)
    name = process.term_type
    terminal = None
    if name is not None:
        known = name if _TERMINAL_NAME.fullmatch(name) else "dumb"
        columns, rows = process.term_size[:2]
        terminal = Terminal(known, _size(columns, rows))
    if process.command is None:
        return SessionRequest(SessionKind.SHELL, env=env, terminal=terminal)
    return SessionRequest(SessionKind.LINE, line=process.command, env=env, terminal=terminal)


def _variables(process: Process) -> list[tuple[str, str]]:
    pairs = [(str(name), str(value)) for name, value in process.env.items()]
    return [(name, value) for name, value in pairs if len(value) <= _LONGEST_VARIABLE and "\0" not in value]


def _size(columns: int, rows: int) -> Size:
    """A client that has none says 0."""
    most = 65535
    return Size(min(columns, most) or 80, min(rows, most) or 24)


async def _feed(process: Process, session: Session) -> None:
    """Pass on input, signals and window sizes of the client."""
    with suppress(BrokenPipeError):
        while True:
            try:
                data = await process.stdin.read(READ_BYTES)
            except asyncssh.TerminalSizeChanged as changed:
                session.resize(_size(changed.width, changed.height))
                continue
            except asyncssh.SignalReceived as received:
                session.signal(received.signal)
                continue
            except asyncssh.BreakReceived:
                session.signal("INT")
                continue
            except SoftEOFReceived:
                break
            if not data:
                break
            await session.write(data)
        await session.write_eof()


async def _carry(
    read: Callable[[int], Awaitable[bytes]], out: asyncssh.SSHWriter[bytes], over: asyncio.Event
) -> None:
    with suppress(OSError, asyncssh.Error):
        while data := await _read(read, over):
            out.write(data)
            await out.drain()


async def _read(read: Callable[[int], Awaitable[bytes]], over: asyncio.Event) -> bytes:
    """Return what comes next: nothing at the end, or when nothing comes for REST_SECONDS after `over`."""
    reading = asyncio.ensure_future(read(READ_BYTES))
    ending = asyncio.ensure_future(over.wait())
    try:
        await asyncio.wait({reading, ending}, return_when=asyncio.FIRST_COMPLETED)
        if not reading.done():
            await asyncio.wait({reading}, timeout=REST_SECONDS)
        return reading.result() if reading.done() else b""
    finally:
        reading.cancel()
        ending.cancel()


def _tell(process: Process, ended: Ended) -> None:
    with suppress(OSError):
        if ended.signal is not None:
            process.exit_with_signal(ended.signal)
        else:
            process.exit(LOST if ended.exit_code is None else ended.exit_code)


class Forwards:
    """The forwarded connections of one client."""

    def __init__(self) -> None:
        self._open = 0

    async def connect(self, session: JobSession, host: str, port: int) -> SSHForwarder:
        """Open one to the session's replica.  Raises asyncssh.ChannelOpenError and EntryRefused."""
        if self._open >= MOST_FORWARDS:
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_RESOURCE_SHORTAGE, "Too many connections")
        self._open += 1
        try:
            made = await session.connect(host, port)
            _, there = await asyncio.get_running_loop().create_connection(SSHForwarder, sock=made)
        except BaseException as error:
            self._open -= 1
            if not isinstance(error, OSError):
                raise
            message = error.strerror or "Connection refused"
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, message) from None
        return _Here(self, there)

    def count_closed(self) -> None:
        """Count a connection as closed."""
        self._open -= 1


class _Here(SSHForwarder):
    """The client's end, which is lost once."""

    def __init__(self, all_: Forwards, there: SSHForwarder) -> None:
        super().__init__(there)
        self._all = all_

    def eof_received(self) -> bool:
        """Over when the job has said all before: its socket has nothing left by which it could tell."""
        goes_on = super().eof_received()
        if not goes_on:
            self.close()
        return goes_on

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._all.count_closed()
