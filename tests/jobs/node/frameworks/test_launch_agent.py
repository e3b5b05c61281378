"""The launch agent of MPI jobs: what it does for whom."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jobs.node.frameworks import launch_agent
from tests.ports import free_port
from tests.waiting import wait_for


@contextmanager
def agent(folder: Path, *arguments: str, key: str = "secret", **env: str) -> Iterator[subprocess.Popen[str]]:
    """Run the agent in a folder of its own."""
    folder.mkdir(exist_ok=True)
    (folder / "key").write_text(key)
    program = shutil.copy(launch_agent.__file__, folder / "mpi-agent")
    with subprocess.Popen(
        [sys.executable, str(program), *arguments],
        env={"PATH": os.environ["PATH"], "PAI_CONTAINER_HOST_IP": "127.0.0.1", **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def worker(tmp_path: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    with agent(tmp_path / "worker", "serve", PAI_CONTAINER_SSH_PORT=str(port)) as process:
        yield process


def test_agent_runs_command_while_launcher_is_connected(
    tmp_path: Path, port: int, worker: subprocess.Popen[str]
) -> None:
    hosts = f"launcher=127.0.0.1:1:1,worker-0=127.0.0.1:{port}:2"
    own, mark = tmp_path / "launcher", tmp_path / "pid"
    with subprocess.Popen(["sleep", "600"]) as shell:
        with agent(own, "hold", str(shell.pid), JOB_CONSOLE_MPI_HOSTS=hosts) as process:
            assert process.wait(30) == 0
        assert (own / "hostfile").read_text() == f"{socket.gethostname()} slots=1\nworker-0 slots=2\n"
        assert (own / "machinefile").read_text() == f"{socket.gethostname()}:1\nworker-0:2\n"
        with agent(
            own, "-x", "worker-0", "echo out; echo err >&2;", "exit 3", JOB_CONSOLE_MPI_HOSTS=hosts
        ) as run:
            assert run.communicate(timeout=30) == ("out\n", "err\n")
            assert run.returncode == 3
        with agent(own, "worker-0", f"echo $$ >{mark}; sleep 600", JOB_CONSOLE_MPI_HOSTS=hosts) as run:
            pid = wait_for(lambda: mark.exists() and mark.read_text().strip())
            run.kill()
        wait_for(lambda: not Path(f"/proc/{pid}").exists())
        with agent(own, "other", "true", JOB_CONSOLE_MPI_HOSTS=hosts) as run:
            assert run.wait(30) == launch_agent.LOST
        assert worker.poll() is None
        shell.kill()
    assert worker.wait(30) == 0
    wait_for(lambda: not own.exists())


def test_agent_answers_nobody_without_key(tmp_path: Path, port: int, worker: subprocess.Popen[str]) -> None:
    def connect() -> socket.socket | None:
        try:
            return socket.create_connection(("127.0.0.1", port), 10)
        except OSError:
            return None

    connection = wait_for(connect)
    assert connection is not None
    mark = tmp_path / "mark"
    with connection, connection.makefile("rb") as stream:
        assert stream.readline()
        message = {"nonce": "1", "request": json.dumps(f"touch {mark}"), "proof": "0" * 64}
        connection.sendall(json.dumps(message).encode() + b"\n")
        assert stream.read() == b""
    assert not mark.exists()
    assert worker.poll() is None


def test_agent_does_not_trust_worker_without_key(tmp_path: Path, port: int) -> None:
    with socket.create_server(("127.0.0.1", port)) as impostor:
        hosts = f"launcher=127.0.0.1:1:1,worker-0=127.0.0.1:{port}:1"
        with agent(tmp_path / "launcher", "worker-0", "true", JOB_CONSOLE_MPI_HOSTS=hosts) as run:
            for _attempt in range(2):
                connection, _ = impostor.accept()
                with connection, connection.makefile("rb") as stream:
                    connection.sendall(b"challenge\n")
                    assert json.loads(stream.readline())["request"]
                    connection.sendall(b"0" * 64 + b"\n" + launch_agent.HEAD.pack(launch_agent.CODE, 0))
            assert run.poll() is None
