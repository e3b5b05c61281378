"""POST and GET /courier/…: by HTTP, as the program on a node speaks it."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from jobs.backends.remote import relay_ingest
from jobs.node import relay
from tests.jobs.backends.remote.test_relay_ingest import KEY, LOG, START, Attempt
from tests.serving import web_server

ADDRESS = f"/courier/{KEY}"
HEAD = {"number": 7, "run": 1, "start": START}


@pytest.fixture
def attempt(tmp_path: Path, settings: Any) -> Attempt:
    settings.CONSOLE_SLURM_FOLDER = str(tmp_path)
    relay_ingest._request_counts.clear()
    made = Attempt(tmp_path)
    assert made.claim() == "mine"
    return made


def post(client: Client, token: str, body: bytes = json.dumps(HEAD).encode() + b"\n") -> int:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    response = client.post(ADDRESS, body, content_type="application/octet-stream", headers=headers)
    return response.status_code


def get(client: Client, token: str, name: str) -> tuple[int, bytes]:
    response = client.get(f"{ADDRESS}/{name}", headers={"Authorization": f"Bearer {token}"})
    return response.status_code, response.content


def test_relay_token_opens_its_own_attempt(client: Client, attempt: Attempt) -> None:
    assert post(client, attempt.token) == 200
    (attempt.folder / "secrets").write_text("export A=b\n")
    assert get(client, attempt.token, "secrets") == (200, b"export A=b\n")
    assert get(client, attempt.token, "login") == (404, b"")


def test_relay_post_without_csrf_cookie_is_accepted(attempt: Attempt) -> None:
    assert post(Client(enforce_csrf_checks=True), attempt.token) == 200


@pytest.mark.django_db
def test_relay_without_valid_token_is_refused(client: Client, attempt: Attempt) -> None:
    other = Attempt(attempt.root, "b1-job2-1")
    for token in ("", "wrong", other.token):
        assert post(client, token) == 401
        assert get(client, token, "secrets") == (401, b"")


def test_relay_errors_have_distinct_status_codes(
    client: Client, attempt: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert post(client, attempt.token, b"nonsense") == 400
    assert get(client, attempt.token, "job.json")[0] == 400
    assert post(client, attempt.token, json.dumps({**HEAD, "number": 8}).encode() + b"\n") == 410
    monkeypatch.setattr(relay_ingest, "MIN_FREE", 1 << 80)
    assert post(client, attempt.token) == 503
    monkeypatch.setattr(relay_ingest, "REQUESTS_PER_S", -100)
    assert post(client, attempt.token) == 429


def test_node_relay_transfers_secrets_logs_and_exit_status(attempt: Attempt, tmp_path: Path) -> None:
    there = tmp_path / "nodes" / "job-console-b1" / "job1-1"
    (tmp_path / "nodes").mkdir()
    (attempt.folder / "secrets").write_text("export A=b\n")
    with web_server() as url, closing(relay.ConsoleConnection(f"{url}{ADDRESS}", attempt.token)) as console:
        first = relay.NodeRelay(console, str(there), 7, 1, START)
        assert first.begin() == 0
        assert first.bring("worker-0") == 0
        assert first.bring("worker-0") == relay.OTHER_JOB, "nothing begins twice"
        assert (there / "secrets").read_text() == "export A=b\n"
        log = there / LOG
        log.write_bytes(b"x" * (relay.CHUNK + 7))
        (there / "run-1" / "ends" / "worker-0").write_text("0 1 itself\n")
        assert first.sync(60) == 0
        log.write_bytes(log.read_bytes() + b"more")
        second = relay.NodeRelay(console, str(there), 7, 1, START)
        assert second.leave("worker-0") == 0
        assert second.leave("script") == 0
    assert attempt.read(LOG) == b"x" * (relay.CHUNK + 7) + b"more"
    assert attempt.read("run-1/ends/worker-0") == b"0 1 itself\n"
    assert not there.exists()


def test_node_relay_with_symlinked_base_folder_is_refused(attempt: Attempt, tmp_path: Path) -> None:
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "job-console-b1").symlink_to(tmp_path)
    console = relay.ConsoleConnection(f"http://127.0.0.1:1{ADDRESS}", attempt.token)
    one = relay.NodeRelay(console, str(tmp_path / "nodes" / "job-console-b1" / "job1-1"), 7, 1, START)
    with pytest.raises(PermissionError):
        one.begin()


def test_node_relay_with_unreachable_console_retries_then_gives_up(
    attempt: Attempt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nodes").mkdir()
    monkeypatch.setattr(relay, "START_S", 1)
    monkeypatch.setenv("COURIER_TOKEN", attempt.token)
    there = str(tmp_path / "nodes" / "job-console-b1" / "job1-1")
    assert relay.main([f"http://127.0.0.1:1{ADDRESS}", there, "7", "1", START, "begin"]) == relay.NO_ANSWER


def test_relay_endpoint_identifies_the_console(client: Client) -> None:
    assert client.get("/courier/").json() == {"console": True}
