"""Downloads of a whole log and searches through it, in pieces that fit into memory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from django.core.files.storage import storages

from jobs.logs import log_store, redaction
from jobs.models import LogStream

PIECE: Final = 256 * 1024

SEARCH_S: Final = 2.0
"""Seconds after which a search returns what it has found, and the offset to go on from."""

LONGEST_LINE: Final = 64 * 1024
"""Bytes; a longer line is searched as if it were several."""

EXCERPT: Final = 2000


def whole_size(stream: LogStream) -> int:
    """Return how many bytes `pieces` yields: at least that many, exactly that many of an ended log."""
    if stream.sealed and stream.cut_from is not None and stream.cut_to is not None:
        return stream.size - (stream.cut_to - stream.cut_from) + len(log_store.format_cut(stream))
    return stream.size if stream.sealed else log_store.read(stream, 0, 0).size


def pieces(stream: LogStream, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield the log from `start` to its present end: the offset of each piece, and its bytes.

    A notice stands for the bytes that a cap left out.  Raises `log_store.Unsafe`.
    """
    if not stream.sealed and stream.live_path:
        try:
            with log_store.open_live(stream.live_path) as file:
                yield from _of_file(
                    file, start, log_store.visible_size(stream, file), redaction.of_stream(stream)
                )
            return
        except FileNotFoundError:
            stream = LogStream.objects.get(pk=stream.pk)
    yield from _of_chunks(stream, start)


def _of_file(file: int, start: int, size: int, redactor: redaction.Redactor) -> Iterator[tuple[int, bytes]]:
    while start < size and (data := redactor.pread(file, min(PIECE, size - start), start)):
        yield start, data
        start += len(data)


def _of_chunks(stream: LogStream, start: int) -> Iterator[tuple[int, bytes]]:
    chunks = list(stream.chunks.order_by("offset"))
    for chunk in chunks:
        if stream.cut_to is not None and chunk.offset == stream.cut_to and start <= stream.cut_to:
            yield stream.cut_from or 0, log_store.format_cut(stream)
        if chunk.offset + chunk.length <= start:
            continue
        with storages["logs"].open(chunk.storage_name) as file:
            at = max(start, chunk.offset)
            file.seek(at - chunk.offset)
            while data := file.read(PIECE):
                yield at, data
                at += len(data)


@dataclass(frozen=True, slots=True)
class Match:
    """A matching line: the offset of its first byte, and its text around the match."""

    offset: int
    text: str


@dataclass(frozen=True, slots=True)
class Matches:
    """Results of a search, and the offset to go on from (None: the whole log was searched)."""

    found: list[Match]
    next_offset: int | None


def search(stream: LogStream, text: str, start: int, limit: int, seconds: float = SEARCH_S) -> Matches:
    """Find the lines from `start` on that contain `text`, ignoring the case of ASCII letters.

    It returns after about `seconds`, or `limit` matches.
    """
    needle = text.encode().lower()
    deadline = time.monotonic() + seconds
    found: list[Match] = []
    for offset, block in blocks(stream, start, overlap=len(needle) - 1):
        found += _in_block(block, offset, needle)
        if len(found) >= limit:
            last = found[limit - 1]
            return Matches(found[:limit], _after_line(block, offset, last.offset))
        if time.monotonic() > deadline:
            return Matches(found, offset + len(block))
    return Matches(found, None)


def blocks(stream: LogStream, start: int, overlap: int) -> Iterator[tuple[int, bytes]]:
    """Yield the log in blocks of whole lines; blocks of a too long line share `overlap` bytes."""
    rest = b""
    at = start
    for offset, piece in pieces(stream, start):
        if offset != at + len(rest):  # something was left out in between
            if rest:
                yield at, rest
            at, rest = offset, b""
        data = rest + piece
        cut = data.rfind(b"\n") + 1
        if not cut and len(data) > LONGEST_LINE:
            cut = len(data) - overlap
            yield at, data
        elif cut:
            yield at, data[:cut]
        at, rest = at + cut, data[cut:]
    if rest:
        yield at, rest


def _in_block(block: bytes, offset: int, needle: bytes) -> Iterator[Match]:
    # Whole blocks are searched at once: `bytes.find` is what makes a search through gigabytes bearable.
    # Lower case of ASCII leaves every byte in its place; other letters are compared as they were typed.
    lowered = block.lower()
    at = lowered.find(needle)
    while at >= 0:
        begin = block.rfind(b"\n", 0, at) + 1
        end = block.find(b"\n", at)
        end = len(block) if end < 0 else end
        around = max(begin, at - EXCERPT // 2)
        yield Match(offset + begin, block[around : min(end, around + EXCERPT)].decode("utf-8", "replace"))
        at = lowered.find(needle, end)


def _after_line(block: bytes, offset: int, line: int) -> int:
    end = block.find(b"\n", line - offset)
    return offset + (end + 1 if end >= 0 else len(block))
