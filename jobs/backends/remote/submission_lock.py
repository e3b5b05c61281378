"""The lock that a worker holds while it submits an attempt."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jobs.backends.base import Unknown


@contextmanager
def hold_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of the attempt in `folder`.  Raises Unknown when another worker submits it."""
    file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Unknown("another worker is handing it over") from error
        yield
    finally:
        os.close(file)
