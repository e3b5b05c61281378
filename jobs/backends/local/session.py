"""The console's end of a session beside a replica; the other one is in `entry` and `leader`."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import socket
import struct
import subprocess
import termios
from pathlib import Path
from typing import Any, Final

from jobs.backends.base import ReplicaRef
from jobs.backends.local.launch import RUNNER, child_environment
from jobs.backends.sessions import Barrier, Ended, NoEntry, SessionRequest, Size
from jobs.node.descriptors import Descriptor

BEGIN_S: Final = 20.0
"""A helper that has said nothing by then is given up; a container engine may take its time."""

END_S: Final = 10.0
_END_OF_INPUT: Final = b"\x04"
_MOST_FILES: Final = 3
_LINE: Final = 64 * 1024


async def begin(attempt: Path, python: str, replica: ReplicaRef, wanted: SessionRequest) -> LocalSession:
    """Run something beside a replica.  Raises NoEntry."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    ours.setblocking(False)
    with theirs:
        helper = Helper([python, "-I", "-S", str(RUNNER), "enter", str(attempt)], theirs.fileno())
    channel = Channel(ours)
    try:
        async with asyncio.timeout(BEGIN_S):
            await channel.say(_request(replica, wanted))
            heard, files = await channel.hear()
        if heard is None or "running" not in heard:
            _drop(files)
            told = heard or {"barrier": Barrier.FAILED, "detail": "the helper is gone"}
            raise NoEntry(Barrier(told["barrier"]), told["detail"])
    except OSError as error:
        await _dismiss(channel, helper)
        raise NoEntry(Barrier.FAILED, repr(error)) from error
    except (NoEntry, asyncio.CancelledError):
        await _dismiss(channel, helper)
        raise
    return LocalSession(channel, helper, files)


async def _dismiss(channel: Channel, helper: Helper) -> None:
    """Have the helper end, and bury it; gives up after `END_S`."""
    channel.close()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(END_S):
            await helper.wait()


def _request(replica: ReplicaRef, wanted: SessionRequest) -> dict[str, Any]:
    return {"role": replica.role, "index": replica.index, **wanted.as_message()}


class Helper:
    """The helper's process; it is waited for in whichever thread the loop runs."""

    def __init__(self, command: list[str], talk: int) -> None:
        self._process = subprocess.Popen(
            [*command, str(talk)],
            cwd="/",
            env=child_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(talk,),
            start_new_session=True,
        )
        self._buried = asyncio.ensure_future(self._bury())

    async def _bury(self) -> None:
        end = Descriptor(os.pidfd_open(self._process.pid))
        await end.readable()
        end.close()
        self._process.wait()

    async def wait(self) -> None:
        """Until it has ended, and is buried."""
        await asyncio.shield(self._buried)


class Channel:
    """Lines of JSON over a socket, some with descriptors."""

    def __init__(self, ours: socket.socket) -> None:
        self._socket = ours
        self._ready = Descriptor(os.dup(ours.fileno()))
        self._rest = b""

    async def say(self, what: dict[str, Any]) -> None:
        """Send one line."""
        await self._ready.write(json.dumps(what).encode() + b"\n")

    async def hear(self) -> tuple[dict[str, Any] | None, list[int]]:
        """The next line, and what came with it; None when the other end is gone."""
        files: list[int] = []
        while b"\n" not in self._rest:
            try:
                more, sent, _flags, _address = socket.recv_fds(self._socket, _LINE, _MOST_FILES)
            except BlockingIOError:
                await self._ready.readable()
                continue
            except OSError:
                more, sent = b"", []
            files += sent
            if not more:
                _drop(files)
                return None, []
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        heard: dict[str, Any] = json.loads(line)
        return heard, files

    def say_now(self, what: dict[str, Any]) -> None:
        """Send a short line, or nothing when there is no room for it."""
        with contextlib.suppress(OSError):
            self._socket.send(json.dumps(what).encode() + b"\n")

    def close(self) -> None:
        """The other end takes it for an order to end."""
        self._ready.close()
        self._socket.close()


class LocalSession:
    """A `jobs.backends.sessions.Session`."""

    def __init__(self, channel: Channel, helper: Helper, files: list[int]) -> None:
        self._channel, self._helper = channel, helper
        self._terminal = len(files) == 1
        opened = [Descriptor(fd) for fd in files]
        self._input = opened[0]
        self._output = opened[0] if self._terminal else opened[1]
        self._error = None if self._terminal else opened[2]
        self._opened = opened
        self._ended = asyncio.ensure_future(self._first_word())
        self._left = asyncio.ensure_future(self._last_word())

    async def _first_word(self) -> Ended:
        heard, _files = await self._channel.hear()
        return Ended(heard["code"], heard["signal"]) if heard else Ended()

    async def _last_word(self) -> None:
        await self._ended
        while (await self._channel.hear())[0] is not None:
            pass

    async def read(self, limit: int) -> bytes:
        return await self._output.read(limit)

    async def read_error(self, limit: int) -> bytes:
        return await self._error.read(limit) if self._error else b""

    async def write(self, data: bytes) -> None:
        await self._input.write(data)

    async def write_eof(self) -> None:
        if self._terminal:
            with contextlib.suppress(BrokenPipeError):
                await self._input.write(_END_OF_INPUT)
        else:
            self._input.close()

    def resize(self, size: Size) -> None:
        if self._terminal and self._output.fd >= 0:
            packed = struct.pack("HHHH", size.rows, size.columns, 0, 0)
            with contextlib.suppress(OSError):
                fcntl.ioctl(self._output.fd, termios.TIOCSWINSZ, packed)

    def signal(self, name: str) -> None:
        self._channel.say_now({"signal": name[:20]})

    async def wait(self) -> Ended:
        return await asyncio.shield(self._ended)

    async def wait_for_processes(self) -> None:
        await asyncio.shield(self._left)

    async def close(self) -> None:
        """Returns when the helper has ended, and with it everything; gives up after `END_S`."""
        for each in self._opened:
            each.close()
        await _dismiss(self._channel, self._helper)
        await self._left


def _drop(files: list[int]) -> None:
    for fd in files:
        os.close(fd)
