"""What an editor in the browser, VS Code's server, asks of a gateway: in a real browser, of a job's page."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import BrowserContext

from jobs.models import Attempt, Endpoint
from quotas.encryption import decrypt
from tests.jobs.access.gateway.chromium import in_chromium
from tests.jobs.access.gateway.served import CONSOLE, Browser, Job

pytestmark = pytest.mark.django_db(transaction=True)

COMMIT = "stable-" + "0123456789abcdef" * 2 + "01234567"
RESOURCE = f"/{COMMIT}/vscode-remote-resource?path={quote('/job/项目/a b#c?.png', safe='')}&tkn=x%2By"

SOCKET = """(path) => new Promise((resolve, reject) => {
  const socket = new WebSocket(`ws://${location.host}${path}`);
  socket.binaryType = "arraybuffer";
  socket.onerror = () => reject(new Error("refused"));
  socket.onopen = () => socket.send(new Uint8Array(300000).fill(7).buffer);
  socket.onmessage = ({data}) => {
    resolve([data.byteLength, new Uint8Array(data)[299999], socket.protocol]);
    socket.close();
  };
})"""

WORKER = """async () => {
  await navigator.serviceWorker.register("/_static/out/browser/worker.js", {scope: "/"});
  await navigator.serviceWorker.ready;
  if (!navigator.serviceWorker.controller) {
    await new Promise((resolve) => navigator.serviceWorker.addEventListener("controllerchange", resolve));
  }
  return await (await fetch("/worked")).text();
}"""


@pytest.mark.browser
def test_vs_code_socket_service_worker_and_resources_work(
    browser: Browser, endpoint: Endpoint, job: Job
) -> None:
    link = f"http://{CONSOLE}:{browser.port}/endpoints/{endpoint.slug}/open?next=/page%3Ffolder%3D/job"

    def look(context: BrowserContext) -> dict[str, Any]:
        page = context.new_page()
        page.goto(link)
        socket = f"/socket?reconnectionToken={'a' * 36}&reconnection=false&skipWebSocketFrames=false"
        return {
            "socket": page.evaluate(SOCKET, socket),
            "resource": page.evaluate("async (at) => (await fetch(at)).status", RESOURCE),
            "worker": page.evaluate(WORKER),
            "url": page.url,
        }

    found = in_chromium(look, session_key=browser.sign_in(endpoint.replica.attempt.job.owner))
    assert found["socket"] == [300_000, 7, ""]
    assert found["resource"] == 200
    assert found["worker"] == "by the worker"
    assert "/page?folder=/job" in found["url"]
    assert RESOURCE in [target for _method, target, _headers in job.seen]


def test_gateway_sends_the_job_one_host_name_and_no_foreign_origin(
    browser: Browser, host: str, job: Job
) -> None:
    own = f"http://{host}:{browser.port}"
    assert browser.request("GET", host, RESOURCE, {"Origin": own}).status_code == 200
    told = job.headers()
    assert told["host"] == f"localhost:{job.port}"
    assert told["x-forwarded-host"] == f"{host}:{browser.port}"
    assert "origin" not in told
    job.seen.clear()
    assert browser.request("GET", host, RESOURCE, {"Origin": "http://evil.example"}).status_code == 403
    assert not job.seen


def test_gateway_passes_long_paths_and_queries_unchanged(browser: Browser, host: str, job: Job) -> None:
    target = f"/{COMMIT}/static/{'x' * 2000}/a%2Fb.js?{'y' * 4000}"
    assert browser.request("GET", host, target).status_code == 200
    assert job.seen[-1][1] == target


def test_gateway_passes_the_token_under_the_announced_name(
    browser: Browser, endpoint: Endpoint, job: Job
) -> None:
    Endpoint.objects.filter(pk=endpoint.pk).update(token_name="tkn", path="/?folder=/job")
    browser.open(endpoint)
    token = decrypt(Attempt.objects.get(pk=endpoint.replica.attempt_id).endpoint_token)
    assert [target for _method, target, _headers in job.seen] == [f"/?folder=/job&tkn={token}"]
