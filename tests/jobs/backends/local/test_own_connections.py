"""Connections to replicas with a network of their own: made inside of it, so that nobody else can answer."""

import os
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from jobs.backends.base import ReplicaRef
from jobs.backends.local import machine
from jobs.backends.sessions import Barrier, NoEntry
from jobs.node.sandbox.isolation import Isolation
from tests.jobs.backends.benches import LocalBench, log_of, role
from tests.jobs.backends.beside import REPLICA, listening
from tests.waiting import wait_for

SERVE = "import socket; s = socket.create_server(('127.0.0.1', 8888)); print('up', flush=True)\n"
SERVE += "while True: s.accept()[0].sendall(b'{name}')"


@pytest.fixture(params=[Isolation.PERSONS, Isolation.NAMESPACES])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalBench]:
    mode: Isolation = request.param
    if os.geteuid() != 0 and mode is Isolation.PERSONS:
        pytest.skip("user ids for every person need root")
    if lacking := machine.network_lacks(mode):
        pytest.skip(f"networks of jobs' own need {', '.join(lacking)}")
    made = LocalBench(tmp_path, {"isolation": mode, "network": "own"})
    yield made
    made.close()


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "10.66.0.2"])
async def test_connection_reaches_listener_at_any_own_address(bench: LocalBench, address: str) -> None:
    handle, port = listening(bench, address)
    for host in ("localhost", "10.66.0.2"):
        with await bench.backend.connect(handle, REPLICA, host, port) as made:
            assert made.getpeername()[:2] == (address, port)
            assert not made.getblocking()


async def test_same_port_of_two_jobs_and_the_machine_leads_each_to_its_own(bench: LocalBench) -> None:
    handles = {}
    for name in ("alice", "bob"):
        command = f'exec python3 -c "{SERVE.format(name=name)}"'
        handles[name] = bench.backend.submit(bench.submission(role(command)))
    for name, handle in handles.items():
        wait_for(partial(log_of, bench.backend, handle), 60)
        with await bench.backend.connect(handle, REPLICA, "localhost", 8888) as made:
            made.setblocking(True)
            assert made.recv(100) == name.encode()


async def test_what_only_others_listen_on_is_refused(bench: LocalBench) -> None:
    handle, _port = listening(bench)
    with socket.create_server(("0.0.0.0", 0)) as machines:
        refused = [
            ("localhost", machines.getsockname()[1]),
            ("10.66.0.3", 80),
            ("169.254.77.1", 80),
            ("example.org", 80),
            ("localhost", 65536 + 80),
        ]
        for host, port in refused:
            with pytest.raises(NoEntry) as problem:
                await bench.backend.connect(handle, REPLICA, host, port)
            assert problem.value.barrier is Barrier.NOT_ITS_OWN


async def test_connection_without_an_agent_or_replica_is_refused(bench: LocalBench) -> None:
    handle, port = listening(bench)
    with pytest.raises(NoEntry) as problem:
        await bench.backend.connect(handle, ReplicaRef("worker", 1), "localhost", port)
    assert problem.value.barrier is Barrier.NOT_RUNNING
    (bench.config.root / ".agent.sock").rename(bench.config.root / "away")
    with pytest.raises(NoEntry) as problem:
        await bench.backend.connect(handle, REPLICA, "localhost", port)
    assert problem.value.barrier is Barrier.ENGINE_AWAY
    (bench.config.root / "away").rename(bench.config.root / ".agent.sock")
