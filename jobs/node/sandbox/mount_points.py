"""Mount points in a job's root file system, made without touching the machine's own folders.

A folder in which a new mount point is needed is first covered, in the job's root file system only, by one of
ours: with everything that was in it, or empty where the job's user could not pass through it anyway.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from jobs.node import kernel
from jobs.node.sandbox.folder_access import Owner, rights_of
from jobs.node.sandbox.folders import parts_of

_FOLDER: Final = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_MOST: Final = 4096
"""A folder with more entries is not taken over entry by entry."""

_HARMLESS: Final = kernel.MS_NOSUID | kernel.MS_NODEV


class MountPoints:
    """Makes mount points below `root`, which becomes the root for the job's user `owner`.

    What is made in the folders `given` to the job belongs to the user.
    """

    def __init__(self, root: str, owner: Owner, given: Sequence[str]) -> None:
        self._path, self._root = parts_of(root), os.open(root, _FOLDER)
        self._owner = owner
        self._given = [parts_of(path) for path in given]
        self._ours: set[int] = set()
        self.remember("/")

    def close(self) -> None:
        """Close the root."""
        os.close(self._root)

    @contextlib.contextmanager
    def at(self, path: str) -> Iterator[int]:
        """Open the folder at `path` below the root (O_PATH); links lead nowhere out of the root."""
        fd = kernel.open_in(self._root, path, _FOLDER)
        try:
            yield fd
        finally:
            os.close(fd)

    def path_of(self, fd: int) -> tuple[str, ...]:
        """Return the path below the root of an opened folder, links followed."""
        return parts_of(str(Path(f"/proc/self/fd/{fd}").readlink()))[len(self._path) :]

    def remember(self, path: str) -> None:
        """Record that a file system of ours lies at `path`, where anything may be made."""
        with self.at(path) as fd:
            self._ours.add(os.fstat(fd).st_dev)

    def make(self, path: str) -> None:
        """Make a folder at `path` unless there is one, and let the job's user get there."""
        names = parts_of(path)
        for count, name in enumerate(names, 1):
            here = "/" + "/".join(names[:count])
            try:
                with self.at(here) as fd:
                    closed = count < len(names) and not self._is_ours(fd) and not self._may(fd, os.O_PATH)
                if closed:
                    self._cover(here, 0o755)
            except FileNotFoundError:
                self._make_in("/" + "/".join(names[: count - 1]), name)

    def _make_in(self, around: str, name: str) -> None:
        with self.at(around) as fd:
            real = self.path_of(fd)
            if any(real[: len(given)] == given for given in self._given):
                with rights_of(self._owner):
                    os.mkdir(name, 0o755, dir_fd=fd)
                return
            ours = self._is_ours(fd)
        if not ours:
            self._take_over(around)
        with self.at(around) as fd:
            os.mkdir(name, 0o755, dir_fd=fd)

    def _is_ours(self, fd: int) -> bool:
        return os.fstat(fd).st_dev in self._ours

    def _may(self, fd: int, how: int) -> bool:
        """Tell whether the job's user may pass through a folder (O_PATH), or list it (O_RDONLY)."""
        with rights_of(self._owner):
            try:
                os.close(os.open(".", how | os.O_DIRECTORY, dir_fd=fd))
            except PermissionError:
                return False
        return True

    def _cover(self, path: str, mode: int) -> None:
        """Mount an empty folder of ours over one."""
        with self.at(path) as fd:
            kernel.mount("tmpfs", f"/proc/self/fd/{fd}", "tmpfs", _HARMLESS, f"mode={mode:o},size=1m")
        self.remember(path)

    def _take_over(self, path: str) -> None:
        """Mount a folder of ours over one, with everything in it that is in the other."""
        with self.at(path) as fd:
            listable = self._may(fd, os.O_RDONLY)
            before = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        try:
            names = os.listdir(before)  # noqa: PTH208 of an opened folder
            if len(names) > _MOST:
                raise OSError(errno.E2BIG, os.strerror(errno.E2BIG), path)
            self._cover(path, 0o755 if listable else 0o711)
            with self.at(path) as ours:
                for name in names:
                    _mirror(before, ours, name)
        finally:
            os.close(before)


def _mirror(before: int, ours: int, name: str) -> None:
    """Make an entry of the folder `before` visible in the folder `ours` too."""
    entry = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=before)
    kind = os.fstat(entry).st_mode
    if stat.S_ISLNK(kind):
        os.symlink(os.readlink(name, dir_fd=before), name, dir_fd=ours)
    else:
        if stat.S_ISDIR(kind):
            os.mkdir(name, 0o755, dir_fd=ours)
        else:
            os.mknod(name, 0o600, dir_fd=ours)
        target = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=ours)
        bind(entry, target)
        os.close(target)
    os.close(entry)


def bind(source: int, target: int) -> None:
    """Bind-mount one opened folder, or file, over another."""
    kernel.mount(f"/proc/self/fd/{source}", f"/proc/self/fd/{target}", flags=kernel.MS_BIND | kernel.MS_REC)
