"""Sessions beside a running replica: where they are, what they may, and that nothing of them stays."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.sessions import Ended, SessionKind, SessionRequest, Terminal
from jobs.node.sandbox.isolation import Isolation
from jobs.node.wrapper import cgroups
from jobs.states import ReasonCode, State
from tests.jobs.backends.benches import CHECKOUT, LocalBench, log_of, wait_until_over
from tests.jobs.backends.beside import beside, run, start, until
from tests.jobs.backends.local.images import IMAGE
from tests.waiting import wait_for

MODES: dict[str, dict[str, Any]] = {
    "persons": {},
    "namespaces": {"isolation": Isolation.NAMESPACES},
    "none": {"isolation": Isolation.NONE},
    "watchdog": {"limits": "watchdog"},
    "watchdog-none": {"limits": "watchdog", "isolation": Isolation.NONE},
}


@pytest.fixture(params=MODES)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalBench]:
    if os.geteuid() != 0 and request.param == "persons":
        pytest.skip("user ids for every person need root")
    made = LocalBench(tmp_path, MODES[request.param])
    yield made
    made.close()


@pytest.fixture
def contained(tmp_path: Path, store: tuple[str, ...]) -> Iterator[LocalBench]:
    made = LocalBench(tmp_path, {"engine": "podman", "engine_options": store})
    yield made
    made.close()


async def test_session_command_runs_as_job_user_with_job_environment(bench: LocalBench) -> None:
    look = "id -u; pwd; echo $PAI_JOB_NAME $TOKEN $HOME; cat note; umask; "
    look += "grep -E '^(NoNewPrivs|CapEff)' /proc/self/status"
    handle = start(bench, f"echo mine > note; ({look}); exec sleep 600", env={"TOKEN": "t"})
    wait_for(lambda: "NoNewPrivs" in log_of(bench.backend, handle))
    said, ended = await run(bench, handle, f"{look}; exit 7")
    assert said == log_of(bench.backend, handle)
    assert ended == Ended(exit_code=7)


async def test_session_sees_job_processes_and_shares_job_cgroup(bench: LocalBench) -> None:
    handle = start(bench)
    said, _ = await run(bench, handle, "cat /proc/self/cgroup; echo; cat /proc/[0-9]*/comm")
    groups, processes = said.split("\n\n")
    assert "sleep" in processes
    if bench.config.limits != "watchdog" and cgroups.usable():
        assert f"memory:/job-console/{handle}.worker-0" in groups or f"/job-console/{handle}" in groups


async def test_session_memory_counts_toward_job_limit(bench: LocalBench) -> None:
    handle = start(bench)
    hoard = "x = bytearray(400 << 20); x[::4096] = bytes(len(x[::4096])); import time; time.sleep(60)"
    async with beside(bench, handle, SessionRequest(SessionKind.PROGRAM, argv=("python3", "-c", hoard))):
        seen = await asyncio.to_thread(wait_until_over, bench.backend, handle, 30)
    assert seen.reason.code is ReasonCode.OUT_OF_MEMORY


SERVE = """
import asyncio, json, os, sys
from pathlib import Path
from jobs.backends.base import Handle, ReplicaRef
from jobs.backends.local.backend import LocalBackend
from jobs.backends.local.config import LocalConfig
from jobs.backends.sessions import SessionKind, SessionRequest, Terminal

async def main():
    root, handle, mode = sys.argv[1:]
    backend = LocalBackend(LocalConfig(root=Path(root), hide=Path(root)))
    session = await backend.exec(
        Handle(handle), ReplicaRef("worker", 0), SessionRequest(SessionKind.SHELL, terminal=Terminal())
    )
    await session.write(b"(trap '' HUP TERM; sleep 601) & sleep 602\\n")
    print("up", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def test_killed_console_leaves_no_session_and_spares_job(bench: LocalBench) -> None:
    handle = start(bench)
    before = len(bench.processes())
    command = [sys.executable, "-c", SERVE, str(bench.config.root), handle, ""]
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE) as console:
        assert console.stdout is not None
        assert console.stdout.readline() == b"up\n"
        wait_for(lambda: len(bench.processes("sleep")) >= 3)
        console.kill()
        console.wait()
    wait_for(lambda: not [pid for pid in bench.processes("sleep") if _argument(pid) != "600"])
    wait_for(lambda: len(bench.processes()) == before)
    assert bench.backend.observe([handle])[handle].state is State.RUNNING  # type: ignore[union-attr]


def _argument(pid: int) -> str:
    with contextlib.suppress(OSError, IndexError):  # it has none any more once it has ended
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1].decode()
    return "600"


async def test_killed_supervisor_ends_neither_job_nor_session(bench: LocalBench) -> None:
    handle = start(bench)
    async with beside(bench, handle, SessionRequest(SessionKind.SHELL, terminal=Terminal())) as session:
        bench.restart_controller()
        wait_for(lambda: bench.backend.find([handle])[handle])
        await session.write(b"echo sti''ll\n")
        await until(session, "still")


async def test_killed_wrapper_ends_its_sessions(bench: LocalBench) -> None:
    handle = start(bench)
    async with beside(bench, handle, SessionRequest(SessionKind.LINE, line="echo up; sleep 601")) as session:
        await until(session, "up")
        for pid in bench.processes("jc-wrapper"):
            os.kill(pid, signal.SIGKILL)
        await asyncio.to_thread(wait_until_over, bench.backend, handle)
    wait_for(lambda: not bench.processes("sleep"))


JOIN_LATE = """
import sys
from pathlib import Path
from jobs.node.sessions import entry
from jobs.node.supervisor import layout
from jobs.node.files import Folder

join = entry.Entry.join

def join_late(found):
    with Folder.open(Path(sys.argv[1], "replicas", "worker-0")) as state:
        state.write(layout.OVER, {})
    join(found)

entry.Entry.join = join_late
entry.main(Path(sys.argv[1]), int(sys.argv[2]))
"""


def test_session_joining_ended_replica_runs_nothing(bench: LocalBench) -> None:
    handle = start(bench)
    request = {"role": "worker", "index": 0, "kind": "line", "line": "echo in", "env": {}, "terminal": None}
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(json.dumps(request).encode() + b"\n")
        command = [sys.executable, "-c", JOIN_LATE, str(bench.attempt(handle)), str(theirs.fileno())]
        subprocess.run(command, cwd=CHECKOUT, pass_fds=[theirs.fileno()], check=True, timeout=60)
        assert json.loads(ours.recv(4096)) == {"barrier": "not_running", "detail": ""}


async def test_container_session_runs_inside_container(contained: LocalBench) -> None:
    handle = start(contained, "echo up; exec sleep 600", image=IMAGE, env={"TOKEN": "t"})
    look = "cat /etc/marker; id -u; pwd; echo $TOKEN $HOME; echo $PATH | grep -c bin; "
    look += "ls /work 2>&1 | head -1; exit 4"
    said, ended = await run(contained, handle, look)
    lines = said.splitlines()
    assert lines[:5] == ["inside", str(contained.config.uid_base + 7), "/job", "t /job", "1"]
    assert "No such file" in lines[5]
    assert ended == Ended(exit_code=4)
    async with beside(contained, handle, SessionRequest(SessionKind.SHELL, terminal=Terminal())) as session:
        await session.write(b"(trap '' HUP; sleep 601) & cat /proc/self/cgroup; echo do''ne\n")
        said = await until(session, "done")
        assert handle in said
    wait_for(lambda: len(contained.processes("sleep")) == 1)
