"""The few Linux calls that the standard library of Python 3.11 lacks.

Each raises OSError with the kernel's own errno.  Nothing here decides anything.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
from collections.abc import Sequence
from typing import Final

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWCGROUP: Final = 0x02000000
CLONE_NEWUTS: Final = 0x04000000
CLONE_NEWIPC: Final = 0x08000000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWPID: Final = 0x20000000
CLONE_NEWNET: Final = 0x40000000

MS_NOSUID: Final = 0x2
MS_NODEV: Final = 0x4
MS_NOEXEC: Final = 0x8
MS_BIND: Final = 0x1000
MS_REC: Final = 0x4000
MS_PRIVATE: Final = 0x40000
MS_SLAVE: Final = 0x80000
MNT_DETACH: Final = 0x2

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_SET_NAME: Final = 15
_PR_CAPBSET_DROP: Final = 24
_PR_SET_CHILD_SUBREAPER: Final = 36
_PR_SET_NO_NEW_PRIVS: Final = 38
_PR_CAP_AMBIENT: Final = 47
_PR_CAP_AMBIENT_RAISE: Final = 2

_CAP_NET_ADMIN: Final = 12
_CAPABILITIES_VERSION: Final = 0x20080522

_AT_FDCWD: Final = -100
_AT_RECURSIVE: Final = 0x8000
_MOUNT_ATTR_RDONLY: Final = 0x1
_MOUNT_ATTR_NOSUID: Final = 0x2
_MOUNT_ATTR_NODEV: Final = 0x4
_RESOLVE_NO_MAGICLINKS: Final = 0x2
_RESOLVE_IN_ROOT: Final = 0x10
_RENAME_NOREPLACE: Final = 1
_KEYCTL_JOIN_SESSION_KEYRING: Final = 1

_SYSCALLS: Final = {
    "x86_64": {
        "pivot_root": 155,
        "keyctl": 250,
        "mount_setattr": 442,
        "openat2": 437,
        "setgroups": 116,
        "setfsuid": 122,
        "setfsgid": 123,
        "renameat2": 316,
        "bpf": 321,
    },
    "aarch64": {
        "pivot_root": 41,
        "keyctl": 219,
        "mount_setattr": 442,
        "openat2": 437,
        "setgroups": 159,
        "setfsuid": 151,
        "setfsgid": 152,
        "renameat2": 276,
        "bpf": 280,
    },
}

_libc: Final = ctypes.CDLL(None, use_errno=True)


class _MountAttributes(ctypes.Structure):
    _fields_ = [
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    ]


class _CapabilityHeader(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _Capabilities(ctypes.Structure):
    _fields_ = [
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    ]


class _OpenHow(ctypes.Structure):
    _fields_ = [
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    ]


def _check(result: int, what: str) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), what)
    return result


def _syscall(name: str, *arguments: object) -> int:
    number = _SYSCALLS.get(os.uname().machine, {}).get(name)
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), name)
    return _check(_libc.syscall(ctypes.c_long(number), *arguments), name)


def receive(channel: socket.socket, length: int, most: int) -> tuple[bytes, list[int]]:
    """Return a message of a Unix socket, and up to `most` descriptors, which no started program inherits."""
    message, files, _flags, _address = socket.recv_fds(channel, length, most)
    for fd in files:
        os.set_inheritable(fd, False)
    return message, files


def unshare(flags: int) -> None:
    """Leave the namespaces named by `flags` for new ones."""
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def join(fd: int, flags: int) -> None:
    """Go into those namespaces of a held process that `flags` names (Linux 5.8), or into an opened one."""
    _check(_libc.setns(ctypes.c_int(fd), ctypes.c_int(flags)), "setns")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mount a file system at `target`, or change how one is mounted there."""
    result = _libc.mount(
        source.encode(),
        target.encode(),
        kind.encode() or None,
        ctypes.c_ulong(flags),
        options.encode() or None,
    )
    _check(result, target)


def unmount(target: str, flags: int = 0) -> None:
    """Take a file system away."""
    _check(_libc.umount2(target.encode(), ctypes.c_int(flags)), target)


def pivot_root(new: str, old: str) -> None:
    """Make `new` the root of this mount namespace and put the former one at `old`."""
    _syscall("pivot_root", new.encode(), old.encode())


def make_read_only(path: str) -> None:
    """Make every mount at and below `path` read-only (Linux 5.12)."""
    _restrict(path, _MOUNT_ATTR_RDONLY)


def make_harmless(path: str) -> None:
    """Let no mount at or below `path` have set-user-id programs or devices."""
    _restrict(path, _MOUNT_ATTR_NOSUID | _MOUNT_ATTR_NODEV)


def _restrict(path: str, attributes_set: int) -> None:
    attributes = _MountAttributes(attr_set=attributes_set)
    _syscall(
        "mount_setattr",
        ctypes.c_int(_AT_FDCWD),
        path.encode(),
        ctypes.c_uint(_AT_RECURSIVE),
        ctypes.byref(attributes),
        ctypes.c_size_t(ctypes.sizeof(attributes)),
    )


def open_in(root: int, path: str, flags: int) -> int:
    """Open `path` as if the folder `root` were the root: no link or `..` leads out of it (Linux 5.6)."""
    how = _OpenHow(flags=flags, mode=0, resolve=_RESOLVE_IN_ROOT | _RESOLVE_NO_MAGICLINKS)
    return _syscall(
        "openat2",
        ctypes.c_int(root),
        path.encode(),
        ctypes.byref(how),
        ctypes.c_size_t(ctypes.sizeof(how)),
    )


def rename_new(folder: int, old: bytes, into: int, new: bytes) -> None:
    """Rename unless something is called so already (Linux 3.15; not every file system can)."""
    here, there = ctypes.c_int(folder), ctypes.c_int(into)
    _syscall("renameat2", here, old, there, new, ctypes.c_uint(_RENAME_NOREPLACE))


def bpf(command: int, order: ctypes.Structure) -> int:
    """Ask for something about a program in the kernel; return the descriptor it gives, or 0."""
    return _syscall("bpf", ctypes.c_int(command), ctypes.byref(order), ctypes.c_uint(ctypes.sizeof(order)))


def set_file_rights(uid: int, gid: int, groups: Sequence[int]) -> None:
    """Have the calling thread, and no other, seen as this user by file systems, and by nobody else."""
    _syscall("setgroups", ctypes.c_size_t(len(groups)), (ctypes.c_uint * len(groups))(*groups))
    for name, number in (("setfsgid", gid), ("setfsuid", uid)):
        _syscall(name, ctypes.c_uint(number))
        if _syscall(name, ctypes.c_uint(-1)) != number:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM), name)


def new_session_keyring() -> None:
    """Leave the caller's kernel keyring behind; a kernel without keyrings has nothing to leave."""
    try:
        _syscall("keyctl", ctypes.c_int(_KEYCTL_JOIN_SESSION_KEYRING), None)
    except OSError:
        return


def _prctl(option: int, value: int) -> None:
    _check(_libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0), "prctl")


def set_name(name: str) -> None:
    """Set the name that `ps` shows for this process; at most 15 bytes are kept."""
    _check(_libc.prctl(_PR_SET_NAME, name.encode(), 0, 0, 0), "prctl")


def become_subreaper() -> None:
    """Orphans below this process become its children."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(signal: int) -> None:
    """Get `signal` when the parent ends."""
    _prctl(_PR_SET_PDEATHSIG, signal)


def hide_from_peers() -> None:
    """Keep this process' memory and file descriptors from others of the same user."""
    _prctl(_PR_SET_DUMPABLE, 0)


def gain_no_privileges() -> None:
    """No set-user-id program run from here on gains anything."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities() -> None:
    """Empty the bounding set, so that no exec from here on has a capability."""
    for capability in range(64):
        try:
            _prctl(_PR_CAPBSET_DROP, capability)
        except OSError:
            return


def keep_network_rights() -> None:
    """Let the next exec keep the rights over the network of a user who is not root, but has them."""
    header = _CapabilityHeader(_CAPABILITIES_VERSION, 0)
    capabilities = (_Capabilities * 2)()
    _check(_libc.capget(ctypes.byref(header), capabilities), "capget")
    capabilities[0].inheritable |= 1 << _CAP_NET_ADMIN
    _check(_libc.capset(ctypes.byref(header), capabilities), "capset")
    unused = ctypes.c_ulong(0)
    raised = _libc.prctl(
        _PR_CAP_AMBIENT, ctypes.c_ulong(_PR_CAP_AMBIENT_RAISE), ctypes.c_ulong(_CAP_NET_ADMIN), unused, unused
    )
    _check(raised, "prctl")
