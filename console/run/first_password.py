"""The first admin's password, which only the first start gets and no program inherits.

What is forked shares its parent's memory, and shows the environment that its parent was started with
(`/proc/<pid>/environ`). So this process starts over without it, and leaves it in a pipe to the one that makes
the first admin.
"""

import json
import os
import sys
from importlib import reload
from typing import Final

from console.configuration.env import EnvError

PREFIX: Final = "CONSOLE_ADMIN_"
PIPE: Final = "CONSOLE_CONFIDED"
"""Names the pipe's descriptor."""


def put_aside() -> None:
    """Start over if there is anything to put aside; called before anything else."""
    settings = {name: value for name, value in os.environ.items() if name.startswith(PREFIX)}
    if not settings:
        return
    reading, writing = os.pipe()
    os.write(writing, json.dumps(settings).encode())
    os.close(writing)
    os.set_inheritable(reading, True)
    environ = {name: value for name, value in os.environ.items() if name not in settings}
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**environ, PIPE: str(reading)})  # noqa: S606


def forget() -> None:
    """Here, in the process that forks."""
    if pipe := os.environ.pop(PIPE, ""):
        os.close(int(pipe))


def take() -> None:
    """In the process that makes the first admin: as if it had never been put aside."""
    if not (pipe := os.environ.pop(PIPE, "")):
        return
    from django.conf import settings  # noqa: PLC0415  # `put_aside` comes before there is a Django

    from console.settings import people  # noqa: PLC0415  # and before there are keys

    with open(int(pipe), "rb") as stream:  # noqa: PTH123  # a descriptor
        os.environ.update(json.load(stream))
    try:
        settings.CONSOLE_ADMIN_PASSWORD = reload(people).CONSOLE_ADMIN_PASSWORD
    except EnvError as problem:
        sys.exit(str(problem))
