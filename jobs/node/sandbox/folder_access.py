"""Access to folders of this machine with the rights of a job's user, and through no link.

Whoever may write to a folder on the way could put a link there at any moment, also after a check.  So
the way is gone step by step, each from the folder that the last one opened, and what is opened at the
end is what is mounted.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from jobs.node import kernel, measure
from jobs.node.sandbox.folders import parts_of
from jobs.node.staging.mount_specs import MountKind, MountSpec

_STEP: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_TO_ALL: Final = 0o755
_PRIVATE: Final = 0o700
_SHORT_S: Final = 1.0

Owner = tuple[int, int]
"""The user and group id of a job."""


def open_bound(bound: MountSpec, owner: Owner) -> int:
    """A descriptor (O_PATH) of the folder behind a place of the job, made if its kind says so.

    OSError with the folder's path when there is none, a link is on the way, or the user may not pass.
    """
    if bound.kind is MountKind.STORE:
        return _open_store(bound, owner)
    if bound.kind is MountKind.JOB:
        return _open_job(bound, owner)
    with rights_of(owner):
        return _walk(bound.source, make=bound.kind is MountKind.OUTPUT)


def open_left(bound: MountSpec, owner: Owner) -> int:
    """A descriptor (O_PATH) of the folder that an ended job leaves behind; OSError as `open_bound`.

    Nothing is made.  On the way to a store's folder of the job's user there may be the console's folders.
    """
    if bound.kind is MountKind.STORE:
        fd = _walk(bound.root, make=False)
        for name in parts_of(bound.source)[len(parts_of(bound.root)) :]:
            fd = _step(fd, name, bound.source)
        if os.fstat(fd).st_uid == owner[0]:
            return _check_unmoved(fd, bound.source)
        os.close(fd)
    with rights_of(owner):
        return _walk(bound.source, make=False)


def make_inner(folder: int, path: str, owner: Owner) -> None:
    """Make a folder of the job's own in another one of its own."""
    fd = os.dup(folder)
    with rights_of(owner):
        for name in parts_of(path):
            fd = _step(fd, name, path, make=True)
    os.close(fd)


def check_folder(path: str, owner: Owner, most: int | None = None) -> None:
    """OSError unless the job's user can open the folder now.

    TooLarge when a short look finds more than `most` bytes in it.
    """
    with rights_of(owner):
        fd = _walk(path, make=False)
        try:
            if most is not None:
                with contextlib.suppress(TimeoutError):  # the job finds out
                    _check_size(fd, most, time.monotonic() + _SHORT_S)
        finally:
            os.close(fd)


def read_file(path: str, owner: Owner, most: int) -> bytes:
    """At most `most` bytes of a file, read as the job's user would; OSError."""
    folder, _, name = path.rpartition("/")
    with rights_of(owner):
        around = _walk(folder, make=False)
        try:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=around)
        finally:
            os.close(around)
        with os.fdopen(fd, "rb") as file:
            return file.read(most)


def check_folder_size(fd: int, most: int, owner: Owner) -> None:
    """Raise TooLarge for more than `most` bytes in an opened folder; OSError if the user may not look."""
    with rights_of(owner):
        _check_size(fd, most, None)


def _check_size(fd: int, most: int, until: float | None) -> None:
    folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
    try:
        measure.size(folder, most, until=until)
    finally:
        os.close(folder)


def _open_store(bound: MountSpec, owner: Owner) -> int:
    """Made by the console: the folders on the way are nobody's but its own, the last one is the person's."""
    *way, last = parts_of(bound.source)[len(parts_of(bound.root)) :]
    fd = _walk(bound.root, make=False)
    for name in way:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=fd)
            os.chmod(name, _OPEN_TO_ALL, dir_fd=fd)
        fd = _step(fd, name, bound.source)
    fd = _step(fd, last, bound.source, make=True)
    if os.fstat(fd).st_uid == os.geteuid() != owner[0]:
        os.chown(f"/proc/self/fd/{fd}", *owner)
    return _check_unmoved(fd, bound.source)


def _open_job(bound: MountSpec, owner: Owner) -> int:
    """Another job of the same user made what is in it; on the way there are only the console's folders."""
    fd = _walk(bound.root, make=False)
    if os.fstat(fd).st_uid != owner[0]:
        os.close(fd)
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), bound.source)
    with rights_of(owner):
        for name in parts_of(bound.source)[len(parts_of(bound.root)) :]:
            fd = _step(fd, name, bound.source)
    return _check_unmoved(fd, bound.source)


def _walk(path: str, *, make: bool) -> int:
    fd = os.open("/", _STEP)
    for name in parts_of(path):
        fd = _step(fd, name, path, make=make)
    return _check_unmoved(fd, path)


def _step(fd: int, name: str, path: str, *, make: bool = False) -> int:
    """Open a folder in a folder, which is closed; OSError about the whole path."""
    try:
        if make:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, _PRIVATE, dir_fd=fd)
        return os.open(name, _STEP, dir_fd=fd)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error
    finally:
        os.close(fd)


def _check_unmoved(fd: int, path: str) -> int:
    """A folder that somebody moved elsewhere while the way was gone is not the one that was asked for."""
    if parts_of(str(Path(f"/proc/self/fd/{fd}").readlink())) == parts_of(path):
        return fd
    os.close(fd)
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


@contextlib.contextmanager
def rights_of(owner: Owner) -> Iterator[None]:
    """Meanwhile this thread sees and makes files as the job's user would, who is in no other group."""
    if os.geteuid() == owner[0]:
        yield
        return
    groups: Sequence[int] = os.getgroups()
    kernel.set_file_rights(*owner, ())
    try:
        yield
    finally:
        kernel.set_file_rights(os.geteuid(), os.getegid(), groups)
