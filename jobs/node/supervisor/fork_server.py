"""The fork server: starts supervisors by a fork of a process that has loaded their modules already.

A new interpreter takes most of the time between an accepted attempt and its first command, so a process of
the console that starts supervisors keeps one fork server.  Nothing depends on it: it knows no attempt,
ends with the process that it serves, and when it is killed the next launch begins another.
"""

from __future__ import annotations

import ctypes
import gc
import os
import socket
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from jobs.node import kernel
from jobs.node.supervisor import supervisor

LONGEST: Final = 4096
"""Bytes of an attempt's path, which is the whole of an order."""

DONE: Final = b"."


def main(talk: int, command: list[str]) -> None:
    """Start a supervisor for each path that comes in at the socket `talk`, until the other end is closed.

    `command` is the command line that shows a supervisor to people, without its last word, the path.
    """
    kernel.set_name("jc-forkserver")
    shown = CommandLine.mine()
    shown.show([*command[:-1], "fork-server"])
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    gc.freeze()  # so that what was loaded stays shared with every supervisor
    with socket.socket(fileno=talk) as orders:
        while True:
            order, files, _flags, _address = socket.recv_fds(orders, LONGEST, 1)
            if not order:
                return
            _start(orders, os.fsdecode(order), files[0], shown, command)
            orders.send(DONE)


def _start(orders: socket.socket, path: str, diary: int, shown: CommandLine, command: list[str]) -> None:
    """Fork twice, so that the supervisor is nobody's child but the nearest subreaper's."""
    between = os.fork()
    if between == 0:
        orders.close()
        os.setsid()
        if os.fork():
            os._exit(0)
        os.dup2(diary, 1)
        os.dup2(diary, 2)
        os.close(diary)
        shown.show([*command, path])
        _supervise(Path(path))
    os.close(diary)
    os.waitpid(between, 0)


def _supervise(attempt: Path) -> NoReturn:
    try:
        supervisor.main(attempt)
    except BaseException:  # noqa: BLE001 nothing may return into the fork server's own code
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


_ARG_START: Final = 45
"""Of the fields of /proc/<pid>/stat that follow the name; proc(5) calls it 48.  The end comes next."""


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The command line of this process in its memory, and its length in bytes."""

    start: int
    room: int

    @classmethod
    def mine(cls) -> CommandLine:
        """Return that of the calling process; forked children have theirs at the same address."""
        fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
        start, end = int(fields[_ARG_START]), int(fields[_ARG_START + 1])
        return cls(start, max(0, end - start))

    def show(self, words: Sequence[str]) -> None:
        """Have the process list show these words, as far as there is room."""
        text = b"\0".join(os.fsencode(word) for word in words)[: max(0, self.room - 1)]
        ctypes.memmove(self.start, text.ljust(self.room, b"\0"), self.room)
