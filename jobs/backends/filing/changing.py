"""Changing what lies in a folder: putting a file there, making, renaming and removing."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from jobs.backends.filing import ways
from jobs.backends.filing.ways import Root, Trouble, checked, shown, told
from jobs.backends.local import kernel

_FILE_MODE: Final = 0o600
_FOLDER_MODE: Final = 0o777
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_STEM: Final = 200


def put(
    root: Root, names: Sequence[str], asked: Mapping[str, Any], take: Callable[[], bytes]
) -> dict[str, Any]:
    """Write what `take` brings, until it brings nothing, to the file `name`; whole or not at all.

    Under another name first.  With `replace` an ordinary file, or a link, of that name gives way.
    """
    name, most = checked(str(asked["name"])), int(asked["most"])
    with ways.folder(root, names) as around:
        mode = _may_put(around, name, replace=bool(asked.get("replace")))
        beside = b".%s.upload-%s" % (name[:_STEM], os.urandom(4).hex().encode())
        with told(shown(name)):
            fd = os.open(beside, _NEW, _FILE_MODE, dir_fd=around)
        try:
            with told(shown(name)):
                size = _fill(fd, most, take)
                os.fchmod(fd, mode)
                os.fsync(fd)
                _settle(around, beside, name, replace=bool(asked.get("replace")))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(beside, dir_fd=around)
            raise
        finally:
            os.close(fd)
    return {"size": size}


def check_put(root: Root, names: Sequence[str], asked: Mapping[str, Any]) -> None:
    """Raises Trouble when nothing could be put there, before anything is sent."""
    with ways.folder(root, names) as around:
        _may_put(around, checked(str(asked["name"])), replace=bool(asked.get("replace")))


def _may_put(around: int, name: bytes, *, replace: bool) -> int:
    """The mode that the file will have."""
    try:
        seen = os.stat(name, dir_fd=around, follow_symlinks=False)
    except FileNotFoundError:
        return _FILE_MODE
    except OSError as error:
        raise Trouble(ways.trouble_of(error), shown(name)) from error
    if not replace:
        raise Trouble("exists", shown(name))
    if stat.S_ISLNK(seen.st_mode):
        return _FILE_MODE
    if not stat.S_ISREG(seen.st_mode):
        raise Trouble("is_folder" if stat.S_ISDIR(seen.st_mode) else "special", shown(name))
    return stat.S_IMODE(seen.st_mode) & 0o777


def _fill(fd: int, most: int, take: Callable[[], bytes]) -> int:
    size = 0
    while data := take():
        size += len(data)
        if size > most:
            raise Trouble("too_large")
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(fd, rest) :]
    return size


def _settle(around: int, beside: bytes, name: bytes, *, replace: bool) -> None:
    if replace:
        os.rename(beside, name, src_dir_fd=around, dst_dir_fd=around)
    else:
        _rename_new(around, beside, name)


def _rename_new(around: int, old: bytes, new: bytes) -> None:
    """Never over anything; where the file system can't say so at one instant, after a look."""
    try:
        kernel.rename_new(around, old, new)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS):
            raise
        with contextlib.suppress(FileNotFoundError):
            os.stat(new, dir_fd=around, follow_symlinks=False)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from error
        os.rename(old, new, src_dir_fd=around, dst_dir_fd=around)


def make(root: Root, names: Sequence[str], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Make the folder `name`."""
    name = checked(str(asked["name"]))
    with ways.folder(root, names) as around, told(shown(name)):
        os.mkdir(name, _FOLDER_MODE, dir_fd=around)
    return {}


def rename(root: Root, names: Sequence[str], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Call `name` `to`, where nothing is called so yet."""
    name, to = checked(str(asked["name"])), checked(str(asked["to"]))
    with ways.folder(root, names) as around:
        with told(shown(name)):
            os.stat(name, dir_fd=around, follow_symlinks=False)
        with told(shown(to)):
            _rename_new(around, name, to)
    return {}


def remove(root: Root, names: Sequence[str], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Remove the entries `chosen`, folders with all that is in them; links themselves, never what they name.

    Raises Trouble at the first that can't be removed; those before it are gone then.
    """
    chosen = [checked(str(name)) for name in asked["chosen"]]
    with ways.folder(root, names) as around:
        mount = ways.mount_of(around)
        for name in chosen:
            with told(shown(name)):
                _remove(around, name, mount, 0)
    return {"removed": len(chosen)}


def _remove(around: int, name: bytes, mount: bytes, depth: int) -> None:
    if not stat.S_ISDIR(os.stat(name, dir_fd=around, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=around)
        return
    if depth > ways.DEEPEST:
        raise Trouble("too_many", shown(name))
    fd = ways.enter(around, name)
    try:
        if ways.mount_of(fd) != mount:
            raise Trouble("mounted", shown(name))
        for inner in os.listdir(fd):
            _remove(fd, os.fsencode(inner), mount, depth + 1)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=around)
