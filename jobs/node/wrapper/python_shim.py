"""The command `python` for jobs on a machine that has only `python3`.

Its folder is the last one on a job's PATH, so that every other `python` comes before it: the machine's, and
that of an environment.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from jobs.node.sandbox import view
from jobs.node.sandbox.view import Laid
from jobs.node.supervisor import layout

FOLDER: Final = f"{view.HOUSE}/{layout.BIN}"
"""Where a replica with a view of its own finds it."""

_SCRIPT: Final = '#!/bin/sh\nexec python3 "$@"\n'


def write(attempt: Path) -> None:
    """Write it into the attempt's folder."""
    folder = attempt / layout.BIN
    folder.mkdir(exist_ok=True)
    program = folder / "python"
    program.write_text(_SCRIPT, encoding="utf-8")
    for path in (folder, program):
        path.chmod(0o755)


def mounts(attempt: Path) -> list[Laid]:
    """Return it for a replica's view; nothing for an attempt that an earlier release began."""
    folder = attempt / layout.BIN
    if not folder.exists():
        return []
    fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
    return [Laid(FOLDER, fd, read_only=True, anywhere=True)]
