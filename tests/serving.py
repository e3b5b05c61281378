"""A real Redis and a real web server for tests that look at what goes over the wire."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import redis
import uvicorn

from console.configuration.servers import private_redis
from console.run import broker
from console.server.handler import Handler
from console.server.listener import Server
from console.server.protocol import BoundedHttp
from console.server.web import KEEP_ALIVE_SECONDS
from tests.ports import free_port
from tests.waiting import wait_for

PATIENCE_S: Final = 12.0
"""A stream that does not say what is waited for within this time fails the test; shorter than between pings,
which would wake a stream that nothing else has woken."""


class RedisServer:
    """A private server in a folder of its own; it may be stopped and started again.

    With `address` it listens there too, and `url` says so.
    """

    def __init__(self, address: str = "") -> None:
        self.home = Path(tempfile.mkdtemp(prefix="jc-redis-"))
        (self.home / "run").mkdir()
        self.url = private_redis(self.home, "secret")
        self._listens = ""
        if address:
            port = free_port()
            self.url = f"redis://:secret@{address}:{port}/0"
            self._listens = f"bind {address}\nport {port}\n"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, empty, and wait until it answers."""
        program = broker.find_server()
        assert program is not None, "there is no Redis on this machine"
        config = self.home / "redis.conf"
        config.write_text(broker.config_text(self.home / "run" / "redis.sock", "secret") + self._listens)
        self._process = subprocess.Popen([program, config], stdout=subprocess.DEVNULL)
        wait_for(self.answers)

    def answers(self) -> bool:
        """Whether it can be talked to."""
        try:
            with redis.Redis.from_url(self.url) as client:
                return bool(client.ping())
        except (redis.RedisError, OSError):
            return False

    def stop(self) -> None:
        """Kill it, as nothing kinder would tell what is lost."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def remove(self) -> None:
        """Stop it and delete its folder."""
        self.stop()
        shutil.rmtree(self.home)


def reserved() -> socket.socket:
    """A port at which nobody answers, until a `web_server` does."""
    kept = socket.socket()
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    kept.bind(("127.0.0.1", 0))
    return kept


@contextmanager
def web_server(at: socket.socket | None = None) -> Iterator[str]:
    """Django behind uvicorn on a port of its own, or one that was `reserved`, in a thread of this process;
    the base URL.
    """
    config = uvicorn.Config(
        Handler(),
        host="127.0.0.1",
        port=0,
        lifespan="off",
        log_config=None,
        loop="uvloop",
        http=BoundedHttp,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    listening_at = []
    if at is not None:
        listening_at.append(socket.socket())
        listening_at[0].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening_at[0].bind(at.getsockname())
    thread = threading.Thread(target=server.run, args=(listening_at or None,), name="uvicorn")
    thread.start()
    try:
        wait_for(lambda: server.started or not thread.is_alive())
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()
        for each in listening_at:
            each.close()


@contextmanager
def job_service(path: Path) -> Iterator[None]:
    """A web server that answers running jobs, at a Unix socket."""
    path.parent.mkdir(exist_ok=True)
    config = uvicorn.Config(lambda _scope: None, host="127.0.0.1", port=0, lifespan="off", log_config=None)
    server = Server(config, share=10, job_service=path)
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_for(path.exists)
    try:
        yield
    finally:
        server.should_exit = True
        thread.join()


@dataclass(frozen=True, slots=True)
class SentEvent:
    """One event as a browser would see it; `data` is read as JSON."""

    name: str
    data: Any
    identity: str


class EventReader:
    """The events of an open response, one after the other."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self._lines = response.iter_lines()

    def __iter__(self) -> Iterator[SentEvent]:
        fields: dict[str, str] = {}
        deadline = time.monotonic() + PATIENCE_S
        for line in self._lines:
            assert time.monotonic() < deadline, "the stream says other things"
            if line:
                name, _colon, value = line.partition(": ")
                fields[name] = value
            elif fields:
                yield SentEvent(fields["event"], json.loads(fields["data"]), fields.get("id", ""))
                fields = {}

    def next(self, *names: str) -> SentEvent:
        """The next event of one of these names, whatever comes before it; of any but a ping without names."""
        for event in self:
            if event.name in names or (not names and event.name != "ping"):
                return event
        raise AssertionError("the stream has ended")

    def ended(self) -> list[SentEvent]:
        """Read to the end of the stream."""
        return list(self)


@contextmanager
def listening(client: httpx.Client, url: str, **options: Any) -> Iterator[EventReader]:
    """Open a stream; the response must be one."""
    with client.stream("GET", url, timeout=httpx.Timeout(PATIENCE_S), **options) as response:
        if response.status_code != httpx.codes.OK:
            response.read()
            raise AssertionError(f"{response.status_code}: {response.text[:500]}")
        yield EventReader(response)
