"""The fork server: forks wrappers, and what makes attempts' networks, from a process with few modules.

So all wrappers share what was loaded before, and neither they nor what they leave are the agent's children.
It knows no attempt and ends with the agent that began it; when it is killed, the agent begins another.
Orders and answers are messages of JSON; an order's child answers by itself, and its end is told, so that an
order whose child was killed is known.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import select
import signal
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NoReturn

from jobs.node import kernel, processes
from jobs.node.files import Folder
from jobs.node.network.attempt_network import AttemptNetwork
from jobs.node.network.namespaces import Router
from jobs.node.supervisor import layout
from jobs.node.supervisor.plan import Plan, PlannedReplica
from jobs.node.wrapper import environment, wrapper
from jobs.node.wrapper.launch_arguments import LaunchArguments
from jobs.node.wrapper.log_writer import Pipe

LONGEST: Final = 16_384
"""Bytes of an order or an answer."""

MOST_FILES: Final = 4
"""Descriptors of an order: the ends of the output's pipe, the router's namespaces."""


def main(talk: int, news: int, command: Sequence[str]) -> None:
    """Obey the orders that come in at the socket `talk`, until the other end is closed.

    Wrappers tell their news at `news`; `command` is the command line that shows this process to people,
    without what it does.
    """
    kernel.set_name("jc-forkserver")
    kernel.become_subreaper()
    for fd in (talk, news):
        os.set_inheritable(fd, False)  # or what makes networks would keep them
    shown = CommandLine.mine()
    shown.show([*command, "fork-server"])
    gc.collect()
    gc.freeze()  # so that what was loaded stays shared with every wrapper
    with socket.socket(fileno=talk) as orders:
        ForkServer(orders, news, shown, command).serve()


class ForkServer:
    """The server itself; it forks one child for each order and reaps whatever ends below it."""

    def __init__(self, orders: socket.socket, news: int, shown: CommandLine, command: Sequence[str]) -> None:
        self._orders, self._news, self._shown, self._command = orders, news, shown, command
        self._children: dict[int, int] = {}
        self._bell, ringer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(ringer, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGCONT):
            signal.signal(number, lambda *_: None)

    def serve(self) -> None:
        """Obey until nobody gives orders any more."""
        poll = select.poll()
        poll.register(self._orders, select.POLLIN)
        poll.register(self._bell, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poll.poll()}
            with contextlib.suppress(BlockingIOError):
                os.read(self._bell, 4096)
            self._reap()
            self._thaw()
            if self._orders.fileno() not in ready:
                continue
            order, files = kernel.receive(self._orders, LONGEST, MOST_FILES)
            if not order:
                return
            self._obey(json.loads(order), files)

    def _obey(self, order: Mapping[str, Any], files: list[int]) -> None:
        with contextlib.suppress(Exception):  # the child meets it too, and tells
            _read_attempt(Path(order["path"]))
        pid = os.fork()
        if pid == 0:
            self._be_child(order, files)
        self._children[pid] = order["number"]
        for fd in files:
            os.close(fd)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while pid := os.waitpid(-1, os.WNOHANG)[0]:
                number = self._children.pop(pid, None)
                if number is not None:
                    _answer(self._orders, number, over=True)

    def _thaw(self) -> None:
        """Wake the children, as the agent may have woken this process because nothing goes on."""
        for pid in self._children:
            os.kill(pid, processes.POKE)

    def _be_child(self, order: Mapping[str, Any], files: Sequence[int]) -> NoReturn:
        """Carry out an order, answer, and end; nothing may return into the server's own code."""
        path = Path(order["path"])
        try:
            with Folder.open(path) as folder:
                _talk_into_diary(folder)
                pid = 0
                if "position" in order:
                    self._shown.show([*self._command, "wrapper", str(path)])
                    pid = wrapper.start(self._arguments(path, folder, order, files), self._orders.close)
                else:
                    AttemptNetwork.open(folder, _read_attempt(path).plan)
            _answer(self._orders, order["number"], pid=pid)
        except BaseException as error:  # noqa: BLE001 it is told
            _answer(self._orders, order["number"], error=str(error)[:1000] or repr(error))
        os._exit(0)

    def _arguments(
        self, path: Path, folder: Folder, order: Mapping[str, Any], files: Sequence[int]
    ) -> LaunchArguments:
        found = _read_attempt(path)
        reader, writer, *spaces = files
        net, user = [*spaces, None, None][:2]
        return LaunchArguments(
            found.plan,
            found.replicas[order["position"]],
            path,
            folder,
            found.told,
            folder.read(layout.SECRETS) or {},
            self._news,
            order["attempt"],
            Pipe(reader, writer),
            Router(net, user) if net is not None else None,
        )


def _answer(orders: socket.socket, number: int, **answer: Any) -> None:
    """Answer; nobody may be left who hears it."""
    with contextlib.suppress(OSError):
        orders.send(json.dumps({"number": number, **answer}).encode())


def _talk_into_diary(folder: Folder) -> None:
    """Have what is said go into the attempt's own file."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    diary = os.open(layout.DIARY, flags, 0o600, dir_fd=folder.fd)
    os.dup2(diary, 1)
    os.dup2(diary, 2)
    os.close(diary)


@dataclass(frozen=True, slots=True)
class _ReadAttempt:
    """A plan, its replicas by their positions, and what is said of all of them."""

    plan: Plan
    replicas: Sequence[PlannedReplica]
    told: Mapping[str, str]


@lru_cache(maxsize=1)
def _read_attempt(path: Path) -> _ReadAttempt:
    """Read it once for all replicas, which are started one after the other."""
    with Folder.open(path) as folder:
        found = folder.read(layout.PLAN)
        if found is None:
            raise FileNotFoundError(f"{path} has no plan")
        plan = Plan.load(found, folder.read(layout.LIMITS))
    return _ReadAttempt(plan, plan.replicas(), environment.split_by_size(environment.peers(plan))[0])


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
