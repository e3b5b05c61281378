"""Access to the folder of an attempt whose job runs as its owner's UNIX user.

The folder stays the console's.  An access list opens it to that one user, and by inheritance both may read
and write whatever is made in it, and nobody else.  The sticky bit protects the console's files in it.
"""

from __future__ import annotations

import os
import stat
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from jobs.backends.base import Unreachable

ACCESS: Final = "system.posix_acl_access"
INHERITED: Final = "system.posix_acl_default"

_OWNER, _USER, _GROUP, _MASK, _OTHERS = 0x01, 0x02, 0x04, 0x10, 0x20
_ALL, _NONE = 7, 0
_NOBODY_NAMED: Final = 0xFFFFFFFF
_VERSION: Final = struct.pack("<I", 2)


def prepare(folder: Path, uid: int) -> None:
    """Make the folder, still closed to others; files in it are for the user too."""
    folder.parent.mkdir(mode=0o711, exist_ok=True)
    folder.parent.chmod(0o711)
    folder.mkdir(mode=0o700, exist_ok=True)
    os.setxattr(folder, INHERITED, _list({uid, os.geteuid()}))


def grant_access(folder: Path, uid: int) -> None:
    """Open the folder to the user."""
    os.setxattr(folder, ACCESS, _list({uid}))
    folder.chmod(stat.S_IMODE(folder.stat().st_mode) | stat.S_ISVTX)


def check(root: Path) -> None:
    """Raise Unreachable where users can't reach their folders, or these can't be closed to others."""
    for folder in (root, *root.parents):
        if not folder.stat().st_mode & stat.S_IXOTH:
            raise Unreachable(
                f"{folder} is closed to the users that jobs run as: chmod o+x it. Each job's own folder is "
                "open to its user alone."
            )
    try:
        with tempfile.TemporaryDirectory(prefix=".tried-", dir=root) as tried:
            os.setxattr(tried, INHERITED, _list({os.geteuid()}))
    except OSError as error:
        raise Unreachable(f"The file system of {root} keeps no POSIX access lists: {error}") from error


def _list(uids: set[int]) -> bytes:
    """Return an access list: all rights for the owner and these users, none for others."""
    return _VERSION + b"".join(struct.pack("<HHI", *entry) for entry in _entries(uids))


def _entries(uids: set[int]) -> Iterator[tuple[int, int, int]]:
    yield _OWNER, _ALL, _NOBODY_NAMED
    for uid in sorted(uids):
        yield _USER, _ALL, uid
    yield _GROUP, _NONE, _NOBODY_NAMED
    yield _MASK, _ALL, _NOBODY_NAMED
    yield _OTHERS, _NONE, _NOBODY_NAMED
