"""`exec`: a command or a shell inside a running job, by OpenSSH and the console's SSH gateway.

Each job has a key of its own here, which the console lets into that job alone, and its host key is known from
the console: neither the person's keys nor their SSH configuration are used.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from jobs.client.api import Console
from jobs.client.failure import CommandFailure
from jobs.client.job_stream import Screen
from jobs.language import gettext as _

HOST_ALIAS: Final = "job-console"
KEPT_S: Final = 7 * 86400
"""Keys of jobs that were not used for so long are removed."""

_KEY: Final = "key"


def exec_command(console: Console, arguments: argparse.Namespace, _screen: Screen) -> int:
    """Run the command, or a shell; its exit status (255 is ssh's own)."""
    ssh = shutil.which("ssh")
    if ssh is None:
        raise CommandFailure(_("There is no ssh on this machine. Install OpenSSH's client."))
    folder = _find_key(arguments.job)
    role, _slash, index = (arguments.replica or "").rpartition("/")
    body = {
        "public_key": (folder / f"{_KEY}.pub").read_text(encoding="ascii"),
        "role": role,
        "index": int(index) if index.isascii() and index.isdigit() else 0,
    }
    access = console.post(f"/jobs/{arguments.job}/ssh-access", body)
    hosts = folder / "known_hosts"
    hosts.write_text(f"{HOST_ALIAS} {access['host_key']}\n", encoding="ascii")
    return subprocess.run(_arguments(ssh, folder, access, arguments.command), check=False).returncode


def _arguments(ssh: str, folder: Path, access: Mapping[str, Any], command: Sequence[str]) -> list[str]:
    has_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    options = {
        "BatchMode": "yes",
        "IdentitiesOnly": "yes",
        "HostKeyAlias": HOST_ALIAS,
        "UserKnownHostsFile": shlex.quote(str(folder / "known_hosts")),
        "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes",
        "LogLevel": "ERROR",
        "ServerAliveInterval": "30",
    }
    return [
        ssh,
        *("-F", "none"),
        *("-i", str(folder / _KEY)),
        *(word for name, value in options.items() for word in ("-o", f"{name}={value}")),
        *("-p", str(access["port"])),
        *("-l", access["login"]),
        *(["-t"] if has_terminal else ["-T"]),
        "--",
        access["host"],
        *([shlex.join(command)] if command else []),
    ]


def _find_key(job: str) -> Path:
    """Return the folder of the job's key, which is made unless it is there.  Raises CommandFailure."""
    around = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "job-console", "ssh")
    around.mkdir(mode=0o700, parents=True, exist_ok=True)
    _remove_old(around)
    folder = around / job
    if not folder.exists():
        draft = Path(tempfile.mkdtemp(prefix=".", dir=around))
        try:
            _make_key(draft / _KEY)
            with suppress(OSError):  # another command was first
                draft.rename(folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    os.utime(folder)
    return folder


def _make_key(path: Path) -> None:
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", HOST_ALIAS, "-f", str(path)]
    try:
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError) as error:
        raise CommandFailure(_("ssh-keygen failed: %(why)s") % {"why": error}) from error


def _remove_old(around: Path) -> None:
    for folder in around.iterdir():
        with suppress(OSError):
            if folder.stat().st_mtime < time.time() - KEPT_S:
                shutil.rmtree(folder)
