"""The client's side of SFTP with what serves a replica's folders (`jobs.node.sftp.folder_server`).

The process `shells` is between them.  One request follows the other until a file's bytes stream; then several
are on their way at a time.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from threading import BoundedSemaphore
from typing import Any, Final

import structlog
from django.conf import settings

from jobs.access import sessions
from jobs.live import bodies
from jobs.models import Replica
from jobs.node import frames
from jobs.node import sftp_packets as packets
from jobs.node.sftp_packets import LONGEST_DATA, PacketReader, byte, long, number, text
from quotas.models import AccessToken, User

log = structlog.get_logger(__name__)

PATIENCE_SECONDS: Final = 40.0
"""A container engine may take its time to let somebody in."""

TURN_SECONDS: Final = 5.0
"""Whoever waits longer for others' first words is told to come again."""

_AHEAD: Final = 8
"""Requests for a file's bytes, or with them, that are on their way at a time."""

_ENDLESS: Final = 1 << 62


class FolderRefused(Exception):
    """The folders can't be shown; `code` is one of `jobs.messages.folders`, `name` the entry concerned."""

    def __init__(self, code: str, name: str = "") -> None:
        super().__init__(code, name)
        self.code, self.name = code, name


@dataclass(frozen=True, slots=True)
class Asker:
    """A person, and their credential for as long as the answer takes.

    A worker that copies a folder on their behalf has `copy`, the key of a DatasetCopy, instead.
    """

    user: User
    session: str = ""
    token: AccessToken | None = None
    copy: int = 0


@dataclass(frozen=True, slots=True)
class OpenFile:
    """An ordinary file; `tag` is another one once it was written to, `head` has its first bytes in hex."""

    handle: bytes
    size: int
    time: float
    tag: str
    head: str


@contextmanager
def connect(asker: Asker, replica: Replica) -> Iterator[FolderClient]:
    """Connect to the folders of a replica for the duration of a block or a stream.  Raises Shut."""
    token = asker.token.pk if asker.token else 0
    visitor = {"user": asker.user.pk, "session": asker.session, "token": token, "task": replica.pk}
    visitor["copy"] = asker.copy
    with _one_of_few(), socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE_SECONDS)
        with _broken_as_shut("silent"):
            connection.connect(str(settings.CONSOLE_HOME / sessions.FOLDERS_SOCKET))
        with _broken_as_shut():
            connection.sendall(frames.encode_frame(json.dumps(visitor).encode()))
        yield FolderClient(connection)


@cache
def _turns() -> BoundedSemaphore:
    """Return the semaphore for half of the request threads: the other half stays free for other pages."""
    return BoundedSemaphore(max(1, settings.CONSOLE_THREADS // 2))


@contextmanager
def _one_of_few() -> Iterator[None]:
    if not _turns().acquire(timeout=TURN_SECONDS):
        raise FolderRefused("busy")
    try:
        yield
    finally:
        _turns().release()


class FolderClient:
    """A connection to the server; a path is a root's name and names below it.  Every method raises Shut."""

    def __init__(self, connection: socket.socket) -> None:
        """`live`: whether anything may be changed; `roots`: the `name` and the `label` of each."""
        self._connection = connection
        with _broken_as_shut():
            reader = PacketReader(self._ask(packets.INIT))
            reader.text()  # packets.FOLDERS
            about = json.loads(reader.text())
            self.live: bool = about["live"]
            self.roots: list[dict[str, str]] = about["roots"]

    def open_file(self, path: Sequence[str]) -> OpenFile:
        """An ordinary file; Shut `is_folder` for a folder."""
        handle = self._open(path, packets.FOR_READING)
        with _broken_as_shut():
            return OpenFile(handle, **json.loads(self._ask(packets.DESCRIBE, handle)))

    def look(
        self, path: Sequence[str], sort: str, offset: int, limit: int, *, down: bool
    ) -> Mapping[str, Any] | OpenFile:
        """A file; or of a folder a page of `rows`, how many there are (`total`), whether that is `cut`."""
        try:
            return self.open_file(path)
        except FolderRefused as shut:
            if shut.code != "is_folder":
                raise
        page = text(sort.encode()), byte(down), long(offset), number(limit)
        with _broken_as_shut():
            found: dict[str, Any] = json.loads(self._ask(packets.LIST, _path(path), *page))
        return found

    def read(self, file: OpenFile, first: int, count: int) -> bytes:
        """A piece of a file, of at most `LONGEST_DATA`; nothing for a `count` below zero."""
        data = self._ask(packets.READ, file.handle, long(first), number(max(0, count)))[4:]
        if len(data) < count:
            raise FolderRefused("changed")
        return data

    def close_file(self, file: OpenFile) -> None:
        """Close a file; the server keeps at most a thousand open."""
        self._ask(packets.CLOSE, file.handle)

    def download(self, file: OpenFile, first: int, count: int) -> AsyncIterator[bytes]:
        """A piece of a file of any length.  Raises Shut on the way when the file has less by then."""
        return _receive(self._leave(), file.handle, first, count)

    def archive(
        self, path: Sequence[str], names: Sequence[str], texts: Mapping[str, str]
    ) -> AsyncIterator[bytes]:
        """Return entries of a folder, or all, as a zip file; `texts` has the words for omitted ones."""
        words = text(json.dumps(dict(texts)).encode())
        handle = self._ask(packets.ARCHIVE, _path(path), words, packets.texts([*map(_name, names)]))
        return _receive(self._leave(), handle, 0, _ENDLESS)

    def upload(
        self, path: Sequence[str], *, replace: bool
    ) -> Callable[[AsyncIterable[bytes], int], Awaitable[int]]:
        """Open a file for writing.

        The result takes its bytes and the most that they may be, and returns how many they were.
        """
        flags = packets.TRUNCATED if replace else packets.EXCLUSIVE
        handle = self._open(path, packets.FOR_WRITING | packets.CREATED | flags)
        return partial(_send, self._leave(), handle)

    def make_folder(self, path: Sequence[str]) -> None:
        """Make a folder."""
        self._ask(packets.MKDIR, _path(path), number(0))

    def rename(self, path: Sequence[str], to: Sequence[str]) -> None:
        """Rename an entry; the new name must be free."""
        self._ask(packets.RENAME, _path(path), _path(to))

    def remove(self, path: Sequence[str], names: Sequence[str]) -> None:
        """Remove entries of a folder; after an error those before it are gone."""
        self._ask(packets.REMOVE, _path(path), packets.texts([*map(_name, names)]))

    def _open(self, path: Sequence[str], flags: int) -> bytes:
        return self._ask(packets.OPEN, _path(path), number(flags), number(0))

    def _ask(self, kind: int | bytes, *parts: bytes) -> bytes:
        with _broken_as_shut():
            self._connection.sendall(_request(kind, *parts))
            return _content(frames.read_frame(self._connection.recv))

    def _leave(self) -> socket.socket:
        """The connection, for a stream; it is not closed with this client any more."""
        return socket.socket(fileno=self._connection.detach())


async def _receive(connection: socket.socket, handle: bytes, first: int, count: int) -> AsyncIterator[bytes]:
    wanted: deque[int] = deque()
    end = first + count
    async with _streams(connection) as (reader, writer):
        while wanted or first < end:
            while first < end and len(wanted) < _AHEAD:
                wanted.append(min(LONGEST_DATA, end - first))
                writer.write(_request(packets.READ, handle, long(first), number(wanted[-1])))
                first += wanted[-1]
            data = _content(await frames.read_frame_async(reader))[4:]
            if len(data) != wanted.popleft() and count != _ENDLESS:
                raise FolderRefused("changed")
            if not data:
                return
            yield data


async def _send(connection: socket.socket, handle: bytes, body: AsyncIterable[bytes], most: int) -> int:
    size = unanswered = 0
    async with _streams(connection) as (reader, writer):
        async for data in body:
            for start in range(0, len(data), LONGEST_DATA):
                piece = data[start : start + LONGEST_DATA]
                writer.write(_request(packets.WRITE, handle, long(size), text(piece)))
                size, unanswered = size + len(piece), unanswered + 1
            if size > most:
                writer.write_eof()
                await reader.read()  # until the other side has removed what there is of it
                raise FolderRefused("too_large")
            await writer.drain()
            while unanswered > _AHEAD:
                _content(await frames.read_frame_async(reader))
                unanswered -= 1
        writer.write(_request(packets.CLOSE, handle))
        for _ in range(unanswered + 1):
            _content(await frames.read_frame_async(reader))
    return size


@asynccontextmanager
async def _streams(
    connection: socket.socket,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    connection.setblocking(False)
    with _broken_as_shut():
        reader, writer = await asyncio.open_unix_connection(sock=connection, limit=1 << 20)
        try:
            yield reader, writer
        finally:
            writer.close()


def _request(kind: int | bytes, *parts: bytes) -> bytes:
    """A packet.  Answers come in order, so that all have one number, which is the version in the first."""
    verb = byte(kind) if isinstance(kind, int) else byte(packets.EXTENDED)
    name = b"" if isinstance(kind, int) else text(kind)
    return frames.encode_frame(b"".join((verb, number(packets.PROTOCOL), name, *parts)))


def _content(packet: bytes) -> bytes:
    """Return the content of an answer after its number; nothing at a file's end.

    Raises Shut for a refusal.
    """
    reader = PacketReader(packet)
    kind, _number = reader.byte(), reader.number()
    if kind != packets.STATUS:
        return reader.rest()
    if reader.number() not in {packets.OK, packets.END}:
        code, _, name = reader.text().decode("utf-8", "surrogateescape").partition(": ")
        raise FolderRefused(code, name)
    return b""


def _path(names: Sequence[str]) -> bytes:
    if "/" in names[0]:
        raise FolderRefused("no_root", names[0])
    return text(b"/".join(map(_name, names)))


def _name(name: str) -> bytes:
    """A name's bytes.  Whether it is one is the server's to say, except for what would be several there."""
    if "/" in name:
        raise FolderRefused("name", name)
    return name.encode("utf-8", "surrogateescape")


@contextmanager
def _broken_as_shut(code: str = "broke_off") -> Iterator[None]:
    """Turn errors of the connection, which may carry anything, into Shut."""
    try:
        yield
    except TimeoutError as error:
        raise FolderRefused("slow") from error
    except bodies.SenderGone:
        raise
    except (frames.BrokenFrame, OSError, ValueError, LookupError, TypeError) as error:
        log.warning("folders_unreachable", problem=repr(error))
        raise FolderRefused(code) from error
