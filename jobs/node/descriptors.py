"""Files that are read and written without blocking the loop: pipes and terminals."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any, Final

WRITE_BYTES: Final = 64 * 1024


class Descriptor:
    """One open file, one reader and one writer at a time."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self._loop = asyncio.get_running_loop()
        self._waiting: set[asyncio.Future[None]] = set()

    async def read(self, limit: int) -> bytes:
        """At most `limit` bytes; b"" at the end, which is also how a terminal's last program shows."""
        while self.fd >= 0:
            try:
                return os.read(self.fd, limit)
            except BlockingIOError:
                await self.readable()
            except OSError:
                return b""
        return b""

    async def write(self, data: bytes) -> None:
        """All of `data`.  BrokenPipeError when nobody reads."""
        rest = memoryview(data)
        while rest:
            if self.fd < 0:
                raise BrokenPipeError
            try:
                rest = rest[os.write(self.fd, rest[:WRITE_BYTES]) :]
            except BlockingIOError:
                await self._until(self._loop.add_writer, self._loop.remove_writer)
            except OSError as error:
                raise BrokenPipeError from error

    async def readable(self) -> None:
        """Until there is something to read, or it is closed."""
        if self.fd >= 0:
            await self._until(self._loop.add_reader, self._loop.remove_reader)

    def close(self) -> None:
        """Close it; whoever waits for it is at its end."""
        fd, self.fd = self.fd, -1
        if fd < 0:
            return
        self._loop.remove_reader(fd)
        self._loop.remove_writer(fd)
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)
        os.close(fd)

    async def _until(self, add: Callable[..., Any], remove: Callable[[int], Any]) -> None:
        ready: asyncio.Future[None] = self._loop.create_future()
        fd = self.fd
        self._waiting.add(ready)
        add(fd, _finish, ready)
        try:
            await ready
        finally:
            self._waiting.discard(ready)
            if self.fd == fd:
                remove(fd)


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
