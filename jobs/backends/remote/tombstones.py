"""Tombstones: records of forgotten attempts, so that a delayed submission never runs one again."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Final

from jobs.backends.remote import attempts

FOLDER: Final = ".forgotten"
MONTHS: Final = 2
"""A key is known for so many months after it was forgotten."""


def find(root: Path, key: str) -> str | None:
    """Return the text of a forgotten attempt's record, None for any other."""
    for months in range(MONTHS + 1):
        if text := attempts.read_text(_month(root, months) / key):
            return text
    return None


def write(root: Path, key: str, text: str) -> None:
    """Record that the attempt was run; old records are removed.  `text` is what `find` returns, not empty."""
    month = _month(root)
    if not month.exists():
        month.mkdir(mode=0o700, parents=True, exist_ok=True)
        kept = {_month(root, months).name for months in range(MONTHS + 1)}
        for folder in month.parent.iterdir():
            if folder.name not in kept:
                shutil.rmtree(folder, ignore_errors=True)
    attempts.create(month / key, text)


def _month(root: Path, months_ago: int = 0) -> Path:
    """Return the folder of a month; earlier releases gave it this name."""
    now = time.gmtime()
    month = now.tm_year * 12 + now.tm_mon - 1 - months_ago
    return root / FOLDER / f"slurm-{month // 12}-{month % 12 + 1:02}"
