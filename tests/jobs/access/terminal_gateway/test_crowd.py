"""Crowds at the SSH gateway: those who never say who they are, and those who say it too often."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import asyncssh
import psutil
import pytest
from django.conf import LazySettings

from jobs.access import sshkeys
from jobs.access.terminal_gateway import channels, session, ssh
from jobs.access.terminal_gateway.guard import MOST_UNAUTHENTICATED, MOST_UNAUTHENTICATED_EACH
from jobs.models import AccessSession
from tests import postgres
from tests.jobs.access.gateway.test_crowd import many_descriptors
from tests.jobs.access.terminal_gateway import crowd
from tests.jobs.access.terminal_gateway.conftest import Client, People, Place, make_key
from tests.jobs.access.terminal_gateway.test_ssh import SERVE, running
from tests.jobs.access.terminal_gateway.test_ssh_attacks import enters
from tests.ports import free_port
from tests.waiting import wait_for

pytestmark = pytest.mark.once

CROWD = 3_000
ADDRESSES = 1_000
MIB = 1 << 20
MOST_GROWTH = 64 * MIB


@contextmanager
def process_of_its_own(port: int, settings: LazySettings) -> Iterator[psutil.Process]:
    """The SSH gateway as it is run, so that its memory is its own."""
    (settings.CONSOLE_HOME / "run").mkdir(exist_ok=True)
    database = postgres.url_of_the_tests(settings.DATABASES["default"])
    environ = {**os.environ, "CONSOLE_SSH_PORT": str(port), "DATABASE_URL": database}
    command = [sys.executable, "manage.py", "shells"]
    quiet = subprocess.DEVNULL
    with running(command, env=environ, stdout=quiet, stderr=quiet) as process:
        yield psutil.Process(process.pid)


@contextmanager
def knocking(port: int) -> Iterator[dict[str, int]]:
    """Three thousand connections from a thousand addresses; what became of them, and they stay meanwhile."""
    command = [sys.executable, crowd.__file__, str(port), str(CROWD), str(ADDRESSES)]
    with (
        many_descriptors(),
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program,
    ):
        assert program.stdout is not None
        told: dict[str, int] = json.loads(program.stdout.readline())
        yield told
        program.communicate()


def test_ssh_gateway_admits_a_user_among_three_thousand_silent_connections(
    people: People, place: Place, settings: LazySettings, tmp_path: Path
) -> None:
    port = free_port()
    make_key(tmp_path / "key")
    sshkeys.add(people.owner, (tmp_path / "key.pub").read_text())
    client = Client(tmp_path, port)
    with process_of_its_own(port, settings) as gateway:
        wait_for(lambda: enters(client, place), 60)
        before = gateway.memory_info().rss
        with knocking(port) as told:
            assert told["knocked"] == CROWD, told
            # Beside those who are let stand, some are still in the queue of the socket itself.
            assert told["standing"] < CROWD / 20
            assert enters(client, place)
            assert gateway.num_fds() < 3 * MOST_UNAUTHENTICATED
            grown = gateway.memory_info().rss - before
        assert enters(client, place)
    assert grown < MOST_GROWTH, grown / MIB


# --- one after the other ---------------------------------------------------------------------------------


@pytest.fixture
def impatient_gateway(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> int:
    """The SSH gateway's port, where saying who one is may take a second."""
    monkeypatch.setattr(ssh, "LOGIN_SECONDS", 1)
    port: int = request.getfixturevalue("gateway")
    return port


def hangs_up(connection: socket.socket, *, dripping: bytes = b"") -> bool:
    """Whether the other end does so, although it is told something more again and again."""
    connection.settimeout(0.1)
    for _ in range(600):
        try:
            connection.send(dripping)
            if connection.recv(4096) == b"":
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


@pytest.mark.parametrize("kind", crowd.KINDS, ids=["silent", "half a line", "no keys", "half a packet"])
@pytest.mark.parametrize("dripping", [b"", b"x"], ids=["still", "dripping"])
def test_ssh_gateway_ends_an_unfinished_handshake(
    impatient_gateway: int, kind: bytes, dripping: bytes
) -> None:
    with socket.create_connection(("127.0.0.1", impatient_gateway)) as slow:
        slow.sendall(kind)
        assert hangs_up(slow, dripping=dripping)


class NeverSigns(asyncssh.SSHClient):
    """Agrees on keys and then keeps still, for as long as it is let."""

    async def public_key_auth_requested(self) -> None:
        await asyncio.Event().wait()


def test_ssh_gateway_ends_a_connection_offering_no_key(impatient_gateway: int, place: Place) -> None:
    login = place.login()

    async def look() -> None:
        async with asyncio.timeout(60):
            with pytest.raises((asyncssh.DisconnectError, ConnectionError)):
                await asyncssh.connect(
                    "127.0.0.1",
                    impatient_gateway,
                    username=login,
                    known_hosts=None,
                    client_factory=NeverSigns,
                    preferred_auth="publickey",
                    config=None,
                    agent_path=None,
                )

    asyncio.run(look())
    assert not AccessSession.objects.exists()


def test_ssh_gateway_accepts_a_key_after_silent_connections(owner: Client, place: Place) -> None:
    for _ in range(32):
        with socket.create_connection(("127.0.0.1", owner.port), 60) as silent:
            silent.recv(64)  # the gateway's version: the connection was admitted
    wait_for(lambda: enters(owner, place))


def test_ssh_gateway_accepts_a_key_after_silent_connections_time_out(
    request: pytest.FixtureRequest, settings: LazySettings, place: Place
) -> None:
    settings.CONSOLE_SSH_FAILURES = MOST_UNAUTHENTICATED_EACH
    port: int = request.getfixturevalue("impatient_gateway")
    owner: Client = request.getfixturevalue("owner")
    with ExitStack() as held:
        for _ in range(2 * MOST_UNAUTHENTICATED_EACH):
            held.enter_context(socket.create_connection(("127.0.0.1", port)))
        wait_for(lambda: enters(owner, place))


# --- one person, too often -------------------------------------------------------------------------------


def inside_of(client: Client, place: Place, look: Callable[[asyncssh.SSHClientConnection], Any]) -> None:
    """Run `look` with a connection of the client's."""
    login = place.login()

    async def connect() -> None:
        async with (
            asyncio.timeout(60),
            asyncssh.connect(
                "127.0.0.1",
                client.port,
                username=login,
                known_hosts=None,
                client_keys=[str(client.key)],
                config=None,
                agent_path=None,
            ) as connection,
        ):
            await look(connection)

    asyncio.run(connect())


def test_ssh_gateway_rejects_session_over_the_limit_per_connection(
    owner: Client, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "MOST_SESSIONS", 3)

    async def look(connection: asyncssh.SSHClientConnection) -> None:
        held = [await connection.create_process("echo in; exec cat") for _ in range(3)]
        assert [await each.stdout.readline() for each in held] == ["in\n"] * 3
        done = await connection.run("echo in")
        assert (done.exit_status, done.stdout) == (126, "")
        held[0].stdin.write_eof()
        await held[0].wait()
        while (await connection.run("echo in")).stdout != "in\n":
            continue

    inside_of(owner, place, look)


def test_ssh_gateway_rejects_forward_over_the_limit_per_connection(
    owner: Client, begin_job: Callable[..., Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channels, "MOST_FORWARDS", 3)
    place = begin_job(f'exec python3 -c "{SERVE}" 2>/dev/null')
    port = int(place.log())

    async def look(connection: asyncssh.SSHClientConnection) -> None:
        held = [await connection.open_connection("localhost", port) for _ in range(3)]
        with pytest.raises(asyncssh.ChannelOpenError, match="Too many"):
            await connection.open_connection("localhost", port)
        held[0][1].close()
        while not await _opens(connection, port):
            continue

    inside_of(owner, place, look)


async def _opens(connection: asyncssh.SSHClientConnection, port: int) -> bool:
    try:
        await connection.open_connection("localhost", port)
    except asyncssh.ChannelOpenError:
        return False
    return True
