"""An SSH server of this machine's own, on a port of its own: a login node for tests."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.ports import free_port
from tests.waiting import wait_for

PROGRAM = Path("/usr/sbin/sshd")
TRIES = 3
PATIENCE_S = 120


def missing() -> str:
    """What this machine lacks to run one, or nothing."""
    return "" if PROGRAM.exists() else "there is no sshd (Debian: openssh-server)"


@dataclass(frozen=True)
class Server:
    """One that listens; every user of this machine may sign in there, with one key."""

    folder: Path
    port: int

    def login(self, user: str) -> dict[str, Any]:
        """What a cluster's settings say to sign in there as that user."""
        return {
            "host": "127.0.0.1",
            "port": self.port,
            "user": user,
            "private_key": (self.folder / "person").read_text(),
            "host_key": (self.folder / "host.pub").read_text(),
        }


@contextmanager
def server() -> Iterator[Server]:
    """A new one for the length of a `with`.  Whoever else runs here may take its port: then another."""
    folder = Path(tempfile.mkdtemp(prefix="sshd-", dir="/var/tmp"))
    folder.chmod(0o755)  # each user reads there who may sign in
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # which a package would make at boot
    for name in ("host", "person"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    (folder / "authorized").write_text((folder / "person.pub").read_text())
    port, running = _started(folder)
    try:
        yield Server(folder, port)
    finally:
        running.terminate()
        running.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _started(folder: Path) -> tuple[int, subprocess.Popen[bytes]]:
    options = (
        "ListenAddress=127.0.0.1",
        f"AuthorizedKeysFile={folder}/authorized",
        f"PidFile={folder}/pid",
        "StrictModes=no",
        "UsePAM=no",
        "MaxStartups=100",
    )
    told = [part for option in options for part in ("-o", option)]
    for _ in range(TRIES):
        port = free_port()
        command = [str(PROGRAM), "-D", "-e", "-f", "/dev/null", "-p", str(port), "-h", str(folder / "host")]
        with (folder / "log").open("wb") as log:
            running = subprocess.Popen([*command, *told], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_for(lambda: (folder / "pid").exists() or running.poll() is not None, PATIENCE_S)  # noqa: B023
        if running.poll() is None:
            return port, running
    raise AssertionError((folder / "log").read_text())
