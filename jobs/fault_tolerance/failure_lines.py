"""Line of a program's output that says why it failed, where the catalogue does not know the error."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_TRACEBACK: Final = "Traceback (most recent call last):"

_ERROR: Final = re.compile(
    r"(?i:\b(?:error|fatal|panic|exception)\b\s*:)(?!\s*[-+.]?\d)"  # "error: 0.1" is a measurement
    r"|\b(?:ERROR|FATAL|CRITICAL|PANIC)\b(?!\s*[:=]\s*[-+.]?\d)"
    r"|\bterminate called after\b"
    r"|(?i:\bsegmentation fault\b|\bcore dumped\b|\bassertion\b.*\bfailed\b)"
    r"|^make(?:\[\d+\])?: \*\*\*"
)


def find_failure_line(lines: Sequence[str]) -> str:
    """Return the line that says why a program failed; "" if none.

    It is the exception of the last Python traceback, else the last line that is written as an error.
    """
    return _find_exception(lines) or next((line for line in reversed(lines) if _ERROR.search(line)), "")


def _find_exception(lines: Sequence[str]) -> str:
    """Return the exception's line of the last traceback; a launcher may write a prefix before each line."""
    for at in range(len(lines) - 1, -1, -1):
        prefix, found, _rest = lines[at].partition(_TRACEBACK)
        if not found:
            continue
        for line in lines[at + 1 :]:
            own = line.removeprefix(prefix)
            if own.strip() and not own[0].isspace():
                return line
        return ""
    return ""
