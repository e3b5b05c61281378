"""Sessions in a live replica: a shell, a command, or the server's side of SFTP.

The interface of an `Enterable` backend, whatever its engine.  It is asynchronous, because a
session lives as long as a person types, and the processes that serve people have one loop for all of them.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from jobs.backends.base import Handle, ReplicaRef


class SessionKind(StrEnum):
    """The kind of a session."""

    SHELL = "shell"
    LINE = "line"
    PROGRAM = "program"
    FILES = "files"
    FOLDERS = "folders"


class Barrier(StrEnum):
    """A reason why a replica can't be entered."""

    NOT_RUNNING = "not_running"
    NO_PROGRAM = "no_program"
    LIMITS = "limits"
    NOT_ITS_OWN = "not_its_own"
    GONE = "gone"
    ENGINE_AWAY = "engine_away"
    FAILED = "failed"


class NoEntry(Exception):
    """The session was not begun; `detail` is the system's own message, for logs."""

    def __init__(self, barrier: Barrier, detail: str = "") -> None:
        super().__init__(f"{barrier}: {detail}" if detail else str(barrier))
        self.barrier = barrier
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a terminal, in characters."""

    columns: int = 80
    rows: int = 24


@dataclass(frozen=True, slots=True)
class Terminal:
    """A terminal to run in: its name in terminfo, and its size."""

    name: str = "xterm-256color"
    size: Size = Size()


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """A request for a session.

    SHELL: the job's own shell.  LINE: `line`, as one argument of that shell.  PROGRAM: `argv`, as it is.
    FILES: SFTP version 3 on stdin and stdout.  FOLDERS: the same of `jobs.node.sftp.folder_server`, for
    the file pages; also of a replica that has ended, to be read, as long as its folders are kept.  `env` is
    added to the job's own environment, and never changes which GPUs the job was given.  Without a terminal
    stdout and stderr are two streams.
    """

    kind: SessionKind
    line: str = ""
    argv: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    terminal: Terminal | None = None

    def as_message(self) -> dict[str, Any]:
        """Return the request as it is sent to a session agent."""
        terminal = self.terminal
        return {
            "kind": self.kind,
            "line": self.line,
            "argv": list(self.argv),
            "env": dict(self.env),
            "terminal": terminal and {"name": terminal.name, **asdict(terminal.size)},
        }


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of the main process: one of the two, or neither when it was lost with its replica."""

    exit_code: int | None = None
    signal: str | None = None


class Session(Protocol):
    """A running session, to be closed; it also ends with the process that holds it."""

    async def read(self, limit: int) -> bytes:
        """Return at most `limit` bytes of output, or of the terminal; b"" at its end."""

    async def read_error(self, limit: int) -> bytes:
        """Return at most `limit` bytes of stderr; b"" at its end, which with a terminal is at once."""

    async def write(self, data: bytes) -> None:
        """Send input; returns when all was taken.  Raises BrokenPipeError when nothing reads any more."""

    async def write_eof(self) -> None:
        """End the input (in a terminal: send the end-of-file character)."""

    def resize(self, size: Size) -> None:
        """Set the terminal's size; without a terminal nothing happens."""

    def signal(self, name: str) -> None:
        """Send a signal (`INT`, `TERM` …) to the foreground processes; an unknown name is ignored."""

    async def wait(self) -> Ended:
        """Wait until the main process has ended; background processes may still run."""

    async def wait_for_processes(self) -> None:
        """Wait until all processes that the session has started have ended."""

    async def close(self) -> None:
        """End all processes that the session has started, in the background too; repeating is harmless."""


@runtime_checkable
class Enterable(Protocol):
    """A backend whose running replicas can be entered."""

    async def exec(self, handle: Handle, replica: ReplicaRef, wanted: SessionRequest) -> Session:
        """Run a command in the replica: as its user, in its file system, limits, environment and working
        folder.  It ends with the replica.  Raises NoEntry or Unreachable.
        """

    async def connect(self, handle: Handle, replica: ReplicaRef, host: str, port: int) -> socket.socket:
        """Return a connected, non-blocking TCP socket to the service of the replica at `host`:`port`, where
        `host` is the replica's name for itself.

        Only the replica's own processes can be at its other end.  Raises NoEntry (NOT_ITS_OWN for everything
        else, its network included), Unreachable, or TimeoutError where the service accepts nothing.
        """
