"""Changing what lies in a folder: putting a file there, renaming and removing."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import Final

from jobs.node import kernel
from jobs.node.sftp import paths
from jobs.node.sftp.paths import FolderError, decode_name, raise_trouble
from jobs.node.sftp.server import ServedFile

_FILE_MODE: Final = 0o600
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_STEM: Final = 200


class Upload(ServedFile):
    """A file that is there, whole, once it is closed; until then its bytes lie under another name."""

    def __init__(self, folder: int, name: bytes, *, replace: bool) -> None:
        """With `replace` an ordinary file, or a link, of that name gives way.  Raises Trouble."""
        self._name, self._replace = name, replace
        self._mode = self._find_mode(folder)
        self._unfinished = b".%s.upload-%s" % (name[:_STEM], os.urandom(4).hex().encode())
        with raise_trouble(decode_name(name)):
            super().__init__(os.open(self._unfinished, _NEW, _FILE_MODE, dir_fd=folder))
        self._folder = os.dup(folder)

    def _find_mode(self, folder: int) -> int:
        """The mode that the file will have."""
        with raise_trouble(decode_name(self._name)):
            try:
                seen = os.stat(self._name, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                return _FILE_MODE
        if not self._replace:
            raise FolderError("exists", decode_name(self._name))
        if stat.S_ISLNK(seen.st_mode):
            return _FILE_MODE
        if not stat.S_ISREG(seen.st_mode):
            raise FolderError(
                "is_folder" if stat.S_ISDIR(seen.st_mode) else "special", decode_name(self._name)
            )
        return stat.S_IMODE(seen.st_mode) & 0o777

    def write(self, offset: int, data: bytes) -> None:
        """See Opened."""
        with raise_trouble(decode_name(self._name)):
            super().write(offset, data)

    def close(self) -> None:
        """Have it take its place."""
        folder = self._folder
        try:
            with raise_trouble(decode_name(self._name)):
                os.fchmod(self.fd, self._mode)
                os.fsync(self.fd)
                if self._replace:
                    os.rename(self._unfinished, self._name, src_dir_fd=folder, dst_dir_fd=folder)
                else:
                    rename_new(folder, self._unfinished, folder, self._name)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Leave nothing under the other name."""
        with contextlib.suppress(OSError):
            os.unlink(self._unfinished, dir_fd=self._folder)
        os.close(self._folder)
        super().close()


def rename_new(around: int, old: bytes, into: int, new: bytes) -> None:
    """Never over anything; where the file system can't say so at one instant, after a look."""
    try:
        kernel.rename_new(around, old, into, new)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS):
            raise
        with contextlib.suppress(FileNotFoundError):
            os.stat(new, dir_fd=into, follow_symlinks=False)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from error
        os.rename(old, new, src_dir_fd=around, dst_dir_fd=into)


def remove(around: int, name: bytes, mount: bytes, depth: int = 0) -> None:
    """Remove an entry, a folder with all that is in it on that mount; a link itself, never what it names."""
    if not stat.S_ISDIR(os.stat(name, dir_fd=around, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=around)
        return
    if depth > paths.DEEPEST:
        raise FolderError("too_many", decode_name(name))
    fd = paths.enter(around, name)
    try:
        if paths.mount_of(fd) != mount:
            raise FolderError("mounted", decode_name(name))
        for inner in os.listdir(fd):
            remove(fd, os.fsencode(inner), mount, depth + 1)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=around)
