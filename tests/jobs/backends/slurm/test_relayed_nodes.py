"""Real jobs on nodes that share no folder with the console, nor with each other."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.base import CheckReport, Observation
from jobs.backends.sessions import Ended, SessionKind, SessionRequest
from jobs.backends.slurm.backend import SlurmBackend
from jobs.backends.slurm.handles import SlurmJob
from jobs.backends.slurm.script import node_preflight
from jobs.backends.slurm.status import recovery
from jobs.node import relay
from jobs.node.wrapper.log_times import ENTRY
from jobs.spec import CodeSource, FaultTolerance, NodeChoice, RestartScope, SecretRef
from jobs.states import ReasonCode, ReplicaState, State
from jobs.trees import Entry, Supplied, Tree
from jobs.trees import Kind as FileKind
from tests.jobs.backends.benches import all_pids, log_of, replica, role, text_of, wait_until_over
from tests.jobs.backends.beside import REPLICA, everything, run
from tests.jobs.backends.slurm.test_ends import sentence
from tests.jobs.backends.slurm_bench import SlurmBench, by_rest
from tests.serving import reserved, web_server
from tests.slurm import NODES, Slurm
from tests.waiting import wait_for

PATIENCE_S = 120


class Web:
    """The console's web server, which may be away for a while."""

    def __init__(self) -> None:
        self._port, self._running = reserved(), ExitStack()
        self.url = f"http://127.0.0.1:{self._port.getsockname()[1]}"

    def start(self) -> None:
        self._running.enter_context(web_server(self._port))

    def stop(self) -> None:
        self._running.close()

    def close(self) -> None:
        self.stop()
        self._port.close()


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
def web() -> Iterator[Web]:
    made = Web()
    made.start()
    yield made
    made.close()


@pytest.fixture
def way() -> str:
    """How Slurm is asked."""
    return "commands"


@pytest.fixture
def apart(
    tmp_path: Path, slurm: Slurm, nodes_folder: Path, web: Web, way: str, settings: Any
) -> Iterator[SlurmBench]:
    told = {"nodes_folder": str(nodes_folder), "console_url": web.url, "python": sys.executable}
    told |= by_rest(slurm) if way == "rest" else {}
    made = SlurmBench(tmp_path, slurm, told)
    settings.CONSOLE_SLURM_FOLDER = str(made.root)
    slurm.in_apart("mount", "-t", "tmpfs", "none", str(made.root))
    yield made
    made.close()
    slurm.in_apart("umount", "--lazy", str(made.root))


def test_check_finds_nothing_missing_on_relayed_nodes(apart: SlurmBench) -> None:
    checked = SlurmBackend(replace(apart.config, partitions={})).check()
    assert checked == CheckReport(NODES)


def test_check_names_missing_parts_on_relayed_nodes(apart: SlurmBench, nodes_folder: Path) -> None:
    away = replace(apart.config, partitions={}, console_url="http://127.0.0.1:1")
    [told] = node_preflight.check_nodes(away, 4).lacking
    assert told.startswith("The console can't be reached at http://127.0.0.1:1 from cpu1, cpu2, gpu1, gpu2")
    nowhere = replace(apart.config, nodes_folder="/nowhere", python="/nowhere/python3")
    folder, python = node_preflight.check_nodes(nowhere, 4).lacking
    assert folder.startswith("Jobs may not write into /nowhere on cpu1, cpu2")
    assert python.startswith("There is no /nowhere/python3 of version 3.11 or newer on cpu1")


def on(node: str) -> NodeChoice:
    return NodeChoice(only=(node,))


def test_two_node_job_is_followed_while_running(apart: SlurmBench, nodes_folder: Path) -> None:
    go = apart.judge / "go"
    wait = f"until [ -e {go} ]; do sleep 0.1; done"
    told = f'echo "$SLURMD_NODENAME $PASS $(env | grep -icE "courier|relay_")"; {wait}; echo end'
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
        assert log_of(apart.backend, handle, name).split() == [node, "word", "0"]
    seen = apart.backend.observe([handle])[handle]
    assert isinstance(seen, Observation)
    assert seen.state is State.RUNNING
    go.touch()
    seen = wait_until_over(apart.backend, handle, PATIENCE_S)
    assert (seen.state, seen.reason.code) == (State.SUCCEEDED, ReasonCode.COMPLETED)
    for name in ("a", "b"):
        said = log_of(apart.backend, handle, name)
        assert said.endswith("end\n")
        times = next(folder.glob(f"run-1/logs/{name}-0.times")).read_bytes()
        (first, began), (last, ended) = ENTRY.iter_unpack(times)
        assert (first, last) == (0, len(said) - len("end\n"))
        assert began < ended <= time.time() * 1000
    wait_for(lambda: not list(nodes_folder.glob("*/job*")))
    assert not (folder / "secrets").exists()


@pytest.mark.parametrize("way", ["commands", "rest"])
def test_failed_role_reports_exit_code_and_ends_others(apart: SlurmBench) -> None:
    submission = apart.submission(
        role("sleep 300", name="a", nodes=on("cpu1")), role("echo bad; exit 7", name="b", nodes=on("cpu2"))
    )
    handle = apart.backend.submit(submission)
    seen = wait_until_over(apart.backend, handle, PATIENCE_S)
    assert (seen.state, seen.reason.code) == (State.FAILED, ReasonCode.EXIT_CODE)
    assert seen.reason.params == {"role": "b", "index": 0, "exit_code": 7}
    assert replica(seen, "a").state is ReplicaState.STOPPED
    assert log_of(apart.backend, handle, "b") == "bad\n"


def test_failed_replica_is_started_again_by_an_order(apart: SlurmBench) -> None:
    command = f'echo x >> {apart.judge}/starts; [ "$(wc -l < {apart.judge}/starts)" -gt 1 ] || exit 9'
    tolerance = FaultTolerance(enabled=True, restart_scope=RestartScope.REPLICA)
    handle = apart.backend.submit(apart.submission(role(command), fault_tolerance=tolerance))

    def has_failed() -> bool:
        seen = apart.backend.observe([handle])[handle]
        return isinstance(seen, Observation) and replica(seen).failed_run is not None

    wait_for(has_failed, PATIENCE_S)
    apart.backend.order_restart(handle, REPLICA, 1, restarts=True)
    assert wait_until_over(apart.backend, handle).state is State.SUCCEEDED
    assert len((apart.judge / "starts").read_text().split()) == 2


def test_stop_delivers_signal_and_grace_period(apart: SlurmBench) -> None:
    command = "trap 'echo told; exit 0' INT; echo up; while :; do sleep 0.1; done"
    handle = apart.backend.submit(apart.submission(role(command, nodes=on("cpu1"))))
    wait_for(lambda: log_of(apart.backend, handle), PATIENCE_S)
    apart.backend.stop(handle, grace_s=60, signal="INT")
    seen = wait_until_over(apart.backend, handle, PATIENCE_S)
    assert (seen.state, seen.reason.code) == (State.STOPPED, ReasonCode.USER_STOP)
    assert log_of(apart.backend, handle).splitlines() == ["up", "told"]


def test_requeued_job_is_next_run(apart: SlurmBench) -> None:
    command = 'echo run $SLURM_RESTART_COUNT; [ -n "$SLURM_RESTART_COUNT" ] || sleep 300'
    handle = apart.backend.submit(apart.submission(role(command, nodes=on("cpu1"))))
    wait_for(lambda: log_of(apart.backend, handle), PATIENCE_S)
    number = str(SlurmJob.of(handle).number)
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


def node_relays(nodes_folder: Path) -> list[int]:
    """Those that are at work on nodes."""
    said = {pid: text_of(pid, "cmdline").split("\0") for pid in all_pids()}
    return [
        pid for pid, words in said.items() if "watch" in words and any(str(nodes_folder) in w for w in words)
    ]


def test_log_survives_console_outage_and_killed_relays(
    apart: SlurmBench, web: Web, nodes_folder: Path
) -> None:
    go, said = apart.judge / "go", apart.judge / "said"
    wait = f"until [ -e {go} ]; do sleep 0.1; done"
    command = f"echo one; {wait}; seq 100000; touch {said}; until [ ! -e {go} ]; do sleep 0.1; done; exit 3"
    handle = apart.backend.submit(apart.submission(role(command, nodes=on("cpu1"))))
    wait_for(lambda: log_of(apart.backend, handle) == "one\n", PATIENCE_S)
    web.stop()
    killed = wait_for(lambda: node_relays(nodes_folder), PATIENCE_S)
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    go.touch()
    wait_for(said.exists, PATIENCE_S)
    assert log_of(apart.backend, handle) == "one\n"
    web.start()
    whole = "one\n" + "".join(f"{number}\n" for number in range(1, 100_001))
    wait_for(lambda: log_of(apart.backend, handle) == whole, PATIENCE_S)
    go.unlink()
    seen = wait_until_over(apart.backend, handle, PATIENCE_S)
    assert (seen.state, seen.reason.params.get("exit_code")) == (State.FAILED, 3)
    assert log_of(apart.backend, handle) == whole


def test_long_console_outage_prevents_job_start_and_delivery_of_results(
    apart: SlurmBench, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient = apart.folder / "courier.py"
    text = Path(relay.__file__).read_text()
    impatient.write_text(re.sub("(START_S|END_S|LOOK_S) = .*", r"\1 = 1.0", text))
    monkeypatch.setattr(relay, "__file__", str(impatient))
    monkeypatch.setattr(recovery, "SETTLES_S", 1)
    monkeypatch.setattr(recovery, "LAUNCHES_S", 1)
    go = apart.judge / "go"
    ends = {}
    for code in (0, 5):
        command = f"echo up; until [ -e {go} ]; do sleep 0.1; done; exit {code}"
        ends[code] = apart.backend.submit(apart.submission(role(command, nodes=on("cpu1"))))
    for handle in ends.values():
        wait_for(partial(log_of, apart.backend, handle), PATIENCE_S)
    web.stop()
    go.touch()
    never = apart.backend.submit(apart.submission(role("echo never")))
    seen = {code: wait_until_over(apart.backend, handle, PATIENCE_S) for code, handle in ends.items()}
    assert (seen[0].state, seen[0].reason.code) == (State.SUCCEEDED, ReasonCode.COMPLETED)
    assert (seen[5].state, seen[5].reason.code) == (State.FAILED, ReasonCode.EXIT_CODE)
    for code, each in seen.items():
        assert f"exit code {code}, but the node could not reach the console" in sentence(each)
    began = wait_until_over(apart.backend, never, PATIENCE_S)
    assert (began.state, began.reason.code) == (State.FAILED, ReasonCode.START_FAILED)
    assert "Not started: the node could not reach the console" in sentence(began)


def by_rest_of(bench: SlurmBench, nowhere: Path) -> dict[str, Any]:
    """Settings by which the console can begin no step itself."""
    return {**by_rest(bench.slurm), "user": "root", "programs": str(nowhere)}


async def test_uploads_reach_relayed_job_and_sessions_enter(apart: SlurmBench) -> None:
    content = b"echo uploaded\n"
    digest = hashlib.sha256(content).hexdigest()
    pack = apart.folder / "pack"
    pack.write_bytes(content)
    tree = Tree.of((Entry("say", FileKind.PROGRAM, digest, len(content)),))
    uploads = {tree.id: Supplied(len(content), tree, {digest: (str(pack), 0)})}
    command = "sh ./say; echo note >left; exec sleep 600"
    code = CodeSource(uri=f"upload://{tree.id}", path=".")
    submission = apart.submission(role(command, nodes=on("cpu1")), code=code, uploads=uploads)
    handle = apart.backend.submit(submission)
    await asyncio.to_thread(wait_for, lambda: log_of(apart.backend, handle) == "uploaded\n", PATIENCE_S)
    said, ended = await run(apart, handle, "cat left; echo $SLURMD_NODENAME; exit 7")
    assert (said, ended) == ("note\ncpu1\n", Ended(exit_code=7))
    nowhere = apart.folder / "none"
    nowhere.mkdir()
    by_door = SlurmBackend(replace(apart.config, **by_rest_of(apart, nowhere)))
    wanted = SessionRequest(SessionKind.LINE, line="cat left; exit 6")
    session = await by_door.exec(handle, REPLICA, wanted)
    assert (await everything(session), await session.wait()) == ("note\n", Ended(exit_code=6))
    await session.close()
    apart.backend.stop(handle, grace_s=0, signal="KILL")
    seen = await asyncio.to_thread(wait_until_over, apart.backend, handle, PATIENCE_S)
    assert seen.state is State.STOPPED


def test_role_credentials_reach_relayed_node_and_are_removed(apart: SlurmBench) -> None:
    reads = (
        "import os, urllib.request as r; e = os.environ; "
        "t = open(e['AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE']).read(); "
        "q = r.Request(e['AWS_CONTAINER_CREDENTIALS_FULL_URI'], headers={'Authorization': t}); "
        "print(r.urlopen(q).read().decode())"
    )
    command = role(f'exec {sys.executable} -c "{reads}"', nodes=on("cpu1"))
    submission = replace(apart.submission(command, instance_role="default"), role_provider="aws")
    answer = '{"Token": "t", "Expiration": "2999-01-01T00:00:00Z"}'
    handle = apart.backend.submit(submission)
    apart.backend.put_credentials(handle, answer)
    seen = wait_until_over(apart.backend, handle, timeout=PATIENCE_S)
    assert (seen.state, log_of(apart.backend, handle)) == (State.SUCCEEDED, f"{answer}\n")
    assert apart.backend.credentials_age_s(handle) is None


def test_event_files_of_relayed_nodes_come_to_the_console(apart: SlurmBench) -> None:
    command = f"""
mkdir -p runs/a .hidden; ln -s / runs/root
printf one > runs/a/{relay.EVENT_FILE}1; printf two >> runs/a/{relay.EVENT_FILE}1
printf three > {relay.EVENT_FILE}2; printf no > .hidden/{relay.EVENT_FILE}3; printf no > runs/model.bin
"""
    handle = apart.backend.submit(apart.submission(role(command)))
    assert wait_until_over(apart.backend, handle, PATIENCE_S).state is State.SUCCEEDED
    [work] = apart.root.glob("*/1/run-1/work/worker-0")
    stored = {str(path.relative_to(work)): path.read_text() for path in work.rglob("*") if path.is_file()}
    assert stored == {f"runs/a/{relay.EVENT_FILE}1": "onetwo", f"{relay.EVENT_FILE}2": "three"}
