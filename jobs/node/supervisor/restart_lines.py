"""The line in a replica's log between two runs of its command."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Final

from jobs.node.wrapper.log_times import LogTimes
from jobs.node.wrapper.log_writer import open_log

TEXT: Final = "[job console] The replica is started again: run"
_LINE: Final = re.compile(rf"{re.escape(TEXT)} [0-9]+")


def is_restart_line(text: str) -> bool:
    """Tell whether a line of a log stands between two runs."""
    return _LINE.fullmatch(text.strip()) is not None


def append(log: Path, run: int) -> None:
    """Add the line before a run to a log that nobody writes to now; a full disk leaves it out."""
    with contextlib.suppress(OSError):
        file = open_log(log)
        try:
            size = os.fstat(file).st_size
            times = LogTimes(log)
            times.mark(size)
            times.close()
            os.pwrite(file, f"\n{TEXT} {run}\n".encode(), size)
        finally:
            os.close(file)
