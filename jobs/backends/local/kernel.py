"""The few Linux calls that the standard library of Python 3.11 lacks.

Each raises OSError with the kernel's own errno.  Nothing here decides anything.
"""

from __future__ import annotations

import ctypes
import os
from typing import Final

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWCGROUP: Final = 0x02000000
CLONE_NEWUTS: Final = 0x04000000
CLONE_NEWIPC: Final = 0x08000000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWPID: Final = 0x20000000

MS_RDONLY: Final = 0x1
MS_NOSUID: Final = 0x2
MS_NODEV: Final = 0x4
MS_NOEXEC: Final = 0x8
MS_REMOUNT: Final = 0x20
MS_BIND: Final = 0x1000
MS_REC: Final = 0x4000
MS_PRIVATE: Final = 0x40000
MNT_DETACH: Final = 0x2

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_SET_NAME: Final = 15
_PR_CAPBSET_DROP: Final = 24
_PR_SET_CHILD_SUBREAPER: Final = 36
_PR_SET_NO_NEW_PRIVS: Final = 38

_AT_FDCWD: Final = -100
_AT_RECURSIVE: Final = 0x8000
_MOUNT_ATTR_RDONLY: Final = 0x1
_KEYCTL_JOIN_SESSION_KEYRING: Final = 1

_SYSCALLS: Final = {
    "x86_64": {"pivot_root": 155, "keyctl": 250, "mount_setattr": 442},
    "aarch64": {"pivot_root": 41, "keyctl": 219, "mount_setattr": 442},
}

_libc: Final = ctypes.CDLL(None, use_errno=True)


class _MountAttributes(ctypes.Structure):
    _fields_ = [
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    ]


def _checked(result: int, what: str) -> None:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), what)


def _syscall(name: str, *arguments: object) -> None:
    number = _SYSCALLS.get(os.uname().machine, {}).get(name)
    if number is None:
        raise OSError(38, os.strerror(38), name)
    _checked(_libc.syscall(ctypes.c_long(number), *arguments), name)


def unshare(flags: int) -> None:
    """Leave the namespaces named by `flags` for new ones."""
    _checked(_libc.unshare(ctypes.c_int(flags)), "unshare")


def join(pidfd: int, flags: int) -> None:
    """Go into those namespaces of a held process that `flags` names (Linux 5.8)."""
    _checked(_libc.setns(ctypes.c_int(pidfd), ctypes.c_int(flags)), "setns")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Lay a file system over `target`, or change how one is laid there."""
    result = _libc.mount(
        source.encode(),
        target.encode(),
        kind.encode() or None,
        ctypes.c_ulong(flags),
        options.encode() or None,
    )
    _checked(result, target)


def unmount(target: str, flags: int = 0) -> None:
    """Take a file system away."""
    _checked(_libc.umount2(target.encode(), ctypes.c_int(flags)), target)


def pivot_root(new: str, old: str) -> None:
    """Make `new` the root of this mount namespace and put the former one at `old`."""
    _syscall("pivot_root", new.encode(), old.encode())


def make_read_only(path: str) -> None:
    """Make every mount at and below `path` read-only (Linux 5.12)."""
    attributes = _MountAttributes(attr_set=_MOUNT_ATTR_RDONLY)
    _syscall(
        "mount_setattr",
        ctypes.c_int(_AT_FDCWD),
        path.encode(),
        ctypes.c_uint(_AT_RECURSIVE),
        ctypes.byref(attributes),
        ctypes.c_size_t(ctypes.sizeof(attributes)),
    )


def new_session_keyring() -> None:
    """Leave the caller's kernel keyring behind; a kernel without keyrings has nothing to leave."""
    try:
        _syscall("keyctl", ctypes.c_int(_KEYCTL_JOIN_SESSION_KEYRING), None)
    except OSError:
        return


def _prctl(option: int, value: int) -> None:
    _checked(_libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0), "prctl")


def set_name(name: str) -> None:
    """What `ps` shows for this process; at most 15 bytes are kept."""
    _checked(_libc.prctl(_PR_SET_NAME, name.encode(), 0, 0, 0), "prctl")


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
