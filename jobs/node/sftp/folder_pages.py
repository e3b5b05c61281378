"""A page of a folder's entries, in an order."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable
from itertools import islice
from typing import Any, Final

from jobs.node.sftp.paths import decode_name

MOST_NAMES: Final = 1_000_000
MOST_ROWS: Final = 1000
_LONGEST_TARGET: Final = 1024
_KINDS: Final = {stat.S_IFDIR: "folder", stat.S_IFREG: "file", stat.S_IFLNK: "link"}

Entry = os.DirEntry[str]


def page(fd: int, sort: str, offset: int, limit: int, *, down: bool) -> dict[str, Any]:
    """Rows `offset` to `offset + limit` of a folder, folders first, sorted by name, size or time.

    Only the rows that are told are looked at, unless the order itself needs more.
    """
    with os.scandir(fd) as entries:
        found = list(islice(entries, MOST_NAMES))
        cut = next(entries, None) is not None
    found.sort(key=_order(sort, fd), reverse=down)
    if sort == "name":
        found.sort(key=lambda entry: not entry.is_dir(follow_symlinks=False))
    rows = [_row(fd, entry) for entry in found[offset : offset + min(limit, MOST_ROWS)]]
    return {"rows": rows, "total": len(found), "offset": offset, "cut": cut}


def _order(sort: str, fd: int) -> Callable[[Entry], Any]:
    if sort == "size":
        return lambda entry: (_stat(fd, entry, "st_size"), entry.name)
    if sort == "time":
        return lambda entry: (_stat(fd, entry, "st_mtime_ns"), entry.name)
    return lambda entry: (entry.name.casefold(), entry.name)


def _stat(fd: int, entry: Entry, what: str) -> int:
    """Not by the entry's own `stat`, which it would keep."""
    try:
        found = os.stat(entry.name, dir_fd=fd, follow_symlinks=False)
    except OSError:
        return -1
    return -1 if what == "st_size" and stat.S_ISDIR(found.st_mode) else int(getattr(found, what))


def _row(fd: int, entry: Entry) -> dict[str, Any]:
    name = os.fsencode(entry.name)
    row: dict[str, Any] = {
        "name": decode_name(name),
        "kind": "other",
        "size": None,
        "time": None,
        "target": "",
    }
    with contextlib.suppress(OSError):  # it was there a moment ago
        found = os.stat(name, dir_fd=fd, follow_symlinks=False)
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "other")
        row |= {"kind": kind, "time": found.st_mtime, "size": found.st_size if kind == "file" else None}
        if kind == "link":
            row["target"] = decode_name(os.readlink(name, dir_fd=fd)[:_LONGEST_TARGET])
    return row
