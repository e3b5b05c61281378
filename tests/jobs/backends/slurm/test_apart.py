"""Real jobs on nodes that share no folder with the console, nor with each other."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.base import Checked, Observation
from jobs.backends.slurm import ontonodes
from jobs.backends.slurm.backend import SlurmBackend
from jobs.backends.slurm.layout import Sent
from jobs.spec import NodeChoice, SecretRef
from jobs.states import ReasonCode, State, TaskState
from tests.jobs.backends.benches import log_of, replica, role, wait_until_over
from tests.jobs.backends.slurm_bench import SlurmBench
from tests.serving import web_server
from tests.slurm import NODES, Slurm
from tests.waiting import wait_for

PATIENCE_S = 120


@pytest.fixture
def nodes_folder(slurm: Slurm) -> Iterator[Path]:
    """One that has the same name on all nodes; on one of them there is something else in it."""
    folder = Path(tempfile.mkdtemp(prefix="job-console-test-", dir="/var/tmp"))
    wait_for(slurm.ready, 60)
    slurm.in_apart("mount", "-t", "tmpfs", "none", str(folder))
    yield folder
    slurm.in_apart("umount", "--lazy", str(folder))
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def apart(tmp_path: Path, slurm: Slurm, nodes_folder: Path, settings: Any) -> Iterator[SlurmBench]:
    with web_server() as url:
        told = {"nodes_folder": str(nodes_folder), "console_url": url, "python": sys.executable}
        made = SlurmBench(tmp_path, slurm, told)
        settings.CONSOLE_SLURM_FOLDER = str(made.root)
        slurm.in_apart("mount", "-t", "tmpfs", "none", str(made.root))
        yield made
        made.close()
        slurm.in_apart("umount", "--lazy", str(made.root))


def test_nothing_is_missing_on_any_node(apart: SlurmBench) -> None:
    checked = SlurmBackend(replace(apart.config, partitions={})).check()
    assert checked == Checked(NODES)


def test_what_is_missing_on_nodes_is_named(apart: SlurmBench, nodes_folder: Path) -> None:
    away = replace(apart.config, partitions={}, console_url="http://127.0.0.1:1")
    [told] = ontonodes.tried(away, 4).lacking
    assert told.startswith("The console can't be reached at http://127.0.0.1:1 from cpu1, cpu2, gpu1, gpu2")
    nowhere = replace(apart.config, nodes_folder="/nowhere", python="/nowhere/python3")
    folder, python = ontonodes.tried(nowhere, 4).lacking
    assert folder.startswith("Jobs may not write into /nowhere on cpu1, cpu2")
    assert python.startswith("There is no /nowhere/python3 of version 3.11 or newer on cpu1")


def on(node: str) -> NodeChoice:
    return NodeChoice(only=(node,))


def test_a_job_of_two_nodes_is_followed_while_it_runs(apart: SlurmBench, nodes_folder: Path) -> None:
    go = apart.judge / "go"
    told = f'echo "$SLURMD_NODENAME $PASS $MASTER_ADDR"; until [ -e {go} ]; do sleep 0.1; done; echo end'
    submission = apart.submission(
        role(told, name="a", nodes=on("cpu1")),
        role(told, name="b", nodes=on("cpu2")),
        secret_env={"PASS": SecretRef(name="s")},
        secrets={"s": "word"},
    )
    handle = apart.backend.submit(submission)
    folder = apart.attempt(handle)
    assert str(apart.root) not in (folder / "script").read_text()
    for name, node in (("a", "cpu1"), ("b", "cpu2")):
        wait_for(partial(log_of, apart.backend, handle, name), PATIENCE_S)
        assert log_of(apart.backend, handle, name).split()[:2] == [node, "word"]
    seen = apart.backend.observe([handle])[handle]
    assert isinstance(seen, Observation)
    assert seen.state is State.RUNNING
    go.touch()
    seen = wait_until_over(apart.backend, handle, PATIENCE_S)
    assert (seen.state, seen.reason.code) == (State.SUCCEEDED, ReasonCode.COMPLETED)
    for name in ("a", "b"):
        assert log_of(apart.backend, handle, name).endswith("end\n")
    wait_for(lambda: not list(nodes_folder.glob("*/job*")))
    assert not (folder / "secrets").exists()


def test_a_failure_tells_its_exit_code_and_ends_the_others(apart: SlurmBench) -> None:
    submission = apart.submission(
        role("sleep 300", name="a", nodes=on("cpu1")), role("echo bad; exit 7", name="b", nodes=on("cpu2"))
    )
    handle = apart.backend.submit(submission)
    seen = wait_until_over(apart.backend, handle, PATIENCE_S)
    assert (seen.state, seen.reason.code) == (State.FAILED, ReasonCode.EXIT_CODE)
    assert seen.reason.params == {"role": "b", "index": 0, "exit_code": 7}
    assert replica(seen, "a").state is TaskState.STOPPED
    assert log_of(apart.backend, handle, "b") == "bad\n"


def test_a_stop_has_its_signal_and_its_grace(apart: SlurmBench) -> None:
    command = "trap 'echo told; exit 0' INT; echo up; while :; do sleep 0.1; done"
    handle = apart.backend.submit(apart.submission(role(command, nodes=on("cpu1"))))
    wait_for(lambda: log_of(apart.backend, handle), PATIENCE_S)
    apart.backend.stop(handle, grace_s=60, signal="INT")
    seen = wait_until_over(apart.backend, handle, PATIENCE_S)
    assert (seen.state, seen.reason.code) == (State.STOPPED, ReasonCode.USER_STOP)
    assert log_of(apart.backend, handle).splitlines() == ["up", "told"]


def test_a_requeued_job_is_the_next_run(apart: SlurmBench) -> None:
    command = 'echo run $SLURM_RESTART_COUNT; [ -n "$SLURM_RESTART_COUNT" ] || sleep 300'
    handle = apart.backend.submit(apart.submission(role(command, nodes=on("cpu1"))))
    wait_for(lambda: log_of(apart.backend, handle), PATIENCE_S)
    number = str(Sent.of(handle).number)
    apart.slurm.call("scontrol", "requeue", number)
    update = ("scontrol", "update", f"JobId={number}", "StartTime=now")

    def again() -> bool:
        with suppress(subprocess.CalledProcessError):
            apart.slurm.call(*update)
        return (apart.attempt(handle) / "run-2" / "start").exists()

    wait_for(again, PATIENCE_S)
    seen = wait_until_over(apart.backend, handle, PATIENCE_S)
    assert (seen.state, seen.run) == (State.SUCCEEDED, 2)
    assert (apart.attempt(handle) / "run-2" / "logs" / "worker-0.output").read_text() == "run 1\n"
