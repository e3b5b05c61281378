"""A session beside a replica, as the console has it, whatever line carries it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Mapping
from typing import Any, Final

from jobs.backends.sessions import Ended, NoEntry, Size
from jobs.backends.slurm.sessions import wire
from jobs.backends.slurm.sessions.line import AT_ONCE_S, BEGIN_S, Line

_END_OF_INPUT: Final = b"\x04"
_MOST_CODE: Final = 255


class _Stream:
    """Output that has come and was not read yet."""

    def __init__(self, kind: int) -> None:
        self.kind, self.data, self.ended = kind, bytearray(), False
        self.taken = 0
        self.news = asyncio.Event()


class LineSession:
    """A `jobs.backends.sessions.Session`."""

    def __init__(self, line: Line, *, terminal: bool) -> None:
        self._line, self._terminal = line, terminal
        self._streams = {kind: _Stream(kind) for kind in (wire.OUTPUT, wire.ERRORS)}
        self._streams[wire.ERRORS].ended = terminal
        self._room, self._more_room = wire.WINDOW, asyncio.Event()
        self._deaf = self._eof = False
        self._ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self._to_say: asyncio.Queue[bytes] = asyncio.Queue()
        self._works = [asyncio.ensure_future(self._hear()), asyncio.ensure_future(self._say())]
        self._closing: asyncio.Future[None] | None = None

    @classmethod
    async def begin(cls, line: Line, request: Mapping[str, Any]) -> LineSession:
        """Begin one.  Raises NoEntry."""
        await line.open(BEGIN_S)
        try:
            await line.first_word(request, BEGIN_S)
        except (NoEntry, asyncio.CancelledError):
            await line.end(AT_ONCE_S)
            raise
        return cls(line, terminal=request["terminal"] is not None)

    async def read(self, limit: int) -> bytes:
        return await self._read(self._streams[wire.OUTPUT], limit)

    async def read_error(self, limit: int) -> bytes:
        return await self._read(self._streams[wire.ERRORS], limit)

    async def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            while self._room <= 0 and not self._deaf:
                self._more_room.clear()
                await self._more_room.wait()
            if self._deaf or self._eof:
                raise BrokenPipeError
            piece = rest[: min(self._room, wire.PIECE)]
            self._room -= len(piece)
            rest = rest[len(piece) :]
            self._to_say.put_nowait(wire.message(wire.INPUT, bytes(piece)))

    async def write_eof(self) -> None:
        if self._terminal:
            with contextlib.suppress(BrokenPipeError):
                await self.write(_END_OF_INPUT)
        elif not self._eof:
            self._eof = True
            self._to_say.put_nowait(wire.message(wire.INPUT, b""))

    def resize(self, size: Size) -> None:
        if self._terminal:
            self._to_say.put_nowait(wire.words({"columns": size.columns, "rows": size.rows}))

    def signal(self, name: str) -> None:
        self._to_say.put_nowait(wire.words({"signal": name[:20]}))

    async def wait(self) -> Ended:
        return await asyncio.shield(self._ended)

    async def left(self) -> None:
        await self._line.over()

    async def close(self) -> None:
        """Returns when the node's end has ended, and with it everything; gives up after `END_S`."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._works[1].cancel()
        await self._line.end()
        await asyncio.gather(*self._works, return_exceptions=True)

    async def _read(self, stream: _Stream, limit: int) -> bytes:
        while not stream.data and not stream.ended:
            stream.news.clear()
            await stream.news.wait()
        data = bytes(stream.data[:limit])
        del stream.data[:limit]
        stream.taken += len(data)
        if stream.taken > wire.WINDOW // 4:
            self._to_say.put_nowait(wire.words({"took": stream.taken, "of": stream.kind}))
            stream.taken = 0
        return data

    async def _say(self) -> None:
        """Send what is to be sent, and something now and then."""
        with contextlib.suppress(BrokenPipeError):
            while True:
                try:
                    async with asyncio.timeout(wire.PING_S):  # wait_for may lose its being cancelled
                        data = await self._to_say.get()
                except TimeoutError:
                    data = wire.words({})
                await self._line.say(data)

    async def _hear(self) -> None:
        """Take in what comes; what is never read is bounded by what the other end may send."""
        with contextlib.suppress(wire.Broken):
            while (found := await self._line.hear()) is not None:
                for kind, data in found:
                    self._take(kind, data)
        for stream in self._streams.values():
            stream.ended = True
            stream.news.set()
        self._be_deaf()
        if not self._ended.done():
            self._ended.set_result(Ended())

    def _take(self, kind: int, data: bytes) -> None:
        if kind in self._streams:
            stream = self._streams[kind]
            if stream.ended or len(stream.data) + len(data) > wire.WINDOW:
                raise wire.Broken("more than was asked for")
            stream.data += data
            stream.ended |= not data
            stream.news.set()
            return
        said = wire.understood(data)
        if "took" in said:
            self._room += _whole(said["took"], wire.WINDOW - self._room)
            self._more_room.set()
        elif "deaf" in said:
            self._be_deaf()
        elif "code" in said and not self._ended.done():
            self._ended.set_result(_ended(said))

    def _be_deaf(self) -> None:
        self._deaf = True
        self._more_room.set()


def _ended(said: Mapping[str, Any]) -> Ended:
    """How its program ended.  Raises wire.Broken."""
    name, code = said.get("signal"), said["code"]
    if name is None:
        return Ended(None if code is None else _whole(code, _MOST_CODE))
    if code is not None or f"SIG{name}" not in signal.Signals.__members__:
        raise wire.Broken("no end")
    return Ended(signal=name)


def _whole(value: object, most: int) -> int:
    if not isinstance(value, int) or not 0 <= value <= most:
        raise wire.Broken("no such number")
    return value
