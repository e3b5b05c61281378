"""What a notebook's scripts can do to the person who looks at it, in a real browser: nothing beyond it."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from django.conf import settings
from playwright.sync_api import BrowserContext, Frame, Page

from jobs.models import Attempt, Endpoint, EndpointVisit
from tests.factories import make_endpoint
from tests.jobs.access.gateway.chromium import in_chromium
from tests.jobs.access.gateway.served import CONSOLE, Browser, Job, Served
from tests.waiting import wait_for

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

ATTEMPT = """async (asked) => {
  const [url, options] = asked;
  try {
    const answer = await fetch(url, {credentials: "include", ...options});
    return {type: answer.type, status: answer.status, text: await answer.text()};
  } catch (error) {
    return {type: "refused", status: 0, text: String(error)};
  }
}"""
"""What a script gets from a request: `opaque` when it was sent and may not be read."""

SOCKET = """(url) => new Promise((resolve) => {
  const socket = new WebSocket(url);
  socket.onopen = () => resolve("open");
  socket.onerror = () => resolve("refused");
})"""

FRAME = """(url) => new Promise((resolve) => {
  const frame = document.createElement("iframe");
  frame.src = url;
  frame.onload = () => {
    try { resolve(frame.contentDocument.body.innerText); } catch { resolve("elsewhere"); }
  };
  document.body.append(frame);
})"""


PLANT = "(cookie) => { document.cookie = cookie; }"
PLANTED = "A" * 43
REFUSED = "TypeError: Failed to fetch"


class Scene(NamedTuple):
    """A person's browser with a notebook open, and a neighbouring endpoint that they have open too."""

    context: BrowserContext
    notebook: Page
    console: str
    neighbour: str

    def fetch(self, url: str, **options: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.notebook.evaluate(ATTEMPT, [url, options])
        return answer


@pytest.fixture
def neighbour(endpoint: Endpoint, job: Job) -> Endpoint:
    return make_endpoint(endpoint.replica, port=job.port, label="neighbour")


def set_scene(context: BrowserContext, served: Served, endpoint: Endpoint, neighbour: Endpoint) -> Scene:
    console = f"http://{CONSOLE}:{served.port}"
    beside = context.new_page()
    beside.goto(f"{console}/endpoints/{neighbour.slug}/open?next=/page")
    notebook = context.new_page()
    notebook.goto(f"{console}/endpoints/{endpoint.slug}/open?next=/notebook")
    there = beside.evaluate("location.origin")
    beside.close()
    return Scene(context, notebook, console, there)


def assert_refused(page: Page, frames: list[Frame]) -> None:
    """Where each frame has got to is told a moment later than that it is loaded."""
    wait_for(lambda: page.evaluate("true") and all(frame.url for frame in frames))
    urls = [frame.url for frame in frames]
    assert all("chrome-error" in url for url in urls), urls


def test_notebook_script_cannot_act_at_the_console_for_the_user(
    browser: Browser, served: Served, endpoint: Endpoint, neighbour: Endpoint
) -> None:
    job = endpoint.replica.attempt.job
    stop = f"/jobs/{job.public_id}/stop"

    def look(context: BrowserContext) -> list[dict[str, Any]]:
        scene = set_scene(context, served, endpoint, neighbour)
        asked: list[Any] = []
        context.on("request", lambda request: asked.append(request) if CONSOLE in request.url else None)
        read = scene.fetch(f"{scene.console}/jobs/")
        api = scene.fetch(f"{scene.console}/api/console/v1/jobs")
        tricks = [
            scene.fetch(f"{scene.console}{stop}", method="POST", mode="no-cors"),
            scene.fetch(f"{scene.console}{stop}", method="POST", headers={"X-CSRFToken": "x"}),
            scene.fetch(f"{scene.console}/api/console/v1/jobs/{job.public_id}/stop", method="POST"),
        ]
        cookies = [
            request.all_headers().get("cookie", "") for request in asked if request.method != "OPTIONS"
        ]
        assert asked
        assert not [cookie for cookie in cookies if settings.SESSION_COOKIE_NAME in cookie]
        return [read, api, *tricks]

    for answer in in_chromium(look, session_key=_session(browser)):
        assert answer["type"] in {"refused", "opaque"}
        assert answer["text"] == "" or answer["type"] == "refused"
    assert Attempt.objects.get(job=job).end_wanted is None


def test_notebook_form_does_not_stop_a_job(
    browser: Browser, served: Served, endpoint: Endpoint, neighbour: Endpoint
) -> None:
    job = endpoint.replica.attempt.job

    def look(context: BrowserContext) -> int:
        scene = set_scene(context, served, endpoint, neighbour)
        submit = """(url) => {
          const form = document.createElement("form");
          form.method = "POST"; form.action = url;
          document.body.append(form); form.submit();
        }"""
        with scene.notebook.expect_navigation() as navigation:
            scene.notebook.evaluate(submit, f"{scene.console}/jobs/{job.public_id}/stop")
        assert navigation.value is not None
        return navigation.value.status

    assert in_chromium(look, session_key=_session(browser)) == 403
    assert Attempt.objects.get(job=job).end_wanted is None


def test_notebook_reaches_no_neighbour(
    browser: Browser, served: Served, endpoint: Endpoint, neighbour: Endpoint, job: Job
) -> None:
    def look(context: BrowserContext) -> None:
        scene = set_scene(context, served, endpoint, neighbour)
        job.seen.clear()
        assert scene.fetch(f"{scene.neighbour}/page")["type"] == "refused"
        assert scene.fetch(f"{scene.neighbour}/page", mode="no-cors")["type"] in {"opaque", "refused"}
        assert scene.fetch(f"{scene.neighbour}/x", mode="no-cors", method="POST")["type"] in {
            "opaque",
            "refused",
        }
        assert scene.notebook.evaluate(SOCKET, f"{scene.neighbour.replace('http', 'ws')}/socket") == "refused"
        assert scene.notebook.evaluate(SOCKET, f"ws://{_own(scene)}/socket") == "open"

    in_chromium(look, session_key=_session(browser))
    assert [target for _method, target, _headers in job.seen] == ["/socket"]


def test_endpoint_page_cannot_frame_a_neighbour_or_the_console(
    browser: Browser, served: Served, endpoint: Endpoint, neighbour: Endpoint, job: Job
) -> None:
    def look(context: BrowserContext) -> None:
        scene = set_scene(context, served, endpoint, neighbour)
        assert scene.notebook.evaluate(FRAME, f"http://{_own(scene)}/page") == "served by the job"
        job.seen.clear()
        for url in (f"{scene.neighbour}/page", f"{scene.console}/jobs/"):
            assert scene.notebook.evaluate(FRAME, url) == "elsewhere"
        assert_refused(scene.notebook, scene.notebook.frames[2:])

    in_chromium(look, session_key=_session(browser))
    assert job.seen == []


def test_foreign_site_cannot_frame_an_endpoint_or_the_console(
    browser: Browser, served: Served, endpoint: Endpoint, neighbour: Endpoint, job: Job
) -> None:
    def look(context: BrowserContext) -> None:
        scene = set_scene(context, served, endpoint, neighbour)
        elsewhere = context.new_page()
        elsewhere.goto(f"http://127.0.0.1:{job.port}/notebook")
        job.seen.clear()
        for url in (f"http://{_own(scene)}/page", f"{scene.console}/jobs/", f"{scene.console}/sign-in"):
            assert elsewhere.evaluate(FRAME, url) == "elsewhere"
        assert len(elsewhere.frames) == 4
        assert_refused(elsewhere, elsewhere.frames[1:])

    in_chromium(look, session_key=_session(browser))
    assert "/page" not in [target for _method, target, _headers in job.seen]


def test_console_pages_cannot_frame_an_endpoint(
    browser: Browser, served: Served, endpoint: Endpoint, neighbour: Endpoint, job: Job
) -> None:
    def look(context: BrowserContext) -> None:
        scene = set_scene(context, served, endpoint, neighbour)
        page = context.new_page()
        page.goto(f"{scene.console}/jobs/")
        job.seen.clear()
        assert page.evaluate(FRAME, f"http://{_own(scene)}/page") == "elsewhere"
        assert_refused(page, page.frames[1:])

    in_chromium(look, session_key=_session(browser))
    assert job.seen == []


def test_notebook_cookies_do_no_harm_outside_their_host(
    browser: Browser, served: Served, endpoint: Endpoint, neighbour: Endpoint
) -> None:
    def look(context: BrowserContext) -> None:
        scene = set_scene(context, served, endpoint, neighbour)
        for domain in ("", "; Domain=apps.localhost", "; Domain=localhost"):
            for name in (settings.SESSION_COOKIE_NAME, "csrftoken", "job-console", "job-console-browser"):
                scene.notebook.evaluate(
                    "(cookie) => { document.cookie = cookie; }", f"{name}={PLANTED}{domain}"
                )
        assert PLANTED in scene.notebook.evaluate("document.cookie")
        assert PLANTED not in {cookie["value"] for cookie in context.cookies(scene.console)}
        page = context.new_page()
        for url in (f"{scene.console}/jobs/", f"{scene.neighbour}/page", f"http://{_own(scene)}/page"):
            answer = page.goto(url)
            assert answer is not None
            assert (answer.status, page.url) == (200, url)

    in_chromium(look, session_key=_session(browser))
    assert EndpointVisit.objects.filter(entered_at__isnull=False).count() == 2


def _session(browser: Browser) -> str:
    return browser.cookies(CONSOLE)[settings.SESSION_COOKIE_NAME]


def _own(scene: Scene) -> str:
    return str(scene.notebook.evaluate("location.host"))
