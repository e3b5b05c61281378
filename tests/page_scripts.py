"""The commands of pages of the documentation, run as they stand there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from console.home import CHECKOUT
from tests.stack import Stack

MAKE: Final = """\
set -euo pipefail
make() { [ "$*" = run ] && exec "$PYTHON" -m console.run; }
"""
"""`make run` would first look after the environment that the tests themselves run in."""


def blocks(page: Path, section: str) -> list[str]:
    """Return the commands of a section of a page, as they stand there one after the other."""
    [heading] = re.finditer(rf"^##+ {re.escape(section)}$", page.read_text(encoding="utf-8"), re.MULTILINE)
    text = re.split(r"^##+ ", heading.string[heading.end() :], maxsplit=1, flags=re.MULTILINE)[0]
    return re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def with_values(texts: list[str], values: Mapping[str, str]) -> list[str]:
    """Return the same with other values for what is set at the beginning of lines."""
    text = "\0".join(texts)
    for name, value in values.items():
        [line] = re.finditer(rf"^\0?(?:export )?{name}=('[^']*'|\S+)", text, re.MULTILINE)
        text = text[: line.start(1)] + shlex.quote(value) + text[line.end(1) :]
    return text.split("\0")


def mark(name: str) -> str:
    """Return a line that says when it was got so far."""
    return f"printf '### %s=%s\\n' {shlex.quote(name)} \"$(date +%s)\"\n"


@contextmanager
def console(folder: Path, environ: Mapping[str, str]) -> Iterator[Stack]:
    """Give a console that has not been started, and what its shell has in its environment."""
    home = folder / "home"
    home.mkdir()
    made = Stack(
        {
            "HOME": str(home),
            "PYTHON": sys.executable,
            "PYTHONPATH": str(CHECKOUT),
            "NO_PROXY": "127.0.0.1",
            **environ,
        }
    )
    for name in ("XDG_CONFIG_HOME", "JOB_CONSOLE_URL", "JOB_CONSOLE_TOKEN"):
        made.environ.pop(name, None)
    yield made
    made.remove()


def run(script: str, environ: Mapping[str, str], timeout_s: float) -> subprocess.CompletedProcess[str]:
    """Run a script in the checkout; what it printed is in the error when it fails."""
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=CHECKOUT,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        start_new_session=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done
