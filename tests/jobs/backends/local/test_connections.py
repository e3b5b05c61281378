"""Connections to ports that jobs of this machine share: made to the replica's own sockets, or not at all."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobs.backends.base import ReplicaRef
from jobs.backends.local import port_ownership
from jobs.backends.local.port_ownership import OwnListener
from jobs.backends.sessions import Barrier, NoEntry
from jobs.node.sandbox.isolation import Isolation
from tests.jobs.backends.benches import LocalBench
from tests.jobs.backends.beside import REPLICA, listening
from tests.waiting import wait_for


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[LocalBench]:
    made = LocalBench(tmp_path, {"isolation": Isolation.NAMESPACES, "network": "host"})
    yield made
    made.close()


@pytest.mark.parametrize("address", ["0.0.0.0", "127.0.0.1", "::1", "::"])
async def test_connection_reaches_listener_of_any_local_address(bench: LocalBench, address: str) -> None:
    handle, port = listening(bench, address)
    with await bench.backend.connect(handle, REPLICA, "localhost", port) as made:
        assert made.getpeername()[1] == port


async def test_port_lookup_distinguishes_loopback_addresses(bench: LocalBench) -> None:
    """The job listens on 127.0.0.2 with the number at which something else is on 127.0.0.1."""
    handle, port = listening(bench, "127.0.0.2")
    with (
        socket.create_server(("127.0.0.1", port)),
        await bench.backend.connect(handle, REPLICA, "127.0.0.1", port) as made,
    ):
        assert made.getpeername() == ("127.0.0.2", port)


async def test_connection_is_refused_when_listener_changes_during_connect(
    bench: LocalBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle, port = listening(bench)
    find: Callable[[Path, ReplicaRef, int], OwnListener] = port_ownership.find_listener
    answers = [OwnListener("127.0.0.1", frozenset({1}))]

    def find_changed(attempt: Path, ref: ReplicaRef, wanted: int) -> OwnListener:
        return answers.pop() if answers else find(attempt, ref, wanted)

    monkeypatch.setattr(port_ownership, "find_listener", find_changed)
    with pytest.raises(NoEntry) as refused:
        await bench.backend.connect(handle, REPLICA, "localhost", port)
    assert refused.value.barrier is Barrier.NOT_ITS_OWN


async def test_connection_is_refused_once_another_process_has_the_port(bench: LocalBench) -> None:
    handle, port = listening(bench)
    (await bench.backend.connect(handle, REPLICA, "localhost", port)).close()
    bench.backend.stop(handle, grace_s=0, signal="KILL")
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        wait_for(lambda: _bind(other, port))
        other.listen()
        with pytest.raises(NoEntry):
            await bench.backend.connect(handle, REPLICA, "localhost", port)


def _bind(other: socket.socket, port: int) -> bool:
    try:
        other.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True
