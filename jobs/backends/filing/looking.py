"""Looking: what is in a folder, and the bytes of a file."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from jobs.backends.filing import ways
from jobs.backends.filing.ways import Root, Trouble, checked, shown

MOST_NAMES: Final = 1_000_000
MOST_ROWS: Final = 1000
PIECE: Final = 256 * 1024
_LONGEST_TARGET: Final = 1024
_HEAD: Final = 64

SORTS: Final = ("name", "size", "time")

Entry = os.DirEntry[str]
Answer = tuple[dict[str, Any], Iterator[bytes]]
"""What is told first, and the bytes that follow."""


def look(root: Root, names: Sequence[str], asked: Mapping[str, Any]) -> Answer:
    """What lies at a place: a folder with a page of its entries, or a file with a piece of it."""
    if names:
        with ways.folder(root, names[:-1]) as around:
            kind = _kind_at(around, checked(names[-1]))
        if kind == "file":
            return read(root, names, asked)
    with ways.folder(root, names) as fd:
        return listed(fd, asked), iter(())


def _kind_at(around: int, name: bytes) -> str:
    try:
        seen = os.stat(name, dir_fd=around, follow_symlinks=False)
    except OSError as error:
        raise Trouble(ways.trouble_of(error), shown(name)) from error
    kind = kind_of(seen.st_mode)
    if kind in {"link", "other"}:
        raise Trouble({"link": "link", "other": "special"}[kind], shown(name))
    return kind


def kind_of(mode: int) -> str:
    """`folder`, `file`, `link` or `other`."""
    if stat.S_ISDIR(mode):
        return "folder"
    if stat.S_ISREG(mode):
        return "file"
    return "link" if stat.S_ISLNK(mode) else "other"


def listed(fd: int, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Rows `offset` to `offset + limit` of a folder, folders first, sorted by name, size or time.

    Only the rows that are told are looked at, unless the order itself needs more.
    """
    offset, limit = int(asked.get("offset", 0)), min(int(asked.get("limit", 200)), MOST_ROWS)
    found, more = _entries(fd)
    key = _order(str(asked.get("sort", "name")), fd)
    found.sort(key=key, reverse=bool(asked.get("down")))
    if asked.get("sort", "name") == "name":
        found.sort(key=lambda entry: not entry.is_dir(follow_symlinks=False))
    rows = [_row(fd, entry) for entry in found[offset : offset + limit]]
    return {"kind": "folder", "rows": rows, "total": len(found), "offset": offset, "cut": more}


def _entries(fd: int) -> tuple[list[Entry], bool]:
    found: list[Entry] = []
    with os.scandir(fd) as entries:
        for entry in entries:
            if len(found) >= MOST_NAMES:
                return found, True
            found.append(entry)
    return found, False


def _order(sort: str, fd: int) -> Callable[[Entry], Any]:
    if sort == "size":
        return lambda entry: (_seen(fd, entry, "st_size"), entry.name)
    if sort == "time":
        return lambda entry: (_seen(fd, entry, "st_mtime_ns"), entry.name)
    return lambda entry: (entry.name.casefold(), entry.name)


def _seen(fd: int, entry: Entry, what: str) -> int:
    try:
        found = os.stat(entry.name, dir_fd=fd, follow_symlinks=False)
    except OSError:
        return -1
    if what == "st_size" and stat.S_ISDIR(found.st_mode):
        return -1
    return int(getattr(found, what))


def _row(fd: int, entry: Entry) -> dict[str, Any]:
    name = os.fsencode(entry.name)
    row: dict[str, Any] = {"name": shown(name), "kind": "other", "size": None, "time": None, "target": ""}
    with contextlib.suppress(OSError):  # it was there a moment ago
        found = os.stat(name, dir_fd=fd, follow_symlinks=False)
        kind = kind_of(found.st_mode)
        row |= {"kind": kind, "time": found.st_mtime, "size": found.st_size if kind == "file" else None}
        if kind == "link":
            row["target"] = shown(os.readlink(name, dir_fd=fd)[:_LONGEST_TARGET])
    return row


def read(root: Root, names: Sequence[str], asked: Mapping[str, Any]) -> Answer:
    """A file's bytes, as many as `first` and `last` name, unless it is not the one that `tag` names any more.

    `first` below zero counts from the end; `last` is None for the end.  Raises Trouble `range` for none.
    """
    if not names:
        raise Trouble("is_folder", root.label)
    with ways.folder(root, names[:-1]) as around:
        fd, seen = ways.open_file(around, checked(names[-1]))
    size, tag = seen.st_size, tag_of(seen)
    told: dict[str, Any] = {"kind": "file", "size": size, "time": seen.st_mtime, "tag": tag, "whole": True}
    first, count = 0, size
    if asked.get("first") is not None and asked.get("tag") in (None, tag):
        first = int(asked["first"])
        first = max(0, size + first) if first < 0 else first
        last = size - 1 if asked.get("last") is None else min(int(asked["last"]), size - 1)
        count, told["whole"] = last - first + 1, False
        if count <= 0 and not asked.get("lenient"):
            os.close(fd)
            raise Trouble("range", str(size))
    told |= {"first": first, "count": max(0, count), "head": os.pread(fd, _HEAD, 0).hex()}
    return told, _pieces(fd, first, max(0, count))


def tag_of(seen: os.stat_result) -> str:
    """Another one as soon as the file is another one, or was written to."""
    return f"{seen.st_ino:x}-{seen.st_size:x}-{seen.st_mtime_ns:x}"


def _pieces(fd: int, first: int, count: int) -> Iterator[bytes]:
    """Exactly `count` bytes.  Trouble when the file has fewer by now."""
    try:
        while count:
            piece = os.pread(fd, min(PIECE, count), first)
            if not piece:
                raise Trouble("changed")
            first, count = first + len(piece), count - len(piece)
            yield piece
    finally:
        os.close(fd)
