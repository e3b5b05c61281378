"""The agent of a cluster on this machine: started, started again, and told of attempts."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

from jobs import node
from jobs.backends.local import agent_socket
from jobs.node import files, processes
from jobs.node.agent.release import read_digest
from jobs.node.processes import Identity
from jobs.node.supervisor import layout

RUNNER: Final = Path(node.__path__[0], "runner.py")

TIMEOUT_S: Final = 10

_KEPT: Final = ("PATH", "HOME", "XDG_RUNTIME_DIR", "CONTAINERS_CONF", "DOCKER_HOST", "CONSOLE_FAULTS")
"""What a container engine needs to find itself, and tests to find us."""

_one_at_a_time: Final = threading.Lock()


def child_environment() -> dict[str, str]:
    """The environment of what is started here: nothing of the console goes with it but `_KEPT`."""
    return {"LANG": "C.UTF-8", **{name: os.environ[name] for name in _KEPT if name in os.environ}}


def ensure_agent(root: Path, python: str) -> Identity:
    """See that an agent of this release looks after the attempts below `root`; return who it is.

    Raises OSError when none can be started now; whoever looks next tries again.
    """
    found = _find_agent(root)
    if found is not None:
        return found
    with _one_at_a_time:
        found = _find_agent(root) or _start_agent(root, python)
    if found is None:
        raise OSError(f"no agent of this release looks after {root}")
    return found


def tend(root: Path, python: str, keys: Iterable[str]) -> None:
    """Have the agent look at attempts now.  Raises OSError, as `ensure_agent` does."""
    ensure_agent(root, python)
    for key in keys:
        try:
            agent_socket.ask(root, {"tend": key})
        except ConnectionError:  # it was about to end, or killed: the next one is as good
            ensure_agent(root, python)
            agent_socket.ask(root, {"tend": key})


def hand_over(root: Path, release: str = "") -> None:
    """Have the agent end, unless it is of a release; jobs go on, and the next one adopts them."""
    with contextlib.suppress(OSError):
        agent_socket.ask(root, {"hand_over": release})


def _find_agent(root: Path) -> Identity | None:
    """Return the agent, woken if it was frozen; None when there is none, or only an earlier release's."""
    found = files.read(root / layout.AGENT)
    agent = Identity.load(found["process"]) if found else None
    state = agent.state() if agent else None
    if found is None or agent is None or state is None:
        return None
    if state == processes.STOPPED:
        agent.poke()
    return agent if _is_current(found["release"]) else None


def _is_current(release: str) -> bool:
    """Tell whether an agent runs the code that lies on the disk, which an upgrade may just have replaced."""
    if release != _read_digest():
        _read_digest.cache_clear()
    return release == _read_digest()


@cache
def _read_digest() -> str:
    return read_digest()


def _start_agent(root: Path, python: str) -> Identity | None:
    """Start the agent in the background, in place of one of an earlier release.

    Nothing of the console goes with it: no environment but `_KEPT`, no files, no session.
    """
    hand_over(root, _read_digest())
    with open(root / layout.AGENT_LOG, "ab", opener=_open_private) as log:
        try:
            subprocess.run(
                [python, "-I", "-S", str(RUNNER), "agent", str(root)],
                cwd="/",
                env=child_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                timeout=TIMEOUT_S,
                check=True,
            )
        except subprocess.SubprocessError as error:
            raise OSError(str(error)) from error
    return _find_agent(root)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
