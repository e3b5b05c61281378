"""The first part of docs/slurm.md, run as it stands by a shell: from a Slurm that runs to the first job."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from console.home import CHECKOUT
from tests.slurm import Slurm
from tests.stack import Stack
from tests.waiting import wait_for

pytestmark = pytest.mark.once

PAGE: Final = CHECKOUT / "docs" / "slurm.md"
SECTION: Final = "From a cluster to the first job"
PROMISED_S: Final = 600
"""What the page says that it takes, for a person."""

MAKE: Final = """\
set -euo pipefail
make() { [ "$*" = run ] && exec "$PYTHON" -m console.run; }
"""
"""`make run` would first look after the environment that the tests themselves run in."""


def script(section: str) -> str:
    """The commands of a section of the page."""
    text = PAGE.read_text(encoding="utf-8").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return "".join(re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


def with_values(text: str, values: Mapping[str, str]) -> str:
    """The script with other values for what is set in its first lines."""
    for name, value in values.items():
        [line] = re.finditer(rf"^(?:export )?{name}=('[^']*'|\S+)", text, re.MULTILINE)
        text = text[: line.start(1)] + shlex.quote(value) + text[line.end(1) :]
    return text


@pytest.fixture
def stack(tmp_path: Path, slurm: Slurm) -> Iterator[Stack]:
    """A console that has not been started, and what its shell has in its environment."""
    (tmp_path / "home").mkdir()
    made = Stack(
        {
            "HOME": str(tmp_path / "home"),
            "PYTHON": sys.executable,
            "PYTHONPATH": str(CHECKOUT),
            "SLURM_CONF": str(slurm.configuration),
            "NO_PROXY": "127.0.0.1",
        }
    )
    for name in ("XDG_CONFIG_HOME", "JOB_CONSOLE_URL", "JOB_CONSOLE_TOKEN"):
        made.environ.pop(name, None)
    yield made
    made.remove()


def test_the_page_leads_to_the_first_job(
    stack: Stack, slurm: Slurm, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    values = {
        "FOLDER": str(tmp_path / "shared" / "jobs"),
        "CONFIG": f'{{"configuration": "{slurm.configuration}"}}',
        "PORT": stack.environ["PORT"],
    }
    (tmp_path / "shared").mkdir()
    wait_for(slurm.ready)
    began = time.monotonic()
    done = subprocess.run(
        ["bash", "-c", MAKE + with_values(script(SECTION), values)],
        cwd=CHECKOUT,
        env=stack.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PROMISED_S,
        check=False,
        start_new_session=True,
    )
    took = time.monotonic() - began
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert "Everything is there. Tried: cpu1, cpu2, gpu1, gpu2" in told
    assert re.search(rf"Hello from {os.uname().nodename}, as root\n", done.stdout), told
    assert re.search(r"^\w{12}  SUCCEEDED .* first-job$", done.stdout, re.MULTILINE), told
    record_property("docs/slurm.md, to the first job", f"{took:.0f} s")
    assert took < PROMISED_S
