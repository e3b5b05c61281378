"""Interfaces of a network namespace: the bytes that came in and went out."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_LOOPBACK: Final = "lo"
_RECEIVED, _SENT = 0, 8
"""Columns of /proc/net/dev."""


def count_bytes(pid: int) -> tuple[int, int] | None:
    """Return the bytes that the process's own network has received and sent, its loopback aside.

    None where the process is in the caller's network, which others use too, or is not ours to look at.
    """
    try:
        if _namespace(str(pid)) == _namespace("self"):
            return None
        lines = Path(f"/proc/{pid}/net/dev").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    rows = [line.partition(":") for line in lines if ":" in line]
    counts = [values.split() for name, _, values in rows if name.strip() != _LOOPBACK]
    return sum(int(row[_RECEIVED]) for row in counts), sum(int(row[_SENT]) for row in counts)


def _namespace(pid: str) -> int:
    return Path(f"/proc/{pid}/ns/net").stat().st_ino
