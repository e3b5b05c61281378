"""The root file system of a job.

A new root made of the host's own folders, with the hidden ones covered, and with a work folder, /tmp,
/dev, /dev/shm and /proc of the replica's own.  The work folder is reached through a descriptor, so it
may lie where the job's user could never get.

Runs in the first process of new mount, PID and IPC namespaces.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from jobs.node import kernel
from jobs.node.sandbox.folder_access import Owner
from jobs.node.sandbox.mount_points import MountPoints, bind
from jobs.node.staging import mount_paths
from jobs.node.staging.mount_paths import CONSOLE_FOLDER, TMP, WORK

_LASTING_TMP: Final = "/var/tmp"  # noqa: S108 the replica's own, the same as TMP
_LOCKS: Final = "/run/lock"

_ROOT: Final = mount_paths.TMP
"""The new root is put together here: the host's own /tmp has no place in it anyway."""

_DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty", "fuse", "infiniband")
_LINKS: Final = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}
_OWN: Final = (WORK, TMP, _LASTING_TMP)
"""What is to be seen below these lies in the replica's own folders."""

_HARMLESS: Final = kernel.MS_NOSUID | kernel.MS_NODEV


class MountFailed(Exception):
    """A mount of the job is impossible; carries the system's message."""


@dataclass(frozen=True, slots=True)
class BindMount:
    """A mount in a job: an opened folder, or (None) a file system in memory of `size_mib`.

    `anywhere` also permits a path among the system's own folders, as of a folder at its own path.
    """

    path: str
    source: int | None
    read_only: bool = False
    size_mib: int = 0
    anywhere: bool = False


@dataclass(frozen=True, slots=True)
class RootFileSystem:
    """Contents of a root: `work` and `tmp` are folders of the replica's own, `files` maps paths to files.

    The files are mounted over those paths.  Only those folders, `show` and `mounts` can be written to in a
    `read_only` one.  `owner` is the job's user.  `devices` are the device nodes that it has beside the
    common ones: those of its own GPUs.
    """

    work: str
    tmp: str
    shm_mib: int
    hide: tuple[str, ...]
    show: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    read_only: bool = False
    mounts: Sequence[BindMount] = ()
    owner: Owner = (0, 0)
    devices: Sequence[str] = ()

    def sources(self) -> dict[str, str]:
        """Return every path that is mounted over, and what is mounted there."""
        lasting = {_LASTING_TMP: self.tmp} if _is_own_folder(_LASTING_TMP) else {}
        return {WORK: self.work, TMP: self.tmp, **lasting, **{path: path for path in self.show}, **self.files}


def enter(root: RootFileSystem) -> None:
    """Make it this process' root file system; OSError when the kernel refuses."""
    umask = os.umask(0o022)
    opened = {
        place: os.open(path, os.O_PATH) for place, path in root.sources().items() if os.path.lexists(path)
    }
    kernel.mount("", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("tmpfs", _ROOT, "tmpfs", _HARMLESS, "mode=0755,size=1m")
    _copy_host()
    own = tuple(place for place in _OWN if place in opened)
    inner = tuple(f"{place}/" for place in own)
    points = MountPoints(_ROOT, root.owner, own)
    for path in root.hide:
        if _cover(path):
            points.remember(os.path.realpath(path))
    for place, fd in opened.items():
        if not place.startswith(inner):
            _make_target(place, fd)
    _make_points(points, [mount for mount in root.mounts if not mount.path.startswith(inner)])
    if root.read_only:
        kernel.make_read_only(_ROOT)
    for place, fd in opened.items():
        if place.startswith(inner):
            _make_target(place, fd)
        kernel.mount(f"/proc/self/fd/{fd}", _ROOT + place, flags=kernel.MS_BIND | kernel.MS_REC)
        os.close(fd)
    _make_points(points, [mount for mount in root.mounts if mount.path.startswith(inner)])
    for mount in root.mounts:
        _mount(points, mount)
    points.close()
    if _is_own_folder(_LOCKS):
        kernel.mount("tmpfs", _ROOT + _LOCKS, "tmpfs", _HARMLESS | kernel.MS_NOEXEC, "mode=1777,size=1m")
    kernel.mount("proc", f"{_ROOT}/proc", "proc", _HARMLESS | kernel.MS_NOEXEC)
    _devices(root.shm_mib, root.devices)
    _leave_host()
    os.umask(umask)


def _is_own_folder(path: str) -> bool:
    """Tell whether the host has a folder there, not a link to another."""
    return Path(path).is_dir() and os.path.realpath(path) == path


def _copy_host() -> None:
    """Mount every folder of / into the new root, copy its links, and make the replica's own folders."""
    own = ("proc", "dev", TMP[1:], WORK[1:], CONSOLE_FOLDER[1:])
    for name in own:
        Path(_ROOT, name).mkdir(0o755)
    for path in Path("/").iterdir():
        target = Path(_ROOT, path.name)
        if path.name in own:
            continue
        if path.is_symlink():
            target.symlink_to(path.readlink())
        elif path.is_dir():
            target.mkdir()
            kernel.mount(str(path), str(target), flags=kernel.MS_BIND | kernel.MS_REC)


def _cover(path: str) -> bool:
    """Cover a path, if it exists, with something empty; return whether it is an empty folder now."""
    real = os.path.realpath(path)
    target = Path(_ROOT + real)
    if real == "/" or not os.path.lexists(target):
        return False
    if target.is_dir():
        kernel.mount("tmpfs", str(target), "tmpfs", _HARMLESS | kernel.MS_NOEXEC, "mode=0755,size=64k")
        return True
    kernel.mount("/dev/null", str(target), flags=kernel.MS_BIND)
    return False


def _make_target(path: str, source: int | str) -> None:
    """Make a folder or a file, as the source is, to mount over, where there is none yet."""
    target = Path(_ROOT + path)
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if os.path.isdir(source):  # noqa: PTH112 it may be a descriptor
        target.mkdir()
    else:
        target.touch()


def _make_points(points: MountPoints, mounts: Iterable[BindMount]) -> None:
    """Make all mount points before anything is mounted, which would hide what was made in it."""
    for mount in mounts:
        with raising_mount_failed(mount.path):
            points.make(mount.path)


def _mount(points: MountPoints, mount: BindMount) -> None:
    with raising_mount_failed(mount.path):
        with points.at(mount.path) as spot:
            if not mount.anywhere and not mount_paths.is_free("/" + "/".join(points.path_of(spot))):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            if mount.source is None:
                size = f"mode=1777,size={max(1, mount.size_mib)}m"
                kernel.mount("tmpfs", f"/proc/self/fd/{spot}", "tmpfs", _HARMLESS, size)
                return
            bind(mount.source, spot)
        os.close(mount.source)
        with points.at(mount.path) as opened:
            kernel.make_harmless(f"/proc/self/fd/{opened}")
            if mount.read_only:
                kernel.make_read_only(f"/proc/self/fd/{opened}")


def close(mounts: Iterable[BindMount]) -> None:
    """Close what was opened for mounts."""
    for mount in mounts:
        if mount.source is not None:
            os.close(mount.source)


@contextlib.contextmanager
def raising_mount_failed(path: str) -> Iterator[None]:
    """Raise the system's errors as MountFailed, with that path."""
    try:
        yield
    except OSError as error:
        raise MountFailed(f"{path}: {error.strerror}") from error


def list_devices(own: Iterable[str]) -> list[str]:
    """Return the paths in /dev that a job with these nodes of its own has."""
    return [path for path in (*(f"/dev/{name}" for name in _DEVICES), *own) if os.path.lexists(path)]


def _devices(shm_mib: int, own: Iterable[str]) -> None:
    """Make a /dev with common devices, the job's own, and terminals and shared memory of its own."""
    dev = Path(_ROOT, "dev")
    kernel.mount("tmpfs", str(dev), "tmpfs", kernel.MS_NOSUID | kernel.MS_NOEXEC, "mode=0755,size=64k")
    for path in list_devices(own):
        _make_target(path, path)
        kernel.mount(path, _ROOT + path, flags=kernel.MS_BIND | kernel.MS_REC)
    for name, target in _LINKS.items():
        (dev / name).symlink_to(target)
    (dev / "pts").mkdir()
    kernel.mount(
        "devpts", f"{dev}/pts", "devpts", kernel.MS_NOSUID | kernel.MS_NOEXEC, "newinstance,ptmxmode=0666"
    )
    (dev / "shm").mkdir()
    kernel.mount("tmpfs", f"{dev}/shm", "tmpfs", _HARMLESS, f"mode=1777,size={max(1, shm_mib)}m")


def _leave_host() -> None:
    os.chdir(_ROOT)
    kernel.pivot_root(".", ".")
    kernel.unmount(".", kernel.MNT_DETACH)
    os.chdir("/")
