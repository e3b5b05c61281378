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
from tests.bare_machine import SOURCE, USER, BareMachine
from tests.ports import free_port
from tests.waiting import wait_for

README: Final = CHECKOUT / "README.md"
RUNNING: Final = CHECKOUT / "docs" / "running.md"
ADDRESS: Final = "http://127.0.0.1:8000"
READY_S: Final = 600
"""Installing is most of it; what a busy machine takes."""

FIRST_JOB_S: Final = 120
TESTS_S: Final = 3600


def read_blocks(section: str, page: Path = README) -> list[str]:
    """Return the indented blocks of commands in a section of a page, in their order."""
    text = page.read_text(encoding="utf-8")
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


def run(machine: BareMachine, script: str, output: Path, timeout: float, user: str = USER) -> str:
    """Run a script there to its end, which is a good one, and return what it printed."""
    process = machine.start(script, output=output, user=user)
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


SYSTEMD: Final = """\
#!/bin/bash
# Stands in for systemd, which does not run where the tests do: as systemctl and journalctl.
case "$(basename "$0") $*" in
"systemctl reload postgresql") pg_ctlcluster 15 main reload || pg_ctlcluster 15 main start;;
"systemctl daemon-reload") ;;
"systemctl enable --now job-console")
    unit=/etc/systemd/system/job-console.service
    . <(sed -n 's/^Environment=/export /p' "$unit")
    set -a; . "$(sed -n 's/^EnvironmentFile=-//p' "$unit")"; set +a
    install -d --mode 0700 "/var/lib/$(sed -n 's/^StateDirectory=//p' "$unit")"
    umask 0077
    setsid $(sed -n 's/^ExecStart=//p' "$unit") >/var/log/job-console 2>&1 &;;
"journalctl --unit job-console --grep password")
    for _second in $(seq 60); do grep password /var/log/job-console && exit; sleep 1; done
    cat /var/log/job-console; exit 1;;
*) echo "unknown: $0 $*"; exit 1;;
esac
"""
STARTED_BY_SYSTEMD: Final = "pg_ctlcluster 15 main start\n"
HOST: Final = "console.example.com"


@pytest.mark.timeout(900)
def test_page_on_running_a_console_leads_to_a_job_with_tls_and_postgresql(
    machine: BareMachine, tmp_path: Path
) -> None:
    for name in ("systemctl", "journalctl"):
        program = machine.root / "usr/local/bin" / name
        program.write_text(SYSTEMD)
        program.chmod(0o755)
    with (machine.root / "etc/hosts").open("a") as hosts:
        hosts.write(f"127.0.0.1 {HOST}\n")
    port = free_port()
    sections = ("Install", "Database", "Certificate", "Service", "First job")
    blocks = [block for section in sections for block in read_blocks(section, RUNNING)]
    script = "".join([blocks[0], STARTED_BY_SYSTEMD, *blocks[1:]])
    script = script.replace("<this repository>", SOURCE).replace(f"https://{HOST}", f"https://{HOST}:{port}")
    script = script.replace(
        "\ninstall --mode 0600", f"\nsed -i s/PORT=443/PORT={port}/ deploy/*.env\ninstall --mode 0600"
    )
    printed = run(machine, f"apt-get update; {script}", tmp_path / "running", READY_S, user="root")
    assert "Hello from a job" in printed.splitlines()


@pytest.mark.timeout(TESTS_S + 300)
def test_make_test_passes_with_python_make_and_git_alone(machine: BareMachine, tmp_path: Path) -> None:
    script = f"[ -d job-console ] || git clone {shlex.quote(SOURCE)} job-console; cd job-console; make test"
    printed = run(machine, script, tmp_path / "tests", TESTS_S)
    outcomes = dict(re.findall(r"^(\w+) +[\d.]+ min +(.+)$", printed, re.MULTILINE))
    assert outcomes["sqlite"] == "passed"
    assert outcomes["flows"] == "left out: there is no Chromium (Debian: chromium-headless-shell)"
