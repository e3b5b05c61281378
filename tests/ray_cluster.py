"""A private Ray for one run of the tests: a head and two nodes on this machine, at addresses of their own.

The head has no CPUs for jobs; the nodes have GPUs that are only numbers.  It lies in one folder, and nothing
of it is left afterwards.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import httpx
import psutil
import pytest

from console.home import CHECKOUT
from tests.clients import environments
from tests.ports import free_ports
from tests.waiting import wait_for

LOCKS: Final = CHECKOUT / "tests" / "frameworks"
PYTHON: Final = "/usr/bin/python3"
CPUS: Final = 8
MEMORY_MIB: Final = 8192
GPUS: Final = 4
NODES: Final = ("titans", "ampere")
"""The nodes: the first one tells its GPUs' type by a resource, the second one by Ray's own label."""

START_S: Final = 120.0
_STORE_BYTES: Final = 80_000_000
_SYSTEM: Final = {
    "RAY_prestart_worker_first_driver": "0",
    "RAY_enable_worker_prestart": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "10",
}
"""Fewer processes on a small machine, and a node that is gone is noticed soon."""


def missing() -> str:
    """What this machine lacks to start one, or nothing."""
    return "" if Path(PYTHON).exists() else f"there is no {PYTHON} (Debian: python3-venv)"


@dataclass
class RayCluster:
    """A running Ray; its processes name `base` in their command lines, or descend from those."""

    base: Path
    python: Path
    token: str
    network: str = ""
    ports: int = 0
    nodes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    dashboard: tuple[list[str], dict[str, str]] | None = None
    dashboards: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        number = os.getpid()
        self.network = f"127.{100 + number % 100}.{number // 100 % 250}"
        self.ports = free_ports(4 + len(NODES))

    @property
    def address(self) -> str:
        """Where its nodes find each other."""
        return f"{self.network}.2:{self.ports}"

    @property
    def url(self) -> str:
        """The dashboard's address."""
        return f"http://{self.network}.2:{self.ports + 1}"

    def environment(self) -> dict[str, str]:
        """What its processes are started with."""
        path = f"{self.python.parent}:/usr/local/bin:/usr/bin:/bin"
        auth = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": self.token}
        return {"PATH": path, "HOME": str(self.base), "LANG": "C.UTF-8", "TMPDIR": "/tmp", **_SYSTEM, **auth}

    def start_head(self) -> None:
        """Start the head, without its own watch over its processes: tests kill some of them."""
        words = (
            "--head",
            f"--port={self.ports}",
            f"--node-ip-address={self.network}.2",
            f"--dashboard-host={self.network}.2",
            f"--dashboard-port={self.ports + 1}",
            f"--dashboard-agent-listen-port={self.ports + 3}",
            "--num-cpus=0",
            "--num-gpus=0",
            f"--ray-client-server-port={self.ports + 2}",
            f"--temp-dir={self.base}/t",
        )
        done = subprocess.run(
            self._command(*words),
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=START_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        wait_for(self.answers, START_S)
        [process] = self.processes("dashboard/dashboard.py")
        self.dashboard = process.cmdline(), process.environ()

    def start_node(self, name: str) -> None:
        """Start a node, and wait until the head knows it."""
        place = NODES.index(name)
        types = (
            [f'--resources={{"titan":{GPUS}}}'] if place == 0 else ["--labels=ray.io/accelerator-type=A100"]
        )
        words = (
            f"--address={self.address}",
            f"--node-ip-address={self.network}.{3 + place}",
            f"--node-name={name}",
            f"--dashboard-agent-listen-port={self.ports + 4 + place}",
            f"--num-cpus={CPUS}",
            f"--num-gpus={GPUS}",
            f"--memory={MEMORY_MIB << 20}",
            *types,
            "--block",
        )
        with (self.base / f"{name}.log").open("wb") as log:
            self.nodes[name] = subprocess.Popen(
                [*self._on_own_disk(name), *self._command(*words)],
                env=self.environment(),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_for(lambda: name in self.living(), START_S, interval=0.3)

    def kill_node(self, name: str) -> None:
        """Kill Ray's own processes of a node at once; what its jobs run is left."""
        for process in self._tree(psutil.Process(self.nodes[name].pid)):
            _kill(process)
        self.nodes.pop(name).wait()
        wait_for(lambda: name not in self.living(), START_S, interval=0.3)

    def kill_head(self) -> None:
        """Kill the head: its GCS with all it knows, its raylet with the drivers, and its dashboard."""
        of_nodes = {each.pid for node in self.nodes.values() for each in self._tree(psutil.Process(node.pid))}
        for root in self._roots():
            if root.pid not in of_nodes and "jobs/node/runner.py" not in _line(root):  # which are the nodes'
                for process in self._tree(root):
                    _kill(process)

    def restart(self) -> None:
        """Start a head in place of one that was killed, which knows nothing, and its nodes anew."""
        for name in NODES:
            if name in self.nodes:
                for process in self._tree(psutil.Process(self.nodes[name].pid)):
                    _kill(process)
                self.nodes.pop(name).wait()
        self.start_head()
        for name in NODES:
            self.start_node(name)

    def kill_dashboard(self) -> None:
        """Kill the process that answers the Jobs API."""
        for process in self.processes("dashboard/dashboard.py"):
            _kill(process)

    def start_dashboard(self) -> None:
        """Start it again as it was."""
        assert self.dashboard is not None
        command, environment = self.dashboard
        null = subprocess.DEVNULL
        self.dashboards.append(
            subprocess.Popen(
                [word for word in command if word],
                env=environment,
                stdout=null,
                stderr=null,
                start_new_session=True,
            )
        )
        wait_for(self.answers, START_S, interval=0.3)

    def answers(self) -> bool:
        """Whether the Jobs API answers."""
        try:
            return self.get("/api/jobs/").is_success
        except httpx.HTTPError:
            return False

    def get(self, path: str) -> httpx.Response:
        """Ask the dashboard."""
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.get(f"{self.url}{path}", headers=headers, timeout=10, trust_env=False)

    def living(self) -> Mapping[str, str]:
        """The nodes that live, by name, with their ids."""
        try:
            rows = self.get("/api/v0/nodes?detail=1").json()["data"]["result"]["result"]
        except (httpx.HTTPError, json.JSONDecodeError, KeyError):
            return {}
        return {row["node_name"]: row["node_id"] for row in rows if row["state"] == "ALIVE"}

    def processes(self, word: str) -> list[psutil.Process]:
        """Its processes with a word in their command line."""
        return [each for each in self._roots() if word in _line(each)]

    def stop(self) -> None:
        """End all of it."""
        roots = [*self._roots(), *(psutil.Process(node.pid) for node in self.nodes.values())]
        found = {each.pid: each for root in roots for each in self._tree(root)}
        for process in found.values():
            _kill(process)
        for node in (*self.nodes.values(), *self.dashboards):
            node.wait(30)

    def _roots(self) -> list[psutil.Process]:
        return [
            each
            for each in psutil.process_iter()
            if str(self.base) in _line(each) and each.pid != os.getpid()
        ]

    @staticmethod
    def _tree(root: psutil.Process) -> list[psutil.Process]:
        try:
            return [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def _on_own_disk(self, name: str) -> list[str]:
        """Return what runs a node's Ray with a session folder of its own, as on another machine.

        Nodes that share it remove each other's unpacked packages.
        """
        if os.geteuid():
            return []
        own, shared = self.base / name, self.base / "t"
        own.mkdir(exist_ok=True)
        mount = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
        return [
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            mount,
            "sh",
            str(own),
            str(shared),
        ]

    def _command(self, *words: str) -> list[str]:
        ray = str(self.python.with_name("ray"))
        more = ("--disable-usage-stats", f"--object-store-memory={_STORE_BYTES}")
        return [str(self.python), ray, "start", *more, "--min-worker-port=0", "--max-worker-port=0", *words]


def _line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def _kill(process: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(signal.SIGKILL)


@contextmanager
def cluster() -> Iterator[RayCluster]:
    """A running one; skips the test where its packages cannot be had."""
    if lacking := missing():
        pytest.skip(lacking)
    python = environments.python("ray", LOCKS, PYTHON)
    base = Path(tempfile.mkdtemp(prefix="jcray-", dir="/tmp"))
    base.chmod(0o755)
    made = RayCluster(base, python, secrets.token_hex(16))
    try:
        made.start_head()
        for name in NODES:  # one after the other: a raylet has 30 s to start
            made.start_node(name)
        yield made
    finally:
        made.stop()
        shutil.rmtree(base, ignore_errors=True)
