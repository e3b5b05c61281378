"""Something run beside a live replica: a shell, a command, or the server's side of SFTP.

The words that an `Enterable` backend speaks, whatever its engine.  Asynchronous, because a
session lives as long as a person types, and the processes that serve people have one loop for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, runtime_checkable

from jobs.backends.base import Handle, TaskRef


class Kind(StrEnum):
    """What is to be run."""

    SHELL = "shell"
    LINE = "line"
    PROGRAM = "program"
    FILES = "files"
    FOLDERS = "folders"


class Barrier(StrEnum):
    """Why a replica can't be entered."""

    NOT_RUNNING = "not_running"
    NO_PROGRAM = "no_program"
    LIMITS = "limits"
    NOT_ITS_OWN = "not_its_own"
    GONE = "gone"
    ENGINE_AWAY = "engine_away"
    FAILED = "failed"


class NoEntry(Exception):
    """The session was not begun; `detail` is the system's word for why, for logs."""

    def __init__(self, barrier: Barrier, detail: str = "") -> None:
        super().__init__(f"{barrier}: {detail}" if detail else str(barrier))
        self.barrier = barrier
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Size:
    """A terminal's, in characters."""

    columns: int = 80
    rows: int = 24


@dataclass(frozen=True, slots=True)
class Terminal:
    """A terminal to run in: what it understands (terminfo's name), and its size."""

    name: str = "xterm-256color"
    size: Size = Size()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to run.

    SHELL: the job's own shell.  LINE: `line`, as one argument of that shell.  PROGRAM: `argv`, as it is.
    FILES: SFTP version 3 on stdin and stdout.  FOLDERS: the same of `jobs.node.sftp.folder_server`, for
    the file pages; also of a replica that has ended, to be read, as long as its folders are kept.  `env` is
    added to the job's own environment, and never changes which GPUs the job was given.  Without a terminal
    stdout and stderr are two streams.
    """

    kind: Kind
    line: str = ""
    argv: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    terminal: Terminal | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """How the main process ended: one of the two, or neither when it was lost with its replica."""

    exit_code: int | None = None
    signal: str | None = None


class Session(Protocol):
    """A running one, to be closed; the death of whoever holds it ends it too."""

    async def read(self, limit: int) -> bytes:
        """At most `limit` bytes of output, or of the terminal; b"" at its end."""

    async def read_error(self, limit: int) -> bytes:
        """At most `limit` bytes of stderr; b"" at its end, which with a terminal is at once."""

    async def write(self, data: bytes) -> None:
        """Type or send; returns when all was taken.  BrokenPipeError when nobody reads any more."""

    async def write_eof(self) -> None:
        """Say that nothing more comes (in a terminal: type the character for it)."""

    def resize(self, size: Size) -> None:
        """Tell the terminal its new size; without one nothing happens."""

    def signal(self, name: str) -> None:
        """Send a signal (`INT`, `TERM` …) to what runs in the foreground; a name that is none is ignored."""

    async def wait(self) -> Ended:
        """Until the main process has ended; what it left in the background may still run."""

    async def left(self) -> None:
        """Until nothing runs any more that the session has started."""

    async def close(self) -> None:
        """End all that the session has started, what is in the background too; twice is fine."""


@runtime_checkable
class Enterable(Protocol):
    """A backend whose running replicas can be entered."""

    async def exec(self, handle: Handle, task: TaskRef, wanted: Wanted) -> Session:
        """Run something beside the replica: as its user, in its own file system, limits, environment and
        working folder.  It ends with the replica.  Raises NoEntry, or Unreachable.
        """

    async def reach(self, handle: Handle, task: TaskRef, host: str, port: int) -> tuple[str, int]:
        """The address to connect to for what the replica itself serves at `host`:`port`, where `host` is
        what the replica calls itself.  Raises NoEntry for everything else, the rest of its network too.
        """

    async def listener(self, handle: Handle, task: TaskRef, host: str, port: int) -> str:
        """What a connection to `host`:`port` would reach, in a word that changes when another takes its
        place; "" where that can't be asked.  Raises NoEntry unless it is the replica's own.
        """
