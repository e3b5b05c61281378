"""One session inside a replica: its streams, its program, and the end of all that it has started.

Says on its socket, in lines of JSON: first that the program runs, with the descriptors to talk to it, then
how it ended.  Hears signals to pass on.  When the other end is gone, however it went, everything ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import struct
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from jobs.node import command, kernel, process_trees, processes
from jobs.node.command import CannotStart, Command, Streams
from jobs.node.wrapper.outcome import code_of

GRACE_S: Final = 2.0
"""After a hangup what is left has this long before it is killed."""

_SWEEP_S: Final = 0.02


def tell(channel: socket.socket, what: Mapping[str, Any], files: Sequence[int] = ()) -> None:
    """Send one line, and descriptors with it; nobody there is fine."""
    with contextlib.suppress(OSError):
        socket.send_fds(channel, [json.dumps(what).encode() + b"\n"], files)


def lead(
    channel: socket.socket,
    wanted: Command,
    doors: Sequence[int],
    replica: int,
    terminal: Mapping[str, Any] | None,
) -> None:
    """Run `wanted` under the limits behind `doors`, until it is over or `replica` (a pidfd) is."""
    kernel.set_name("jc-session")
    os.setsid()
    kernel.become_subreaper()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    ours, theirs = _terminal(terminal, wanted.owner) if terminal else _pipes()
    try:
        main = command.start(wanted, theirs, lambda: _enter(doors, theirs.stdin if terminal else None))
    except CannotStart as error:
        tell(channel, {"barrier": "no_program", "detail": str(error)})
        return
    for fd in {theirs.stdin, theirs.stdout, theirs.stderr}:
        if fd is not None:
            os.close(fd)
    tell(channel, {"running": main}, ours)
    for fd in ours[1 if terminal else 0 :]:
        os.close(fd)
    _Leader(channel, main, replica, ours[0] if terminal else None).run()


def foreign_namespaces(pid: int, kinds: Mapping[str, int]) -> int:
    """Return the flags of the namespaces in `kinds` that a process does not share with the caller."""
    flags = 0
    for name, flag in kinds.items():
        if Path(f"/proc/{pid}/ns/{name}").stat().st_ino != Path(f"/proc/self/ns/{name}").stat().st_ino:
            flags |= flag
    return flags


def _enter(doors: Sequence[int], terminal: int | None) -> None:
    for door in doors:
        os.write(door, b"0")
    if terminal is not None:
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


def _pipes() -> tuple[list[int], Streams]:
    pairs = [os.pipe() for _ in range(3)]
    return [pairs[0][1], pairs[1][0], pairs[2][0]], Streams(pairs[0][0], pairs[1][1], pairs[2][1])


def _terminal(terminal: Mapping[str, Any], owner: tuple[int, int] | None) -> tuple[list[int], Streams]:
    """A terminal of the replica's own, which belongs to its user."""
    ours, theirs = os.openpty()
    if owner is not None and owner[0] != os.geteuid():
        os.fchown(theirs, *owner)
    os.fchmod(theirs, 0o600)
    size = struct.pack("HHHH", terminal["rows"], terminal["columns"], 0, 0)
    fcntl.ioctl(ours, termios.TIOCSWINSZ, size)
    return [ours], Streams(theirs, theirs, theirs)


class _Leader:
    def __init__(self, channel: socket.socket, main: int, replica: int, terminal: int | None) -> None:
        self._channel, self._main, self._terminal = channel, main, terminal
        self._tree = process_trees.Descendants()
        self._ended = False
        self._heard = b""
        self._bell, ringer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(ringer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._replica = replica
        self._poll = select.poll()
        for fd in (channel.fileno(), self._bell, replica):
            self._poll.register(fd, select.POLLIN)

    def run(self) -> None:
        """Until nothing is left of the session."""
        while self._reap():
            ready = [fd for fd, _ in self._poll.poll()]
            with contextlib.suppress(BlockingIOError):
                os.read(self._bell, 4096)
            if self._replica in ready or (self._channel.fileno() in ready and not self._hear()):
                self._end()
                return

    def _reap(self) -> bool:
        """Bury children, and tell how the main process ended; whether any is left."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return True
                if pid == self._main:
                    self._ended = True
                    code, number = code_of(status)
                    name = signal.Signals(number).name.removeprefix("SIG") if number else None
                    tell(self._channel, {"code": None if name else code, "signal": name})
        return False

    def _hear(self) -> bool:
        """Pass signals on; whether somebody is there."""
        try:
            more = self._channel.recv(4096)
        except OSError:
            return False
        *lines, self._heard = (self._heard + more).split(b"\n")
        for line in lines:
            self._signal(json.loads(line)["signal"])
        return bool(more) and len(self._heard) < 4096

    def _signal(self, name: str) -> None:
        number = getattr(signal, f"SIG{name}", None)
        if self._ended or not isinstance(number, signal.Signals):
            return
        group = self._main
        if self._terminal is not None:
            with contextlib.suppress(OSError):
                group = os.tcgetpgrp(self._terminal) or group
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)

    def _end(self) -> None:
        """Hang up, wait a moment, and kill what is left."""
        if self._terminal is not None:
            os.close(self._terminal)
        until = time.monotonic() + GRACE_S
        for number in (signal.SIGHUP, signal.SIGCONT):
            self._tree.signal(number)
        while self._reap() and time.monotonic() < until and not processes.over(self._replica):
            self._pause()
        while self._reap():
            self._tree.signal(signal.SIGKILL)
            self._pause()

    def _pause(self) -> None:
        select.select([self._bell], [], [], _SWEEP_S)
        with contextlib.suppress(BlockingIOError):
            os.read(self._bell, 4096)
