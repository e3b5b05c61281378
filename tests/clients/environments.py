"""Environments of programs that tests run: each as its lock file lists it, made on first use.

A lock file `NAME.lock` lists a program with all that it needs, by hash: the vendors' own clients beside this
module, frameworks in `tests/frameworks`, dstack in `tests/bench`.  The environments lie in `.venv/clients`,
so that they stay with the checkout.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from console.home import CHECKOUT

LOCKS = Path(__file__).parent
ENVIRONMENTS = CHECKOUT / ".venv" / "clients"
INSTALL = (sys.executable, "-m", "pip", "--disable-pip-version-check")
PLAINLY = ("--quiet", "--no-compile", "--no-deps", "--require-hashes")
"""What a lock file lists is all; most of its modules are never imported, and need not be compiled."""

PREPARED = "prepared"
"""A file in an environment with the digest of the lock file that it was made from."""


def python(name: str, locks: Path = LOCKS, base: str = sys.executable) -> Path:
    """Return the interpreter of an environment; skips the test where its packages cannot be had.

    `base` is the Python that makes it.
    """
    lock_file = locks / f"{name}.lock"
    folder = ENVIRONMENTS / name
    digest = hashlib.sha256(lock_file.read_bytes()).hexdigest()
    interpreter = folder / "bin" / "python"
    with _lock(name):
        if not _is_prepared(folder, digest):
            shutil.rmtree(folder, ignore_errors=True)
            _run(base, "-m", "venv", "--without-pip", str(folder))
            _run(*INSTALL, "--python", str(interpreter), "install", *PLAINLY, "--requirement", str(lock_file))
            (folder / PREPARED).write_text(digest)
    return interpreter


def node_modules(name: str) -> Path:
    """Return the folder of a Node.js client with its packages, by `NAME/package-lock.json`."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    source = LOCKS / name
    folder = ENVIRONMENTS / name
    digest = hashlib.sha256((source / "package-lock.json").read_bytes()).hexdigest()
    with _lock(name):
        if not _is_prepared(folder, digest):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            for file in ("package.json", "package-lock.json"):
                shutil.copy(source / file, folder)
            _run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(folder))
            (folder / PREPARED).write_text(digest)
    return folder


def _is_prepared(folder: Path, digest: str) -> bool:
    mark = folder / PREPARED
    return mark.exists() and mark.read_text() == digest


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        pytest.skip(f"{command[0]} could not prepare an environment: {done.stderr.strip()[-300:]}")


@contextmanager
def _lock(name: str) -> Iterator[None]:
    """Let one process at a time prepare an environment."""
    ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
    with (ENVIRONMENTS / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
