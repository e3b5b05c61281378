"""The agent: looks after every attempt of a cluster on this machine, in one process.

It knows nothing that is not in files, so it may be killed at any instruction, and the next one goes on.  An
error in one attempt is written into that attempt's log, and the attempt is tried again; the others go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import gc
import itertools
import os
import resource
import socket
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from jobs.node import files, kernel
from jobs.node.agent.attempt import ROUND_S, Attempt, Attended
from jobs.node.agent.launcher import Launcher
from jobs.node.agent.release import read_digest
from jobs.node.agent.requests import RequestServer, listen
from jobs.node.files import Folder
from jobs.node.network import service
from jobs.node.network.replica_sockets import REQUEST, SocketMaker
from jobs.node.network.router_services import RouterServices
from jobs.node.processes import Identity
from jobs.node.supervisor import layout
from jobs.node.supervisor.layout import Layout, UnknownAttemptKey

IDLE_S: Final = 60.0
"""How long an agent stays that has nothing to look after."""

LOCK_S: Final = 5.0
"""How long an agent waits for the end of another."""

RETRY_S: Final = (1.0, 60.0)
"""The pause before an attempt in which something went wrong is tried again: the first, and the longest."""

_LEAST_S: Final = 0.2
"""The pause between two rounds, at the least."""

_AGAIN_S: Final = 0.02


def main(root: Path, command: Sequence[str], ready: Callable[[], None]) -> None:
    """Be the agent of the cluster at `root`, unless it has one of this release.

    `command` is the beginning of the command line that starts a part of the agent; `ready` is called once
    there is an agent.
    """
    _settle_in()
    digest = read_digest()
    with Folder.open(root) as folder:
        lock = _take_lock(folder, digest)
        if lock is not None:
            asyncio.run(_serve(root, folder, command, digest, ready))
            os.close(lock)
    ready()


def _settle_in() -> None:
    kernel.set_name("jc-agent")
    os.umask(0o077)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _take_lock(root: Folder, digest: str) -> int | None:
    """Return the lock; None when another agent of this release has it, or one that does not end."""
    lock = os.open(layout.AGENT_LOCK, os.O_RDWR | os.O_CREAT, 0o600, dir_fd=root.fd)
    until = time.monotonic() + LOCK_S
    while time.monotonic() < until:
        with contextlib.suppress(BlockingIOError):
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        found = root.read(layout.AGENT)
        if found and found["release"] == digest and Identity.load(found["process"]).alive():
            break
        time.sleep(_AGAIN_S)
    os.close(lock)
    return None


async def _serve(
    root: Path, folder: Folder, command: Sequence[str], digest: str, ready: Callable[[], None]
) -> None:
    with listen(folder.fd) as listening:
        folder.write(layout.AGENT, {"process": Identity.mine().dump(), "release": digest}, durable=False)
        ready()
        agent = Agent(root, command, digest)
        gc.freeze()
        await agent.run(listening)


class Agent:
    """The agent itself, in the process that has the lock."""

    def __init__(self, root: Path, command: Sequence[str], release: str) -> None:
        self._root, self._layout, self._release = root, Layout(root), release
        self._launcher = Launcher(command, sys.stderr.buffer, self._hear)
        self._sockets = SocketMaker(self._layout)
        self._services = RouterServices(root.parent / service.SOCKET)
        self._numbers = itertools.count(1)
        self._attempts: dict[str, Attempt] = {}
        self._by_number: dict[int, Attempt] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._news: dict[str, asyncio.Event] = {}
        self._hurried = asyncio.Event()
        self._is_leaving = False
        self._idle_since = time.monotonic()

    async def run(self, listening: socket.socket) -> None:
        """Look after all attempts until there is none for a while, or the next agent is to."""
        for key in self._find_live():
            self._tend(key)
        server = asyncio.ensure_future(RequestServer(listening, self._answer).serve())
        rounds = asyncio.ensure_future(self._make_rounds())
        try:
            await asyncio.wait([server, rounds], return_when=asyncio.FIRST_COMPLETED)
        finally:
            tasks = [server, rounds, *self._tasks.values()]
            for task in tasks:
                task.cancel()
            found = await asyncio.gather(*tasks, return_exceptions=True)
            self._launcher.close()
            self._services.end()
        for error in found:
            if isinstance(error, Exception):
                raise error

    def _find_live(self) -> list[str]:
        """Return the keys of attempts that hold something of the machine."""
        with contextlib.suppress(FileNotFoundError):
            return [path.name for path in self._layout.live.iterdir() if not path.name.startswith(".")]
        return []

    # --- requests ---------------------------------------------------------------------------------------

    async def _answer(self, request: Mapping[str, Any]) -> tuple[Mapping[str, Any], Sequence[int]]:
        if REQUEST in request:
            return await asyncio.to_thread(self._sockets.answer, request[REQUEST])
        if "tend" in request:
            self._tend(str(request["tend"]))
        elif "hand_over" in request:
            self._leave(str(request["hand_over"]))
        else:
            return {"error": "an unknown request"}, ()
        return {}, ()

    def _leave(self, release: str) -> None:
        """End once the request is answered, for an agent of that release."""
        self._is_leaving = release != self._release
        self._hurried.set()

    # --- attempts ---------------------------------------------------------------------------------------

    def _tend(self, key: str) -> None:
        """Look at an attempt now: it may be new, or have new orders."""
        if key not in self._tasks:
            self._news[key] = asyncio.Event()
            self._tasks[key] = asyncio.ensure_future(self._look_after(key))
        elif key in self._attempts:
            self._attempts[key].wake()
        else:
            self._news[key].set()

    async def _look_after(self, key: str) -> None:
        """See an attempt through, however often something goes wrong in it."""
        pause, longest = RETRY_S
        try:
            path = self._layout.attempt(key)
            while (path / layout.PLAN).exists():
                try:
                    await self._see_through(key, path)
                except Attended:
                    await self._pause(key, RETRY_S[0])
                except Exception:  # noqa: BLE001 one attempt's error is not the others'
                    _write_down(path)
                    await self._pause(key, pause)
                    pause = min(pause * 2, longest)
                else:
                    return
        except UnknownAttemptKey:
            return
        finally:
            del self._tasks[key], self._news[key]
            self._idle_since = time.monotonic()

    async def _see_through(self, key: str, path: Path) -> None:
        number = next(self._numbers)
        attempt = Attempt(path, self._launcher, self._services, number, self._hurried.set)
        self._attempts[key] = self._by_number[number] = attempt
        try:
            await attempt.run()
        finally:
            del self._attempts[key], self._by_number[number]
            attempt.close()

    async def _pause(self, key: str, seconds: float) -> None:
        """Wait, or until there is something new."""
        self._news[key].clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news[key].wait()

    def _hear(self, number: int, position: int) -> None:
        if (attempt := self._by_number.get(number)) is not None:
            attempt.hear(position)

    # --- rounds -----------------------------------------------------------------------------------------

    async def _make_rounds(self) -> None:
        """Look around in all attempts by one timer, until nobody needs this agent any more."""
        while self._is_needed():
            now = time.monotonic()
            for attempt in list(self._by_number.values()):
                if attempt.due_at() <= now:
                    attempt.look_around(now)
            self._launcher.thaw()
            await asyncio.sleep(_LEAST_S)
            due = min((each.due_at() for each in self._by_number.values()), default=now + ROUND_S)
            self._hurried.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(ROUND_S, due - time.monotonic())):
                    await self._hurried.wait()

    def _is_needed(self) -> bool:
        if self._is_leaving:
            return False
        if self._tasks:
            return True
        found = files.read(self._root / layout.AGENT)
        mine = found is not None and Identity.load(found["process"]) == Identity.mine()
        return mine and time.monotonic() - self._idle_since < IDLE_S


def _write_down(path: Path) -> None:
    """Write the current exception into the log of an attempt, if that is there."""
    with contextlib.suppress(OSError), (path / layout.DIARY).open("a", encoding="utf-8") as diary:
        traceback.print_exc(file=diary)
