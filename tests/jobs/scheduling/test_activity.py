"""Whether somebody works in a real Jupyter, by its own word."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from websockets.sync.client import connect

from jobs.access import connections
from jobs.models import Endpoint, EndpointVisit, Replica
from jobs.scheduling import activity
from quotas.encryption import decrypt
from tests.factories import make_endpoint
from tests.ports import free_port
from tests.waiting import wait_for

COMPUTE = {
    "channel": "shell",
    "header": {"msg_id": "1", "msg_type": "execute_request", "username": "", "session": "s"},
    "parent_header": {},
    "metadata": {},
    "content": {"code": "import time; time.sleep(600)", "silent": False},
}

pytestmark = [pytest.mark.django_db, pytest.mark.once]


@pytest.fixture
def jupyter(db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    """The endpoint of a Jupyter that asks for the job's token; it is no process of a real replica."""

    def connect_to(replica: Replica, host: str, port: int, timeout_s: float) -> socket.socket:
        return socket.create_connection((host, port), timeout_s)

    monkeypatch.setattr(connections, "connect_blocking", connect_to)
    port = free_port()
    endpoint = make_endpoint(port=port)
    environ = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path / "home"),
        "JUPYTER_TOKEN": decrypt(endpoint.replica.attempt.endpoint_token),
    }
    command = ["jupyter", "notebook", "--allow-root", "--no-browser", "--ip=127.0.0.1", f"--port={port}"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=tmp_path, env=environ, stdout=log, stderr=log)
        try:
            wait_for(lambda: call(endpoint, "/api/status") is not None, 180, 0.1)
            yield endpoint
        finally:
            process.terminate()
            process.wait(60)


def call(endpoint: Endpoint, path: str, data: bytes | None = None) -> bytes | None:
    """As somebody who works there asks."""
    token = decrypt(endpoint.replica.attempt.endpoint_token)
    request = urllib.request.Request(
        f"http://127.0.0.1:{endpoint.port}{path}", data, {"Authorization": f"token {token}"}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return bytes(answer.read())
    except OSError:
        return None


def used(endpoint: Endpoint) -> bool:
    attempt = endpoint.replica.attempt
    return activity.of([attempt]).of(attempt)


def test_jupyter_without_activity_is_idle_despite_open_page(
    jupyter: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert used(jupyter), "it was just started"
    monkeypatch.setattr(activity, "_recent", lambda: timedelta(0))
    EndpointVisit.objects.create(
        endpoint=jupyter,
        user=jupyter.replica.attempt.job.owner,
        session_key="s",
        secret="x",
        seen_at=timezone.now() + timedelta(hours=1),
    )
    for _look in range(2):
        assert not used(jupyter), "being asked is no use"
    kernel = json.loads(call(jupyter, "/api/kernels", b"{}") or b"{}")["id"]
    assert not used(jupyter), "a kernel that computes nothing is no use"
    with connect(
        f"ws://127.0.0.1:{jupyter.port}/api/kernels/{kernel}/channels",
        additional_headers={"Authorization": f"token {decrypt(jupyter.replica.attempt.endpoint_token)}"},
        proxy=None,
    ) as channel:
        channel.send(json.dumps(COMPUTE))
        wait_for(lambda: used(jupyter), 180, 0.1)


def test_jupyter_without_token_falls_back_to_page_visits(jupyter: Endpoint) -> None:
    attempt = jupyter.replica.attempt
    attempt.endpoint_token = ""
    attempt.save()
    assert not used(jupyter)
    EndpointVisit.objects.create(
        endpoint=jupyter, user=attempt.job.owner, session_key="s", secret="x", seen_at=timezone.now()
    )
    assert used(jupyter)
