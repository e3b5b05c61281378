"""Asking the process `shells` about a job's folders: one request a connection, the answer as a stream."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from threading import BoundedSemaphore
from typing import Any, Final

import structlog
from django.conf import settings

from jobs import entries, frames
from jobs.live.threads import leave_request_thread
from jobs.models import Task
from quotas.models import AccessToken, User

log = structlog.get_logger(__name__)

PATIENCE_SECONDS: Final = 40.0
"""A container engine may take its time to let somebody in."""

TURN_SECONDS: Final = 5.0
"""Whoever waits longer for others' first words is told to come again."""

SMALL_BYTES: Final = 4 << 20


class Shut(Exception):
    """There is nothing to be seen; `code` is one of `jobs.messages.folders`, `name` what it is about."""

    def __init__(self, code: str, name: str = "") -> None:
        super().__init__(code, name)
        self.code, self.name = code, name


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, and what proves it for as long as the answer takes."""

    user: User
    session: str = ""
    token: AccessToken | None = None


class Answer:
    """What is told first, and the bytes after it, which are on their way."""

    def __init__(self, told: Mapping[str, Any], connection: socket.socket) -> None:
        self.told = told
        self._connection = connection

    def read(self) -> bytes:
        """All of them, where they are few.  Raises Shut when they break off."""
        found = b""
        with closing(self._connection), _told_as_shut():
            while piece := _take(self._connection, frames.LONGEST):
                found += piece
                if len(found) > SMALL_BYTES:
                    raise Shut("failed")
        return found

    async def pieces(self) -> AsyncIterator[bytes]:
        """Piece by piece.  Raises frames.Broken when it breaks off: what came is not the whole then."""
        await leave_request_thread()
        reader, writer = await _streams(self._connection)
        try:
            while piece := await _frame(reader):
                yield piece
        finally:
            writer.close()

    async def put(self, body: AsyncIterable[bytes]) -> Mapping[str, Any]:
        """Send a file's bytes, for which the far side is `ready`; what it says of them.  Raises Shut."""
        reader, writer = await _streams(self._connection)
        try:
            said = asyncio.ensure_future(_frame(reader, frames.LONGEST_WORDS))
            sending = asyncio.ensure_future(_send(body, writer))
            try:
                await asyncio.wait((said, sending), return_when=asyncio.FIRST_COMPLETED)
                if not said.done():
                    await sending  # Gone, when whoever sends is
                    await said
                return _understood(said.result())
            finally:
                for task in (said, sending):
                    task.cancel()
                await asyncio.gather(said, sending, return_exceptions=True)
        except (frames.Broken, OSError) as error:
            raise Shut("broke_off") from error
        finally:
            writer.close()

    def close(self) -> None:
        """Nobody wants the rest."""
        self._connection.close()


def ask(asker: Asker, task: Task, do: str, root: str, names: list[str], **more: Any) -> Answer:
    """Ask, and wait for the first words.  Raises Shut."""
    wanted = {"do": do, "root": root, "names": names, **more}
    token = asker.token.pk if asker.token else 0
    request = {
        "user": asker.user.pk,
        "session": asker.session,
        "token": token,
        "task": task.pk,
        "ask": wanted,
    }
    with _one_of_few():
        return _asked(request)


def _asked(request: Mapping[str, Any]) -> Answer:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(PATIENCE_SECONDS)
        with _told_as_shut("silent"):
            connection.connect(str(settings.CONSOLE_HOME / entries.FOLDERS_SOCKET))
        with _told_as_shut():
            connection.sendall(frames.words(request))
            told = _understood(_take(connection, frames.LONGEST_WORDS))
    except BaseException:
        connection.close()
        raise
    return Answer(told, connection)


@cache
def _turns() -> BoundedSemaphore:
    """Half of the threads for requests: folders that do not answer keep nobody from the other pages."""
    return BoundedSemaphore(max(1, settings.CONSOLE_THREADS // 2))


@contextmanager
def _one_of_few() -> Iterator[None]:
    if not _turns().acquire(timeout=TURN_SECONDS):
        raise Shut("busy")
    try:
        yield
    finally:
        _turns().release()


def tell(asker: Asker, task: Task, do: str, root: str, names: list[str], **more: Any) -> Mapping[str, Any]:
    """Ask for what is answered in words.  Raises Shut."""
    answer = ask(asker, task, do, root, names, **more)
    answer.close()
    return answer.told


def _understood(data: bytes) -> dict[str, Any]:
    told = frames.understood(data)
    if "shut" in told:
        raise Shut(str(told["shut"]))
    if "trouble" in told:
        raise Shut(str(told["trouble"]), str(told.get("name", "")))
    return told


@contextmanager
def _told_as_shut(code: str = "broke_off") -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise Shut("slow") from error
    except (frames.Broken, OSError) as error:
        log.warning("folders_unreachable", problem=repr(error))
        raise Shut(code) from error


def _take(connection: socket.socket, most: int) -> bytes:
    head = _exactly(connection, frames.LENGTH.size)
    data = _exactly(connection, length := frames.length_of(head, most))
    if len(data) < length:
        raise frames.Broken("cut short")
    return data


def _exactly(connection: socket.socket, count: int) -> bytes:
    parts = []
    while count and (part := connection.recv(min(count, 1 << 16))):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


async def _streams(connection: socket.socket) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    connection.setblocking(False)
    return await asyncio.open_unix_connection(sock=connection, limit=1 << 20)


async def _frame(reader: asyncio.StreamReader, most: int = frames.LONGEST) -> bytes:
    try:
        head = await reader.readexactly(frames.LENGTH.size)
        return await reader.readexactly(frames.length_of(head, most))
    except asyncio.IncompleteReadError as error:
        raise frames.Broken("cut short") from error


async def _send(body: AsyncIterable[bytes], writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):  # it has said why
        async for data in body:
            for start in range(0, len(data), frames.LONGEST):
                writer.write(frames.framed(data[start : start + frames.LONGEST]))
            await writer.drain()
        writer.write(frames.END)
        await writer.drain()
