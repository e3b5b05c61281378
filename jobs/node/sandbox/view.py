"""The file system as a job sees it.

A new root made of the host's own folders, with the hidden ones covered, and with a work folder, /tmp,
/dev, /dev/shm and /proc of the replica's own.  The work folder is reached through a descriptor, so it
may lie where the job's user could never get.

Runs in the first process of new mount, PID and IPC namespaces.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from jobs.node import kernel
from jobs.node.sandbox.opening import Owner
from jobs.node.sandbox.rooms import Rooms, lay
from jobs.node.staging import targets

WORK: Final = targets.WORK
"""Where a replica finds its own folder."""

HOUSE: Final = targets.HOUSE
"""Where it finds what the console tells it in files."""

TMP: Final = targets.TMP
"""The replica's own."""

LASTING_TMP: Final = "/var/tmp"  # noqa: S108 likewise, and the same
_LOCKS: Final = "/run/lock"

_ROOT: Final = TMP
"""The new root is put together here: the host's own /tmp has no place in it anyway."""

_DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty", "fuse", "kfd")
_DEVICE_FAMILIES: Final = ("nvidia", "infiniband", "dri")
_LINKS: Final = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}
_OWN: Final = (WORK, TMP, LASTING_TMP)
"""What is to be seen below these lies in the replica's own folders."""

_HARMLESS: Final = kernel.MS_NOSUID | kernel.MS_NODEV


class CannotLay(Exception):
    """A place that the job names can't be laid into its view; carries the system's words for why."""


@dataclass(frozen=True, slots=True)
class Laid:
    """A place that the job names: an opened folder, or (None) a file system in memory of `size_mib`.

    `anywhere` also lets it lie where the system's own folders are: a folder at its own place does.
    """

    path: str
    source: int | None
    read_only: bool = False
    size_mib: int = 0
    anywhere: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """What to show: `work` and `tmp` are folders of the replica's own, `files` maps places to the files
    that lie over them.  Only those folders, `show` and `mounts` can be written to in a `read_only` view.
    `owner` is the job's user.
    """

    work: str
    tmp: str
    shm_mib: int
    hide: tuple[str, ...]
    show: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    read_only: bool = False
    mounts: Sequence[Laid] = ()
    owner: Owner = (0, 0)

    def places(self) -> dict[str, str]:
        """Every place that is laid over with something else, and with what."""
        lasting = {LASTING_TMP: self.tmp} if _is_own_folder(LASTING_TMP) else {}
        return {WORK: self.work, TMP: self.tmp, **lasting, **{path: path for path in self.show}, **self.files}


def take(view: View) -> None:
    """Make the view this process' file system; OSError when the kernel won't."""
    umask = os.umask(0o022)
    laid = {place: os.open(path, os.O_PATH) for place, path in view.places().items() if os.path.lexists(path)}
    kernel.mount("", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("tmpfs", _ROOT, "tmpfs", _HARMLESS, "mode=0755,size=1m")
    _copy_host()
    own = tuple(place for place in _OWN if place in laid)
    inner = tuple(f"{place}/" for place in own)
    rooms = Rooms(_ROOT, view.owner, own)
    for path in view.hide:
        if _cover(path):
            rooms.remember(os.path.realpath(path))
    for place, fd in laid.items():
        if not place.startswith(inner):
            _make_room(place, folder=_is_folder(fd))
    _make_rooms(rooms, [mount for mount in view.mounts if not mount.path.startswith(inner)])
    if view.read_only:
        kernel.make_read_only(_ROOT)
    for place, fd in laid.items():
        if place.startswith(inner):
            _make_room(place, folder=_is_folder(fd))
        kernel.mount(f"/proc/self/fd/{fd}", _ROOT + place, flags=kernel.MS_BIND | kernel.MS_REC)
        os.close(fd)
    _make_rooms(rooms, [mount for mount in view.mounts if mount.path.startswith(inner)])
    for mount in view.mounts:
        _lay(rooms, mount)
    rooms.close()
    if _is_own_folder(_LOCKS):
        kernel.mount("tmpfs", _ROOT + _LOCKS, "tmpfs", _HARMLESS | kernel.MS_NOEXEC, "mode=1777,size=1m")
    kernel.mount("proc", f"{_ROOT}/proc", "proc", _HARMLESS | kernel.MS_NOEXEC)
    _devices(view.shm_mib)
    _leave_host()
    os.umask(umask)


def _is_own_folder(path: str) -> bool:
    """Whether the host has a folder there, not a link to another."""
    return Path(path).is_dir() and os.path.realpath(path) == path


def _copy_host() -> None:
    """Every folder and link of / in the new root, and the places that are the replica's own."""
    own = ("proc", "dev", TMP[1:], WORK[1:], HOUSE[1:])
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
    """Lay emptiness over a place, if there is such a place; whether it is an empty folder now."""
    real = os.path.realpath(path)
    target = Path(_ROOT + real)
    if real == "/" or not os.path.lexists(target):
        return False
    if target.is_dir():
        kernel.mount("tmpfs", str(target), "tmpfs", _HARMLESS | kernel.MS_NOEXEC, "mode=0755,size=64k")
        return True
    kernel.mount("/dev/null", str(target), flags=kernel.MS_BIND)
    return False


def _make_room(place: str, *, folder: bool) -> None:
    """Something to lay a folder or a file over, where there is nothing yet."""
    target = Path(_ROOT + place)
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if folder:
        target.mkdir()
    else:
        target.touch()


def _make_rooms(rooms: Rooms, mounts: Iterable[Laid]) -> None:
    """All of them before any is laid: what is laid over a folder hides what was made in it."""
    for mount in mounts:
        with _told(mount):
            rooms.make(mount.path)


def _lay(rooms: Rooms, mount: Laid) -> None:
    with _told(mount):
        with rooms.at(mount.path) as spot:
            if not mount.anywhere and not targets.is_free("/" + "/".join(rooms.real(spot))):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            if mount.source is None:
                size = f"mode=1777,size={max(1, mount.size_mib)}m"
                kernel.mount("tmpfs", f"/proc/self/fd/{spot}", "tmpfs", _HARMLESS, size)
                return
            lay(mount.source, spot)
        os.close(mount.source)
        with rooms.at(mount.path) as laid:
            kernel.make_harmless(f"/proc/self/fd/{laid}")
            if mount.read_only:
                kernel.make_read_only(f"/proc/self/fd/{laid}")


@contextlib.contextmanager
def _told(mount: Laid) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CannotLay(f"{mount.path}: {error.strerror}") from error


def _is_folder(fd: int) -> bool:
    return stat.S_ISDIR(os.fstat(fd).st_mode)


def _devices(shm_mib: int) -> None:
    """A /dev with what any program may use, the accelerators, and terminals and shared memory of its own."""
    dev = Path(_ROOT, "dev")
    kernel.mount("tmpfs", str(dev), "tmpfs", kernel.MS_NOSUID | kernel.MS_NOEXEC, "mode=0755,size=64k")
    for path in Path("/dev").iterdir():
        if path.name in _DEVICES or path.name.startswith(_DEVICE_FAMILIES):
            _lay_device(path, dev / path.name)
    for name, target in _LINKS.items():
        (dev / name).symlink_to(target)
    (dev / "pts").mkdir()
    kernel.mount(
        "devpts", f"{dev}/pts", "devpts", kernel.MS_NOSUID | kernel.MS_NOEXEC, "newinstance,ptmxmode=0666"
    )
    (dev / "shm").mkdir()
    kernel.mount("tmpfs", f"{dev}/shm", "tmpfs", _HARMLESS, f"mode=1777,size={max(1, shm_mib)}m")


def _lay_device(source: Path, target: Path) -> None:
    if source.is_dir():
        target.mkdir()
    else:
        target.touch()
    kernel.mount(str(source), str(target), flags=kernel.MS_BIND | kernel.MS_REC)


def _leave_host() -> None:
    os.chdir(_ROOT)
    kernel.pivot_root(".", ".")
    kernel.unmount(".", kernel.MNT_DETACH)
    os.chdir("/")
