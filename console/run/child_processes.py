"""The console's own programs are forked from this process, which has imported what they need.

Each of them would take some two seconds of CPU for the same two thousand modules, at every start of the
console and whenever one of them is started again; and each would hold a copy of its own in memory.

What is inherited besides must be nothing: here no thread is started, no connection made and no file left open
(`tests/console/run/test_child_processes.py`).
"""

import atexit
import gc
import os
import runpy
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Final, NoReturn

import django
from django.conf import settings

from console.home import CHECKOUT
from console.run.child import die_with_parent

SHARED: Final = (
    # Celery's workers and beat
    "celery.app.events",
    "celery.app.log",
    "celery.apps.beat",
    "celery.apps.worker",
    "celery.backends.base",
    "celery.bin.celery",
    "celery.concurrency.prefork",
    "celery.contrib.django.task",
    "celery.loaders.app",
    "celery.worker.autoscale",
    "celery.worker.components",
    "celery.worker.consumer",
    "celery.worker.strategy",
    "console.celery",
    "console.tasks",
    "jobs.tasks",
    "kombu.transport.redis",
    # the web server
    "console.server.handler",
    "console.server.protocol",
    "console.urls",
    "jobs.access.job_service",
    "django.contrib.staticfiles.handlers",
    "jobs.access.gateway.app",
    "jobs.access.gateway.terminals",
    "servestatic",
    "uvicorn.lifespan.on",
    "uvicorn.protocols.websockets.websockets_sansio_impl",
    "uvloop",
    # the others
    "jobs.management.commands.shells",
    "jobs.management.commands.watch",
)
"""What the programs import beside Django's applications."""

_HANDLED: Final = (signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP, signal.SIGCHLD, signal.SIGUSR2)
"""By supervisord, which asks for SIGINT too."""


def gather() -> None:
    """Import what the programs share; from here on they are forked."""
    gc.disable()  # nearly all of it stays: looking for garbage among it takes a quarter of the time
    os.environ["DJANGO_SETTINGS_MODULE"] = "console.settings"
    django.setup(set_prefix=False)
    for name in (*SHARED, *(path.rpartition(".")[0] for path in settings.MIDDLEWARE)):
        import_module(name)
    # With the little garbage among it, which takes long to find. A look for garbage by a program would write
    # to each object, and so copy the page that it lies on.
    gc.freeze()
    gc.enable()


def call(arguments: Sequence[str], first: Callable[[], None]) -> tuple[int, str]:
    """The exit status of `python ARGUMENTS`, run in the checkout after `first`, and what it printed."""
    reading, writing = os.pipe()
    if (pid := fork()) == 0:
        die_with_parent()
        os.dup2(writing, 1)
        os.chdir(CHECKOUT)
        become(arguments, first)
    os.close(writing)
    with open(reading, encoding="utf-8") as stream:  # noqa: PTH123  # a descriptor
        output = stream.read()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), output


def fork() -> int:
    """`os.fork`; the child answers signals as if it had just been executed, from its first moment on."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        if (pid := os.fork()) == 0:
            for number in _HANDLED:
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return pid


def become(arguments: Sequence[str], first: Callable[[], None] = lambda: None) -> NoReturn:
    """Do what `python ARGUMENTS` does, and end as it does; the stack beneath is never gone back to."""
    code = 1
    try:
        first()
        _run(*arguments)
        code = 0
    except SystemExit as ended:
        code = _exit_code(ended)
    except BaseException:  # noqa: BLE001  # no caller above could handle it
        traceback.print_exc()
    finally:
        try:
            _finish()
        finally:
            os._exit(code)


def _run(first: str, *rest: str) -> None:
    if first == "-m":
        module, *rest_of_it = rest
        sys.argv = [module, *rest_of_it]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        sys.argv = [first, *rest]
        runpy.run_path(first, run_name="__main__")


def _exit_code(ended: SystemExit) -> int:
    if ended.code is None or isinstance(ended.code, int):
        return ended.code or 0
    print(ended.code, file=sys.stderr)
    return 1


def _finish() -> None:
    """Do what an interpreter does at its end: join threads, run exit functions, flush output."""
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001  # as multiprocessing's processes end
    atexit._run_exitfuncs()  # noqa: SLF001
    sys.stdout.flush()
    sys.stderr.flush()
