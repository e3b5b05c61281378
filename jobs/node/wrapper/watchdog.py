"""A memory limit held by looking, where the kernel won't hold one.

Sums what the processes of a tree use twice a second.  Shared pages count once (PSS); that sum is only
worked out when the cheap one, which counts them in each process (RSS), is over the limit.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

EVERY_S: Final = 0.4

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def over(pids: Iterable[int], limit: int) -> bool:
    """Whether the processes together use more than `limit` bytes."""
    pids = list(pids)
    return sum(map(resident, pids)) > limit and sum(map(_proportional, pids)) > limit


def resident(pid: int) -> int:
    """What the process has in memory, in bytes; nothing once it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1]) * _PAGE
    except OSError:
        return 0


def _proportional(pid: int) -> int:
    """Resident, with shared pages divided among those who share them; in bytes."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return resident(pid)
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
