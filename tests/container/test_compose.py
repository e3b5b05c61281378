"""A person follows *Containers* in docs/running.md: the image is built, and the console serves in it."""

from __future__ import annotations

import json
import re
import socket
import ssl
from collections.abc import Iterator

import httpx
import pytest

from tests.container import compose
from tests.container.compose import HOST, PASSWORD, Containers
from tests.newcomer import RUNNING, read_blocks
from tests.waiting import wait_for

pytestmark = pytest.mark.timeout(900)

ALL_S = 180
"""From the start until everything answers; what a busy machine takes."""

GRACE_S = 60
"""`stop_grace_period` of the console: what is not done by then is killed."""


@pytest.fixture(scope="module")
def containers() -> Iterator[Containers]:
    """Those of a person who has just typed what the page says."""
    if missing := compose.find_missing():
        pytest.skip(missing)
    with compose.make_containers() as made:
        made.run("".join(read_blocks("Containers", RUNNING)))
        wait_until_healthy(made)
        yield made


def wait_until_healthy(containers: Containers) -> None:
    try:
        wait_for(containers.has_started, ALL_S, interval=0.5)
    except AssertionError:
        raise AssertionError(containers.logs()) from None


class ThisMachine(httpx.HTTPTransport):
    """Sends requests for any host to this machine, as browsers do for names below `localhost`."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        here = httpx.Request(
            request.method,
            request.url.copy_with(host="127.0.0.1"),
            headers=request.headers,
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": request.url.host},
        )
        return super().handle_request(here)


def browse(containers: Containers) -> httpx.Client:
    """Return a client that trusts Caddy's certificates alone."""
    root = containers.call("caddy", "cat /data/caddy/pki/authorities/local/root.crt")
    return httpx.Client(
        transport=ThisMachine(verify=ssl.create_default_context(cadata=root)),
        base_url=f"https://{HOST}:{containers.https_port}",
        follow_redirects=True,
        timeout=30,
    )


def sign_in(client: httpx.Client) -> httpx.Response:
    """Fill in the form that a person is led to, and return the page behind it."""
    page = client.get("/")
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)
    assert token, page.text
    fields = {"csrfmiddlewaretoken": token[1], "username": "admin", "password": PASSWORD}
    return client.post(page.url, data=fields, headers={"Referer": str(page.url)})


def test_admin_signs_in_over_https_and_every_part_answers(containers: Containers) -> None:
    with browse(containers) as client:
        assert client.get("/readyz").text == "ok"
        home = sign_in(client)
        assert home.status_code == 200
        assert home.url.path == "/"
        assert re.search(r"<title>\s*Home\s", home.text)
        wait_for(lambda: client.get("/healthz").status_code == 200, ALL_S, interval=1)
        parts = client.get("/healthz").json()["parts"]
    workers = {"worker-control", "worker-logs", "worker-notices"}
    assert {"database", "broker", "beat", "watch", "ssh", *workers} <= set(parts)


def test_plain_http_is_redirected_to_https(containers: Containers) -> None:
    answer = httpx.get(
        f"http://127.0.0.1:{containers.http_port}/jobs/", headers={"Host": HOST}, trust_env=False
    )
    assert answer.headers["Location"] == f"https://{HOST}/jobs/"


def test_endpoints_of_jobs_have_certificates(containers: Containers) -> None:
    with browse(containers) as client:
        answer = client.get(f"https://any.apps.{HOST}:{containers.https_port}/")
    assert answer.status_code == 404, "no job has that name, and the console says so"


def test_ssh_gateway_answers_on_its_published_port(containers: Containers) -> None:
    with socket.create_connection(("127.0.0.1", containers.ssh_port), timeout=30) as connection:
        assert connection.recv(64).startswith(b"SSH-2.0-JobConsole")


def test_console_has_no_rights_and_a_read_only_root(containers: Containers) -> None:
    status = containers.call("console", "cat /proc/1/status")
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert fields["Uid"].split() == ["10001"] * 4
    assert fields["Gid"].split() == ["10001"] * 4
    assert int(fields["CapEff"], 16) == int(fields["CapBnd"], 16) == 0
    assert fields["NoNewPrivs"] == "1"
    assert json.loads(containers.inspect("console", "json .HostConfig.ReadonlyRootfs"))
    assert containers.inspect("console", ".State.Health.Status") == "healthy"


def test_no_cluster_is_the_container_itself(containers: Containers) -> None:
    exported = containers.call("console", "job-console-server site_export")
    assert "backend: local" not in exported


def test_console_stops_in_its_grace_period_and_new_containers_keep_everything(containers: Containers) -> None:
    with browse(containers) as client:
        sign_in(client)
        token = containers.call("console", "job-console-server issue_token admin --plain")

        containers.run(f"podman stop --time {GRACE_S} {containers.name('console')}")
        assert containers.inspect("console", ".State.ExitCode") == "0", "it has ended by itself, and well"

        containers.run(f"{containers.compose} down")
        containers.run(f"{containers.compose} up --detach")
        wait_until_healthy(containers)
        assert client.get("/").url.path == "/", "who was signed in still is"
        with browse(containers) as other:
            answer = other.get("/api/console/v1/jobs", headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code == 200
            assert sign_in(other).url.path == "/"
