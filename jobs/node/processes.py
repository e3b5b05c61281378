"""Processes: identities that outlive the reuse of numbers, signals, CPU time and memory."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

POKE: Final = signal.SIGCONT
"""Wakes whoever expects it, thaws whoever is frozen, and harms nobody else."""

KILL: Final = signal.SIGKILL

STOPPED: Final = "T"
"""The letter of a frozen process."""

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_DEAD: Final = frozenset("ZXx")


@cache
def boot_id() -> str:
    """Return the id of this boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()


@dataclass(frozen=True, slots=True)
class Identity:
    """A process for good: its number, when it began (ticks since the boot), and which boot."""

    pid: int
    start: int
    boot: str

    @classmethod
    def of(cls, pid: int) -> Identity | None:
        """The identity of the process that has the number now; None when there is none."""
        stat = _stat(str(pid))
        return None if stat is None else cls(pid, int(stat[19]), boot_id())

    @classmethod
    def mine(cls) -> Identity:
        """My own, by the numbers of whoever mounted /proc: inside a new PID namespace that is still
        the outer number until the namespace gets a /proc of its own.
        """
        pid = int(str(Path("/proc/self").readlink()))
        stat = _stat("self")
        assert stat is not None
        return cls(pid, int(stat[19]), boot_id())

    @classmethod
    def of_parent(cls) -> Identity:
        """The identity of the parent that waits for me, by the numbers of whoever mounted /proc."""
        stat = _stat("self")
        found = cls.of(int(stat[1])) if stat else None
        assert found is not None
        return found

    @classmethod
    def load(cls, value: dict[str, Any]) -> Identity:
        """Read it from what `dump` returned."""
        return cls(value["pid"], value["start"], value["boot"])

    def dump(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"pid": self.pid, "start": self.start, "boot": self.boot}

    def state(self) -> str | None:
        """The kernel's letter for it; None when it has ended."""
        stat = _stat(str(self.pid))
        if stat is None or int(stat[19]) != self.start or self.boot != boot_id():
            return None
        return None if stat[0] in _DEAD else stat[0]

    def alive(self) -> bool:
        """Tell whether it has not ended."""
        return self.state() is not None

    def hold(self) -> int | None:
        """A pidfd that can only mean this process; None when it has ended."""
        fd = hold(self.pid)
        if fd is None or self.alive():
            return fd
        os.close(fd)
        return None

    def poke(self) -> None:
        """Wake it, also out of a freeze; without effect when it has ended."""
        fd = self.hold()
        if fd is not None:
            send(fd, POKE)
            os.close(fd)


def hold(pid: int) -> int | None:
    """A pidfd of whoever has the number now; None when nobody has."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None


def send(pidfd: int, number: signal.Signals) -> None:
    """Send a signal to a held process; one that has ended is fine."""
    try:
        signal.pidfd_send_signal(pidfd, number)
    except ProcessLookupError:
        return


def over(pidfd: int) -> bool:
    """Tell whether a held process has ended."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))


def wait(pidfd: int) -> None:
    """Wait for the end of a held process (and, if it is the first of a PID namespace, of all in it)."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    poll.poll()


def numbers() -> Iterator[int]:
    """Every process that /proc shows."""
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            yield int(path.name)


def parents() -> dict[int, int]:
    """The parent of every process that /proc shows."""
    found = {}
    for pid in numbers():
        stat = _stat(str(pid))
        if stat is not None and stat[0] not in _DEAD:
            found[pid] = int(stat[1])
    return found


def start_ticks(pid: int) -> int:
    """Return when the process started, in ticks since the boot; -1 once it has ended."""
    stat = _stat(str(pid))
    return -1 if stat is None else int(stat[19])


def cpu_seconds(pid: int) -> float:
    """CPU time of the process and of its children that have ended; nothing once it has ended itself."""
    stat = _stat(str(pid))
    return 0.0 if stat is None else sum(map(int, stat[11:15])) / _TICKS


def disk_bytes(pid: int) -> tuple[int, int] | None:
    """Return the bytes that the process, and its children that have ended, read from disks and wrote to them.

    What was written and removed before it came to the disk does not count (proc_pid_io(5)).  None once it has
    ended, or where it is not ours to look at.
    """
    try:
        lines = Path(f"/proc/{pid}/io").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    found = {name: int(value) for name, _, value in (line.partition(": ") for line in lines)}
    return found["read_bytes"], max(0, found["write_bytes"] - found["cancelled_write_bytes"])


def handles(pid: int, number: signal.Signals) -> bool:
    """Tell whether the process has a handler of its own for the signal."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    caught = next((line.split()[1] for line in lines if line.startswith("SigCgt:")), "0")
    return bool(int(caught, 16) >> (number - 1) & 1)


def _stat(pid: str) -> list[str] | None:
    """The fields of /proc/PID/stat from the third on (state first); None when there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()


WATCH_S: Final = 0.4

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def use_more_than(pids: Iterable[int], limit: int) -> bool:
    """Tell whether the processes together use more than `limit` bytes of memory.

    Shared pages count once (PSS); that sum is only worked out when the cheap one, which counts them in each
    process (RSS), is over the limit.
    """
    pids = list(pids)
    return sum(map(resident_bytes, pids)) > limit and sum(map(_proportional, pids)) > limit


def resident_bytes(pid: int) -> int:
    """Return the bytes that the process has in memory; 0 once it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1]) * _PAGE
    except OSError:
        return 0


def _proportional(pid: int) -> int:
    """Resident, with shared pages divided among those who share them; in bytes."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return resident_bytes(pid)
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
