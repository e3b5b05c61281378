"""Network namespaces: what is made inside of one for use outside, and processes that keep one.

A namespace is kept by a process or a descriptor and never by a mount, so that nothing stays behind when all
of those were killed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

from jobs.node import kernel
from jobs.node.processes import Identity
from jobs.node.sandbox import isolation

PROGRAMS: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where the programs of networks are looked for: an ordinary user's own path may lack the administrator's."""

_SECONDS: Final = "2147483647"
"""How long a holder sleeps: 68 years, as not every `sleep` knows infinity."""

_MADE, _READY, _GO = b"made\n", b"ready\n", b"go\n"
_LONGEST: Final = 4096
_MOST_FILES: Final = 8


class Router(NamedTuple):
    """Descriptors of a router's namespaces; `user` is None where no user namespace is to be entered first."""

    net: int
    user: int | None


def open_own() -> int:
    """Open the network namespace of the calling thread."""
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def make_inside(user: int | None, net: int, make: Callable[[], list[int]]) -> list[int]:
    """Return the descriptors that `make` returns when called in a network namespace.

    An ordinary user has to enter the user namespace `user` first, from which there is no way back: there a
    child does it.  Raises OSError.
    """
    return _make_here(net, make) if user is None else make_in_child(user, net, make)


def _make_here(net: int, make: Callable[[], list[int]]) -> list[int]:
    before = open_own()
    try:
        kernel.join(net, kernel.CLONE_NEWNET)
        try:
            return make()
        finally:
            kernel.join(before, kernel.CLONE_NEWNET)
    finally:
        os.close(before)


def make_in_child(user: int | None, net: int, make: Callable[[], list[int]]) -> list[int]:
    """Do as `make_inside` does, always by a child, whose memory is not this process's."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        _pass_on(theirs, user, net, make)
    theirs.close()
    with ours:
        answer, files = kernel.receive(ours, _LONGEST, _MOST_FILES)
    os.waitpid(pid, 0)
    if not files:
        raise OSError(answer.decode(errors="replace") or "the process in the network was killed")
    return files


def _pass_on(channel: socket.socket, user: int | None, net: int, make: Callable[[], list[int]]) -> NoReturn:
    try:
        if user is not None:
            kernel.join(user, kernel.CLONE_NEWUSER)
        kernel.join(net, kernel.CLONE_NEWNET)
        socket.send_fds(channel, [_READY], make())
    except BaseException as error:  # noqa: BLE001 nothing may return into the caller's own code
        channel.send(str(error).encode()[:_LONGEST])
    os._exit(0)


class Holder:
    """A new process in new namespaces, which does nothing but keep them.

    It ends by itself unless `release` is called, so that none is left that is recorded nowhere.
    """

    def __init__(self, *, user: bool, prepare: Callable[[], None], mark: Mapping[str, str]) -> None:
        """Fork it; `user` gives it a user namespace.  It calls `prepare`, then waits for `release`.

        `mark` is the environment by which it can be told.  Raises OSError.
        """
        self._channel, theirs = socket.socketpair()
        self._pid = os.fork()
        if self._pid == 0:
            self._channel.close()  # so that the end of the other process is seen
            _hold(theirs, user, prepare, mark)
        theirs.close()
        self._lines = self._channel.makefile("rb")
        self._expect(_MADE)
        found = Identity.of(self._pid)
        assert found is not None  # as a child that nobody has waited for
        self.identity = found

    def wait(self) -> None:
        """Wait until it has prepared its namespaces; raises OSError when it can't."""
        self._expect(_READY)

    def release(self) -> None:
        """Let it stay when this process ends."""
        self._channel.send(_GO)
        self._close()

    def cancel(self) -> None:
        """End it, unless it was released."""
        self._close()
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)

    def _expect(self, wanted: bytes) -> None:
        line = self._lines.readline(_LONGEST)
        if line != wanted:
            self.cancel()
            raise OSError(line.decode(errors="replace").strip() or "the holder of the network was killed")

    def _close(self) -> None:
        self._lines.close()
        self._channel.close()


def _hold(
    channel: socket.socket, user: bool, prepare: Callable[[], None], mark: Mapping[str, str]
) -> NoReturn:
    try:
        kernel.set_name("jc-router")
        os.setsid()
        if user:
            isolation.unshare_user(kernel.CLONE_NEWNET)
        else:
            kernel.unshare(kernel.CLONE_NEWNET)
        channel.send(_MADE)
        prepare()
        channel.send(_READY)
        if channel.recv(_LONGEST) == _GO:
            _sleep(mark)
    except BaseException as error:  # noqa: BLE001 likewise
        with contextlib.suppress(OSError):
            channel.send(str(error).replace("\n", " ").encode()[: _LONGEST - 1] + b"\n")
    os._exit(1)


def _sleep(mark: Mapping[str, str]) -> NoReturn:
    """Become a program that is smaller than this one."""
    os.chdir("/")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(nowhere, fd)
    program = find_program("sleep")
    os.execve(program, ["sleep", _SECONDS], dict(mark))  # noqa: S606 no shell


def find_program(name: str) -> str:
    """Return the path of a program; FileNotFoundError."""
    found = shutil.which(name, path=PROGRAMS)
    if found is None:
        raise FileNotFoundError(f"there is no program {name}")
    return found


def write_setting(path: str, value: str) -> None:
    """Set a kernel parameter of the calling thread's network namespace, unless the kernel lacks it."""
    with contextlib.suppress(FileNotFoundError):
        Path("/proc/sys/net", path).write_text(value, encoding="utf-8")
