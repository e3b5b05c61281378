"""New connections of the gateway to a job's endpoint: to the job's own process, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from jobs.models import Endpoint
from quotas.models import Cluster
from tests.factories import make_endpoint
from tests.jobs.access.gateway.served import Browser, console
from tests.jobs.access.terminal_gateway.conftest import People, Place
from tests.ports import free_port
from tests.serving import reserved
from tests.waiting import wait_for

SERVES_ONCE = """exec python3 -c "
import http.server, time
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header('Content-Length', '5'); self.end_headers()
        self.wfile.write(b'alice')
http.server.HTTPServer.allow_reuse_address = True
server = http.server.HTTPServer(('127.0.0.1', {port}), Page)
print('up', flush=True)
for _ in range(2): server.handle_request()
server.server_close()
print('closed', flush=True)
time.sleep(600)"
"""
"""Two requests: the first enters, the second is a page."""

LURKS = """exec python3 -c "
import socket, time
print('up', flush=True)
while True:
    try: listener = socket.create_server(('127.0.0.1', {port})); break
    except OSError: time.sleep(0.01)
print('took the port', flush=True)
while True:
    with listener.accept()[0] as caller:
        heard = caller.recv(65536)
        if heard: print('heard', heard, flush=True)
        caller.sendall(b'HTTP/1.1 200 OK' + bytes([13, 10]) * 2 + b'bob')"
"""


@pytest.fixture
def browser(people: People) -> Iterator[Browser]:
    """The owner's."""
    with console() as served:
        made = Browser(served.port)
        made.sign_in(people.owner)
        yield made
        made.close()


@pytest.mark.parametrize("begin_job", ["own", "host"], indirect=True)
def test_gateway_sends_nothing_to_another_job_holding_the_port(
    browser: Browser, begin_job: Callable[..., Place]
) -> None:
    port = free_port()
    mine = begin_job(SERVES_ONCE.format(port=port))
    theirs = begin_job(LURKS.format(port=port))
    endpoint: Endpoint = make_endpoint(mine.replica, port=port)
    assert browser.open(endpoint).text == "alice"
    host = browser.host(endpoint)
    assert browser.get(host, "/").text == "alice"
    wait_for(lambda: "closed" in mine.log() and "took the port" in theirs.log())
    answer = browser.get(host, "/secret", Authorization="token ALICE", X_Own="ALICE")
    assert answer.status_code == 503
    assert "Service not listening" in answer.text
    assert "bob" not in answer.text
    assert browser.socket_status(host, "/socket") == 503
    assert "heard" not in theirs.log()


def test_gateway_answers_503_for_a_closed_port(browser: Browser, begin_job: Callable[..., Place]) -> None:
    mine = begin_job()
    with reserved() as closed:  # else another test may listen there meanwhile
        endpoint = make_endpoint(mine.replica, port=closed.getsockname()[1])
        # The page loads itself again too: on a busy machine it may first say that nobody could look.
        answer = wait_for(lambda: found if "Service not" in (found := browser.open(endpoint)).text else None)
    assert answer.status_code == 503
    assert "Service not listening" in answer.text


def test_gateway_refuses_while_the_port_owner_is_unverified(
    browser: Browser, begin_job: Callable[..., Place]
) -> None:
    port = free_port()
    mine = begin_job(SERVES_ONCE.format(port=port))
    endpoint = make_endpoint(mine.replica, port=port)
    cluster = mine.job.cluster
    Cluster.objects.filter(pk=cluster.pk).update(config={"isolation": "unknown"})
    answer = browser.open(endpoint)
    assert answer.status_code == 503
    assert "Can&#x27;t verify that the job itself is listening" in answer.text
