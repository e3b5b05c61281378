"""What a replica serves: announced, found, asked by HTTP; and what a hostile job makes of that."""

from __future__ import annotations

import json
import os
import shlex
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import NoReturn

import pytest

from jobs.backends.base import EndpointSeen, Handle, Observation
from jobs.node import files, listening_sockets, socket_diag
from jobs.node.files import Folder
from jobs.node.listening_sockets import Listener
from jobs.node.sandbox.isolation import Isolation
from jobs.node.supervisor import announced_ports, layout, port_monitor
from jobs.node.supervisor.announced_ports import AnnouncedPort, AnnouncementFile
from jobs.node.supervisor.plan import Plan
from jobs.node.supervisor.port_monitor import PortMonitor
from jobs.node.supervisor.readiness_probe import Answer, ReadinessProbe, Target
from jobs.node.supervisor.replica_handle import ReplicaHandle
from jobs.spec import Port
from jobs.states import PortSource, Unready
from tests.jobs.backends.benches import LocalBench, replica, role, wait_until_over
from tests.ports import free_port
from tests.waiting import wait_for

LISTENS = """
import json, os, socket, sys, time
address, port, before = sys.argv[1], int(sys.argv[2]), sys.argv[3]
if before:
    open(os.environ["JOB_CONSOLE_ENDPOINTS"], "a").write(before + "\\n")
server = socket.socket()
server.bind((address, port))
server.listen()
time.sleep(60)
"""
ANSWERS = """
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if os.path.exists("loaded") else 503)
        self.end_headers()
        self.server.asked = True
    def log_message(self, *args):
        pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.fixture(params=[None, Isolation.NONE])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalBench]:
    """Benches whose jobs share the host's network."""
    made = LocalBench(tmp_path, {"isolation": request.param, "network": "host"})
    yield made
    made.close()


def listens(port: int, *, address: str = "127.0.0.1", before: str = "") -> str:
    return f"exec python3 -c {shlex.quote(LISTENS)} {address} {port} {shlex.quote(before)}"


def line(label: str, port: int, **more: str) -> str:
    return json.dumps({"label": label, "port": port, **more})


def served(bench: LocalBench, handle: Handle) -> tuple[EndpointSeen, ...]:
    seen = bench.backend.observe([handle])[handle]
    assert isinstance(seen, Observation)
    return replica(seen).endpoints


def until(bench: LocalBench, handle: Handle, wanted: Callable[[EndpointSeen], bool]) -> EndpointSeen:
    """The first endpoint for which `wanted` holds, as soon as there is one."""
    return wait_for(lambda: next(filter(wanted, served(bench, handle)), None))


def seen_now(bench: LocalBench, handle: Handle, monkeypatch: pytest.MonkeyPatch) -> list[port_monitor.Served]:
    """What would be told of a replica that was given its time."""
    monkeypatch.setattr(port_monitor, "PATIENCE_S", 0.0)
    attempt = bench.attempt(handle)
    found = files.read(attempt / layout.PLAN)
    assert found is not None
    plan = Plan.load(found)
    with Folder.open(attempt) as folder:
        watched = [ReplicaHandle(plan, place, folder.sub("replicas")) for place in plan.replicas()]
        for one in watched:
            one.look()
        looking = PortMonitor(attempt, plan, watched)
        looking.expects()
        looking.look()
        looking.close()
        return [each for one in watched for each in one.served]


def wait_until_listening(port: int) -> None:
    wait_for(lambda: any(one.port == port for one in listening_sockets.list_listeners()))


def test_replica_that_will_never_start_has_no_ports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was to come before its command failed, and its end has not been written yet."""
    bench = LocalBench(tmp_path)
    try:
        handle = bench.backend.submit(bench.submission(role("true", ports=(Port(label="web"),))))
        wait_until_over(bench.backend, handle)
        [place] = (bench.attempt(handle) / "replicas").iterdir()
        (place / layout.STARTED).write_text(json.dumps({layout.NEVER: True}))
        (place / layout.EXIT).unlink()
        assert seen_now(bench, handle, monkeypatch) == []
    finally:
        bench.close()


# --- announced -------------------------------------------------------------------------------------------


def test_announced_port_is_ready_once_listening(bench: LocalBench) -> None:
    port, go = free_port(), bench.judge / "go"
    said = shlex.quote(line("gradio", port, path="/ui?tab=1"))
    waits = f"while [ ! -e {go} ]; do sleep 0.1; done"
    command = f'echo {said} >> "$JOB_CONSOLE_ENDPOINTS"; {waits}; {listens(port)}'
    handle = bench.backend.submit(bench.submission(role(command)))
    first = until(bench, handle, lambda each: each.label == "gradio")
    assert (first.ready, first.why, first.source) == (False, Unready.STARTING, PortSource.ANNOUNCED)
    go.touch()
    seen = until(bench, handle, lambda each: each.ready)
    assert (seen.label, seen.port, seen.path, seen.why) == ("gradio", port, "/ui?tab=1", None)


def test_announced_port_held_by_other_process_is_reported_taken(
    bench: LocalBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mine:
        port = mine.getsockname()[1]
        command = f'echo {shlex.quote(line("mine", port))} >> "$JOB_CONSOLE_ENDPOINTS"; exec sleep 60'
        handle = bench.backend.submit(bench.submission(role(command)))
        until(bench, handle, lambda each: each.label == "mine")
        (only,) = seen_now(bench, handle, monkeypatch)
        assert (only.label, only.why) == ("mine", Unready.TAKEN)


def test_announced_port_held_elsewhere_is_not_won_by_other_address(
    bench: LocalBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mine:
        port = mine.getsockname()[1]
        command = listens(port, address="127.0.0.2", before=line("mine", port))
        handle = bench.backend.submit(bench.submission(role(command)))
        wait_for(lambda: sum(one.port == port for one in listening_sockets.list_listeners()) == 2)
        (only,) = seen_now(bench, handle, monkeypatch)
        assert (only.label, only.why) == ("mine", Unready.OTHER_ADDRESS)
        assert only.params["address"] == "127.0.0.2"


def test_replica_cannot_announce_port_of_other_replica(
    bench: LocalBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    said = shlex.quote(line("its", port))
    other = role(f'echo {said} >> "$JOB_CONSOLE_ENDPOINTS"; exec sleep 60', name="other")
    handle = bench.backend.submit(bench.submission(role(listens(port)), other))
    wait_until_listening(port)
    seen = bench.backend.observe([handle])[handle]
    assert isinstance(seen, Observation)
    wait_for(lambda: [each for each in seen_now(bench, handle, monkeypatch) if each.label == "its"])
    told = {each.label: each for each in seen_now(bench, handle, monkeypatch)}
    assert told["its"].why == Unready.TAKEN


def test_withdrawn_port_announcement_disappears(bench: LocalBench) -> None:
    go = bench.judge / "go"
    said = shlex.quote(line("once", free_port()))
    waits = f"while [ ! -e {go} ]; do sleep 0.1; done"
    command = f'echo {said} > "$JOB_CONSOLE_ENDPOINTS"; {waits}; rm "$JOB_CONSOLE_ENDPOINTS"; exec sleep 60'
    handle = bench.backend.submit(bench.submission(role(command)))
    until(bench, handle, lambda each: each.label == "once")
    go.touch()
    wait_for(lambda: not served(bench, handle))


# --- the file, as a hostile job writes it ------------------------------------------------------------------


@pytest.fixture
def board(tmp_path: Path) -> AnnouncementFile:
    return AnnouncementFile(tmp_path, os.geteuid())


GOOD = b'{"label": "web", "port": 8080}\n'


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"[" * 60_000,
        b"\xff\xfe{",
        b'{"label": "x", "port": "80"}',
        b'{"label": "x", "port": true}',
        b'{"label": "x", "port": 0}',
        b'{"label": "x", "port": 65536}',
        b'{"label": "x", "port": 8.5}',
        b'{"label": "x", "port": 1' + b"0" * 5000 + b"}",
        b'{"label": "", "port": 80}',
        b'{"label": "  ", "port": 80}',
        b'{"label": 7, "port": 80}',
        b'{"label": "a\\u0000b", "port": 80}',
        b'{"label": "a\\u202eb", "port": 80}',
        b'{"label": "' + b"x" * 65 + b'", "port": 80}',
        b'{"label": "x", "port": 80, "path": "//elsewhere"}',
        b'{"label": "x", "port": 80, "path": "/\\\\elsewhere"}',
        b'{"label": "x", "port": 80, "path": "http://elsewhere"}',
        b'{"label": "x", "port": 80, "path": "/a b"}',
        b'{"label": "x", "port": 80, "probe": "/ HTTP/1.1\\r\\nX: y"}',
        b'{"label": "x", "port": 80, "path": "/' + b"x" * 500 + b'"}',
    ],
)
def test_announcement_line_with_bad_format_is_ignored(
    board: AnnouncementFile, tmp_path: Path, bad: bytes
) -> None:
    (tmp_path / announced_ports.NAME).write_bytes(bad[:60_000] + b"\n" + GOOD)
    assert board.read() == (AnnouncedPort("web", 8080),)


def test_announcement_file_is_read_up_to_limit_in_whole_lines(
    board: AnnouncementFile, tmp_path: Path
) -> None:
    path = tmp_path / announced_ports.NAME
    path.write_bytes(b"".join(line(f"n{number}", 1 + number).encode() + b"\n" for number in range(100)))
    assert [one.label for one in board.read()] == [f"n{number}" for number in range(announced_ports.MOST)]
    path.write_bytes(b" " * announced_ports.MOST_BYTES + b"\n" + GOOD)
    assert board.read() == ()
    path.write_bytes(GOOD + GOOD.rstrip())
    assert len(board.read()) == 1
    path.write_bytes(GOOD + line("web", 9090).encode() + b"\n")
    assert board.read() == (AnnouncedPort("web", 9090),)


def test_announcement_file_must_be_regular_and_owned_by_job(board: AnnouncementFile, tmp_path: Path) -> None:
    path, other = tmp_path / announced_ports.NAME, tmp_path / "other"
    other.write_bytes(GOOD)
    path.symlink_to(other)
    assert board.read() == ()
    path.unlink()
    path.hardlink_to(other)
    assert board.read() == ()
    path.unlink()
    os.mkfifo(path)
    assert board.read() == ()
    path.unlink()
    path.mkdir()
    assert board.read() == ()
    path.rmdir()
    path.write_bytes(GOOD)
    assert len(board.read()) == 1
    assert AnnouncementFile(tmp_path, os.geteuid() + 1).read() == ()


# --- who takes a connection --------------------------------------------------------------------------------


def at(address: str, inode: int) -> Listener:
    return Listener(ip_address(address), 80, 0, inode)


@pytest.mark.parametrize(
    ("host", "others", "wins"),
    [
        ("127.0.0.1", ["127.0.0.1", "0.0.0.0", "::"], [0]),
        ("127.0.0.1", ["::", "0.0.0.0"], [1]),
        ("127.0.0.1", ["127.0.0.2", "::1", "::"], [2]),
        ("127.0.0.1", ["::ffff:127.0.0.1", "0.0.0.0"], [0]),
        ("127.0.0.1", ["127.0.0.1", "127.0.0.1"], [0, 1]),
        ("127.0.0.1", ["127.0.0.2", "::1"], []),
        ("::1", ["::", "0.0.0.0", "127.0.0.1"], [0]),
        ("::1", ["0.0.0.0"], []),
    ],
)
def test_listener_on_exact_address_precedes_wildcard(host: str, others: list[str], wins: list[int]) -> None:
    found = [at(address, inode) for inode, address in enumerate(others)]
    assert [one.inode for one in listening_sockets.accepting_sockets(found, host, 80)] == wins
    assert listening_sockets.accepting_sockets(found, host, 81) == []


@pytest.mark.parametrize("by_tables", [False, True])
def test_listener_list_shows_address_and_owner(by_tables: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_diag: object) -> NoReturn:
        raise OSError

    if by_tables:
        monkeypatch.setattr(socket_diag, "list_listening", fail)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_server(("::1", 0), family=socket.AF_INET6) as second,
    ):
        assert str(listening_sockets.list_listeners_on(second.getsockname()[1])[0].address) == "::1"
        port, inode = server.getsockname()[1], os.fstat(server.fileno()).st_ino
        (mine,) = [one for one in listening_sockets.list_listeners() if one.port == port]
        assert (str(mine.address), mine.uid, mine.inode) == ("127.0.0.1", os.geteuid(), inode)
        assert inode in listening_sockets.sockets_of([os.getpid()])


# --- why it is not ready -----------------------------------------------------------------------------------


def test_port_monitor_finds_and_names_port_listened_on_instead(
    bench: LocalBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = port_outside_the_kernels_range()
    handle = bench.backend.submit(bench.submission(role(listens(port), ports=(Port(label="web"),))))
    wait_until_listening(port)
    asked, found = seen_now(bench, handle, monkeypatch)
    assert (asked.label, asked.why, asked.params["other"]) == ("web", Unready.OTHER_PORT, port)
    assert (found.port, found.source, found.why) == (port, PortSource.FOUND, "")
    until(bench, handle, lambda each: each.source is PortSource.FOUND and each.ready)


def port_outside_the_kernels_range() -> int:
    for port in range(17_000, 19_000):
        with closing(socket.socket()) as probe:
            if port not in listening_sockets.ephemeral() and probe.connect_ex(("127.0.0.1", port)):
                return port
    pytest.fail("no free port outside of the kernel's range")


def test_port_without_listener_is_reported_silent(bench: LocalBench, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = bench.backend.submit(bench.submission(role("exec sleep 60", ports=(Port(label="web"),))))
    until(bench, handle, lambda each: each.why is Unready.STARTING)
    (only,) = seen_now(bench, handle, monkeypatch)
    assert only.why == Unready.SILENT


def test_port_with_probe_is_ready_when_answer_is(bench: LocalBench) -> None:
    said = '{\\"label\\": \\"model\\", \\"port\\": $PORT, \\"probe\\": \\"/health\\"}'
    command = (
        "PORT=$PAI_CONTAINER_HOST_web_PORT_LIST; "
        f'echo "{said}" >> "$JOB_CONSOLE_ENDPOINTS"; '
        f"(while [ ! -e {bench.judge / 'go'} ]; do sleep 0.1; done; touch loaded) & "
        f"exec python3 -c {shlex.quote(ANSWERS)} $PORT"
    )
    handle = bench.backend.submit(bench.submission(role(command, ports=(Port(label="web"),))))
    seen = until(bench, handle, lambda each: each.why is Unready.STATUS)
    assert (seen.label, seen.source, seen.params) == ("web", PortSource.ASKED, {"status": 503})
    (bench.judge / "go").touch()
    until(bench, handle, lambda each: each.label == "web" and each.ready)


@contextmanager
def answering(answer: bytes) -> Iterator[Answer]:
    """A port that answers the first connection so."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        asking = ReadinessProbe(Target("127.0.0.1"), server.getsockname()[1], "/x?y=1")
        now = time.monotonic()
        asking.look(now)
        connection, _address = server.accept()
        with connection:
            request = connection.recv(4096).decode()
            assert request.startswith("GET /x?y=1 HTTP/1.0\r\nHost: localhost:")
            connection.sendall(answer)
        silent: Answer = (Unready.NO_ANSWER, {})
        answered = wait_for(lambda: [got] if (got := asking.look(now)) != silent else None)
        yield answered[0]
        asking.close()


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"HTTP/1.1 200 OK\r\n", (None, {})),
        (b"HTTP/1.0 404 Not Found\r\n", (None, {})),
        (b"HTTP/1.1 502 Bad Gateway\r\n", (Unready.STATUS, {"status": 502})),
        (b"SSH-2.0-OpenSSH_9.2\r\n", (Unready.NO_HTTP, {})),
        (b"HTTP", (Unready.NO_HTTP, {})),
    ],
)
def test_probe_answer_decides_readiness(answer: bytes, told: object) -> None:
    with answering(answer) as got:
        assert got == told


def test_probe_without_answer_does_not_block_supervisor() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        asking = ReadinessProbe(Target("127.0.0.1"), server.getsockname()[1], "/")
        began = time.monotonic()
        assert asking.look(began)[0] is Unready.NO_ANSWER
        assert asking.look(began + 4)[0] is Unready.NO_ANSWER
        assert asking.look(began + 6)[0] is Unready.NO_ANSWER
        assert time.monotonic() - began < 30  # a second, if the machine has nothing else to do
        asking.close()
