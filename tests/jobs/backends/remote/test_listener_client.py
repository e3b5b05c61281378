"""Who gets through a door, and what the console takes from whoever stands behind one.  Without a Slurm."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import ssl
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from jobs.backends.remote import bundle, listener_client
from jobs.backends.remote.listener_client import ListenerFiles, ListenerTransport
from jobs.backends.remote.port_agent import PortAgent
from jobs.backends.remote.session_client import RemoteSession
from jobs.backends.sessions import Barrier, Ended, NoEntry
from jobs.node.sessions import protocol, tls
from jobs.node.sessions.listener import open_socket
from tests.waiting import wait_for

REACH = {"kind": "reach", "host": "localhost", "port": 1, "names": [], "address": "127.0.0.1"}
LINE: dict[str, Any] = {
    "kind": "line",
    "line": "trap '' HUP TERM; echo $$; sleep 600",
    "argv": [],
    "env": {},
    "terminal": None,
    "folder": "/",
    "label": "/",
}
classify = Mock(return_value=Barrier.FAILED)
RUNNING = protocol.encode_json({"running": 1})
RUN = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from jobs.node.sessions import agent, listener, protocol; "
)


TASK = {"SLURM_JOB_ID": "77", "SLURM_PROCID": "0"}
"""Variables that Slurm gives a task."""


@pytest.fixture
def place(tmp_path: Path) -> ListenerFiles:
    """A replica's, in an attempt's folder as its job lays it out."""
    folder = tmp_path / "job" / "1"
    for name in ("started", "doors"):
        (folder / "run-1" / name).mkdir(parents=True)
    return ListenerFiles(folder, 1, "worker-0", (20000, 29999), 0o600, lambda: "127.0.0.1")


@pytest.fixture
def replica(place: ListenerFiles) -> Iterator[int]:
    """The replica's own process, with a command below it."""
    command = ["sh", "-c", "sleep 600 & wait"]
    process = subprocess.Popen(command, env={**os.environ, **TASK}, start_new_session=True)
    wait_for(lambda: _children(process.pid))
    (place.folder / "run-1" / "started" / "worker-0").write_text(f"cpu1 0.0 {process.pid}\n")
    yield process.pid
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, 9)
    process.wait()


def _children(pid: int) -> str:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text()


@contextmanager
def opened(place: ListenerFiles, change: str = "pass") -> Iterator[subprocess.Popen[bytes]]:
    """A door, as the job's script opens it, with something about it changed."""
    place.write_keys(place.keys())
    archive = bundle.publish(place.folder.parents[1])
    words = [str(place.folder), "run-1", "worker-0", "asked", "127.0.0.1", *map(str, place.ports)]
    command = [sys.executable, "-I", "-S", "-c", f"{RUN}{change}; listener.main(sys.argv[1:])", str(archive)]
    process = subprocess.Popen([*command, *words], env={"SLURM_JOB_ID": "77"})
    try:
        wait_for(place.read_answer)
        yield process
    finally:
        process.kill()
        process.wait()


async def test_listener_accepts_only_console_certificate(place: ListenerFiles, replica: int) -> None:
    with opened(place):
        said = place.read_answer()
        assert said is not None
        keys, other = place.keys(), listener_client.generate_keys()
        strangers = [
            tls.console_context(other.console + other.console_certificate, keys.door_certificate),
            tls.console_context(keys.door, keys.door_certificate),
            ssl._create_unverified_context(),
        ]
        for context in strangers:
            assert _heard(said[0], context, protocol.encode_json({**REACH, "pid": replica})) == b""
        with pytest.raises(NoEntry) as refused:
            await ListenerTransport(place, "python3 archive", classify).ask({**REACH, "pid": replica}, 60)
        assert refused.value.barrier is Barrier.NOT_ITS_OWN
    for name in ("door", "door-key"):
        assert stat.S_IMODE((place.folder / name).stat().st_mode) == 0o600


@pytest.fixture
def served_port() -> Iterator[int]:
    """A port on which a process of the replica listens."""
    program = "import socket, time; s = socket.create_server(('127.0.0.1', 0)); "
    program += "print(s.getsockname()[1], flush=True); time.sleep(600)"
    environment = {**os.environ, **TASK}
    with subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.kill()


async def test_port_agent_asks_the_same_agent_until_it_is_lost(
    place: ListenerFiles, replica: int, served_port: int
) -> None:
    made: list[ListenerTransport] = []

    def make() -> ListenerTransport:
        made.append(ListenerTransport(place, "python3 archive", classify))
        return made[-1]

    question = {**REACH, "pid": replica, "port": served_port}
    with opened(place):
        agent = PortAgent(make, lambda: None)
        found = await agent.ask(question, 60)
        assert found["at"] == "127.0.0.1"
        with pytest.raises(NoEntry) as refused:
            await agent.ask({**question, "port": 1}, 60)
        assert refused.value.barrier is Barrier.NOT_ITS_OWN
        assert await agent.ask(question, 60) == found
        assert len(made) == 1
        made[0]._writer.transport.abort()
        assert await agent.ask(question, 60) == found
        assert len(made) == 2
        await agent.close()


def _heard(port: int, context: ssl.SSLContext, says: bytes) -> bytes:
    """What is said there to who says that."""
    with contextlib.suppress(ssl.SSLError, ConnectionError):
        plain = socket.create_connection(("127.0.0.1", port), timeout=60)
        with plain, context.wrap_socket(plain) as outer:
            outer.sendall(says)
            return outer.recv(100)
    return b""


async def test_dead_console_leaves_no_session_processes(place: ListenerFiles, replica: int) -> None:
    with opened(place):
        door = ListenerTransport(place, "python3 archive", classify)
        session = await RemoteSession.begin(door, {**LINE, "pid": replica})
        pid = int((await session.read(100)).split()[0])
        door._writer.transport.abort()
        await asyncio.to_thread(wait_for, lambda: not Path(f"/proc/{pid}").exists())
        assert await session.wait() == Ended()
        await session.close()
    assert _children(replica)


def test_listener_closes_when_idle_or_with_its_replica(place: ListenerFiles, replica: int) -> None:
    with opened(place, "listener.IDLE_S = 0.1") as door:
        assert door.wait(60) == 0
    (place.folder / "run-1" / "doors" / "worker-0").unlink()
    with opened(place) as door:
        os.killpg(replica, 9)
        assert door.wait(60) == 0


def test_silent_console_is_treated_as_gone(place: ListenerFiles, replica: int) -> None:
    """As after the death of an srun, of which its step does not hear."""
    archive = bundle.publish(place.folder.parents[1])
    change = "protocol.SILENCE_S, protocol.PING_S = 0.5, 0.1"
    command = [sys.executable, "-I", "-S", "-c", f"{RUN}{change}; agent.main()", str(archive)]
    environment = {"SLURM_JOB_ID": "77"}
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(protocol.encode_json({**LINE, "pid": replica}))
        process.stdin.flush()
        heard, output = protocol.MessageReader(), b""
        while data := os.read(process.stdout.fileno(), 65536):
            output += b"".join(said for kind, said in heard.feed(data) if kind == protocol.STDOUT)
        assert process.wait(60) == 0
    assert not Path(f"/proc/{int(output)}").exists()


@asynccontextmanager
async def another(
    place: ListenerFiles, says: bytes, keys: listener_client.ListenerKeys
) -> AsyncIterator[list[bytes]]:
    """Somebody who listens where the job says that its door is, with these keys; and what was heard there."""
    context, heard = tls.listener_context(keys.door, keys.console_certificate), []
    server = open_socket("127.0.0.1", range(*place.ports))

    def listen() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                connection.settimeout(60)
                with contextlib.suppress(OSError), context.wrap_socket(connection, server_side=True) as outer:
                    heard.append(outer.recv(65536))
                    outer.sendall(says)
                    outer.recv(65536)

    listening = threading.Thread(target=listen, daemon=True)
    listening.start()
    try:
        port = server.getsockname()[1]
        (place.folder / "run-1" / "doors" / "worker-0").write_text(f"{port} forged\n")
        yield heard
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        await asyncio.to_thread(listening.join, 60)


async def test_forged_listener_receives_nothing(place: ListenerFiles) -> None:
    async with another(place, RUNNING, listener_client.generate_keys()) as heard:
        with pytest.raises(NoEntry) as refused:
            await ListenerTransport(place, "python3 archive", classify).ask(REACH, 1)
        assert (refused.value.barrier, heard) == (Barrier.ENGINE_AWAY, [])
        assert not place.is_requested()


def test_listener_answer_with_invalid_port_reads_as_zero(place: ListenerFiles) -> None:
    for said in ("22 x", "-1 x", "99999999999 x", "0x5000 x", "- x"):
        (place.folder / "run-1" / "doors" / "worker-0").write_text(said)
        assert place.read_answer() == (0, "x")
    for said in ("", "20000", "20000 a b"):
        (place.folder / "run-1" / "doors" / "worker-0").write_text(said)
        assert place.read_answer() is None


NONSENSE = {
    "length": b"\x02\xff\xff\xff\xff",
    "kind": b"\x09\x00\x00\x00\x00\n",
    "words": protocol.encode(protocol.JSON, b"[" * 60_000),
    "no object": protocol.encode(protocol.JSON, b"7"),
    "room": protocol.encode_json({"took": 1 << 60}),
    "room of what": protocol.encode_json({"took": "much"}),
    "code": protocol.encode_json({"code": "much", "signal": None}),
    "signal": protocol.encode_json({"code": None, "signal": {}}),
    "input": protocol.encode(protocol.STDIN, b"x"),
    "flood": protocol.encode(protocol.STDOUT, b"x" * protocol.CHUNK) * 100,
}


@pytest.mark.parametrize("said", NONSENSE.values(), ids=NONSENSE)
async def test_malformed_listener_messages_end_session(place: ListenerFiles, said: bytes) -> None:
    async with another(place, RUNNING + said, place.keys()):
        try:
            session = await RemoteSession.begin(
                ListenerTransport(place, "python3 archive", classify), {"terminal": None}
            )
        except NoEntry:  # which it may be early enough for
            return
        assert await asyncio.wait_for(session.wait(), 60) == Ended()
        read = 0
        while more := await session.read(65536):
            read += len(more)
        assert read <= protocol.WINDOW
        await session.close()


async def test_malformed_first_message_raises_no_entry(place: ListenerFiles) -> None:
    for word in (b"7", json.dumps({"barrier": "of mine"}).encode(), json.dumps({"barrier": []}).encode()):
        async with another(place, protocol.encode(protocol.JSON, word), place.keys()):
            with pytest.raises(NoEntry) as refused:
                await RemoteSession.begin(
                    ListenerTransport(place, "python3 archive", classify), {"terminal": None}
                )
            assert refused.value.barrier is Barrier.FAILED


async def test_listener_failure_reason_is_reported_to_later_callers(
    place: ListenerFiles,
) -> None:
    request = place.folder / "enter-worker-0"
    request.write_text("old python3 archive\n")

    async def fail() -> None:
        await asyncio.to_thread(wait_for, lambda: not request.read_text().startswith("old"))
        which = request.read_text().split()[0]
        (place.folder / "run-1" / "doors" / "worker-0.said").write_text("there is no python3\n")
        (place.folder / "run-1" / "doors" / "worker-0").write_text(f"- {which}\n")

    failing = asyncio.ensure_future(fail())
    with pytest.raises(NoEntry) as refused:
        await ListenerTransport(place, "python3 archive", classify).open(60)
    await failing
    assert (refused.value.barrier, refused.value.detail) == (Barrier.FAILED, "there is no python3")
    assert not place.is_requested()


async def test_planted_console_key_is_not_trusted(place: ListenerFiles) -> None:
    """In a folder that its job's user may write to."""
    place.folder.chmod(0o1700)
    mine = place.folder / "mine"
    mine.write_text(json.dumps(dict.fromkeys(listener_client.ListenerKeys.__slots__, "")))
    (place.folder / "door-key").symlink_to(mine)
    keys = replace(place, mode=0o640).keys()
    assert "PRIVATE KEY" in keys.console
    assert not (place.folder / "door-key").is_symlink()
