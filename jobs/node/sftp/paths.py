"""Path resolution in a job's folders: from a root, by names alone, each step from the descriptor of the last.

A path is a root's name and the names below it, with slashes between them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Final

PLACE: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_STEP: Final = PLACE | os.O_DIRECTORY
_FILE: Final = os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
LONGEST_NAME: Final = 255
DEEPEST: Final = 200


class FolderError(Exception):
    """It can't be done; `code` is one of `jobs.messages.folders`, `name` what it is about."""

    def __init__(self, code: str, name: str = "") -> None:
        super().__init__(code, name)
        self.code, self.name = code, name


_CODES: Final = {
    errno.ENOENT: "absent",
    errno.ENOTDIR: "absent",
    errno.ELOOP: "link",
    errno.EACCES: "denied",
    errno.EPERM: "denied",
    errno.EROFS: "read_only",
    errno.EEXIST: "exists",
    errno.ENOTEMPTY: "exists",
    errno.EISDIR: "exists",
    errno.ENOSPC: "full",
    errno.EDQUOT: "full",
    errno.EFBIG: "full",
    errno.EBUSY: "mounted",
    errno.EXDEV: "mounted",
    errno.ENAMETOOLONG: "name",
    errno.EINVAL: "name",
}


def trouble_of(error: OSError) -> str:
    """The code for what the system says."""
    return _CODES.get(error.errno or 0, "failed")


@dataclass(frozen=True, slots=True)
class BrowsableRoot:
    """A folder that may be browsed: `name` in requests, `label` as the job knows it.

    Either opened beforehand (`fd`), or found in the job's view: `base` is the job's own folder or `/`, and
    from there it is gone step by step like every other way.
    """

    name: str
    label: str
    fd: int = -1
    base: str = ""
    parts: Sequence[str] = ()

    def open(self) -> int:
        """The folder, to be read.  Raises Trouble."""
        try:
            if self.fd >= 0:
                return os.open(".", _FOLDER, dir_fd=self.fd)
            start = os.open(self.base, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            return _down(start, [os.fsencode(part) for part in self.parts])
        except (OSError, FolderError) as error:
            raise FolderError("no_root", self.label) from error


@dataclass(frozen=True, slots=True)
class BrowsableFolders:
    """Folders that may be browsed; they may be changed only while the replica lives."""

    roots: Sequence[BrowsableRoot] = field(default=())
    live: bool = False

    @property
    def fds(self) -> tuple[int, ...]:
        """Descriptors that were opened beforehand."""
        return tuple(root.fd for root in self.roots if root.fd >= 0)

    def find(self, path: bytes) -> tuple[BrowsableRoot, list[bytes]]:
        """The root that a path begins with, and the names below it.  Raises Trouble."""
        first, *names = path.split(b"/")
        found = next((root for root in self.roots if os.fsencode(root.name) == first), None)
        if found is None:
            raise FolderError("no_root", decode_name(first))
        return found, [check_name(name) for name in names]


def decode_name(name: bytes) -> str:
    """A name as it travels: bytes that are no UTF-8 are kept."""
    return name.decode("utf-8", "surrogateescape")


def check_name(name: bytes) -> bytes:
    """The name itself.  Raises Trouble for what is none: `..`, and everything with a slash."""
    if name in (b"", b".", b"..") or b"/" in name or b"\0" in name or len(name) > LONGEST_NAME:
        raise FolderError("name", decode_name(name))
    return name


def folder(site: BrowsableFolders, path: bytes) -> AbstractContextManager[int]:
    """The folder at a path, opened to be read.  Raises Trouble."""
    return _folder(*site.find(path))


@contextlib.contextmanager
def entry(site: BrowsableFolders, path: bytes) -> Iterator[tuple[int, bytes]]:
    """The folder, opened to be read, and the name in it that a path leads to.  Raises Trouble."""
    root, names = site.find(path)
    if not names:
        raise FolderError("is_folder", root.label)
    with _folder(root, names[:-1]) as around:
        yield around, names[-1]


@contextlib.contextmanager
def _folder(root: BrowsableRoot, names: Sequence[bytes]) -> Iterator[int]:
    with raise_trouble(decode_name(names[-1]) if names else root.label):
        fd = root.open()
        found = _down(fd, names) if names else fd
    try:
        yield found
    finally:
        os.close(found)


def _down(fd: int, parts: Sequence[bytes]) -> int:
    """From a folder, which is closed, by these names into one below it."""
    for part in parts:
        try:
            if stat.S_ISLNK(os.stat(part, dir_fd=fd, follow_symlinks=False).st_mode):
                raise FolderError("link", decode_name(part))
            inner = os.open(part, _STEP, dir_fd=fd)
        finally:
            os.close(fd)
        fd = inner
    try:
        return os.open(".", _FOLDER, dir_fd=fd)
    finally:
        os.close(fd)


def enter(fd: int, name: bytes) -> int:
    """A folder in a folder, to be read; OSError."""
    return os.open(name, _FOLDER, dir_fd=fd)


def open_file(around: int, name: bytes) -> int:
    """An ordinary file in a folder, opened to be read.  Raises Trouble.

    First only its place is taken, which does nothing to whatever lies there; what is then opened is what was
    looked at, whoever changes the name meanwhile.
    """
    with raise_trouble(decode_name(name)):
        place = os.open(name, PLACE, dir_fd=around)
        try:
            allow(os.fstat(place), decode_name(name))
            return os.open(f"/proc/self/fd/{place}", _FILE)
        finally:
            os.close(place)


def allow(seen: os.stat_result, name: str) -> None:
    """Raises Trouble for what is no ordinary file, or a second name for somebody else's."""
    if stat.S_ISLNK(seen.st_mode):
        raise FolderError("link", name)
    if stat.S_ISDIR(seen.st_mode):
        raise FolderError("is_folder", name)
    if not stat.S_ISREG(seen.st_mode):
        raise FolderError("special", name)
    if seen.st_nlink > 1 and seen.st_uid != os.geteuid():
        raise FolderError("linked", name)


def mount_of(fd: int) -> bytes:
    """Return the mount of a descriptor; a folder of the same file system may be on another one."""
    with open(f"/proc/self/fdinfo/{fd}", "rb") as file:
        return next((line for line in file if line.startswith(b"mnt_id:")), b"")


@contextlib.contextmanager
def raise_trouble(name: str) -> Iterator[None]:
    """Raise the system's errors as Trouble with that name."""
    try:
        yield
    except OSError as error:
        raise FolderError(trouble_of(error), name) from error
