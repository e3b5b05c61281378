"""JSON files that are either there whole or not there at all.

A `Folder` is held open, so that what is written lands in it whatever becomes of its path: the wrapper
goes on writing after it has left the file system that the console lives in.
"""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

_serial: Final = itertools.count()


class Folder:
    """An open folder.  Files are 0600; folders made through it are 0700."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open the folder at `path`; OSError when there is none."""
        return cls(os.open(path, os.O_RDONLY | os.O_DIRECTORY))

    def sub(self, name: str) -> Folder:
        """Open a folder in this one, made if need be; never through a symlink."""
        self.make(name)
        return Folder(os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=self.fd))

    def make(self, name: str) -> None:
        """Make a folder in this one unless it is there."""
        try:
            os.mkdir(name, 0o700, dir_fd=self.fd)
        except FileExistsError:
            return

    def exists(self, name: str) -> bool:
        """Tell whether something of that name is there."""
        try:
            os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def read(self, name: str) -> dict[str, Any] | None:
        """The object stored under `name`; None when absent, or cut short by a crash of the machine."""
        try:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=self.fd)
        except FileNotFoundError:
            return None
        with os.fdopen(fd, encoding="utf-8") as file:
            return parse(file.read())

    def write(self, name: str, value: dict[str, Any], *, durable: bool = True) -> None:
        """Put `value` under `name`, replacing what was there at one instant."""
        temporary = self._temporary(name, value, durable=durable)
        os.rename(temporary, name, src_dir_fd=self.fd, dst_dir_fd=self.fd)
        if durable:
            os.fsync(self.fd)

    def publish(self, name: str, value: dict[str, Any]) -> bool:
        """Put `value` under `name` if nothing is there yet; whether this call did it.  Durable."""
        temporary = self._temporary(name, value, durable=True)
        try:
            os.link(temporary, name, src_dir_fd=self.fd, dst_dir_fd=self.fd)
        except FileExistsError:
            return False
        finally:
            os.unlink(temporary, dir_fd=self.fd)
        os.fsync(self.fd)
        return True

    def rename(self, name: str, new: str) -> None:
        """Rename a file or folder.  Durable."""
        os.rename(name, new, src_dir_fd=self.fd, dst_dir_fd=self.fd)
        os.fsync(self.fd)

    def remove(self, name: str) -> None:
        """Remove a file; absent is fine."""
        try:
            os.unlink(name, dir_fd=self.fd)
        except FileNotFoundError:
            return

    def close(self) -> None:
        """Close it."""
        os.close(self.fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _temporary(self, name: str, value: dict[str, Any], *, durable: bool) -> str:
        temporary = f".{name}.{os.getpid()}.{os.urandom(4).hex()}.{next(_serial)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(temporary, flags, 0o600, dir_fd=self.fd), "w", encoding="utf-8") as file:
            json.dump(value, file, ensure_ascii=False, separators=(",", ":"))
            file.flush()
            if durable:
                os.fsync(file.fileno())
        return temporary


def parse(text: str) -> dict[str, Any] | None:
    """The JSON object in `text`; None when it is not one."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def read(path: Path) -> dict[str, Any] | None:
    """The object stored at `path`; None when absent or cut short."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
