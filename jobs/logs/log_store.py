"""The log store: raw bytes by offset.

A live log is read from the job's own file; an ended one is sealed into chunks of the storage called `logs`.
A live log has to be a regular file beneath the jobs folder, reached through no symbolic link.  The job's own
secrets are masked in either (`jobs.logs.redaction`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import Storage, storages
from django.db import transaction
from django.db.models import Sum

from jobs.logs import redaction
from jobs.models import Attempt, LogChunk, LogStream

CHUNK: Final = 8 * 1024 * 1024
MOST_AT_ONCE: Final = 4 * 1024 * 1024
"""The most bytes of one read, whatever limit is requested."""

LINE_REACH: Final = 64 * 1024
"""A read from the end looks this far back for the beginning of a line."""

COPY: Final = 1024 * 1024


class Unsafe(Exception):
    """The path leads out of the jobs folder, through a link, or to something other than a file."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Bytes from `offset`, and the offset to read next.  `state` is of `LogStream.State`."""

    data: bytes
    offset: int
    next_offset: int
    size: int
    state: str


def _storage() -> Storage:
    return storages["logs"]


def jobs_root() -> Path:
    """Return the folder beneath which live logs lie."""
    root: Path = settings.CONSOLE_SHARED_FOLDER / "jobs"
    return root


def relative_to_root(path: str) -> str:
    """Return `path` as `LogStream.live_path` stores it; "" outside of the folders for logs.

    It is relative to the jobs folder, or absolute in the folder shared with the nodes of Slurm clusters.
    """
    here = PurePosixPath(path)
    if here.is_relative_to(jobs_root()):
        return str(here.relative_to(jobs_root()))
    shared = settings.CONSOLE_SLURM_FOLDER
    return path if shared and here.is_relative_to(shared) else ""


def locate(live_path: str) -> tuple[Path, tuple[str, ...]]:
    """Return the folder that a live log has to lie in, and its path from there; raises Unsafe."""
    path, shared = PurePosixPath(live_path), settings.CONSOLE_SLURM_FOLDER
    root = jobs_root()
    if shared and path.is_relative_to(shared):
        root, path = Path(shared), path.relative_to(shared)
    if not path.parts or any(part in {"..", "/"} for part in path.parts):
        raise Unsafe(live_path)
    return root, path.parts


@contextmanager
def open_live(live_path: str) -> Iterator[int]:
    """Open a live log beneath the jobs folder; yield its descriptor.

    Raises FileNotFoundError, or Unsafe for whatever else a job may have put in the way.
    """
    root, parts = locate(live_path)
    folder = open_folder(root)
    try:
        file = open_beneath(folder, parts)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Unsafe(live_path) from error
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise Unsafe(live_path)
        yield file
    finally:
        os.close(file)


def open_folder(path: Path) -> int:
    """Return a descriptor of a folder."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def open_beneath(folder: int, parts: Sequence[str]) -> int:
    """Open a file beneath a folder, one component at a time, through no symbolic link; close the folder.

    A named pipe does not block.  Raises OSError.
    """
    for position, part in enumerate(parts, 1):
        flags = os.O_NONBLOCK if position == len(parts) else os.O_DIRECTORY
        try:
            opened = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags, dir_fd=folder)
        finally:
            os.close(folder)
        folder = opened
    return folder


def read(stream: LogStream, offset: int, limit: int) -> Slice:
    """Return at most `limit` bytes from `offset`.

    A negative offset counts from the end and is moved to the beginning of a line.  Raises Unsafe.
    """
    limit = max(0, min(limit, MOST_AT_ONCE))
    if stream.sealed:
        return _read_sealed(stream, offset, limit)
    if not stream.live_path:
        return Slice(b"", 0, 0, 0, stream.state)
    try:
        with open_live(stream.live_path) as file:
            size = visible_size(stream, file)
            start = _find_start(offset, size, lambda at, length: os.pread(file, length, at))
            data = redaction.of_stream(stream).pread(file, min(limit, size - start), start)
    except FileNotFoundError:
        fresh = LogStream.objects.filter(pk=stream.pk, sealed=True).first()
        if fresh is not None:
            return _read_sealed(fresh, offset, limit)
        return Slice(b"", 0, 0, 0, LogStream.State.OPEN if stream.state == "open" else "gone")
    return Slice(data, start, start + len(data), size, stream.state)


def live_size(live_path: str) -> int:
    """Return how many bytes a live log has; 0 where it isn't there, or may not be read."""
    if not live_path:
        return 0
    try:
        with open_live(live_path) as file:
            return os.fstat(file).st_size
    except (FileNotFoundError, Unsafe):
        return 0


def visible_size(stream: LogStream, file: int) -> int:
    """Return how many bytes of the live log in `file` may be shown now."""
    size = os.fstat(file).st_size
    growing = stream.state == LogStream.State.OPEN
    return redaction.of_stream(stream).visible_size(file, size) if growing else size


def _find_start(offset: int, size: int, read_at: Callable[[int, int], bytes]) -> int:
    """Return the byte that `offset` means; `read_at` reads at a position a number of bytes."""
    if offset >= 0:
        return min(offset, size)
    start = max(0, size + offset)
    reach = max(0, start - LINE_REACH)
    newline = read_at(reach, start - reach).rfind(b"\n")
    return reach + newline + 1 if newline >= 0 else start


def _read_sealed(stream: LogStream, offset: int, limit: int) -> Slice:
    start = _find_start(offset, stream.size, lambda at, length: _sealed_bytes(stream, at, length))
    if stream.cut_from is not None and stream.cut_to is not None and stream.cut_from <= start < stream.cut_to:
        return Slice(format_cut(stream), start, stream.cut_to, stream.size, stream.state)
    if stream.cut_from is not None and start < stream.cut_from:
        limit = min(limit, stream.cut_from - start)
    data = _sealed_bytes(stream, start, limit)
    return Slice(data, start, start + len(data), stream.size, stream.state)


def format_cut(stream: LogStream) -> bytes:
    """Return the notice that stands in a log for the bytes that its cap left out."""
    return f"\n[{(stream.cut_to or 0) - (stream.cut_from or 0)} bytes were left out here]\n".encode()


def _sealed_bytes(stream: LogStream, start: int, length: int) -> bytes:
    pieces = []
    end = min(start + length, stream.size)
    for chunk in _chunks_between(stream, start, end):
        low, high = max(start, chunk.offset), min(end, chunk.offset + chunk.length)
        if low >= high:
            continue
        with _storage().open(chunk.storage_name) as file:
            file.seek(low - chunk.offset)
            pieces.append(file.read(high - low))
    return b"".join(pieces)


def _chunks_between(stream: LogStream, start: int, end: int) -> Iterable[LogChunk]:
    """Return the chunks with bytes from `start` to `end`, and maybe others if all were fetched before."""
    if "chunks" in getattr(stream, "_prefetched_objects_cache", {}):
        return stream.chunks.all()
    return stream.chunks.filter(offset__gt=start - CHUNK, offset__lt=end)


def seal(stream: LogStream) -> None:
    """Store a log that has ended; it may be repeated after any interruption.

    A log over the cap keeps its head and its tail, with a notice of how much is missing between them.
    """
    if stream.sealed:
        return
    size, cut = 0, None
    if stream.live_path:
        try:
            with open_live(stream.live_path) as file:
                size = os.fstat(file).st_size
                cut = _plan_cut(size)
                _store(stream, file, size, cut)
        except (FileNotFoundError, Unsafe):
            _mark(stream, LogStream.State.GONE, 0, None)
            return
    _mark(stream, LogStream.State.TRUNCATED if cut else LogStream.State.COMPLETE, size, cut)


def _plan_cut(size: int) -> tuple[int, int] | None:
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
    """Mark the log of a replica that has ended as complete."""
    LogStream.objects.filter(pk=stream.pk, state=LogStream.State.OPEN).update(state=LogStream.State.COMPLETE)


def remove(stream: LogStream) -> int | None:
    """Remove a stored log for good, its files before its rows; return its bytes, None where it was removed.

    In the caller's transaction; it may be repeated after any interruption.
    """
    chunks = LogChunk.objects.filter(stream=stream)
    for name in chunks.values_list("storage_name", flat=True):
        _storage().delete(name)
    stored = LogStream.objects.filter(pk=stream.pk, sealed=True).exclude(state=LogStream.State.GONE)
    if not stored.update(state=LogStream.State.GONE, size=0, cut_from=None, cut_to=None):
        return None
    size = chunks.aggregate(size=Sum("length"))["size"] or 0
    chunks.delete()
    return int(size)


def discard(attempt: Attempt) -> None:
    """Remove the stored logs of a deleted job's attempt."""
    for chunk in LogChunk.objects.filter(stream__attempt=attempt):
        _storage().delete(chunk.storage_name)
    with transaction.atomic():
        LogStream.objects.filter(attempt=attempt).delete()
