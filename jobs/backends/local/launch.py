"""Starting supervisors, and starting them again."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Final

from jobs.backends.local import files, layout, processes
from jobs.backends.local.processes import Identity

RUNNER: Final = Path(__file__).with_name("runner.py")

_AGAIN_S: Final = 1.0
"""A supervisor that was just launched gets this long to show itself before another is."""

_TIMEOUT_S: Final = 10

_KEPT: Final = ("PATH", "HOME", "XDG_RUNTIME_DIR", "CONTAINERS_CONF", "DOCKER_HOST", "CONSOLE_FAULTS")
"""What a container engine needs to find itself, and tests to find us."""


def kept() -> dict[str, str]:
    """The environment of what is started here: nothing of the console goes with it but `_KEPT`."""
    return {"LANG": "C.UTF-8", **{name: os.environ[name] for name in _KEPT if name in os.environ}}


def launch(attempt: Path, python: str) -> None:
    """Start a supervisor in the background.  A second one for the same attempt ends at once.

    Nothing of the console goes with it: no environment but `_KEPT`, no files, no session.  OSError when
    it can't be started now; whoever looks at the attempt next tries again.
    """
    (attempt / layout.LAUNCHED).touch(mode=0o600)
    with (attempt / layout.DIARY).open("ab") as diary:
        try:
            subprocess.run(
                [python, "-I", "-S", str(RUNNER), "supervise", str(attempt)],
                cwd="/",
                env=kept(),
                stdin=subprocess.DEVNULL,
                stdout=diary,
                stderr=diary,
                start_new_session=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(str(error)) from error


def ensure(attempt: Path, python: str, supervisor: Identity | None) -> None:
    """See that the attempt has a supervisor that runs; `supervisor` is the one last heard of."""
    state = supervisor.state() if supervisor else None
    if state == processes.STOPPED and supervisor:
        supervisor.poke()
    elif state is None and not _just_launched(attempt):
        launch(attempt, python)


def rouse(attempt: Path, python: str) -> None:
    """Have the supervisor look at its orders now."""
    found = files.read(attempt / layout.SUPERVISOR)
    supervisor = Identity.load(found) if found else None
    if supervisor is not None and supervisor.alive():
        supervisor.poke()
    else:
        launch(attempt, python)


def _just_launched(attempt: Path) -> bool:
    try:
        return time.time() - (attempt / layout.LAUNCHED).stat().st_mtime < _AGAIN_S
    except FileNotFoundError:
        return False
