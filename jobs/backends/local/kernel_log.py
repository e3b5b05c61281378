"""The log of this machine's kernel, as far as the GPU driver writes it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from jobs.backends.local import gpus
from jobs.backends.measures import KernelLog

PATH: Final = Path("/dev/kmsg")
MOST_LINES: Final = 1000
_RECORD: Final = 8192
_DRIVER: Final = b"NVRM"


def read() -> KernelLog:
    """Return the driver's lines; none where there is no GPU, or the log may not be read."""
    with gpus.open_reader() as reader:
        buses = reader.buses()
    return KernelLog(_read_lines() if buses else (), buses)


def _read_lines() -> tuple[str, ...]:
    """Each read returns one record; the last one would block."""
    lines: list[str] = []
    try:
        file = os.open(PATH, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return ()
    try:
        while True:
            try:
                record = os.read(file, _RECORD)
            except BrokenPipeError:  # overwritten meanwhile: the next read goes on
                continue
            if _DRIVER in record:
                lines.append(record.partition(b"\n")[0].decode("utf-8", "replace"))
    except OSError:
        return tuple(lines[-MOST_LINES:])
    finally:
        os.close(file)
