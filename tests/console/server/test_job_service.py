"""The Unix socket for running jobs: of the console's own user, served by one web process at a time."""

from __future__ import annotations

import os
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from console.server import job_service
from console.server.listener import Server
from tests.console.server.test_listener import make_config
from tests.waiting import wait_for


@contextmanager
def web_process(path: Path) -> Iterator[None]:
    server = Server(make_config(), share=100, job_service=path)
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_for(lambda: server.started)
    try:
        yield
    finally:
        server.should_exit = True
        thread.join()


def status(path: Path, target: str = "/") -> int:
    """The status of an answer; 0 where there is none."""
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(path))) as client:
        try:
            return client.get(f"http://job-console{target}").status_code
        except httpx.TransportError:
            return 0


def test_socket_is_private_and_serves_nothing_of_the_console(tmp_path: Path) -> None:
    path = tmp_path / "job-service.sock"
    with web_process(path):
        wait_for(lambda: status(path) == 404)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert {status(path, target) for target in ("/livez", "/metrics", "/api/v1/jobs")} == {404}
        assert status(path, "/v1/job") == 403


def test_another_web_process_takes_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_service, "_AGAIN_SECONDS", 0.05)
    path = tmp_path / "job-service.sock"
    with web_process(path):
        wait_for(lambda: status(path) == 404)
        first = path.stat().st_ino
        second = web_process(path)
        second.__enter__()
        assert (status(path), path.stat().st_ino) == (404, first)
    try:
        wait_for(lambda: status(path) == 404)
    finally:
        second.__exit__(None, None, None)


def test_other_users_are_turned_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert job_service._user_of(ours) == os.geteuid()
    path = tmp_path / "job-service.sock"
    monkeypatch.setattr(job_service, "_user_of", lambda _connection: os.geteuid() + 1)
    with web_process(path):
        wait_for(path.exists)
        assert status(path, "/v1/job") == 0
