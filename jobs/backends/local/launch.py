"""Starting supervisors, and starting them again."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import IO, Final

from jobs import node
from jobs.node import files, processes
from jobs.node.processes import Identity
from jobs.node.supervisor import layout

RUNNER: Final = Path(node.__path__[0], "runner.py")

_AGAIN_S: Final = 1.0
"""A supervisor that was just launched gets this long to show itself before another is."""

TIMEOUT_S: Final = 10

_ROOM: Final = " " * 4096
"""A word in the fork server's command line over which supervisors write their own."""

_KEPT: Final = ("PATH", "HOME", "XDG_RUNTIME_DIR", "CONTAINERS_CONF", "DOCKER_HOST", "CONSOLE_FAULTS")
"""What a container engine needs to find itself, and tests to find us."""


def child_environment() -> dict[str, str]:
    """The environment of what is started here: nothing of the console goes with it but `_KEPT`."""
    return {"LANG": "C.UTF-8", **{name: os.environ[name] for name in _KEPT if name in os.environ}}


def launch(attempt: Path, python: str) -> None:
    """Start a supervisor in the background.  A second one for the same attempt ends at once.

    Nothing of the console goes with it: no environment but `_KEPT`, no files, no session.  OSError when
    it can't be started now; whoever looks at the attempt next tries again.
    """
    (attempt / layout.LAUNCHED).touch(mode=0o600)
    with (attempt / layout.DIARY).open("ab") as diary, _one_at_a_time:
        try:
            _fork_server(python, diary).start(attempt, diary)
        except ConnectionError:  # somebody killed it: the next one is as good
            _fork_server(python, diary).start(attempt, diary)


class _ForkServer:
    """This end of `fork server`, in the process `made_for`."""

    def __init__(self, made_for: tuple[object, ...], python: str, diary: IO[bytes]) -> None:
        self.made_for = made_for
        self.lost = False
        self._talk, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                subprocess.run(
                    [python, "-I", "-S", str(RUNNER), "fork-server", str(theirs.fileno()), _ROOM],
                    cwd="/",
                    env=child_environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=diary,
                    stderr=diary,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                    timeout=TIMEOUT_S,
                    check=True,
                )
            except (OSError, subprocess.SubprocessError) as error:
                self.close()
                raise OSError(str(error)) from error

    def start(self, attempt: Path, diary: IO[bytes]) -> None:
        """Have a supervisor started that tells what it has to say to `diary`."""
        self._talk.settimeout(TIMEOUT_S)
        try:
            socket.send_fds(self._talk, [os.fsencode(attempt)], [diary.fileno()])
            if not self._talk.recv(1):
                raise ConnectionResetError("the fork server is gone")
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """It ends by itself once nobody can give it orders."""
        self.lost = True
        self._talk.close()


_one_at_a_time: Final = threading.Lock()
_current_server: _ForkServer | None = None


def dismiss() -> None:
    """Let the fork server of this process go, if it has one; the next launch begins another."""
    with _one_at_a_time:
        if _current_server is not None:
            _current_server.close()


def _fork_server(python: str, diary: IO[bytes]) -> _ForkServer:
    """Return this process' fork server; another once it is lost or their environment changed."""
    global _current_server  # noqa: PLW0603 one a process is the point
    made_for = (os.getpid(), python, child_environment())
    if _current_server is None or _current_server.lost or _current_server.made_for != made_for:
        if _current_server is not None:
            _current_server.close()
        _current_server = _ForkServer(made_for, python, diary)
    return _current_server


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
