"""Running something in a root file system and namespaces of its own.

Used for staging programs of a replica whose command runs in a container, and to find out whether it works.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from jobs.node import command, kernel
from jobs.node.sandbox import isolation, root_file_system
from jobs.node.sandbox.isolation import Isolation
from jobs.node.sandbox.root_file_system import RootFileSystem
from jobs.node.staging.mount_paths import WORK
from jobs.node.wrapper.outcome import NOT_FOUND, code_of


def run(mode: Isolation, enter: Callable[[], None], program: command.Command) -> NoReturn:
    """Run the program in new namespaces, in the root file system that `enter` makes, and end as it ends."""

    def first() -> int:
        enter()
        main = command.start(program, command.Streams.into(1), lambda: None)
        while True:
            pid, status = os.wait()
            if pid == main:
                return code_of(status)[0]

    kernel.die_with_parent(signal.SIGKILL)
    _run_first(mode, first)


def probe(mode: str, folder: Path) -> NoReturn:
    """Exit with 0 if isolation of that mode works here, as tried with a work folder in the empty `folder`."""
    work, tmp = folder / "work", folder / "tmp"
    work.mkdir()
    tmp.mkdir()
    read_only = mode == Isolation.NAMESPACES

    def first() -> int:
        root_file_system.enter(RootFileSystem(str(work), str(tmp), 1, (str(folder),), read_only=read_only))
        kernel.drop_capabilities()
        return 0 if os.getpid() == 1 and not os.path.lexists(work) and Path(WORK).is_dir() else 1

    _run_first(Isolation(mode), first)


def _run_first(mode: Isolation, first: Callable[[], int]) -> NoReturn:
    """Call `first` as the first process of new namespaces, which end with it, and exit with its answer."""
    code = NOT_FOUND
    try:
        isolation.enter(mode)
        pid = os.fork()
        if pid == 0:
            kernel.die_with_parent(signal.SIGKILL)
            code = first()
        else:
            code = code_of(os.waitpid(pid, 0)[1])[0]
    except BaseException as error:  # noqa: BLE001 nothing may return into the caller's own code
        sys.stderr.write(f"{error}\n")
        sys.stderr.flush()
    os._exit(code)
