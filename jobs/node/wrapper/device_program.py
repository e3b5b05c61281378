"""Devices of a version 2 control group: a program that the kernel asks at each open (bpf(2)).

Version 1 has files for this.  The program permits reading and writing of some character devices, by number,
and refuses all others, block devices, and the making of devices.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

from jobs.node import kernel

Rule = tuple[int, int | None]
"""The major and the minor number of a character device; None for all minor numbers."""

_PROG_LOAD, _PROG_ATTACH = 5, 8
_CGROUP_DEVICE: Final = 15
"""The type of program (linux/bpf.h)."""
_AT_CGROUP_DEVICE: Final = 6
_BESIDE_OTHERS: Final = 2
"""A device has to be permitted by the programs of all groups above, too."""

_CHARACTER: Final = 2
_MAKE: Final = 1
"""The kind of a device is the lower half of the first word that the kernel gives; the access the upper."""

_INSTRUCTION: Final = struct.Struct("=BBhi")
_LOAD, _COPY, _SET, _AND, _SHIFT, _UNLESS, _EXIT = 0x61, 0xBF, 0xB7, 0x57, 0x77, 0x55, 0x95
_ANSWER, _GIVEN, _KIND, _ACCESS, _MAJOR, _MINOR = range(6)
"""Registers; the kernel gives the second, and reads the first in the end."""


class _Load(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_uint32),
        ("count", ctypes.c_uint32),
        ("instructions", ctypes.c_uint64),
        ("license", ctypes.c_uint64),
        ("unused", ctypes.c_uint64 * 3),
    ]


class _Attach(ctypes.Structure):
    _fields_ = [
        ("group", ctypes.c_uint32),
        ("program", ctypes.c_uint32),
        ("where", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
    ]


@cache
def is_usable() -> bool:
    """Tell whether this process may load such programs, and the kernel knows them."""
    try:
        os.close(_load(()))
    except OSError:
        return False
    return True


def attach(folder: Path, rules: Iterable[Rule]) -> None:
    """Permit these devices alone to the group of a folder and all below, for as long as it is there."""
    program = _load(rules)
    group = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        kernel.bpf(_PROG_ATTACH, _Attach(group, program, _AT_CGROUP_DEVICE, _BESIDE_OTHERS))
    finally:
        os.close(group)
        os.close(program)


def _load(rules: Iterable[Rule]) -> int:
    """Return the descriptor of the program."""
    code = b"".join(_assemble(rules))
    text, terms = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(b"")
    order = _Load(
        _CGROUP_DEVICE, len(code) // _INSTRUCTION.size, ctypes.addressof(text), ctypes.addressof(terms)
    )
    return kernel.bpf(_PROG_LOAD, order)


def _assemble(rules: Iterable[Rule]) -> Iterator[bytes]:
    answer_no = (_make(_SET, _ANSWER, number=0), _make(_EXIT))
    yield _make(_LOAD, _KIND, _GIVEN, 0)
    yield _make(_LOAD, _MAJOR, _GIVEN, 4)
    yield _make(_LOAD, _MINOR, _GIVEN, 8)
    yield _make(_COPY, _ACCESS, _KIND)
    yield _make(_SHIFT, _ACCESS, number=16)
    yield _make(_AND, _ACCESS, number=_MAKE)
    yield _make(_AND, _KIND, number=0xFFFF)
    yield _make(_UNLESS, _KIND, skip=1, number=_CHARACTER)
    yield _make(_UNLESS, _ACCESS, skip=len(answer_no), number=_MAKE)
    yield from answer_no
    for major, minor in rules:
        answer_yes = [_make(_SET, _ANSWER, number=1), _make(_EXIT)]
        if minor is not None:
            answer_yes.insert(0, _make(_UNLESS, _MINOR, skip=len(answer_yes), number=minor))
        yield _make(_UNLESS, _MAJOR, skip=len(answer_yes), number=major)
        yield from answer_yes
    yield from answer_no


def _make(what: int, to: int = 0, source: int = 0, skip: int = 0, number: int = 0) -> bytes:
    """Return an instruction; a load has the offset of what it loads for `skip`."""
    return _INSTRUCTION.pack(what, to | source << 4, skip, number)
