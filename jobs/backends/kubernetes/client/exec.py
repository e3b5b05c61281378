"""Processes in containers, by `pods/exec` over a WebSocket.

Since 1.30 the protocol can end a process's input (v5); before that only the connection's end does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from jobs.backends.base import Unreachable
from jobs.backends.kubernetes.client import api
from jobs.backends.kubernetes.client.connection import ApiConnection
from jobs.backends.kubernetes.client.websocket import CHUNK, Stream, messages, open_socket

_STDIN, _STDOUT, _STDERR, _STATUS, _RESIZE, _CLOSE = 0, 1, 2, 3, 4, 255
_V5: Final = "v5.channel.k8s.io"
_V4: Final = "v4.channel.k8s.io"


@dataclass(frozen=True, slots=True)
class ExecEnd:
    """The end of a process: its exit code, or why there is none, in the engine's words."""

    exit_code: int | None = None
    message: str = ""


class ExecStream:
    """A process that runs in a container."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self.can_end_input = socket.subprotocol == _V5
        """Whether `write_eof` ends the process's input."""
        self._streams = {_STDOUT: Stream(), _STDERR: Stream()}
        self._ended: asyncio.Future[ExecEnd] = asyncio.get_running_loop().create_future()
        self._receiving = asyncio.ensure_future(self._receive())

    async def read(self, limit: int) -> bytes:
        """Return at most `limit` bytes of stdout, or of the terminal; b"" at the end."""
        return await self._streams[_STDOUT].read(limit)

    async def read_error(self, limit: int) -> bytes:
        """Return at most `limit` bytes of stderr; b"" at the end."""
        return await self._streams[_STDERR].read(limit)

    async def write(self, data: bytes) -> None:
        """Send input.  Raises BrokenPipeError when the process has ended."""
        for begin in range(0, len(data), CHUNK):
            await self._send(_STDIN, data[begin : begin + CHUNK])

    async def write_eof(self) -> None:
        """End the input, where the protocol can."""
        if self.can_end_input:
            await self._send(_CLOSE, bytes((_STDIN,)))

    async def resize(self, columns: int, rows: int) -> None:
        """Set the terminal's size."""
        await self._send(_RESIZE, json.dumps({"Width": columns, "Height": rows}).encode())

    async def wait(self) -> ExecEnd:
        """Wait until the process has ended, and all that has its output."""
        return await asyncio.shield(self._ended)

    async def close(self) -> None:
        """Close the connection.  The process may go on: its input ends, and its terminal hangs up."""
        for stream in self._streams.values():
            stream.discard()
        await self._socket.close()
        await self._receiving

    async def _send(self, channel: int, data: bytes) -> None:
        try:
            await self._socket.send(bytes((channel,)) + data)
        except ConnectionClosed as error:
            raise BrokenPipeError from error

    async def _receive(self) -> None:
        end = ExecEnd()
        async for channel, data in messages(self._socket):
            if channel in self._streams:
                await self._streams[channel].add(data)
            elif channel == _STATUS:
                end = parse_end(data)
        for stream in self._streams.values():
            stream.end()
        self._ended.set_result(end)


async def open_exec(
    connection: ApiConnection,
    namespace: str,
    pod: str,
    container: str,
    argv: Sequence[str],
    *,
    stdin: bool = True,
    tty: bool = False,
    timeout_s: float = 10,
) -> ExecStream:
    """Start a process in a running container.

    A terminal has stderr in its output.  Raises ApiError or Unreachable; a program that there is none of is
    an end without an exit code.
    """
    params = [
        ("container", container),
        ("stdin", str(stdin).lower()),
        ("stdout", "true"),
        ("stderr", str(not tty).lower()),
        ("tty", str(tty).lower()),
        *(("command", word) for word in argv),
    ]
    where = api.path("/api/v1/namespaces/{}/pods/{}/exec", namespace, pod)
    return ExecStream(await open_socket(connection, where, params, (_V5, _V4), timeout_s))


async def run(
    connection: ApiConnection,
    namespace: str,
    pod: str,
    container: str,
    argv: Sequence[str],
    *,
    timeout_s: float = 10,
) -> tuple[ExecEnd, bytes]:
    """Run a process to its end, and return that and its output.  Raises ApiError or Unreachable."""
    stream = await open_exec(connection, namespace, pod, container, argv, stdin=False, timeout_s=timeout_s)
    output = b""
    try:
        async with asyncio.timeout(timeout_s):
            while data := await stream.read(CHUNK):
                output += data
            return await stream.wait(), output
    except TimeoutError as error:
        raise Unreachable(f"{argv[0]} in {pod} does not end within {timeout_s:g} s") from error
    finally:
        await stream.close()


def parse_end(data: bytes) -> ExecEnd:
    """Return the end that a Status tells."""
    try:
        status: dict[str, Any] = json.loads(data)
    except ValueError:
        return ExecEnd(message=data[:1000].decode(errors="replace"))
    if status.get("status") == "Success":
        return ExecEnd(0)
    for cause in (status.get("details") or {}).get("causes") or ():
        if cause.get("reason") == "ExitCode":
            with contextlib.suppress(ValueError):
                return ExecEnd(int(cause.get("message", "")))
    return ExecEnd(message=str(status.get("message", ""))[:1000])
