"""UNIX users for tests that run things as somebody else, and nothing of them afterwards."""

from __future__ import annotations

import fcntl
import os
import pwd
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOCK = Path("/var/tmp/job-console-test-users.lock")
OPTIONS = ("--no-create-home", "--password=*", "--key=SUB_UID_COUNT=0", "--key=SUB_GID_COUNT=0")
"""Subordinate ids would be those that the console's jobs have, of which it warns."""


def missing() -> str:
    """What this machine lacks to make some, or nothing."""
    if os.geteuid():
        return "only root can make UNIX users"
    absent = [name for name in ("useradd", "userdel", "sudo") if shutil.which(name) is None]
    return f"there is no {', '.join(absent)}" if absent else ""


@contextmanager
def made(count: int, shell: str = "/bin/bash") -> Iterator[list[pwd.struct_passwd]]:
    """So many of them, with names that nobody else has, and without a password that anybody could know: sshd
    takes those that have none yet for locked.
    """
    names = [f"jct{secrets.token_hex(4)}" for _ in range(count)]
    try:
        for name in names:
            _alone("useradd", *OPTIONS, "--shell", shell, name)
        yield [pwd.getpwnam(name) for name in names]
    finally:
        for name in names:
            _alone("userdel", "--force", name)


def _alone(*command: str) -> None:
    """One at a time on this machine: they take the same files."""
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in (0, 6), done.stderr  # 6: there is none, as making it failed
