"""Attempts that were run and forgotten, so that a submitter who wakes up late does not run them again."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Final

from jobs.backends.slurm.script import layout
from jobs.backends.slurm.script.layout import Sent

FOLDER: Final = ".forgotten"
MONTHS: Final = 2
"""A key stays known this many months after it was forgotten."""


def number(root: Path, key: str) -> int | None:
    """Slurm's number for an attempt that was forgotten; None for any other."""
    for months in range(MONTHS + 1):
        if told := layout.text(_month(root, months) / key):
            return int(told)
    return None


def remember(root: Path, sent: Sent) -> None:
    """Write down that the attempt was run; old such notes are removed."""
    month = _month(root)
    if not month.exists():
        month.mkdir(mode=0o700, parents=True, exist_ok=True)
        kept = {_month(root, months).name for months in range(MONTHS + 1)}
        for folder in month.parent.iterdir():
            if folder.name not in kept:
                shutil.rmtree(folder, ignore_errors=True)
    layout.publish(month / sent.key, str(sent.number))


def _month(root: Path, months_ago: int = 0) -> Path:
    now = time.gmtime()
    month = now.tm_year * 12 + now.tm_mon - 1 - months_ago
    return root / FOLDER / f"slurm-{month // 12}-{month % 12 + 1:02}"
