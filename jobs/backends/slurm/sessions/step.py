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
from typing import Final

from jobs.backends.sessions import Barrier, NoEntry
from jobs.backends.slurm.sessions import wire
from jobs.backends.slurm.sessions.line import AT_ONCE_S, END_S, Line, why
from jobs.node.descriptors import Descriptor

_LONGEST_COMPLAINT: Final = 4000


class Step(Line):
    """One process that carries `wire`; it is waited for in whichever thread the loop runs."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], files: Sequence[int] = ()
    ) -> None:
        """`files` are handed on to it, and are closed here."""
        super().__init__()
        self._command, self._environment, self._files = command, environment, files
        self._process: subprocess.Popen[bytes] | None = None
        self.complaint = b""

    async def open(self, patience_s: float) -> None:
        """Start it: whether it gets in shows with its first word."""
        process = self._started()
        assert process.stdin and process.stdout and process.stderr  # noqa: PT018 they are pipes
        self._process = process
        self._input, self._output, self._errors = (
            Descriptor(os.dup(file.fileno())) for file in (process.stdin, process.stdout, process.stderr)
        )
        for file in (process.stdin, process.stdout, process.stderr):
            file.close()
        self._complaining = asyncio.ensure_future(self._listen_to_complaints())
        self._buried = asyncio.ensure_future(self._bury())

    def _started(self) -> subprocess.Popen[bytes]:
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

    async def say(self, data: bytes) -> None:
        """See `Line`."""
        await self._input.write(data)

    async def end(self, patience_s: float = END_S) -> None:
        """Close its stdin, which ends what it carries; and wait for it, for so long."""
        self._input.close()
        for limit, number in ((patience_s, signal.SIGTERM), (AT_ONCE_S, signal.SIGKILL)):
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

    async def _read(self) -> bytes:
        return await self._output.read(2 * wire.PIECE)

    async def _why(self) -> NoEntry:
        await asyncio.wait([self._complaining], timeout=AT_ONCE_S)
        return NoEntry(why(self._said()), self._said())

    def _said(self) -> str:
        return self.complaint.decode(errors="replace").strip()

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
