"""The kind of a folder's file system."""

import sys
from pathlib import Path

_NETWORK = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "davfs", "gfs2", "gpfs", "lustre", "ncpfs", "nfs", "nfs4"}
    | {"ocfs2", "orangefs", "pvfs2", "smb3", "smbfs"}
)
_NETWORK_FUSE = frozenset(
    {"ceph", "ceph-fuse", "gcsfuse", "glusterfs", "goofys", "juicefs", "rclone", "s3fs", "sshfs"}
)


def network_filesystem(path: Path) -> str | None:
    """The type of the network file system that `path` lies on, or would lie on; None for a local disk.

    SQLite's write-ahead log and Unix sockets need one kernel that sees all: here they break, quietly.
    """
    if sys.platform != "linux":
        return None
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    return network_type(mounts, path.resolve())


def network_type(mountinfo: str, path: Path) -> str | None:
    """The same from the text of /proc/self/mountinfo (proc(5)) and a path without symlinks."""
    best, kind = -1, ""
    for line in mountinfo.splitlines():
        mount, _, source = line.partition(" - ")
        point = Path(_unescape(mount.split(" ")[4]))
        if path.is_relative_to(point) and len(point.parts) >= best:  # a later mount hides an earlier one
            best, kind = len(point.parts), source.split(" ")[0]
    name = kind.removeprefix("fuse.")
    is_network = name in _NETWORK or (kind.startswith("fuse.") and name in _NETWORK_FUSE)
    return kind if is_network else None


def _unescape(text: str) -> str:
    """Blanks and backslashes are written as three octal digits."""
    return text.encode().decode("unicode_escape").encode("latin-1").decode("utf-8", errors="replace")
