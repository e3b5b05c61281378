"""Environments of the frameworks that Debian has no package of, each as its lock file lists it.

They are made on first use by the Python that jobs find, and stay in the folder for temporary files, by the
digest of the lock file.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

import pytest

from tests.clients.environments import INSTALL, PLAINLY

LOCKS: Final = Path(__file__).parent
PYTHON: Final = "/usr/bin/python3"


def copy(name: str, folder: Path) -> Path:
    """Put an environment below a folder that jobs see; skips the test where its packages can't be had."""
    copied = folder / name
    shutil.copytree(_make(name), copied, symlinks=True, copy_function=_link)
    copied.chmod(0o755)
    return copied


def _make(name: str) -> Path:
    lock_file = LOCKS / f"{name}.lock"
    cache = Path(tempfile.gettempdir(), f"job-console-frameworks-{os.geteuid()}")
    cache.mkdir(mode=0o700, exist_ok=True)
    assert cache.stat().st_uid == os.geteuid()
    made = cache / f"{name}-{hashlib.sha256(lock_file.read_bytes()).hexdigest()[:16]}"
    with (cache / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if not made.exists():
            new = made.with_suffix(".new")
            shutil.rmtree(new, ignore_errors=True)
            _run(PYTHON, "-m", "venv", "--without-pip", str(new))
            into = ("--python", str(new / "bin" / "python"))
            _run(*INSTALL, *into, "install", *PLAINLY, "--requirement", str(lock_file))
            new.rename(made)
    return made


def _link(source: str, target: str) -> None:
    """Copy a file without its bytes, where both folders are on one file system."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        pytest.skip(f"{command[0]} could not prepare a framework: {done.stderr.strip()[-300:]}")
