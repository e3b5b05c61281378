"""Connections to the web server over real sockets: TLS, plain http on its port, and one address's share."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from console.configuration import tls
from console.configuration.env import EnvError
from console.configuration.tls import Mode, Tls
from console.server import certificate, listener
from console.server.listener import Server
from console.server.protocol import BoundedHttp
from tests.waiting import wait_for


async def scheme(scope: Any, receive: Any, send: Any) -> None:
    text = f"{scope['scheme']} {scope['client'][0]}".encode()
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-length", b"%d" % len(text))],
        }
    )
    await send({"type": "http.response.body", "body": text})


def make_config() -> uvicorn.Config:
    return uvicorn.Config(
        scheme, host="127.0.0.1", port=0, http=BoundedHttp, loop="uvloop", lifespan="off", log_config=None
    )


@contextmanager
def serving(**options: Any) -> Iterator[int]:
    server = Server(make_config(), **{"share": 100, **options})
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_for(lambda: server.started)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    made = tls.read("auto", tmp_path_factory.mktemp("home"))
    certificate.ensure(made, ["localhost", "127.0.0.1", "[::1]", ".example.org"], "apps.localhost", "0.0.0.0")
    return made


def test_own_certificate_is_trusted_for_its_names_by_file_holders(own: Tls) -> None:
    trusting = ssl.create_default_context(cafile=own.certificate)
    with (
        serving(tls=certificate.context(own)) as port,
        httpx.Client(verify=trusting, trust_env=False) as client,
    ):
        assert client.get(f"https://localhost:{port}/").text == "https 127.0.0.1"
        assert client.get(f"https://127.0.0.1:{port}/").text == "https 127.0.0.1"
    with serving(tls=certificate.context(own)) as port, pytest.raises(httpx.ConnectError):
        httpx.get(f"https://localhost:{port}/", trust_env=False)


def test_own_certificate_is_reused_until_its_names_change(own: Tls, tmp_path: Path) -> None:
    made = tls.read("auto", tmp_path)
    certificate.ensure(made, ["localhost"], "apps.localhost", "127.0.0.1")
    first = certificate.fingerprint(made.certificate)
    certificate.ensure(made, ["localhost"], "apps.localhost", "127.0.0.1")
    assert certificate.fingerprint(made.certificate) == first
    certificate.ensure(made, ["localhost", "lan.example"], "apps.localhost", "127.0.0.1")
    assert certificate.fingerprint(made.certificate) != first
    assert made.key.stat().st_mode & 0o077 == 0
    assert len(first.split(":")) == 32


def test_plain_http_on_a_tls_port_is_redirected_to_https(own: Tls) -> None:
    def lead(host: str, path: str) -> str:
        return f"https://{host or 'nobody'}{path}"

    with serving(tls=certificate.context(own), lead=lead) as port:
        answer = httpx.get(f"http://127.0.0.1:{port}/jobs?x=1", trust_env=False)
    assert (answer.status_code, answer.headers["Location"]) == (308, f"https://127.0.0.1:{port}/jobs?x=1")


def test_connections_per_address_are_limited_except_for_exempt_ones() -> None:
    with serving(share=3) as port, ExitStack() as opened:
        mine = [opened.enter_context(socket.create_connection(("127.0.0.1", port))) for _each in range(3)]
        for each in mine:
            each.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert each.recv(4096).startswith(b"HTTP/1.1 200 ")
        with socket.create_connection(("127.0.0.1", port), timeout=60) as fourth:
            assert fourth.recv(1) == b""
        mine[0].close()

        def one_more() -> bool:
            answer = httpx.get(f"http://127.0.0.1:{port}/", trust_env=False)
            return answer.status_code == httpx.codes.OK

        wait_for(lambda: _answers(one_more))
    with serving(share=1, exempt=["127.0.0.1"]) as port, ExitStack() as opened:
        for _each in range(3):
            connection = opened.enter_context(socket.create_connection(("127.0.0.1", port)))
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")


def _answers(ask: Any) -> bool:
    try:
        return bool(ask())
    except httpx.HTTPError:
        return False


def test_connection_without_a_handshake_is_closed(own: Tls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "HEAD_SECONDS", 0.2)
    with serving(tls=certificate.context(own)) as port:
        for sent in (b"", b"\x16\x03", b"GET"):
            with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
                connection.sendall(sent)
                assert connection.recv(1) == b""


@pytest.mark.parametrize(
    ("text", "mode"),
    [("", Mode.OFF), ("0", Mode.OFF), ("1", Mode.PROXY), ("proxy", Mode.PROXY), ("self-signed", Mode.OWN)],
)
def test_tls_setting_reads_its_keywords(text: str, mode: Mode, tmp_path: Path) -> None:
    assert tls.read(text, tmp_path).mode is mode


def test_tls_setting_accepts_two_files_or_one_combined_file(own: Tls, tmp_path: Path) -> None:
    both = tmp_path / "both.pem"
    both.write_bytes(own.key.read_bytes() + own.certificate.read_bytes())
    for text in (f"{own.certificate}, {own.key}", str(both)):
        assert certificate.context(tls.read(text, tmp_path)) is not None
    with pytest.raises(EnvError, match="no such file"):
        tls.read(f"{own.certificate},{tmp_path / 'none.pem'}", tmp_path)
    with pytest.raises(EnvError, match="must be"):
        tls.read("perhaps", tmp_path)
