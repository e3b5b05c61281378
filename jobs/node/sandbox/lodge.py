"""Running one program in a view of its own, for a replica that has none: its command runs in a container."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from jobs.node import command, kernel
from jobs.node.sandbox import isolation
from jobs.node.sandbox.isolation import Isolation
from jobs.node.wrapper.outcome import NOT_FOUND, code_of


def run(mode: Isolation, take: Callable[[], None], program: command.Command) -> NoReturn:
    """Be the program's guardian: in new namespaces, in the view that `take` makes.  Ends as it ends."""
    code = NOT_FOUND
    try:
        kernel.die_with_parent(signal.SIGKILL)
        isolation.enter(mode)
        pid = os.fork()
        if pid == 0:
            _first(take, program)
        code = code_of(os.waitpid(pid, 0)[1])[0]
    except BaseException as error:  # noqa: BLE001 nothing may return into the caller's own code
        sys.stderr.write(f"{error}\n")
    os._exit(code)


def _first(take: Callable[[], None], program: command.Command) -> NoReturn:
    """The first process of the PID namespace: all of it ends with this one."""
    code = NOT_FOUND
    try:
        kernel.die_with_parent(signal.SIGKILL)
        take()
        main = command.start(program, command.Streams.into(1), lambda: None)
        code = _reap(main)
    except BaseException as error:  # noqa: BLE001 likewise
        sys.stderr.write(f"{error}\n")
        sys.stderr.flush()
    os._exit(code)


def _reap(main: int) -> int:
    while True:
        pid, status = os.wait()
        if pid == main:
            return code_of(status)[0]
