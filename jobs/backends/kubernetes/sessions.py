"""Sessions in containers of pods: the program by one exec, and a guard that ends with the console by another.

A kubelet neither passes on signals nor ends a process whose connection is gone.  So a second shell in the
container, the guard, finds the session's processes by a variable of theirs.  The image needs a shell with the
usual programs (coreutils or busybox), and Python for SFTP.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
import signal
import socket
from collections.abc import Coroutine
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from jobs.backends.base import Unreachable
from jobs.backends.kubernetes.client.api import ApiError
from jobs.backends.kubernetes.client.connection import ApiConnection
from jobs.backends.kubernetes.client.exec import ExecEnd, ExecStream, open_exec
from jobs.backends.kubernetes.client.port_forward import open_port
from jobs.backends.remote import bundle
from jobs.backends.sessions import Barrier, Ended, NoEntry, SessionKind, SessionRequest, Size

START_TIMEOUT_S: Final = 20.0
CLOSE_TIMEOUT_S: Final = 10.0
POLL_S: Final = 0.5
CHUNK: Final = 32 * 1024

_FIRST_LINE: Final = 4096
_END_OF_INPUT: Final = b"\x04"
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SIGNALLED: Final = 128
_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_ABSENT: Final = ("executable file not found", "no such file or directory")
_NOT_RUNNING: Final = ("not found", "completed pod", "not running", "does not exist")

_LOADER: Final = """\
import os, sys
def read(limit):
    data = os.read(0, limit)
    return data or sys.exit(1)
line = b""
while not line.endswith(b"\\n"):
    line += read(1)
rest, file = int(line), os.memfd_create("bundle")
while rest:
    data = read(min(rest, 1 << 16))
    rest -= len(data)
    while data:
        data = data[os.write(file, data):]
sys.path.insert(0, f"/proc/self/fd/{file}")
from functools import partial
from jobs.node.sftp import folder_server, server
from jobs.node.sftp.paths import BrowsableFolders, BrowsableRoot
here = os.getcwd()
site = BrowsableFolders((BrowsableRoot("work", here, base=here),), live=True)
{"files": server.serve, "folders": partial(folder_server.serve, site)}[sys.argv[1]]()
"""
"""Runs a server of the node bundle, which comes first on its input, behind a line with its length."""


@dataclass(frozen=True, slots=True)
class ContainerRef:
    """A container of a pod."""

    namespace: str
    pod: str
    container: str


async def begin(connection: ApiConnection, ref: ContainerRef, wanted: SessionRequest) -> ContainerSession:
    """Begin a session in a running container.  Raises NoEntry or Unreachable."""
    identifier = secrets.token_hex(16)
    argv = _program(wanted)
    started: list[ExecStream] = []
    try:
        async with asyncio.timeout(START_TIMEOUT_S):
            guard = await _open(connection, ref, ["/bin/sh", "-c", _script("guard"), "guard", identifier])
            started.append(guard)
            tty = wanted.terminal is not None
            is_framed = not guard.can_end_input and not tty
            command = [
                *("/bin/sh", "-c", _script("session"), "session", identifier),
                *(argv[0], str(int(is_framed)), wanted.terminal.name if wanted.terminal else ""),
                *(f"{name}={value}" for name, value in wanted.env.items() if _NAME.fullmatch(name)),
                *("--", *argv[1:]),
            ]
            program = await _open(connection, ref, command, tty=tty)
            started.append(program)
            session = ContainerSession(program, guard, is_framed=is_framed, terminal=tty)
            if wanted.terminal:
                session.resize(wanted.terminal.size)
            await session.start()
            if argv[0] == "files":
                data = bundle.build()[1]
                await session.write(b"%d\n" % len(data) + data)
            return session
    except TimeoutError as error:
        await _close_all(started)
        raise NoEntry(Barrier.ENGINE_AWAY, f"nothing within {START_TIMEOUT_S:g} s") from error
    except BrokenPipeError as error:
        await _close_all(started)
        raise NoEntry(Barrier.NOT_RUNNING) from error
    except BaseException:
        await _close_all(started)
        raise


async def connect(connection: ApiConnection, ref: ContainerRef, host: str, port: int) -> socket.socket:
    """Return a connection to a port of the pod's own.  Raises NoEntry or Unreachable."""
    if host not in _LOCAL | {ref.pod} or not 0 < port < 1 << 16:
        raise NoEntry(Barrier.NOT_ITS_OWN, f"{host}:{port}")
    try:
        return await open_port(connection, ref.namespace, ref.pod, port)
    except ConnectionRefusedError as error:
        raise NoEntry(Barrier.NOT_ITS_OWN, str(error)) from error
    except ApiError as error:
        raise _refusal(error) from error


class ContainerSession:
    """A `jobs.backends.sessions.Session`."""

    def __init__(self, program: ExecStream, guard: ExecStream, *, is_framed: bool, terminal: bool) -> None:
        self._program, self._guard = program, guard
        self._is_framed, self._terminal = is_framed, terminal
        self._early = b""
        self._pid = 0
        self._eof = False
        self._orders: set[asyncio.Task[None]] = set()
        self._asking = asyncio.Lock()

    async def start(self) -> None:
        """Read the program's first line.  Raises NoEntry."""
        line = b""
        while b"\n" not in line and len(line) < _FIRST_LINE:
            more = await self._program.read(_FIRST_LINE)
            if not more:
                raise _not_begun(await self._program.wait())
            line += more
        first, _, self._early = line.partition(b"\n")
        text = first.decode(errors="replace").strip()
        if text.startswith("-"):
            raise NoEntry(Barrier.NO_PROGRAM, text.removeprefix("-").strip())
        if not text.isdecimal():
            raise NoEntry(Barrier.FAILED, text)
        self._pid = int(text)

    async def read(self, limit: int) -> bytes:
        if self._early:
            data, self._early = self._early[:limit], self._early[limit:]
            return data
        return await self._program.read(limit)

    async def read_error(self, limit: int) -> bytes:
        return b"" if self._terminal else await self._program.read_error(limit)

    async def write(self, data: bytes) -> None:
        if self._eof:
            raise BrokenPipeError
        if self._orders:  # a size comes before what is typed after it
            await asyncio.wait(self._orders)
        for begin in range(0, len(data), CHUNK):
            chunk = data[begin : begin + CHUNK]
            await self._program.write(b"%d\n" % len(chunk) + chunk if self._is_framed else chunk)

    async def write_eof(self) -> None:
        if self._eof:
            return
        with contextlib.suppress(BrokenPipeError):
            if self._terminal:
                await self._program.write(_END_OF_INPUT)
                return
            self._eof = True
            if self._is_framed:
                await self._program.write(b"0\n")
            else:
                await self._program.write_eof()

    def resize(self, size: Size) -> None:
        if self._terminal:
            self._order(self._resize(size))

    def signal(self, name: str) -> None:
        if f"SIG{name}" in signal.Signals.__members__:
            self._order(self._signal(name))

    async def wait(self) -> Ended:
        end = await self._program.wait()
        code = end.exit_code
        if code is not None and code > _SIGNALLED:
            with contextlib.suppress(ValueError):
                return Ended(signal=signal.Signals(code - _SIGNALLED).name.removeprefix("SIG"))
        return Ended(code)

    async def wait_for_processes(self) -> None:
        await self._program.wait()
        with contextlib.suppress(BrokenPipeError):
            while await self._count_processes():  # noqa: ASYNC110 the container tells of no end by itself
                await asyncio.sleep(POLL_S)

    async def close(self) -> None:
        """Have the guard end all processes, and wait for it for at most `CLOSE_TIMEOUT_S`."""
        for order in self._orders:
            order.cancel()
        await self._program.close()
        with contextlib.suppress(TimeoutError, BrokenPipeError):
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._guard.write(b"end\n")
                await self._guard.wait()
        await self._guard.close()

    async def _resize(self, size: Size) -> None:
        await self._program.resize(size.columns, size.rows)

    async def _signal(self, name: str) -> None:
        await self._guard.write(f"signal {name} {self._pid}\n".encode())

    async def _count_processes(self) -> int:
        """Return how many processes of the session are left, 0 where the guard is gone."""
        async with self._asking:
            await self._guard.write(b"left\n")
            return int(await self._guard.read(_FIRST_LINE) or 0)

    def _order(self, order: Coroutine[None, None, None]) -> None:
        """Send an order; a session that has ended takes none."""

        async def send() -> None:
            with contextlib.suppress(BrokenPipeError):
                await order

        task = asyncio.ensure_future(send())
        self._orders.add(task)
        task.add_done_callback(self._orders.discard)


def _program(wanted: SessionRequest) -> list[str]:
    """Return the kind for `session.sh`, and its arguments."""
    match wanted.kind:
        case SessionKind.SHELL:
            return ["shell"]
        case SessionKind.LINE:
            return ["line", wanted.line]
        case SessionKind.PROGRAM:
            return ["program", *wanted.argv]
        case SessionKind.FILES | SessionKind.FOLDERS:
            return ["files", _LOADER, str(wanted.kind)]


async def _open(
    connection: ApiConnection, ref: ContainerRef, argv: list[str], *, tty: bool = False
) -> ExecStream:
    try:
        return await open_exec(connection, ref.namespace, ref.pod, ref.container, argv, tty=tty)
    except ApiError as error:
        raise _refusal(error) from error
    except Unreachable as error:  # kubelets say it so where a container has ended
        if "container not found" in str(error):
            raise NoEntry(Barrier.NOT_RUNNING, str(error)) from error
        raise


async def _close_all(streams: list[ExecStream]) -> None:
    for stream in reversed(streams):  # the guard's end ends what the other has started
        await stream.close()


def _refusal(error: ApiError) -> NoEntry:
    is_over = error.is_absent or any(phrase in error.message for phrase in _NOT_RUNNING)
    return NoEntry(Barrier.NOT_RUNNING if is_over else Barrier.FAILED, error.message)


def _not_begun(end: ExecEnd) -> NoEntry:
    """Return why the shell did not run."""
    message = end.message
    if any(phrase in message for phrase in _ABSENT):
        return NoEntry(Barrier.NO_PROGRAM, message)
    is_over = not message or any(phrase in message for phrase in _NOT_RUNNING)
    return NoEntry(Barrier.NOT_RUNNING if is_over else Barrier.FAILED, message)


@cache
def _script(name: str) -> str:
    """Return a script without its comments: it is a part of a URL."""
    lines = Path(__file__).with_name(f"{name}.sh").read_text(encoding="utf-8").splitlines()
    return "\n".join(line.strip() for line in lines if not line.startswith("#"))
