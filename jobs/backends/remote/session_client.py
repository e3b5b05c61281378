"""The console's end of a session with an agent beside a replica, over any transport."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Mapping
from typing import Any, Final

from jobs.backends.remote.transport import ABORT_TIMEOUT_S, START_TIMEOUT_S, Transport
from jobs.backends.sessions import Ended, NoEntry, Size
from jobs.node.sessions import protocol

_END_OF_INPUT: Final = b"\x04"
_MAX_EXIT_CODE: Final = 255


class _OutputStream:
    """Output that was received and not read yet."""

    def __init__(self, kind: int) -> None:
        self.kind, self.data, self.ended = kind, bytearray(), False
        self.taken = 0
        self.changed = asyncio.Event()


class RemoteSession:
    """A `jobs.backends.sessions.Session`."""

    def __init__(self, transport: Transport, *, terminal: bool) -> None:
        self._transport, self._terminal = transport, terminal
        self._streams = {kind: _OutputStream(kind) for kind in (protocol.STDOUT, protocol.STDERR)}
        self._streams[protocol.STDERR].ended = terminal
        self._window, self._window_changed = protocol.WINDOW, asyncio.Event()
        self._is_input_closed = self._eof = False
        self._ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self._outgoing: asyncio.Queue[bytes] = asyncio.Queue()
        self._tasks = [asyncio.ensure_future(self._receive()), asyncio.ensure_future(self._send())]
        self._closing: asyncio.Future[None] | None = None

    @classmethod
    async def begin(cls, transport: Transport, request: Mapping[str, Any]) -> RemoteSession:
        """Begin a session.  Raises NoEntry."""
        await transport.open(START_TIMEOUT_S)
        try:
            await transport.start(request, START_TIMEOUT_S)
        except (NoEntry, asyncio.CancelledError):
            await transport.close(ABORT_TIMEOUT_S)
            raise
        return cls(transport, terminal=request["terminal"] is not None)

    async def read(self, limit: int) -> bytes:
        return await self._read(self._streams[protocol.STDOUT], limit)

    async def read_error(self, limit: int) -> bytes:
        return await self._read(self._streams[protocol.STDERR], limit)

    async def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            while self._window <= 0 and not self._is_input_closed:
                self._window_changed.clear()
                await self._window_changed.wait()
            if self._is_input_closed or self._eof:
                raise BrokenPipeError
            chunk = rest[: min(self._window, protocol.CHUNK)]
            self._window -= len(chunk)
            rest = rest[len(chunk) :]
            self._outgoing.put_nowait(protocol.encode(protocol.STDIN, bytes(chunk)))

    async def write_eof(self) -> None:
        if self._terminal:
            with contextlib.suppress(BrokenPipeError):
                await self.write(_END_OF_INPUT)
        elif not self._eof:
            self._eof = True
            self._outgoing.put_nowait(protocol.encode(protocol.STDIN, b""))

    def resize(self, size: Size) -> None:
        if self._terminal:
            self._outgoing.put_nowait(protocol.encode_json({"columns": size.columns, "rows": size.rows}))

    def signal(self, name: str) -> None:
        self._outgoing.put_nowait(protocol.encode_json({"signal": name[:20]}))

    async def wait(self) -> Ended:
        return await asyncio.shield(self._ended)

    async def wait_for_processes(self) -> None:
        await self._transport.wait_closed()

    async def close(self) -> None:
        """Wait until the agent and all that it started have ended, at most `CLOSE_TIMEOUT_S`."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._tasks[1].cancel()
        await self._transport.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _read(self, stream: _OutputStream, limit: int) -> bytes:
        while not stream.data and not stream.ended:
            stream.changed.clear()
            await stream.changed.wait()
        data = bytes(stream.data[:limit])
        del stream.data[:limit]
        stream.taken += len(data)
        if stream.taken > protocol.WINDOW // 4:
            self._outgoing.put_nowait(protocol.encode_json({"took": stream.taken, "of": stream.kind}))
            stream.taken = 0
        return data

    async def _send(self) -> None:
        """Send what is queued, and a ping when nothing is."""
        with contextlib.suppress(BrokenPipeError):
            while True:
                try:
                    async with asyncio.timeout(protocol.PING_S):  # wait_for may lose a cancellation
                        data = await self._outgoing.get()
                except TimeoutError:
                    data = protocol.encode_json({})
                await self._transport.send(data)

    async def _receive(self) -> None:
        """Take what comes; what nobody reads is bounded by the agent's window."""
        with contextlib.suppress(protocol.ProtocolError):
            while (messages := await self._transport.receive()) is not None:
                for kind, data in messages:
                    self._take(kind, data)
        for stream in self._streams.values():
            stream.ended = True
            stream.changed.set()
        self._close_input()
        if not self._ended.done():
            self._ended.set_result(Ended())

    def _take(self, kind: int, data: bytes) -> None:
        if kind in self._streams:
            stream = self._streams[kind]
            if stream.ended or len(stream.data) + len(data) > protocol.WINDOW:
                raise protocol.ProtocolError("more than the window")
            stream.data += data
            stream.ended |= not data
            stream.changed.set()
            return
        message = protocol.decode_json(data)
        if "took" in message:
            self._window += _checked_number(message["took"], protocol.WINDOW - self._window)
            self._window_changed.set()
        elif "deaf" in message:
            self._close_input()
        elif "code" in message and not self._ended.done():
            self._ended.set_result(_parse_end(message))

    def _close_input(self) -> None:
        self._is_input_closed = True
        self._window_changed.set()


def _parse_end(message: Mapping[str, Any]) -> Ended:
    """Return how the program ended.  Raises ProtocolError."""
    name, code = message.get("signal"), message["code"]
    if name is None:
        return Ended(None if code is None else _checked_number(code, _MAX_EXIT_CODE))
    if code is not None or f"SIG{name}" not in signal.Signals.__members__:
        raise protocol.ProtocolError("no end")
    return Ended(signal=name)


def _checked_number(value: object, largest: int) -> int:
    if not isinstance(value, int) or not 0 <= value <= largest:
        raise protocol.ProtocolError("no such number")
    return value
