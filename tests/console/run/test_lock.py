"""One console per folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from console.home import CHECKOUT
from console.run.lock import AlreadyRunning, Lock


def test_second_lock_error_names_holder_and_address(tmp_path: Path) -> None:
    Lock(tmp_path / "lock").take("http://127.0.0.1:8000")
    with pytest.raises(AlreadyRunning, match=rf"at http://127\.0\.0\.1:8000 \(process {os.getpid()}\)"):
        Lock(tmp_path / "lock").take("http://127.0.0.1:8001")


def test_lock_is_free_after_its_holder_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    code = f"""
import os, signal
from pathlib import Path
from console.run.lock import Lock
Lock(Path({str(path)!r})).take("http://an.older.and.longer.address:8000")
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, check=False).returncode == -9
    Lock(path).take("http://new")
    assert path.read_text() == f"{os.getpid()} http://new\n"
