"""The console's end of a session in a step of Slurm's; the node's end is `beside`.

srun is one process here: its stdin and stdout carry `wire`, and its stderr says why it has nothing to carry.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any, Final

from jobs.backends.local.descriptors import Descriptor
from jobs.backends.sessions import Barrier, Ended, NoEntry, Size
from jobs.backends.slurm import wire
from jobs.backends.slurm.programs import NO_ANSWER, NO_CONNECTION

BEGIN_S: Final = 20.0
"""A step that has said nothing by then is given up: srun itself tries on for minutes."""

END_S: Final = 10.0
_AT_ONCE_S: Final = 2.0
_LONGEST_COMPLAINT: Final = 4000
_END_OF_INPUT: Final = b"\x04"

NOT_THERE: Final = ("invalid job id", "expired or invalid job", "already completing or completed")
"""What srun says when the job is none, or none any more."""


class Step:
    """One process that carries `wire`; it is waited for in whichever thread the loop runs."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._command, self._environment = command, environment
        self._process: subprocess.Popen[bytes] | None = None
        self.complaint = b""

    async def ask(self, request: Mapping[str, Any], patience_s: float) -> dict[str, Any]:
        """Have one question answered.  Raises NoEntry."""
        self.start()
        try:
            return await self.first_word(request, patience_s)
        finally:
            await self.end(_AT_ONCE_S)

    def start(self) -> None:
        """Start it.  Raises NoEntry."""
        try:
            process = subprocess.Popen(
                self._command,
                cwd="/",
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise NoEntry(Barrier.FAILED, str(error)) from error
        assert process.stdin and process.stdout and process.stderr  # noqa: PT018 they are pipes
        self._process = process
        self._input, self._output, self._errors = (
            Descriptor(os.dup(file.fileno())) for file in (process.stdin, process.stdout, process.stderr)
        )
        for file in (process.stdin, process.stdout, process.stderr):
            file.close()
        self._heard = wire.Heard()
        self._early: list[tuple[int, bytes]] = []
        self._complaining = asyncio.ensure_future(self._listen_to_complaints())
        self._buried = asyncio.ensure_future(self._bury())

    async def first_word(self, request: Mapping[str, Any], patience_s: float) -> dict[str, Any]:
        """Tell it what is wanted, and hear what it says to that.  Raises NoEntry."""
        told: list[tuple[int, bytes]] | None = None
        try:
            async with asyncio.timeout(patience_s):
                await self.say(wire.words(request))
                told = await self.hear()
                if told is None:
                    await self._complaining
        except TimeoutError as error:
            raise NoEntry(Barrier.ENGINE_AWAY, self._said() or f"nothing within {patience_s:g} s") from error
        except BrokenPipeError:
            await self._complaining
        except wire.Broken as error:
            raise NoEntry(Barrier.FAILED, str(error)) from error
        if told is None:
            raise NoEntry(self._why(), self._said())
        self._early = told[1:]
        heard = wire.understood(told[0][1])
        if "barrier" in heard:
            raise NoEntry(Barrier(heard["barrier"]), heard["detail"])
        return heard

    async def hear(self) -> list[tuple[int, bytes]] | None:
        """The next messages, at least one; None at the end.  Raises wire.Broken."""
        if self._early:
            early, self._early = self._early, []
            return early
        while data := await self._output.read(2 * wire.PIECE):
            if found := list(self._heard.more(data)):
                return found
        return None

    async def say(self, data: bytes) -> None:
        """Send one message.  BrokenPipeError when nobody hears it."""
        await self._input.write(data)

    async def end(self, patience_s: float = END_S) -> None:
        """Say that nobody is here any more, which ends what it carries; and wait for it, for so long."""
        self._input.close()
        for limit, number in ((patience_s, signal.SIGTERM), (_AT_ONCE_S, signal.SIGKILL)):
            if await self._ended(limit):
                break
            with contextlib.suppress(ProcessLookupError, PermissionError):  # what sudo started is not ours
                os.kill(self._pid, number)
        await asyncio.shield(self._buried)
        self._output.close()
        self._errors.close()
        await self._complaining

    async def over(self) -> None:
        """Until the process has ended."""
        await asyncio.shield(self._buried)

    @property
    def _pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def _ended(self, limit: float) -> bool:
        done, _ = await asyncio.wait([self._buried], timeout=limit)
        return bool(done)

    async def _bury(self) -> None:
        assert self._process is not None
        end = Descriptor(os.pidfd_open(self._process.pid))
        await end.readable()
        end.close()
        self._process.wait()

    async def _listen_to_complaints(self) -> None:
        while more := await self._errors.read(wire.PIECE):
            self.complaint = (self.complaint + more)[-_LONGEST_COMPLAINT:]

    def _said(self) -> str:
        return self.complaint.decode(errors="replace").strip()

    def _why(self) -> Barrier:
        said = self._said().lower()
        if any(phrase in said for phrase in (*NO_CONNECTION, *NO_ANSWER)):
            return Barrier.ENGINE_AWAY
        return Barrier.NOT_RUNNING if any(phrase in said for phrase in NOT_THERE) else Barrier.FAILED


class _Stream:
    """Output that has come and was not read yet."""

    def __init__(self, kind: int) -> None:
        self.kind, self.data, self.ended = kind, bytearray(), False
        self.taken = 0
        self.news = asyncio.Event()


class StepSession:
    """A `jobs.backends.sessions.Session`."""

    def __init__(self, step: Step, *, terminal: bool) -> None:
        self._step, self._terminal = step, terminal
        self._streams = {kind: _Stream(kind) for kind in (wire.OUTPUT, wire.ERRORS)}
        self._streams[wire.ERRORS].ended = terminal
        self._room, self._more_room = wire.WINDOW, asyncio.Event()
        self._deaf = self._eof = False
        self._ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self._to_say: asyncio.Queue[bytes] = asyncio.Queue()
        self._works = [asyncio.ensure_future(self._hear()), asyncio.ensure_future(self._say())]
        self._closing: asyncio.Future[None] | None = None

    @classmethod
    async def begin(cls, step: Step, request: Mapping[str, Any]) -> StepSession:
        """Begin one.  Raises NoEntry."""
        step.start()
        try:
            await step.first_word(request, BEGIN_S)
        except (NoEntry, asyncio.CancelledError):
            await step.end(_AT_ONCE_S)
            raise
        return cls(step, terminal=request["terminal"] is not None)

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
        await self._step.over()

    async def close(self) -> None:
        """Returns when the step has ended, and with it everything; gives up after `END_S`."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._works[1].cancel()
        await self._step.end()
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
                    data = await asyncio.wait_for(self._to_say.get(), wire.PING_S)
                except TimeoutError:
                    data = wire.words({})
                await self._step.say(data)

    async def _hear(self) -> None:
        """Take in what comes; what is never read is bounded by what the other end may send."""
        with contextlib.suppress(wire.Broken):
            while (found := await self._step.hear()) is not None:
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
            stream.data += data
            stream.ended |= not data
            stream.news.set()
            return
        said = wire.understood(data)
        if "took" in said:
            self._room += said["took"]
            self._more_room.set()
        elif "deaf" in said:
            self._be_deaf()
        elif "code" in said and not self._ended.done():
            self._ended.set_result(Ended(said["code"], said["signal"]))

    def _be_deaf(self) -> None:
        self._deaf = True
        self._more_room.set()
