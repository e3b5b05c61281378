"""The way out: to public addresses and what an admin allowed, to nothing else, whatever the address says.

The judge is a server on this machine that counts the connections it took.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from jobs.data_mover import guard
from jobs.outbound import addresses, egress
from tests.jobs.receivers import Came, Receiver, authority, receiving


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


def post(url: str, body: bytes = b"{}") -> egress.Answer:
    return egress.request("POST", url, headers={"Content-Type": "application/json"}, body=body)


def refused(url: str) -> str:
    with pytest.raises(addresses.Refused) as caught:
        post(url)
    return caught.value.code


def names(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Let the resolver answer so, one after the other; whom it was asked for."""
    asked: list[str] = []

    def look_up(host: str, port: int, *_args: Any, **_kwargs: Any) -> list[Any]:
        asked.append(host)
        found = answers[min(len(asked), len(answers)) - 1]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in found]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return asked


def moved(there: str, _came: Came) -> tuple[int, dict[str, str], bytes]:
    return 302, {"Location": there}, b""


def long(_came: Came) -> tuple[int, dict[str, str], bytes]:
    return 200, {}, b"x" * 10_000_000


# --- what is refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.8.9.10",
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "100.100.100.200",
        "169.254.169.254",
        "168.63.129.16",
        "192.0.0.192",
        "192.0.2.1",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "[::]",
        "[::1]",
        "[::127.0.0.1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:169.254.169.254]",
        "[::ffff:8.8.8.8]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b:1::1]",
        "[2002:7f00:1::]",
        "[2001::1]",
        "[fc00::1]",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "[fec0::1]",
        "[ff02::1]",
        "[2001:db8::1]",
    ],
)
def test_egress_rejects_internal_addresses(host: str) -> None:
    assert refused(f"https://{host}/hook") == "address"


@pytest.mark.parametrize(
    "host",
    [
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "127.1",
        "127.0.1",
        "127.0.0.1.0x1",
        "[fe80::1%25lo]",
        "[::1%lo]",
        "a..b",
        "-a.example",
        "exa_mple-.com",
        "",
        ".",
        "a" * 64 + ".example",
    ],
)
def test_egress_rejects_malformed_addresses(host: str) -> None:
    assert refused(f"https://{host}/hook") in {"host", "url"}


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://example.com/", "http"),
        ("ftp://example.com/", "scheme"),
        ("file:///etc/passwd", "scheme"),
        ("gopher://example.com/", "scheme"),
        ("//example.com/", "scheme"),
        ("https://example.com:22/", "port"),
        ("https://example.com:6379/", "port"),
        ("https://example.com:99999/", "url"),
        ("https://user@example.com/", "userinfo"),
        ("https://example.com@127.0.0.1/", "userinfo"),
        ("https://127.0.0.1\\@example.com/", "url"),
        ("https://example.com/\r\nHost: inside", "url"),
        ("https://example.com/a b", "url"),
        ("https://exämple.com/", "url"),
        ("https://[::1/", "url"),
        ("https://example.com/" + "a" * 2000, "url"),
    ],
)
def test_egress_rejects_odd_urls(url: str, code: str) -> None:
    assert refused(url) == code


@pytest.mark.parametrize(
    "answers", [["127.0.0.1"], ["10.0.0.1"], ["8.8.8.8", "127.0.0.1"], ["169.254.169.254"], ["fe80::1%eth0"]]
)
def test_egress_rejects_name_with_any_internal_address(
    monkeypatch: pytest.MonkeyPatch, answers: list[str]
) -> None:
    names(monkeypatch, answers)
    assert refused("https://innocent.example/hook") == "address"


def test_egress_never_reaches_local_server(receiver: Receiver, settings: Settings) -> None:
    settings.CONSOLE_EGRESS_PORTS = [str(receiver.port)]
    for host in ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "127.1", "2130706433", "0.0.0.0"):
        for scheme in ("http", "https"):
            assert refused(f"{scheme}://{host}:{receiver.port}/hook") in {"address", "host", "http"}
    assert receiver.connections == 0


def test_egress_resolves_name_once_and_connects_to_result(
    monkeypatch: pytest.MonkeyPatch, receiver: Receiver, settings: Settings
) -> None:
    asked = names(monkeypatch, ["93.184.215.14"], ["127.0.0.1"])
    dialled: list[Any] = []

    def dial(address: tuple[str, int], timeout: float) -> socket.socket:
        dialled.append(address)
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(socket, "create_connection", dial)
    settings.CONSOLE_EGRESS_PORTS = [str(receiver.port)]
    with pytest.raises(egress.Failed, match="connect"):
        post(f"https://rebinding.example:{receiver.port}/hook")
    assert (asked, dialled) == (["rebinding.example"], [("93.184.215.14", receiver.port)])
    assert receiver.connections == 0


def test_egress_returns_redirect_without_following(receiver: Receiver, settings: Settings) -> None:
    settings.CONSOLE_EGRESS_HOSTS = [f"http://127.0.0.1:{receiver.port}"]
    with receiving() as inside:
        for there in ("http://169.254.169.254/latest/meta-data/", inside.url()):
            receiver.reply = partial(moved, there)
            assert post(receiver.url()).status == 302
        assert inside.connections == 0
    assert receiver.connections == 2


def test_egress_ignores_proxy_of_environment(
    receiver: Receiver, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.CONSOLE_EGRESS_HOSTS = [f"http://127.0.0.1:{receiver.port}"]
    with receiving() as proxy:
        for name in ("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url(""))
        assert post(receiver.url()).status == 200
        assert proxy.connections == 0


# --- what an admin allows --------------------------------------------------------------------------------


def test_egress_reaches_allowed_host_only_by_its_scheme_and_port(
    receiver: Receiver, settings: Settings
) -> None:
    settings.CONSOLE_EGRESS_HOSTS = [f"http://localhost:{receiver.port}"]
    assert post(receiver.url(host="localhost"), b'{"a": 1}').body == b"ok"
    [came] = receiver.came
    assert (came.path, came.body) == ("/hook", b'{"a": 1}')
    assert came.headers["host"] == f"localhost:{receiver.port}"
    assert refused(receiver.url(host="localhost", scheme="https")) == "port"
    assert refused(receiver.url(host="127.0.0.1")) == "http"
    assert refused("http://localhost/hook") == "http"


@pytest.mark.parametrize("address", ["169.254.169.254", "100.100.100.200"])
@pytest.mark.parametrize("entry", ["metadata.internal", "169.254.0.0/16", "100.64.0.0/10", "0.0.0.0/0"])
def test_egress_rejects_metadata_even_for_allowed_hosts(
    entry: str, address: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    names(monkeypatch, [address])
    settings.CONSOLE_EGRESS_HOSTS = [entry]
    assert refused("https://metadata.internal/") == "address"
    assert refused(f"https://{address}/") == "address"


def test_egress_allowed_network_covers_addresses_not_names(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.CONSOLE_EGRESS_HOSTS = ["10.1.0.0/16"]
    assert addresses.check("https://10.1.2.3/").inside
    assert refused("https://10.2.2.3/") == "address"
    names(monkeypatch, ["10.1.2.3"])
    assert refused("https://innocent.example/") == "address"


# --- TLS, time and size ----------------------------------------------------------------------------------


def test_egress_tls_accepts_only_certificate_for_the_name(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    trusted, context = authority(tmp_path, "localhost")
    asked_for: list[str | None] = []
    context.sni_callback = lambda _sock, name, _context: asked_for.append(name)
    with receiving(context) as receiver:
        settings.CONSOLE_EGRESS_HOSTS = [f"{host}:{receiver.port}" for host in ("localhost", "127.0.0.1")]
        with pytest.raises(egress.Failed, match="tls"):
            post(receiver.url(host="localhost", scheme="https"))
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        assert post(receiver.url(host="localhost", scheme="https")).status == 200
        with pytest.raises(egress.Failed, match="tls"):
            post(receiver.url(host="127.0.0.1", scheme="https"))
    assert asked_for[:2] == ["localhost", "localhost"]


def test_egress_cuts_long_answer(receiver: Receiver, settings: Settings) -> None:
    settings.CONSOLE_EGRESS_HOSTS = [f"http://127.0.0.1:{receiver.port}"]
    receiver.reply = long
    assert len(post(receiver.url()).body) == egress.MOST_BYTES


@pytest.mark.parametrize("drip", [b"", b"H"])
def test_egress_slow_server_meets_one_deadline(drip: bytes, settings: Settings) -> None:
    settings.CONSOLE_EGRESS_SECONDS = 0.4
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        settings.CONSOLE_EGRESS_HOSTS = [f"http://127.0.0.1:{port}"]

        def dawdle() -> None:
            sock, _address = server.accept()
            with sock:
                while not over.wait(0.05):
                    if drip:
                        sock.sendall(drip)

        thread = threading.Thread(target=dawdle, daemon=True)
        thread.start()
        began = time.monotonic()
        with pytest.raises(egress.Failed, match="timeout"):
            post(f"http://127.0.0.1:{port}/")
        assert time.monotonic() - began < 30
        over.set()
        thread.join()


def test_egress_slow_resolver_meets_same_deadline(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.CONSOLE_EGRESS_SECONDS = 0.2
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_kwargs: [over.wait(60)][1:])
    with pytest.raises(egress.Failed, match="timeout"):
        post("https://slow.example/")
    over.set()


def test_egress_invalid_answer_is_reported_broken(settings: Settings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        settings.CONSOLE_EGRESS_HOSTS = [f"http://127.0.0.1:{port}"]

        def nonsense() -> None:
            sock, _address = server.accept()
            with sock:
                sock.recv(4096)
                sock.sendall(b"220 smtp.example ESMTP\r\n")

        thread = threading.Thread(target=nonsense, daemon=True)
        thread.start()
        with pytest.raises(egress.Failed, match="broken"):
            post(f"http://127.0.0.1:{port}/")
        thread.join()


def test_egress_unknown_name_fails_to_resolve(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(*args: Any, **kwargs: Any) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    with pytest.raises(egress.Failed, match="resolve"):
        post("https://nobody.example/")


# --- through a proxy -------------------------------------------------------------------------------------


def test_egress_asks_admin_proxy_for_checked_address(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        settings.CONSOLE_EGRESS_PROXY = f"http://127.0.0.1:{port}"
        names(monkeypatch, ["93.184.215.14"], ["127.0.0.1"])

        def proxy() -> None:
            sock, _address = server.accept()
            with sock:
                heard.append(sock.recv(4096))
                sock.sendall(b"HTTP/1.1 403 Forbidden\r\n\r\n")

        thread = threading.Thread(target=proxy, daemon=True)
        thread.start()
        with pytest.raises(egress.Failed, match="proxy"):
            post("https://outside.example/")
        thread.join()
    assert heard[0].startswith(b"CONNECT 93.184.215.14:443 HTTP/1.1\r\n")


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111"])
def test_guard_accepts_public_addresses(address: str) -> None:
    assert guard.is_public(ipaddress.ip_address(address))


def test_receiver_records_request_whole(receiver: Receiver, settings: Settings) -> None:
    settings.CONSOLE_EGRESS_HOSTS = [f"http://127.0.0.1:{receiver.port}"]
    post(receiver.url("/a?b=c"), b"\x00\xff")
    assert receiver.came == [Came("/a?b=c", receiver.came[0].headers, b"\x00\xff")]
