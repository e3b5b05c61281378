"""The command `python`, on a machine that has only `python3`."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.node.sandbox.folders import SharedFolderRule
from jobs.node.sandbox.isolation import Isolation
from jobs.node.wrapper import attempt_files
from jobs.states import State
from tests.jobs.backends.benches import LocalBench, log_of, role, wait_until_over


@pytest.fixture(params=["best", "namespaces", "none"])
def bench(request: pytest.FixtureRequest, tmp_path: Path, place: Path) -> Iterator[LocalBench]:
    if request.param != "none" and os.geteuid():
        pytest.skip("no folder of an ordinary user is seen in jobs where it is")
    mode = None if request.param == "best" else Isolation(request.param)
    named = (SharedFolderRule.from_settings(str(place), {"workspaces": ["*"]}),)
    made = LocalBench(tmp_path, {"isolation": mode, "folders": named})
    yield made
    made.close()


def lines(bench: LocalBench, place: Path, command: str, *programs: str) -> list[str]:
    """What the command writes where those programs say their names, and no others are on the PATH."""
    for program in programs:
        path = place / program
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'#!/bin/sh\necho {program} "$@"\n')
        path.chmod(0o755)
    env = {"PATH": f"{place}/machine"}
    handle = bench.backend.submit(bench.submission(role(command), env=env))
    seen = wait_until_over(bench.backend, handle)
    told = log_of(bench.backend, handle).splitlines()
    assert seen.state is State.SUCCEEDED, told
    return told


def test_python_command_falls_back_to_python3(bench: LocalBench, place: Path) -> None:
    told = lines(bench, place, "python 'a b' -c; command -v python", "machine/python3")
    assert told[0] == "machine/python3 a b -c"
    assert told[1].endswith("/bin/python")


def test_python_of_machine_or_environment_comes_first(bench: LocalBench, place: Path) -> None:
    programs = ("machine/python", "machine/python3", "venv/python", "venv/python3")
    command = f"python; PATH={place}/venv:$PATH; python"
    assert lines(bench, place, command, *programs) == ["machine/python", "venv/python"]


def test_python_of_console_cannot_be_changed_by_job(bench: LocalBench, place: Path) -> None:
    command = 'python=$(command -v python); : 2>/dev/null >"$python" || echo unchanged'
    told = lines(bench, place, command, "machine/python3")
    alone = bench.config.isolation is Isolation.NONE  # a job may change there whatever the console may
    assert told == ([] if alone else ["unchanged"])


def test_python_is_not_provided_for_attempt_of_earlier_release(tmp_path: Path) -> None:
    assert attempt_files.mounts(tmp_path) == []
