"""Set-up of each process that supervisord forks, before it becomes a program.

It makes the program end when supervisord ends, notes who it is, so that a later start can find what an
earlier one left behind, and holds back a program that keeps ending right after its start: supervisord starts
it again for ever, this makes for ever affordable. Standard library only.
"""

import ctypes
import json
import os
import signal
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15

LIVED_WELL = 10.0  # seconds; whoever lives longer is started again at once
LONGEST_PAUSE = 8.0  # seconds


@dataclass(frozen=True, slots=True)
class Record:
    """A program's last start: its process, the Unix time, and how many short lives came right before it."""

    pid: int
    started: float
    short_lives: int


def read_record(path: Path) -> Record | None:
    """Return the record of a program's last start, if there is one."""
    try:
        return Record(**json.loads(path.read_text(encoding="ascii")))
    except (OSError, ValueError, TypeError):
        return None


def next_record(before: Record | None, now: float, pid: int) -> Record:
    """The record of a start at `now`."""
    lived_shortly = before is not None and now - before.started < LIVED_WELL
    return Record(pid, now, before.short_lives + 1 if before and lived_shortly else 0)


def pause(short_lives: int) -> float:
    """How long to wait before a start, in seconds: 0, 0.5, 1, 2, 4 and then 8."""
    return min(LONGEST_PAUSE, 0.25 * 2**short_lives) if short_lives else 0.0


def die_with_parent(parent: int = 0) -> None:
    """Ask Linux to end this process when its parent ends. Elsewhere, the next start cleans up.

    With `parent`, the pid of the process that forked this one, it also ends if that has ended already.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if parent and os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGTERM)


def be_called(name: str) -> None:
    """Set the name that `ps -e` and `top` show (Linux only, 15 bytes)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode(), 0, 0, 0)


def begin(path: Path) -> None:
    """Tie this process to its parent, leave a record in the file `path`, and wait if it has to."""
    die_with_parent()
    be_called(path.stem)
    record = next_record(read_record(path), time.time(), os.getpid())
    _write(path, record)
    if delay := pause(record.short_lives):
        time.sleep(delay)
        _write(path, Record(record.pid, time.time(), record.short_lives))


def _write(path: Path, record: Record) -> None:
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps(asdict(record)), encoding="ascii")
    draft.replace(path)
