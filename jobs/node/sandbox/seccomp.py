"""A filter of system calls, in the kernel's own small language (seccomp(2), BPF).

In a user namespace of its own any process has every capability there, and so reaches parts of the kernel that
are not meant for it.  Here it is told that it may not make one.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Sequence
from typing import Final

_PR_SET_SECCOMP: Final = 22
_FILTER: Final = 2
_NEWUSER: Final = 0x10000000

_LOAD: Final = 0x20
_EQUAL: Final = 0x15
_AT_LEAST: Final = 0x35
_ANY_OF: Final = 0x45
_RETURN: Final = 0x06
_NUMBER, _ARCHITECTURE, _FLAGS = 0, 4, 16
"""Where these lie in what a filter sees; all machines here have the low half of an argument first."""

_ALLOW: Final = 0x7FFF0000
_FAIL: Final = 0x00050000

_X32: Final = 0x40000000
"""The first number of another set of calls that x86-64 has."""

_CALLS: Final = {
    "x86_64": ((0xC000003E, 272, 56, 435), (0x40000003, 310, 120, 435)),
    "aarch64": ((0xC00000B7, 97, 220, 435), (0x40000028, 337, 120, 435)),
}
"""Of each architecture that the machine runs: its number, and those of unshare, clone and clone3."""

Line = tuple[int, int, int, int]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("lines", ctypes.c_char_p)]


def forbid_user_namespaces() -> None:
    """Let this process, and all that it starts, make no user namespace.  It must have no_new_privs.

    A kernel without filters, or a machine of another kind, forbids nothing.
    """
    calls = _CALLS.get(os.uname().machine)
    if calls is None:
        return
    code = b"".join(struct.pack("HBBI", *line) for line in _lines(calls))
    program = _Program(len(code) // 8, code)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_FILTER), ctypes.byref(program), 0, 0) < 0:
        number = ctypes.get_errno()
        if number != errno.EINVAL:
            raise OSError(number, os.strerror(number), "seccomp")


def _lines(calls: Sequence[tuple[int, int, int, int]]) -> list[Line]:
    """Return the filter.  clone3 hides its flags, so there is none: C libraries know machines without it."""
    lines: list[Line] = [(_LOAD, 0, 0, _ARCHITECTURE)]
    for architecture, unshare, clone, clone3 in calls:
        lines += [  # the second and third say how many lines to leave out if so, and if not
            (_EQUAL, 0, 10, architecture),
            (_LOAD, 0, 0, _NUMBER),
            (_AT_LEAST, 6, 0, _X32),
            (_EQUAL, 5, 0, clone3),
            (_EQUAL, 1, 0, unshare),
            (_EQUAL, 0, 2, clone),
            (_LOAD, 0, 0, _FLAGS),
            (_ANY_OF, 2, 0, _NEWUSER),
            (_RETURN, 0, 0, _ALLOW),
            (_RETURN, 0, 0, _FAIL | errno.ENOSYS),
            (_RETURN, 0, 0, _FAIL | errno.EPERM),
        ]
    return [*lines, (_RETURN, 0, 0, _ALLOW)]
