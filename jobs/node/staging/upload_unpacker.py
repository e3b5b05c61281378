"""Uploaded code, laid into a replica's own folder by the job's user.

Two processes, one pipe.  The one that may read the console's files knows contents, and hands on the names
unread; the one that acts on the names is the job's user, has nothing open but the pipe and the folder, and
goes each step from a folder that it opened itself, through no link.  So whatever is written in a tree, it can
do no more than the job's own command.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Self

from jobs.node import kernel
from jobs.node.supervisor import layout

if TYPE_CHECKING:
    from jobs.trees import Supplied

_HEAD: Final = struct.Struct(">I")
_PIECE: Final = 1 << 20
_OPEN: Final = 64
"""As many files of the console are held open, since many contents lie in one."""

_STEP: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def note(attempt: Path, tree: str) -> Path:
    """Return the file that lists a tree's entries and where their contents lie: a line of JSON each."""
    return attempt / layout.TREES / tree


def write_notes(attempt: Path, supplies: Mapping[str, Supplied]) -> None:
    """Write it down for every tree of an attempt; from the beginning, if somebody was killed meanwhile."""
    (attempt / layout.TREES).mkdir(mode=0o700, exist_ok=True)
    for tree, supply in supplies.items():
        path = note(attempt, tree)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            for entry in supply.tree.entries:
                where = supply.where[entry.sha256] if entry.has_content else ()
                file.write(json.dumps([entry.to_json(), *where], separators=(",", ":")) + "\n")
            file.flush()
            os.fsync(handle)


class Handover:
    """The two ends.  `place` is the number under which the job's user finds the pipe."""

    def __init__(self, path: Path, folder: int) -> None:
        self._path, self._folder = path, folder
        self.place = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def fork_reader(self) -> None:
        """Called in the child that becomes the job's user: leave another one behind, that reads for it."""
        reader, writer = os.pipe()
        me = os.getpid()
        if os.fork() == 0:
            _be_the_reader(self._path, me, writer, (reader, self.place))
        os.close(writer)
        os.dup2(reader, self.place)
        os.close(reader)

    def unpack(self) -> None:
        """Called as the job's user."""
        os.umask(0o022)
        with os.fdopen(self.place, "rb", _PIECE) as stream:
            try:
                _lay(stream, self._folder)
            except (OSError, ValueError) as error:
                sys.stderr.write(f"{error}\n")
                sys.stderr.flush()
                os._exit(1)

    def close(self) -> None:
        """Let go of the place."""
        os.close(self.place)


def _be_the_reader(path: Path, parent: int, writer: int, others: tuple[int, ...]) -> None:
    code = 1
    try:
        kernel.die_with_parent(signal.SIGKILL)
        if os.getppid() == parent:
            for fd in others:
                os.close(fd)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            with os.fdopen(writer, "wb", _PIECE) as stream:
                _hand_on(path, stream)
            code = 0
    except Exception as error:  # noqa: BLE001 nobody else would tell
        sys.stderr.write(f"{error}\n")
        sys.stderr.flush()
    os._exit(code)


def _hand_on(path: Path, stream: BinaryIO) -> None:
    with path.open(encoding="utf-8") as lines, _Contents() as contents:
        for line in lines:
            entry, *where = json.loads(line)
            said = json.dumps(entry).encode()
            stream.write(_HEAD.pack(len(said)) + said)
            if where:
                stream.writelines(contents.read(where[0], where[1], entry[3]))
        stream.write(_HEAD.pack(0))


class _Contents:
    """Reads of the console's own files, a few of which stay open."""

    def __init__(self) -> None:
        self._open: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for fd in self._open.values():
            os.close(fd)

    def read(self, path: str, offset: int, size: int) -> Iterator[bytes]:
        fd = self._open.get(path)
        if fd is None:
            if len(self._open) >= _OPEN:
                os.close(self._open.pop(next(iter(self._open))))
            fd = self._open[path] = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        while size:
            piece = os.pread(fd, min(size, _PIECE), offset)
            if not piece:
                raise EOFError("uploaded content is cut short")
            yield piece
            offset, size = offset + len(piece), size - len(piece)


# --- as the job's user -----------------------------------------------------------------------------------


def _lay(stream: BinaryIO, folder: int) -> None:
    way = _Way(folder)
    while length := _HEAD.unpack(_exactly(stream, _HEAD.size))[0]:
        entry: list[Any] = json.loads(_exactly(stream, length))
        path, kind = entry[0], entry[1]
        *around, name = path.split("/")
        if not path or any(part in ("", ".", "..") for part in (*around, name)):
            raise ValueError(f"{path!r}: not a path")
        here = way.to(around)
        try:
            _make(stream, here, name, kind, entry)
        except OSError as error:
            raise ValueError(f"{path}: {error.strerror}") from error


def _make(stream: BinaryIO, here: int, name: str, kind: str, entry: list[Any]) -> None:
    if kind == "folder":
        _folder(here, name)
    elif kind == "link":
        os.symlink(entry[2], name, dir_fd=here)
    else:
        mode = 0o777 if kind == "program" else 0o666
        with os.fdopen(os.open(name, _NEW, mode, dir_fd=here), "wb", 0) as file:
            _fill(stream, file.write, entry)


def _fill(stream: BinaryIO, write: Callable[[bytes], object], entry: list[Any]) -> None:
    digest, rest = hashlib.sha256(), entry[3]
    while rest:
        piece = _exactly(stream, min(rest, _PIECE))
        write(piece)
        digest.update(piece)
        rest -= len(piece)
    if digest.hexdigest() != entry[2]:
        raise ValueError(f"{entry[0]}: not what was uploaded")


def _exactly(stream: BinaryIO, count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise ValueError("the upload is cut short")
    return data


def _folder(here: int, name: str) -> None:
    try:
        os.mkdir(name, 0o777, dir_fd=here)
    except FileExistsError:
        os.close(os.open(name, _STEP, dir_fd=here))  # a folder, and no link to one


class _Way:
    """The folders on the way to the last path: the next one has most of them in common."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._steps: list[tuple[str, int]] = []

    def to(self, names: list[str]) -> int:
        common = 0
        for (mine, _), theirs in zip(self._steps, names, strict=False):
            if mine != theirs:
                break
            common += 1
        for _, fd in self._steps[common:]:
            os.close(fd)
        del self._steps[common:]
        for name in names[common:]:
            here = self._steps[-1][1] if self._steps else self._root
            try:
                _folder(here, name)
                self._steps.append((name, os.open(name, _STEP, dir_fd=here)))
            except OSError as error:
                raise ValueError(f"{'/'.join(names)}: {error.strerror}") from error
        return self._steps[-1][1] if self._steps else self._root
