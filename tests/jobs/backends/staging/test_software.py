"""Environment modules and environments that a job loads, as seen from inside of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.base import Refused
from jobs.backends.staging import software
from jobs.messages import reason_message
from jobs.spec import Resources, Software
from jobs.states import State
from tests.jobs.backends.benches import LocalBench, log_of, role, wait_until_over

ROOM = Resources(cpu_milli=1000, memory_mib=512)
INIT = 'module() { [ "$2" = gcc/13 ] && export LOADED="$2"; }\n'


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[LocalBench]:
    made = LocalBench(tmp_path)
    yield made
    made.close()


@pytest.fixture
def place(bench: LocalBench) -> Path:
    """A folder that jobs see."""
    return bench.judge


def run(bench: LocalBench, command: str, **spec: Any) -> tuple[State, list[str]]:
    handle = bench.backend.submit(bench.submission(role(command, resources=ROOM), **spec))
    seen = wait_until_over(bench.backend, handle, timeout=60)
    return seen.state, log_of(bench.backend, handle).splitlines()


def conda(place: Path) -> Path:
    """What a conda environment is, as far as a shell can tell."""
    folder = place / "conda env"
    (folder / "conda-meta").mkdir(parents=True)
    (folder / "bin").mkdir()
    program = folder / "bin" / "of-conda"
    program.write_text("#!/bin/sh\necho of conda\n")
    program.chmod(0o755)
    return folder


def test_software_environment_is_active_when_command_starts(bench: LocalBench, place: Path) -> None:
    venv = place / "venv"
    assert run(bench, f"umask 022; python3 -m venv --without-pip {venv}") == (State.SUCCEEDED, [])
    asked = "python -c 'import sys; print(sys.prefix)'; echo $VIRTUAL_ENV"
    state, lines = run(bench, asked, software=Software(venv=str(venv)))
    assert (state, lines) == (State.SUCCEEDED, [str(venv), str(venv)])
    folder = conda(place)
    state, lines = run(bench, "of-conda; echo $CONDA_PREFIX", software=Software(conda=str(folder)))
    assert (state, lines) == (State.SUCCEEDED, ["of conda", str(folder)])


def test_bccl_and_rdma_set_their_variables(
    bench: LocalBench, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place / "bccl"
    (folder / "lib").mkdir(parents=True)
    rdma = ROOM.model_copy(update={"rdma": True})
    asked = "echo $LD_LIBRARY_PATH $BCCL_BUS_BW_CALCULATE_MODE $NCCL_IB_DISABLE"
    env = {"LD_LIBRARY_PATH": "/own", "BCCL_BUS_BW_CALCULATE_MODE": "Verbose"}
    for installed, words in (
        (folder, f"{folder}/lib:/own Verbose 0"),
        (place / "none", "/own Verbose 0"),
    ):
        monkeypatch.setattr(software, "BCCL", str(installed))
        job = bench.submission(role(asked, resources=rdma), software=Software(bccl=True), env=env)
        handle = bench.backend.submit(job)
        assert wait_until_over(bench.backend, handle, timeout=60).state is State.SUCCEEDED
        lines = log_of(bench.backend, handle).splitlines()
        assert lines[-1] == words
        assert any("BCCL is not installed" in line for line in lines) is (installed != folder)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (Software(venv="/nowhere/it's"), "There is no virtual environment at /nowhere/it's."),
        (Software(conda="/nowhere"), "There is no conda environment at /nowhere."),
    ],
)
def test_missing_software_fails_job_before_its_command(
    bench: LocalBench, asked: Software, words: str
) -> None:
    state, lines = run(bench, "echo started", software=asked)
    assert (state, lines) == (State.FAILED, [words])


def test_software_modules_load_where_machine_has_them(
    bench: LocalBench, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    init = place / "init.sh"
    init.write_text(INIT)
    monkeypatch.setattr(software, "INITS", (str(init),))
    asked = Software(modules=("gcc/13",))
    assert run(bench, "echo $LOADED", software=asked) == (State.SUCCEEDED, ["gcc/13"])
    state, lines = run(bench, "echo started", software=Software(modules=("nosuch",)))
    assert (state, lines) == (State.FAILED, ["These modules can't be loaded: nosuch."])


def test_machine_without_modules_refuses_job_requesting_them(
    bench: LocalBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(software, "INITS", ("/nowhere/init.sh",))
    with pytest.raises(Refused) as caught:
        run(bench, "echo started", software=Software(modules=("gcc/13",)))
    reason = caught.value.reason
    assert "no environment modules" in reason_message(reason.code, reason.params)


def test_prologue_without_software_leaves_command_unchanged() -> None:
    assert software.with_prologue("set -e\ntrue", Software()) == "set -e\ntrue"
