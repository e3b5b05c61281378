"""supervisord in this process: it starts the programs of its configuration and starts again what ends."""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

from supervisor.medusa.asyncore_25 import ExitNow
from supervisor.options import ServerOptions
from supervisor.poller import Poller
from supervisor.supervisord import Supervisor

from console.run import child_processes
from console.run.child import begin

STEP_SECONDS = 0.1


def supervise(config: Path, each_step: Callable[[], None]) -> None:
    """Run until SIGINT, SIGTERM or SIGHUP has come and every program has ended.

    The configuration's folder becomes the working directory. `each_step` is called about ten times a second
    in between, and must not take long.
    """
    os.chdir(config.parent)
    options = _Options(config.parent)
    options.realize(["--configuration", str(config)])
    options.first, options.test = True, False  # as its own main does
    options.poller = _Alert(options)
    supervisor = _Supervisor(options, each_step)
    try:
        supervisor.main()
    except ExitNow:
        options.close_logger()


class _Options(ServerOptions):  # type: ignore[misc]  # published without types
    """How supervisord reaches the system, which it asks for a program by `fork` and then, there, `execve`."""

    def __init__(self, run: Path) -> None:
        super().__init__()
        self._run = run

    def fork(self) -> int:
        return child_processes.fork()

    def execve(self, filename: str, argv: list[str], env: Mapping[str, str]) -> NoReturn:
        begin(self._run / f"{env['SUPERVISOR_PROCESS_NAME']}.process")
        if filename != sys.executable:
            os.execve(filename, argv, env)  # noqa: S606
        os.environ.update(env)
        child_processes.become(argv[1:])


class _Alert(Poller):  # type: ignore[misc]
    """supervisord looks after its programs once a second; here a start, a death and an end take less."""

    def poll(self, timeout: float) -> tuple[list[int], list[int]]:
        ready: tuple[list[int], list[int]] = super().poll(min(timeout, STEP_SECONDS))
        return ready


class _Supervisor(Supervisor):  # type: ignore[misc]
    def __init__(self, options: ServerOptions, each_step: Callable[[], None]) -> None:
        super().__init__(options)
        self._each_step = each_step

    def tick(self, now: float | None = None) -> None:
        super().tick(now)
        self._each_step()
