"""Tokens for slurmrestd that the console makes itself, with slurmctld's own key.

Whoever has that key can be anybody at Slurm.  So it lies in a file that nobody but the console can read, and
a token is made for a user of whom `tokens` has made sure, and for no longer than it is needed.
"""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import Final

import jwt

LIFE_S: Final = 300
"""A token is good for so long."""

LEAST_BYTES: Final = 32
MOST_BYTES: Final = 4096


class NoKey(Exception):
    """There is no key that may be used; `str` says why."""


def minted(path: Path, user: str) -> str:
    """A token for that user.  Raises NoKey."""
    now = int(time.time())
    return jwt.encode({"iat": now, "exp": now + LIFE_S, "sun": user}, key(path), algorithm="HS256")


def key(path: Path) -> bytes:
    """The key, which nobody else can read.  Raises NoKey."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise NoKey(f"The key {path} can't be read: {error.strerror}") from error
    try:
        seen = os.fstat(file)
        found = os.read(file, MOST_BYTES + 1) if stat.S_ISREG(seen.st_mode) else b""
    finally:
        os.close(file)
    if seen.st_mode & (stat.S_IRWXG | stat.S_IRWXO) or seen.st_uid not in (0, os.geteuid()):
        raise NoKey(f"The key {path} is not the console's alone: give it to its user, chmod 400.")
    if not LEAST_BYTES <= len(found) <= MOST_BYTES:
        raise NoKey(
            f"The key {path} is no file of {LEAST_BYTES} to {MOST_BYTES} bytes, as slurmctld's jwt_key is."
        )
    return found
