"""What somebody might try at an endpoint's host, from beside it, and from inside the job."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread

import pytest

from jobs.access import connections
from jobs.backends.sockets import open_connection
from jobs.models import Endpoint
from jobs.states import State
from tests.factories import make_endpoint, make_job, replica_of
from tests.jobs.access.gateway.served import CONSOLE, Browser, Served
from tests.jobs.access.gateway.served import Job as ServedJob

pytestmark = pytest.mark.django_db(transaction=True)


def raw(port: int, request: bytes) -> bytes:
    """Send `request` as it is; everything that comes back until the server hangs up or falls silent."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(request)
        answer = b""
        try:
            while piece := connection.recv(65536):
                answer += piece
        except TimeoutError:
            pass
    return answer


def cookie_of(browser: Browser, host: str) -> bytes:
    return "; ".join(f"{name}={value}" for name, value in browser.cookies(host).items()).encode()


# --- names -----------------------------------------------------------------------------------------------


def test_gateway_rejects_forged_hosts(
    browser: Browser, host: str, endpoint: Endpoint, job: ServedJob, subtests: pytest.Subtests
) -> None:
    for name, status in [
        ("nobody-home.apps.localhost", 404),
        ("apps.localhost", 421),
        ("a.{slug}.apps.localhost", 421),
        ("{slug}.apps.localhost.", 421),
        ("-{slug}.apps.localhost", 421),
        ("{slug}.apps.localhost.evil.example", 400),
        ("{slug}.localhost", 400),
        ("{slug}apps.localhost", 400),
        ("evil.example", 400),
        ("", 400),
        ("{slug}.apps.localhost@evil.example", 400),
        ("{slug}_.apps.localhost", 400),
    ]:
        with subtests.test(name=name, status=status):
            sent = {"Host": name.format(slug=endpoint.slug), "Cookie": cookie_of(browser, host).decode()}
            assert browser.request("GET", host, "/", sent).status_code == status
            assert job.seen == []


def test_gateway_rejects_two_host_headers(
    browser: Browser, host: str, job: ServedJob, served: Served
) -> None:
    for first, second in [(host, CONSOLE), (CONSOLE, host), (host, host)]:
        sent = f"GET / HTTP/1.1\r\nHost: {first}\r\nHost: {second}\r\nConnection: close\r\n".encode()
        answer = raw(served.port, sent + b"Cookie: " + cookie_of(browser, host) + b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 400 ")
    assert job.seen == []


def test_gateway_ignores_the_host_in_the_request_line(
    browser: Browser, host: str, job: ServedJob, served: Served
) -> None:
    sent = f"GET http://evil.example/x HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n".encode()
    raw(served.port, sent + b"Cookie: " + cookie_of(browser, host) + b"\r\n\r\n")
    assert job.seen[-1][1] == "/x"
    assert job.headers()["host"] == f"localhost:{job.port}"


def test_endpoint_host_does_not_serve_the_console(
    browser: Browser, host: str, job: ServedJob, subtests: pytest.Subtests
) -> None:
    for path in ["/admin/", "/sign-in", "/livez", "/static/console/css/base.css"]:
        with subtests.test(path=path):
            assert browser.get(host, path).text == "hello"
            assert job.seen[-1][1] == path


def test_console_host_does_not_serve_endpoints(browser: Browser, host: str) -> None:
    browser.cookies(CONSOLE).update(browser.cookies(host))
    assert browser.get(CONSOLE, "/.job-console/enter?ticket=x").status_code == 404


def test_gateway_path_in_another_spelling_goes_to_the_job(
    browser: Browser, host: str, job: ServedJob, subtests: pytest.Subtests
) -> None:
    for path in [
        "/%2ejob-console/enter",
        "/x/../.job-console/enter",
        "//.job-console/enter",
        "/.job-console%2fenter",
    ]:
        with subtests.test(path=path):
            browser.get(host, path)
            assert job.seen[-1][1] == path


def test_gateway_reserved_paths_never_reach_the_job(
    browser: Browser, host: str, job: ServedJob, subtests: pytest.Subtests
) -> None:
    for path in ["/.job-console/", "/.job-console/../x", "/.job-console/other"]:
        with subtests.test(path=path):
            assert browser.get(host, path).status_code == 404
            assert browser.request("POST", host, path).status_code == 405
            assert job.seen == []


def test_console_gives_nothing_to_a_dns_rebinding_host(
    browser: Browser, host: str, job: ServedJob, subtests: pytest.Subtests
) -> None:
    """DNS rebinding; even a browser that sent the person's cookies along would be refused."""
    sent = {"Cookie": "; ".join(f"{n}={v}" for n, v in browser.cookies(CONSOLE).items())}
    for name in ["rebound.example", "localhost.rebound.example", "127.0.0.1.nip.io", "xn--lcalhost-9gb"]:
        for path in ["/", "/jobs/", "/sign-in", "/api/console/v1/jobs", "/admin/", "/metrics", "/live"]:
            with subtests.test(name=name, path=path):
                answer = browser.request("GET", name, path, sent)
                assert answer.status_code == 400
                assert "set-cookie" not in answer.headers
        with subtests.test(name=name):
            assert browser.request("POST", name, "/sign-in", sent).status_code == 400
            assert browser.socket_status(name, "/socket", sent) != 101
    assert job.seen == []


# --- other origins ---------------------------------------------------------------------------------------


def test_gateway_refuses_sockets_and_requests_from_another_origin(
    browser: Browser, host: str, endpoint: Endpoint, job: ServedJob, subtests: pytest.Subtests
) -> None:
    for origin in [
        "http://evil.example",
        "null",
        "http://{neighbour}:{port}",
        "https://{host}:{port}",
        "http://{host}:1",
    ]:
        with subtests.test(origin=origin):
            neighbour = f"neighbour.{host.partition('.')[2]}"
            sent = {"Origin": origin.format(host=host, port=browser.port, neighbour=neighbour)}
            assert browser.socket_status(host, "/socket", sent) == 403
            assert browser.request("POST", host, "/", sent).status_code == 403
            assert browser.request("GET", host, "/", sent).status_code == 403
            assert job.seen == []


def test_gateway_refuses_embedded_requests_from_other_sites(
    browser: Browser, host: str, subtests: pytest.Subtests
) -> None:
    for mode, dest in [
        ("no-cors", "script"),
        ("cors", "empty"),
        ("navigate", "iframe"),
        ("no-cors", "image"),
    ]:
        for site in ["same-site", "cross-site"]:
            with subtests.test(site=site, mode=mode, dest=dest):
                sent = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
                assert browser.request("GET", host, "/", sent).status_code == 403


def test_gateway_allows_navigation_from_another_site_and_refuses_post(browser: Browser, host: str) -> None:
    sent = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert browser.request("GET", host, "/", sent).status_code == 200
    assert browser.request("POST", host, "/", sent).status_code == 403


# --- cookies and tokens ----------------------------------------------------------------------------------


def test_gateway_limits_job_cookies_to_their_own_host(browser: Browser, host: str) -> None:
    target = "/cookie?set=a=1;%20Domain=apps.localhost;%20Path=/&set=b=2;domain%20=.localhost&set=c=3;Path=/x"
    answer = browser.request("GET", host, target)
    assert answer.headers.get_list("set-cookie") == ["a=1; Path=/", "b=2", "c=3;Path=/x"]


def test_gateway_cookies_cannot_be_set_by_a_job(
    browser: Browser, host: str, subtests: pytest.Subtests
) -> None:
    for cookie in [
        "job-console=mine",
        "job-console-browser=mine",
        "__Host-job-console=mine;%20Path=/;%20Secure",
        "JOB-CONSOLE=mine",
        "%20job-console%20=mine",
        "=job-console=mine",
        "job-console",
    ]:
        with subtests.test(cookie=cookie):
            answer = browser.request("GET", host, f"/cookie?set={cookie}")
            assert (answer.status_code, answer.headers.get_list("set-cookie")) == (200, [])


def test_gateway_cookie_planted_by_a_neighbour_neither_admits_nor_blocks(browser: Browser, host: str) -> None:
    ours = browser.cookies(host)["job-console"]
    planted = "A" * 43
    for cookies in (
        f"job-console={planted}; job-console={ours}",
        f"job-console={ours}; job-console={planted}",
    ):
        assert browser.request("GET", host, "/", {"Cookie": cookies}).status_code == 200
    assert browser.request("GET", host, "/", {"Cookie": f"job-console={planted}"}).status_code == 401


def test_gateway_forwards_no_console_secret_to_the_job(browser: Browser, host: str, job: ServedJob) -> None:
    ours = browser.cookies(host)["job-console"]
    mark = browser.cookies(host)["job-console-browser"]
    theirs = "_xsrf=2|a; username-localhost-8888=x"
    cookies = f"job-console={ours}; {theirs}; job-console-browser={mark}; Job-Console=x"
    browser.request("GET", host, "/", {"Cookie": cookies, "Authorization": "Bearer jc_abc_def"})
    told = job.headers()
    assert told["cookie"] == theirs
    assert "authorization" not in told
    assert not [line for line in job.seen[-1][2] if ours in line[1] or mark in line[1]]


def test_gateway_keeps_job_cookies_of_two_users_apart(
    browser: Browser, host: str, job: ServedJob, new_browser: Callable[[], Browser], endpoint: Endpoint
) -> None:
    browser.request("GET", host, "/cookie?set=login=owner;%20Path=/")
    other = new_browser()
    other.sign_in(endpoint.replica.attempt.job.owner)
    other.open(endpoint)
    assert "cookie" not in job.headers()


# --- the wire --------------------------------------------------------------------------------------------

SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_gateway_refuses_requests_with_ambiguous_framing(
    browser: Browser, host: str, job: ServedJob, served: Served, subtests: pytest.Subtests
) -> None:
    for framing in [
        b"Content-Length: 44\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 44\r\n",
        b"Content-Length: 0\r\nContent-Length: 44\r\n",
        b"Content-Length: +44\r\n",
        b"Content-Length: 0x2c\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b"Transfer-Encoding: identity, chunked\r\nContent-Length: 44\r\n",
        b"X: y\r\n Content-Length: 44\r\n",
        b"X: a\x00b\r\n",
        b"X: a\rContent-Length: 44\r\n",
        b"X\x01: y\r\n",
    ]:
        with subtests.test(framing=framing):
            head = f"POST /echo HTTP/1.1\r\nHost: {host}:{served.port}\r\n".encode()
            head += b"Cookie: " + cookie_of(browser, host) + b"\r\n"
            answer = raw(served.port, head + framing + b"\r\n" + SMUGGLED)
            assert answer.startswith(b"HTTP/1.1 400 ")
            assert "/smuggled" not in [target for _method, target, _headers in job.seen]


def test_gateway_treats_bytes_after_a_body_as_a_new_request(
    browser: Browser, host: str, job: ServedJob, served: Served
) -> None:
    head = f"POST /echo HTTP/1.1\r\nHost: {host}:{served.port}\r\nContent-Length: 4\r\n".encode()
    head += b"Cookie: " + cookie_of(browser, host) + b"\r\n\r\n"
    follow = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    answer = raw(served.port, head + b"body" + follow)
    assert answer.count(b"HTTP/1.1 200 ") == 2
    assert [target for _method, target, _headers in job.seen][-1] == "/echo"


def test_gateway_refuses_trace_and_connect(
    browser: Browser, host: str, served: Served, subtests: pytest.Subtests
) -> None:
    for method in ["TRACE", "CONNECT"]:
        with subtests.test(method=method):
            target = f"{host}:80" if method == "CONNECT" else "/"
            head = (
                f"{method} {target} HTTP/1.1\r\nHost: {host}:{served.port}\r\nConnection: close\r\n".encode()
            )
            answer = raw(served.port, head + b"Cookie: " + cookie_of(browser, host) + b"\r\n\r\n")
            assert answer.split()[1] in {b"400", b"405"}


def test_gateway_refuses_oversized_requests_before_reaching_the_job(
    browser: Browser, host: str, job: ServedJob
) -> None:
    assert browser.request("GET", host, "/", {"X-Long": "x" * 70_000}).status_code == 431
    many = {f"X-{number}": "x" for number in range(250)}
    assert browser.request("GET", host, "/", many).status_code == 431
    assert browser.request("GET", host, "/" + "x" * 20_000).status_code == 414
    assert job.seen == []


@contextmanager
def wire(answer: bytes) -> Iterator[int]:
    """A job that answers every request with exactly these bytes and hangs up; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):  # the listener was shut down
                while True:
                    with listener.accept()[0] as connection:
                        connection.recv(65536)
                        connection.sendall(answer)

        server = Thread(target=serve, daemon=True)
        server.start()
        yield int(listener.getsockname()[1])
        listener.shutdown(socket.SHUT_RDWR)
        server.join(60)


def test_gateway_sends_valid_http_for_any_job_response(
    browser: Browser, endpoint: Endpoint, subtests: pytest.Subtests
) -> None:
    for answer, status, body in [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, b"ok"),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", 200, b"until the end"),
        (b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, b"ok"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!", 502, None),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", 502, None),
        (b"HTTP/1.1 200 OK\r\nX: a\x00b\r\nContent-Length: 2\r\n\r\nok", 502, None),
        (b"HTTP/1.1 999 Odd\r\nContent-Length: 2\r\n\r\nok", 502, None),
        (b"SSH-2.0-OpenSSH_9.6\r\n", 502, None),
        (b"", 502, None),
    ]:
        with subtests.test(answer=answer, status=status, body=body):
            with wire(answer) as port:
                label = f"wire-{port}"
                seen = browser.open(make_endpoint(endpoint.replica, port=port, label=label))
            assert seen.status_code == status
            assert body is None or seen.content == body


def test_gateway_connects_anew_for_each_replica(
    browser: Browser, host: str, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected: list[int] = []

    async def connect(replica: int, host: str, port: int) -> socket.socket:
        connected.append(replica)
        return await open_connection(host, port)

    monkeypatch.setattr(connections, "connect", connect)
    for _ in range(5):
        assert browser.get(host, "/").status_code == 200
    assert len(connected) <= 1
    mine = endpoint.replica.attempt.job
    another = make_job(State.RUNNING, owner=mine.owner, quota=mine.quota)
    second = make_endpoint(replica_of(another), port=endpoint.port)
    assert browser.open(second).status_code == 200
    assert connected[-1:] == [second.replica_id]
