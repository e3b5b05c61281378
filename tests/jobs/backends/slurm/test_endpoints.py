"""What jobs serve on a real Slurm: ports that are free on their nodes, and told once they answer."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.backends.base import EndpointSeen, Handle, Observation, ReplicaRef, ReplicaSeen
from jobs.backends.remote import endpoints, node_addresses, replica_sessions
from jobs.backends.sessions import NoEntry
from jobs.backends.slurm.client.addresses import SlurmAddresses
from jobs.backends.slurm.client.commands import CommandController
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.handles import SlurmJob
from jobs.backends.slurm.script import ports
from jobs.spec import Port, Resources
from jobs.states import Phase, PortSource, Reason, ReasonCode, ReplicaState, State, Unready
from tests.jobs.backends.benches import log_of, replica, role
from tests.jobs.backends.slurm_bench import Releasing, SlurmBench
from tests.ports import free_port, free_ports
from tests.waiting import wait_for

SERVE = "python3 -m http.server --bind 127.0.0.1"


def observed_endpoints(bench: SlurmBench, handle: Handle) -> tuple[EndpointSeen, ...]:
    seen = bench.backend.observe([handle])[handle]
    assert isinstance(seen, Observation)
    return replica(seen).endpoints


def until(bench: SlurmBench, handle: Handle, holds: Callable[[EndpointSeen], bool]) -> EndpointSeen:
    """The first port, once that holds of it."""
    return wait_for(lambda: next(filter(holds, observed_endpoints(bench, handle)), None), 60, 0.2)


@contextmanager
def listener(port: int = 0) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", port)) as taken:
        yield taken.getsockname()[1]


def test_endpoint_is_ready_only_while_port_answers(
    on_slurm: SlurmBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "PATIENCE_S", 0.0)
    serve = f"timeout 3 {SERVE} $PAI_CONTAINER_HOST_web_PORT_LIST"
    command = f"until [ -e go ]; do sleep 0.1; done; {serve}; exec sleep 600"
    handle = on_slurm.backend.submit(on_slurm.submission(role(command, ports=(Port(label="web"),))))
    silent = until(on_slurm, handle, lambda seen: seen.why is Unready.SILENT)
    assert (silent.ready, silent.params) == (False, {"port": silent.port})
    (on_slurm.attempt(handle) / "run-1" / "work" / "worker-0" / "go").touch()
    ready = until(on_slurm, handle, lambda seen: seen.ready)
    assert (ready.why, ready.host, ready.port) == (None, "127.0.0.1", silent.port)
    until(on_slurm, handle, lambda seen: seen.why is Unready.SILENT)


def test_taken_port_on_node_is_left_to_its_owner(on_slurm: SlurmBench) -> None:
    first = on_slurm.backend.submit(on_slurm.submission(role("true")))
    number = SlurmJob.of(first).number + 1
    base = free_ports(4)
    on_slurm.backend = Releasing(replace(on_slurm.config, ports=(base, base + 3)))
    asked = {which: ports.port_number((base, base + 3), number, which) for which in range(3)}
    with listener(asked[2]):
        command = "echo $PAI_CONTAINER_HOST_web_PORT_LIST $PAI_PORT_LIST_worker_0_web; exec sleep 600"
        handle = on_slurm.backend.submit(on_slurm.submission(role(command, ports=(Port(label="web"),))))
        assert SlurmJob.of(handle).number == number
        told = wait_for(lambda: log_of(on_slurm.backend, handle), 60).split()
        (seen,) = observed_endpoints(on_slurm, handle)
    assert told == [str(seen.port)] * 2
    assert seen.port not in asked.values()
    assert base <= seen.port <= base + 3


def test_endpoint_check_covers_every_node_and_reports_taken_port(
    on_slurm: SlurmBench,
) -> None:
    wide = Resources(cpu_milli=9000, memory_mib=64)
    with listener() as taken:
        command = "exec sleep 600"
        web = Port(label="web", begin_at=taken)
        handle = on_slurm.backend.submit(
            on_slurm.submission(
                role(command, name="a"), role(command, name="b", replicas=2, resources=wide, ports=(web,))
            )
        )
        wait_for(lambda: len(on_slurm.processes("sleep")) == 3, 60)
        seen = on_slurm.backend.observe([handle])[handle]
    assert isinstance(seen, Observation)
    assert len({one.node for one in seen.replicas}) > 1
    for index in range(2):
        (port,) = replica(seen, "b", index).endpoints
        assert (port.ready, port.why, port.params) == (False, Unready.TAKEN, {"port": taken})


def test_announced_port_is_trusted_after_node_confirms(on_slurm: SlurmBench) -> None:
    with listener() as others:
        mine, note = free_port(), ".job-console-endpoints"
        said = [
            {"label": "board", "port": mine, "path": "/sub/", "probe": "/", "token": "token"},
            {"label": "theirs", "port": others},
        ]
        lines = "\\n".join(map(json.dumps, said))
        command = f"printf '{lines}\\n' > {note}; exec {SERVE} {mine}"
        handle = on_slurm.backend.submit(on_slurm.submission(role(command)))
        board = until(on_slurm, handle, lambda seen: seen.label == "board" and seen.ready)
        assert (board.source, board.port, board.path, board.token) == (
            PortSource.ANNOUNCED,
            mine,
            "/sub/",
            "token",
        )
        theirs = until(on_slurm, handle, lambda seen: seen.label == "theirs" and seen.why is Unready.TAKEN)
        assert not theirs.ready


def test_silent_port_is_not_ready() -> None:
    with listener() as port:
        assert endpoints.find_listening([("127.0.0.1", port), ("127.0.0.1", 1), ("", port)]) == {
            ("127.0.0.1", port)
        }
        assert endpoints.probe_http("127.0.0.1", port, "/") == (Unready.NO_ANSWER, {})


def test_unanswered_port_check_leaves_endpoints_starting_and_checks_no_more(tmp_path: Path) -> None:
    (tmp_path / "work" / "worker-0").mkdir(parents=True)
    asked: list[int] = []

    def check(_handle: Handle, _replica: ReplicaRef, port: int) -> None:
        asked.append(port)

    with listener() as one, listener() as other:
        said = "".join(f'{{"label": "{port}", "port": {port}}}\n' for port in (one, other))
        (tmp_path / "work" / "worker-0" / ".job-console-endpoints").write_text(said)
        log = str(tmp_path / "logs" / "worker-0.output")
        running = ReplicaSeen("worker", 0, ReplicaState.RUNNING, node="cpu1", log_path=log)
        what = Observation(State.RUNNING, Reason(ReasonCode.RUNNING), Phase.RUNNING, (running,))
        where = {"cpu1": "127.0.0.1"}.__getitem__
        found = endpoints.EndpointProbe({Handle("1.a-b-1"): what}, check, where).complete(
            Handle("1.a-b-1"), what
        )
    assert [(seen.ready, seen.why) for seen in replica(found).endpoints] == [(False, Unready.STARTING)] * 2
    assert len(asked) == 1


def test_address_claimed_by_job_is_not_contacted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The console's own machine reaches what the nodes do not."""
    monkeypatch.setattr(node_addresses, "_known", {})
    config, asked = SlurmConfig(root=tmp_path), []

    class Asked(CommandController):
        def nodes(self) -> Iterator[dict[str, str]]:
            asked.append(1)
            yield {"NodeName": "cpu1", "NodeAddr": "10.1.2.3"}

        def nodes_of(self, number: int) -> Iterator[str]:
            yield from {7: ["cpu1"]}.get(number, [])

    where = SlurmAddresses(config, Asked(config))
    assert [where.of_node(node) for node in ("cpu1", "169.254.169.254", "db")] == ["10.1.2.3", "", ""]
    assert [where.of_job((number, 1), "cpu1") for number in (7, 8)] == ["10.1.2.3", ""]
    assert len(asked) == 1
    for at in ("169.254.169.254", "127.0.0.1", "localhost", "10.1.2.4"):
        with pytest.raises(NoEntry):
            replica_sessions._from_here({"at": at}, "10.1.2.3")
    assert replica_sessions._from_here({"at": "0.0.0.0"}, "10.1.2.3") == "10.1.2.3"
