"""Checks before the start: each problem is found early and reported in one sentence."""

import os
import re
import socket
from importlib.metadata import PackageNotFoundError, distribution, requires
from pathlib import Path

from console.configuration.filesystem import network_filesystem
from console.home import CHECKOUT, IS_INSTALLED

SOCKET_PATH_LIMIT = 107  # bytes, without the final NUL: unix(7)
UNWRITABLE = re.compile(r"\s;|[\x00-\x1f]")
"""What supervisord's configuration cannot hold: the rest would be a comment, or another line."""


class CannotStart(RuntimeError):
    """The console cannot start; the message is one sentence, and says what to do."""


def packages() -> None:
    """Check that every package is installed: of the locked file, or those that a wheel's extra names."""
    remedy = (
        "`pip install 'job-console[server]'` installs everything"
        if IS_INSTALLED
        else "`rm -r .venv` and `make run` install everything again"
    )
    for name in _needed():
        try:
            distribution(name)
        except PackageNotFoundError:
            raise CannotStart(f"The package {name} is not installed: {remedy}.") from None


def _needed() -> list[str]:
    if IS_INSTALLED:
        listed = [each for each in requires("job-console") or () if each.endswith('extra == "server"')]
        return [re.split(r"[^A-Za-z0-9._-]", each)[0] for each in listed]
    lock = (CHECKOUT / "requirements.lock").read_text(encoding="utf-8")
    # A line with a condition is for other machines.
    return re.findall(r"^([A-Za-z0-9._-]+)(?:\[.*\])?==[^ ;]+ \\$", lock, flags=re.MULTILINE)


def home(folder: Path) -> None:
    """`folder`, and `run` in it, exist, are writable, on a local disk, and have room for a socket's path."""
    if UNWRITABLE.search(str(folder)):
        raise CannotStart(
            f"The path {str(folder)!r} has a space before a semicolon, or a control character: "
            "set CONSOLE_HOME to a plainer one."
        )
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder == CHECKOUT / "var":
            folder.chmod(0o700)  # a make target may have made it
        (folder / "run").mkdir(mode=0o700, exist_ok=True)
        probe = folder / "run" / f".{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as problem:
        raise CannotStart(
            f"{folder} cannot be written ({problem.strerror}): set CONSOLE_HOME to a folder of your own."
        ) from problem
    if kind := network_filesystem(folder):
        raise CannotStart(
            f"{folder} lies on a network file system ({kind}), which breaks databases and sockets: "
            "set CONSOLE_HOME to a folder on a local disk."
        )
    longest = len(os.fsencode(folder / "run" / "job-service.sock"))
    if longest > SOCKET_PATH_LIMIT:
        raise CannotStart(
            f"The path {folder} is too long for Unix sockets by {longest - SOCKET_PATH_LIMIT} bytes: "
            "set CONSOLE_HOME to a shorter one."
        )


def port(bind: str, number: int) -> socket.socket:
    """Check that `bind`:`number` is free, and that no other console is about to take it.

    That it is about to is known by an address that the kernel gives to one alone, for as long as what is
    returned is open.
    """
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0job-console {bind}:{number}")
        family, kind, protocol, _, address = socket.getaddrinfo(bind, number, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as problem:
        claim.close()
        raise CannotStart(
            f"Port {number} on {bind} cannot be used ({problem.strerror}): "
            f"stop what listens there, or choose another, such as `make run PORT={number + 1}`."
        ) from problem
    return claim
