"""The log store: raw bytes by offset.

A live log is read where it lies; an ended one is sealed into chunks of the storage called `logs`.  Reading
where it lies means: beneath the jobs folder, through no symbolic link, a regular file.  The job's own secrets
are masked in either (`jobs.logs.redaction`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import Storage, storages
from django.db import transaction

from jobs.logs import redaction
from jobs.models import Attempt, LogChunk, LogStream

CHUNK: Final = 8 * 1024 * 1024
MOST_AT_ONCE: Final = 4 * 1024 * 1024
"""One read answers at most this much, whatever was asked."""

LINE_REACH: Final = 64 * 1024
"""A read from the end looks this far back for the beginning of a line."""

COPY: Final = 1024 * 1024


class Unsafe(Exception):
    """The path leads out of the jobs folder, through a link, or to something that is no file."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Bytes from `offset`, and where to go on.  `state` is of `LogStream.State`."""

    data: bytes
    offset: int
    next_offset: int
    size: int
    state: str


def _storage() -> Storage:
    return storages["logs"]


def jobs_root() -> Path:
    """The folder beneath which live logs may lie."""
    return Path(settings.CONSOLE_HOME) / "jobs"


def relative_to_root(path: str) -> str:
    """`path` as stored in `LogStream.live_path`: below the jobs folder, or whole in the one shared with
    the nodes of Slurm clusters; empty when it lies elsewhere.
    """
    here = PurePosixPath(path)
    if here.is_relative_to(jobs_root()):
        return str(here.relative_to(jobs_root()))
    shared = settings.CONSOLE_SLURM_FOLDER
    return path if shared and here.is_relative_to(shared) else ""


def _root_of(live_path: str) -> tuple[Path, tuple[str, ...]]:
    """The folder beneath which a live log has to lie, and the way there; raises Unsafe."""
    path, shared = PurePosixPath(live_path), settings.CONSOLE_SLURM_FOLDER
    root = jobs_root()
    if shared and path.is_relative_to(shared):
        root, path = Path(shared), path.relative_to(shared)
    if not path.parts or any(part in {"..", "/"} for part in path.parts):
        raise Unsafe(live_path)
    return root, path.parts


@contextmanager
def opened(live_path: str) -> Iterator[int]:
    """A descriptor of a live log, opened beneath the jobs folder one component at a time.

    Raises FileNotFoundError, or Unsafe for whatever a job may have put in the way.
    """
    root, parts = _root_of(live_path)
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            deeper = _open_at(folder, part, os.O_DIRECTORY)
            os.close(folder)
            folder = deeper
        file = _open_at(folder, parts[-1], os.O_NONBLOCK)
    finally:
        os.close(folder)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise Unsafe(live_path)
        yield file
    finally:
        os.close(file)


def _open_at(folder: int, name: str, flags: int) -> int:
    try:
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags, dir_fd=folder)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Unsafe(name) from error


def read(stream: LogStream, offset: int, limit: int) -> Slice:
    """At most `limit` bytes from `offset`.

    A negative offset counts from the end and is moved to the beginning of a line.  Raises Unsafe.
    """
    limit = max(0, min(limit, MOST_AT_ONCE))
    if stream.sealed:
        return _read_sealed(stream, offset, limit)
    if not stream.live_path:
        return Slice(b"", 0, 0, 0, stream.state)
    try:
        with opened(stream.live_path) as file:
            size = live_size(stream, file)
            start = _start(file, offset, size)
            data = redaction.of_stream(stream).pread(file, min(limit, size - start), start)
    except FileNotFoundError:
        fresh = LogStream.objects.filter(pk=stream.pk, sealed=True).first()
        if fresh is not None:
            return _read_sealed(fresh, offset, limit)
        return Slice(b"", 0, 0, 0, LogStream.State.OPEN if stream.state == "open" else "gone")
    return Slice(data, start, start + len(data), size, stream.state)


def live_size(stream: LogStream, file: int) -> int:
    """How much of a log that lies in `file` may be told now."""
    size = os.fstat(file).st_size
    growing = stream.state == LogStream.State.OPEN
    return redaction.of_stream(stream).visible(file, size) if growing else size


def _start(file: int, offset: int, size: int) -> int:
    if offset >= 0:
        return min(offset, size)
    wanted = max(0, size + offset)
    if wanted == 0:
        return 0
    reach = max(0, wanted - LINE_REACH)
    before = os.pread(file, wanted - reach, reach)
    newline = before.rfind(b"\n")
    return reach + newline + 1 if newline >= 0 else wanted


def _read_sealed(stream: LogStream, offset: int, limit: int) -> Slice:
    if offset < 0:
        start = max(0, stream.size + offset)
        if start:
            reach = max(0, start - LINE_REACH)
            newline = _sealed_bytes(stream, reach, start - reach).rfind(b"\n")
            start = reach + newline + 1 if newline >= 0 else start
    else:
        start = min(offset, stream.size)
    if stream.cut_from is not None and stream.cut_to is not None and stream.cut_from <= start < stream.cut_to:
        told = told_cut(stream)
        return Slice(told, start, stream.cut_to, stream.size, stream.state)
    if stream.cut_from is not None and start < stream.cut_from:
        limit = min(limit, stream.cut_from - start)
    data = _sealed_bytes(stream, start, limit)
    return Slice(data, start, start + len(data), stream.size, stream.state)


def told_cut(stream: LogStream) -> bytes:
    """What stands in a log where its cap left something out."""
    return f"\n[{(stream.cut_to or 0) - (stream.cut_from or 0)} bytes were left out here]\n".encode()


def _sealed_bytes(stream: LogStream, start: int, length: int) -> bytes:
    pieces = []
    end = min(start + length, stream.size)
    for chunk in stream.chunks.filter(offset__gt=start - CHUNK, offset__lt=end):
        low, high = max(start, chunk.offset), min(end, chunk.offset + chunk.length)
        if low >= high:
            continue
        with _storage().open(chunk.storage_name) as file:
            file.seek(low - chunk.offset)
            pieces.append(file.read(high - low))
    return b"".join(pieces)


def seal(stream: LogStream) -> None:
    """Store a log that will not grow any more; repeating after any interruption changes nothing.

    A log over the cap keeps its head and its tail, and says between them how much is missing.
    """
    if stream.sealed:
        return
    size, cut = 0, None
    if stream.live_path:
        try:
            with opened(stream.live_path) as file:
                size = os.fstat(file).st_size
                cut = _cut(size)
                _store(stream, file, size, cut)
        except (FileNotFoundError, Unsafe):
            _mark(stream, LogStream.State.GONE, 0, None)
            return
    _mark(stream, LogStream.State.TRUNCATED if cut else LogStream.State.COMPLETE, size, cut)


def _cut(size: int) -> tuple[int, int] | None:
    cap = settings.CONSOLE_LOG_CAP_MIB * 1024 * 1024
    if size <= cap:
        return None
    half = max(CHUNK, cap // 2 // CHUNK * CHUNK)
    return (half, (size - half) // CHUNK * CHUNK)


def _store(stream: LogStream, file: int, size: int, cut: tuple[int, int] | None) -> None:
    done = dict(stream.chunks.values_list("offset", "length"))
    redactor = redaction.of_stream(stream)
    for offset in range(0, size, CHUNK):
        if cut and cut[0] <= offset < cut[1]:
            continue
        length = min(CHUNK, size - offset)
        if done.get(offset) == length:
            continue
        name = f"{stream.pk}/{offset}"
        if _storage().exists(name):
            _storage().delete(name)
        stored = _storage().save(name, ContentFile(_pread_all(file, length, offset, redactor)))
        LogChunk.objects.update_or_create(
            stream=stream, offset=offset, defaults={"length": length, "storage_name": stored}
        )


def _pread_all(file: int, length: int, offset: int, redactor: redaction.Redactor) -> bytes:
    pieces = []
    while length:
        piece = redactor.pread(file, min(length, COPY), offset)
        if not piece:
            break
        pieces.append(piece)
        offset += len(piece)
        length -= len(piece)
    return b"".join(pieces)


def _mark(stream: LogStream, state: str, size: int, cut: tuple[int, int] | None) -> None:
    LogStream.objects.filter(pk=stream.pk).update(
        sealed=True,
        state=state,
        size=size,
        cut_from=cut[0] if cut else None,
        cut_to=cut[1] if cut else None,
    )


def finish(stream: LogStream) -> None:
    """The replica has ended: its log is complete where it lies."""
    LogStream.objects.filter(pk=stream.pk, state=LogStream.State.OPEN).update(state=LogStream.State.COMPLETE)


def discard(attempt: Attempt) -> None:
    """Remove the stored logs of a deleted job's attempt."""
    for chunk in LogChunk.objects.filter(stream__attempt=attempt):
        _storage().delete(chunk.storage_name)
    with transaction.atomic():
        LogStream.objects.filter(attempt=attempt).delete()
