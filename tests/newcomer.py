"""A newcomer follows README on a bare machine: what it prints there comes true, and `make test` passes.

The latter takes as long as all tests do, so it is no part of `make test` itself: as root,
`python -m pytest -n 0 tests/newcomer.py`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from console.home import CHECKOUT
from tests import bare_machine
from tests.bare_machine import SOURCE, BareMachine
from tests.ports import free_port
from tests.waiting import wait_for

README: Final = CHECKOUT / "README.md"
ADDRESS: Final = "http://127.0.0.1:8000"
READY_S: Final = 600
"""Installing is most of it; what a busy machine takes."""

FIRST_JOB_S: Final = 120
TESTS_S: Final = 3600


def read_blocks(section: str) -> list[str]:
    """Return the indented blocks of commands in a section of README, in their order."""
    text = README.read_text(encoding="utf-8")
    [heading] = re.finditer(rf"^## {re.escape(section)}$", text, re.MULTILINE)
    body = re.split(r"^## ", text[heading.end() :], maxsplit=1, flags=re.MULTILINE)[0]
    blocks = re.findall(r"(?:^    .*\n)+", body, re.MULTILINE)
    return [re.sub(r"^    ", "", block, flags=re.MULTILINE) for block in blocks]


@pytest.fixture(scope="module")
def machine() -> Iterator[BareMachine]:
    """One that has Python, make and git."""
    if missing := bare_machine.find_missing():
        pytest.skip(missing)
    with bare_machine.make_machine(CHECKOUT) as made:
        yield made


def run(machine: BareMachine, script: str, output: Path, timeout: float) -> str:
    """Run a script there to its end, which is a good one, and return what it printed."""
    process = machine.start(script, output=output)
    try:
        status = process.wait(timeout)
    finally:
        process.kill()
        process.wait()
    printed = output.read_text(errors="replace")
    assert status == 0, printed[-4000:]
    return printed


@pytest.mark.timeout(900)
def test_readme_commands_lead_an_ordinary_user_to_the_expected_line(
    machine: BareMachine, tmp_path: Path
) -> None:
    start, first_job, expected = read_blocks("Start")[:3]
    port = free_port()
    start = start.replace("<this repository>", SOURCE)
    first_job = first_job.replace(ADDRESS, f"http://127.0.0.1:{port}")
    output = tmp_path / "console"
    console = machine.start(f"export PORT={port}; {start}", output=output)
    try:
        wait_for(
            lambda: is_ready(output.read_text(errors="replace"), port) or console.poll() is not None,
            timeout=READY_S,
            interval=0.5,
        )
        assert console.poll() is None, output.read_text(errors="replace")[-4000:]
        printed = run(machine, f"cd job-console; {first_job}", tmp_path / "first-job", FIRST_JOB_S)
        assert expected.strip() in printed.splitlines()
    finally:
        console.kill()
        console.wait()


def is_ready(printed: str, port: int) -> bool:
    """Whether the console has said where it is, and the first admin's password."""
    return f"http://127.0.0.1:{port}" in printed and "password" in printed.lower()


@pytest.mark.timeout(TESTS_S + 300)
def test_make_test_passes_with_python_make_and_git_alone(machine: BareMachine, tmp_path: Path) -> None:
    script = f"[ -d job-console ] || git clone {shlex.quote(SOURCE)} job-console; cd job-console; make test"
    printed = run(machine, script, tmp_path / "tests", TESTS_S)
    outcomes = dict(re.findall(r"^(\w+) +[\d.]+ min +(.+)$", printed, re.MULTILINE))
    assert outcomes["sqlite"] == "passed"
    assert outcomes["flows"] == "left out: there is no Chromium (Debian: chromium-headless-shell)"
