"""How much room is left on a disk."""

from __future__ import annotations

import os
from pathlib import Path


def free_mib(path: Path | str) -> int:
    """Return the MiB that an ordinary user could still write where `path` lies."""
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize >> 20
