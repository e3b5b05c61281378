"""Connections of the console to a session agent: through a process such as srun, or to a listener.

The agent runs as the job's user, so nothing that it sends is trusted: it is bounded, and an invalid message
ends that session alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from jobs.backends.sessions import Barrier, NoEntry
from jobs.node.descriptors import Descriptor
from jobs.node.sessions import protocol

START_TIMEOUT_S: Final = 20.0
"""An agent that has said nothing by then is given up: srun itself goes on for minutes."""

CLOSE_TIMEOUT_S: Final = 10.0
ABORT_TIMEOUT_S: Final = 2.0

_MAX_DETAIL: Final = 4000

Classify = Callable[[str], Barrier]
"""Tells the barrier that an engine's error message means."""


class Transport(ABC):
    """The connection of one session."""

    def __init__(self) -> None:
        self._messages = protocol.MessageReader(protocol.MAX_NODE_MESSAGE)
        self._early: list[tuple[int, bytes]] = []

    @abstractmethod
    async def open(self, timeout_s: float) -> None:
        """Connect to the agent, or begin to.  Raises NoEntry."""

    @abstractmethod
    async def send(self, data: bytes) -> None:
        """Send one message.  Raises BrokenPipeError when the agent is gone."""

    @abstractmethod
    async def close(self, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
        """End the session, and wait for the agent's end for at most `timeout_s`."""

    @abstractmethod
    async def wait_closed(self) -> None:
        """Wait for the agent's end."""

    @abstractmethod
    async def _read(self) -> bytes:
        """Return the next bytes, b"" at the end."""

    @abstractmethod
    async def _failure(self) -> NoEntry:
        """Return why it ended without a message."""

    def _complaint(self) -> str:
        """Return the error message so far."""
        return ""

    async def ask(self, request: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """Send one question and return the answer.  Raises NoEntry."""
        await self.open(timeout_s)
        try:
            return await self.start(request, timeout_s)
        finally:
            await self.close(ABORT_TIMEOUT_S)

    async def start(self, request: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """Send a request and return the agent's first message.  Raises NoEntry."""
        messages: list[tuple[int, bytes]] | None = None
        try:
            async with asyncio.timeout(timeout_s):
                await self.send(protocol.encode_json(request))
                messages = await self.receive()
            if messages is None:
                raise await self._failure()
            self._early = messages[1:]
            return _check_reply(protocol.decode_json(messages[0][1]))
        except TimeoutError as error:
            detail = self._complaint() or f"nothing within {timeout_s:g} s"
            raise NoEntry(Barrier.ENGINE_AWAY, detail) from error
        except BrokenPipeError:
            raise await self._failure() from None
        except protocol.ProtocolError as error:
            raise NoEntry(Barrier.FAILED, str(error)) from error

    async def receive(self) -> list[tuple[int, bytes]] | None:
        """Return the next messages, at least one; None at the end.  Raises ProtocolError."""
        if self._early:
            early, self._early = self._early, []
            return early
        while data := await self._read():
            if messages := list(self._messages.feed(data)):
                return messages
        return None


class ProcessTransport(Transport):
    """A process whose stdin and stdout carry the session protocol.

    It is waited for in whichever thread the event loop runs.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        classify: Classify,
        files: Sequence[int] = (),
    ) -> None:
        """`files` are inherited by the process, and are closed here."""
        super().__init__()
        self._command, self._environment, self._files = command, environment, files
        self._classify = classify
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr = b""

    async def open(self, timeout_s: float) -> None:
        """Start the process: its first message shows whether it reaches the replica."""
        process = self._start_process()
        assert process.stdin and process.stdout and process.stderr  # noqa: PT018 they are pipes
        self._process = process
        self._input, self._output, self._errors = (
            Descriptor(os.dup(file.fileno())) for file in (process.stdin, process.stdout, process.stderr)
        )
        for file in (process.stdin, process.stdout, process.stderr):
            file.close()
        self._reading_errors = asyncio.ensure_future(self._read_errors())
        self._waiting = asyncio.ensure_future(self._wait(process))

    def _start_process(self) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                self._command,
                cwd="/",
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                pass_fds=self._files,
            )
        except OSError as error:
            raise NoEntry(Barrier.FAILED, str(error)) from error
        finally:
            for fd in self._files:
                os.close(fd)

    async def send(self, data: bytes) -> None:
        """See `Transport`."""
        await self._input.write(data)

    async def close(self, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
        """Close stdin, which ends the session, and wait; then signal the process."""
        assert self._process is not None
        self._input.close()
        for limit, number in ((timeout_s, signal.SIGTERM), (ABORT_TIMEOUT_S, signal.SIGKILL)):
            if (await asyncio.wait([self._waiting], timeout=limit))[0]:
                break
            with contextlib.suppress(ProcessLookupError, PermissionError):  # sudo's processes are root's
                os.kill(self._process.pid, number)
        await asyncio.shield(self._waiting)
        self._output.close()
        self._errors.close()
        await self._reading_errors

    async def wait_closed(self) -> None:
        """See `Transport`."""
        await asyncio.shield(self._waiting)

    async def _read(self) -> bytes:
        return await self._output.read(2 * protocol.CHUNK)

    async def _failure(self) -> NoEntry:
        await asyncio.wait([self._reading_errors], timeout=ABORT_TIMEOUT_S)
        return NoEntry(self._classify(self._complaint()), self._complaint())

    def _complaint(self) -> str:
        return self._stderr.decode(errors="replace").strip()

    async def _wait(self, process: subprocess.Popen[bytes]) -> None:
        end = Descriptor(os.pidfd_open(process.pid))
        await end.readable()
        end.close()
        process.wait()

    async def _read_errors(self) -> None:
        while more := await self._errors.read(protocol.CHUNK):
            self._stderr = (self._stderr + more)[-_MAX_DETAIL:]


def _check_reply(reply: dict[str, Any]) -> dict[str, Any]:
    """Return the agent's first message.  Raises NoEntry when it names a barrier."""
    if "barrier" not in reply:
        return reply
    barrier, detail = reply["barrier"], str(reply.get("detail", ""))[:_MAX_DETAIL]
    raise NoEntry(Barrier(barrier) if barrier in tuple(Barrier) else Barrier.FAILED, detail)
