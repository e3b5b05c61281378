"""Whether isolation works here: does what a wrapper does, and exits 0 if nothing was in the way."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from jobs.node import kernel
from jobs.node.sandbox import isolation, view
from jobs.node.sandbox.isolation import Isolation


def main(mode: str, folder: Path) -> None:
    """Try `mode` with an empty work folder below `folder`; exits."""
    work, tmp = folder / "work", folder / "tmp"
    work.mkdir()
    tmp.mkdir()
    isolation.enter(Isolation(mode))
    pid = os.fork()
    if pid == 0:
        _look(
            view.View(str(work), str(tmp), 1, (str(folder),), read_only=mode == Isolation.NAMESPACES), folder
        )
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def _look(wanted: view.View, hidden: Path) -> None:
    try:
        view.take(wanted)
        kernel.drop_capabilities()
        works = os.getpid() == 1 and not os.path.lexists(hidden / "work") and Path(view.WORK).is_dir()
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        works = False
    os._exit(0 if works else 1)
