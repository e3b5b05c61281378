"""Making room in a job's view for what is laid into it, without touching the machine's own folders.

A folder in which something new is to be seen is first replaced, in the view only, by one of ours: with
everything that was in it, or empty where the job's user could not pass through it anyway.
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
from jobs.node.sandbox.folders import parts_of
from jobs.node.sandbox.opening import Owner, rights_of

_PLACE: Final = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_MOST: Final = 4096
"""A folder with more entries is not taken over entry by entry."""

_HARMLESS: Final = kernel.MS_NOSUID | kernel.MS_NODEV


class Rooms:
    """Makes room below `root`, which becomes the root of a view for the job's user `owner`.

    What is made in the folders `given` to the job is the user's.
    """

    def __init__(self, root: str, owner: Owner, given: Sequence[str]) -> None:
        self._path, self._root = parts_of(root), os.open(root, _PLACE)
        self._owner = owner
        self._given = [parts_of(path) for path in given]
        self._ours: set[int] = set()
        self.remember("/")

    def close(self) -> None:
        """Let go of the root."""
        os.close(self._root)

    @contextlib.contextmanager
    def at(self, path: str) -> Iterator[int]:
        """The folder at `path` in the view, opened (O_PATH); links lead nowhere out of the view."""
        fd = kernel.open_in(self._root, path, _PLACE)
        try:
            yield fd
        finally:
            os.close(fd)

    def real(self, fd: int) -> tuple[str, ...]:
        """Where in the view an opened folder lies, links followed."""
        return parts_of(str(Path(f"/proc/self/fd/{fd}").readlink()))[len(self._path) :]

    def remember(self, path: str) -> None:
        """A file system of ours lies at `path`: what is made in it is in the view only."""
        with self.at(path) as fd:
            self._ours.add(os.fstat(fd).st_dev)

    def make(self, path: str) -> None:
        """See that there is a folder at `path`, and that the job's user can get there."""
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
            real = self.real(fd)
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
        """Whether the job's user may pass through a folder (O_PATH), or list it (O_RDONLY)."""
        with rights_of(self._owner):
            try:
                os.close(os.open(".", how | os.O_DIRECTORY, dir_fd=fd))
            except PermissionError:
                return False
        return True

    def _cover(self, path: str, mode: int) -> None:
        """Lay an empty folder of ours over one."""
        with self.at(path) as fd:
            kernel.mount("tmpfs", f"/proc/self/fd/{fd}", "tmpfs", _HARMLESS, f"mode={mode:o},size=1m")
        self.remember(path)

    def _take_over(self, path: str) -> None:
        """Lay a folder of ours over one, with everything in it that is in the other."""
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
                    _show(before, ours, name)
        finally:
            os.close(before)


def _show(before: int, ours: int, name: str) -> None:
    """Have an entry of the folder `before` in the folder `ours` too."""
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
        lay(entry, target)
        os.close(target)
    os.close(entry)


def lay(source: int, target: int) -> None:
    """Have one opened folder, or file, be seen at the place of another."""
    kernel.mount(f"/proc/self/fd/{source}", f"/proc/self/fd/{target}", flags=kernel.MS_BIND | kernel.MS_REC)
