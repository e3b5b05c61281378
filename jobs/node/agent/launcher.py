"""The agent's end of the fork server, and the places for starts that are under way."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import socket
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, Final

from jobs.node import processes
from jobs.node.agent.fork_server import LONGEST
from jobs.node.network.attempt_network import AttemptNetwork
from jobs.node.wrapper.launch_arguments import NEWS
from jobs.node.wrapper.log_writer import Pipe

MOST_STARTS: Final = 2 * len(os.sched_getaffinity(0)) + 2
"""Starts under way at a time: their load is that of so many processes."""

ROOM: Final = " " * 4096
"""A word in the fork server's command line over which wrappers write their own."""


class Launcher:
    """Gives the fork server its orders, and begins another when it is gone.

    `hear` is called with an attempt's number and a replica's position when a wrapper has news.
    """

    def __init__(self, command: Sequence[str], log: IO[bytes], hear: Callable[[int, int], None]) -> None:
        self._command, self._log, self._hear = command, log, hear
        self.starts = asyncio.Semaphore(MOST_STARTS)
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[int]] = {}
        self._server: tuple[subprocess.Popen[bytes], socket.socket] | None = None
        self._loop = asyncio.get_running_loop()
        self._news, self._messenger = os.pipe2(os.O_NONBLOCK)
        self._loop.add_reader(self._news, self._hear_news)

    async def start(
        self, path: Path, attempt: int, position: int, output: Pipe, network: AttemptNetwork | None
    ) -> int:
        """Start the wrapper of the replica at a position of the attempt at `path`; return its pid.

        Raises ConnectionError when the fork server was lost meanwhile, so that nobody knows whether it was
        started; OSError, with the reason, when it can't be.
        """
        spaces = [fd for fd in (network.net, network.user) if fd is not None] if network else []
        order = {"path": str(path), "attempt": attempt, "position": position}
        return await self._order(order, [*output, *spaces])

    async def make_network(self, path: Path) -> None:
        """Make the network of the attempt at `path` unless it is there; raises as `start` does."""
        await self._order({"path": str(path)}, [])

    def thaw(self) -> None:
        """Wake the fork server, and what it has forked for its orders, in case somebody froze them."""
        if self._server is not None and self._waiting:
            self._server[0].send_signal(processes.POKE)

    def close(self) -> None:
        """Let the fork server end."""
        self._loop.remove_reader(self._news)
        self._lose()

    async def _order(self, order: dict[str, Any], files: list[int]) -> int:
        number = next(self._numbers)
        answer: asyncio.Future[int] = self._loop.create_future()
        self._waiting[number] = answer
        try:
            socket.send_fds(self._open(), [json.dumps({"number": number, **order}).encode()], files)
        except OSError as error:
            del self._waiting[number]
            self._lose()
            raise ConnectionResetError("the fork server is gone") from error
        return await answer

    def _open(self) -> socket.socket:
        """Return the socket of the fork server that runs, or of a new one."""
        if self._server is None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                numbers = [theirs.fileno(), self._messenger]
                process = subprocess.Popen(
                    [*self._command, "fork-server", *map(str, numbers), ROOM],
                    stdin=subprocess.DEVNULL,
                    stdout=self._log,
                    stderr=self._log,
                    pass_fds=numbers,
                )
            ours.setblocking(False)
            self._server = process, ours
            self._loop.add_reader(ours, self._read_answers)
        return self._server[1]

    def _read_answers(self) -> None:
        assert self._server is not None
        try:
            message = self._server[1].recv(LONGEST)
        except BlockingIOError:
            return
        except OSError:
            message = b""
        if not message:
            self._lose()
            return
        answer = json.loads(message)
        waiting = self._waiting.pop(answer["number"], None)
        if waiting is None or waiting.done():
            return
        if "pid" in answer:
            waiting.set_result(answer["pid"])
        elif "error" in answer:
            waiting.set_exception(OSError(answer["error"]))
        else:
            waiting.set_exception(ConnectionResetError("what was to start it was killed"))

    def _lose(self) -> None:
        """Have done with the fork server; whoever waits for it is told."""
        if self._server is None:
            return
        process, ours = self._server
        self._server = None
        self._loop.remove_reader(ours)
        ours.close()
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.wait()
        waiting, self._waiting = self._waiting, {}
        for one in waiting.values():
            if not one.done():
                one.set_exception(ConnectionResetError("the fork server is gone"))

    def _hear_news(self) -> None:
        with contextlib.suppress(BlockingIOError):
            for number, position in NEWS.iter_unpack(os.read(self._news, NEWS.size * 512)):
                self._hear(number, position)
