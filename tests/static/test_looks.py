"""Every component, in light and dark, on a wide screen and a phone: axe finds nothing, nothing sticks out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.browser import watched
from tests.static.pages import put
from tests.static.site import Site

pytestmark = pytest.mark.browser

STATES: Final = (
    "QUEUED",
    "SUBMITTING",
    "PENDING",
    "RUNNING",
    "SUCCEEDED",
    "FAILED",
    "STOPPED",
    "LOST",
    "WARNING",
)
Scheme: TypeAlias = Literal["light", "dark"]
SCREENS: Final[dict[str, tuple[int, int, Scheme]]] = {
    "light": (1600, 900, "light"),
    "dark": (1600, 900, "dark"),
    "phone": (390, 844, "light"),
}


@pytest.fixture(params=SCREENS)
def screen(request: pytest.FixtureRequest, browser: Browser, site: Site) -> Iterator[Page]:
    width, height, scheme = SCREENS[request.param]
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, base_url=site.url
    )
    with watched(context) as page:
        yield page
    context.close()


def show_everything(page: Page, site: Site) -> None:
    for code in (*range(30, 38), *range(90, 98)):
        site.log += b"\x1b[%dm colour \x1b[0m\x1b[%dm ground \x1b[0m\n" % (code, code + 10)
    site.log += b"".join(b"\x1b[38;5;%dm%d " % (code, code) for code in range(16, 256)) + b"\x1b[0m\n"
    finding = {
        "message": "Not a number.",
        "code": "type",
        "pointer": "/jobName",
        "line": 1,
        "column": 2,
        "fix": None,
    }
    site.checked |= {"problems": [finding], "notes": [finding]}
    put(
        site,
        '{% include "every_component.html" %}',
        states=STATES,
        when=datetime(2026, 11, 20, tzinfo=UTC),
        problems=[finding],
        notes=[finding],
        nav=[{"url": "/", "label": "Jobs", "icon": "list-details", "active": True, "count": 3}],
        workspaces=[{"name": "vision", "url": "?w", "active": True}],
        notices=[{"level": "warn", "text": "Maintenance at noon.", "url": "#j", "label": "More"}],
        messages=[],
        logs_url="/logs",
        stream_url="/stream",
        role="worker",
        index=0,
        download_url="/logs?download=1",
    )
    page.goto("/")
    page.locator("log-view").scroll_into_view_if_needed()
    expect(page.locator(".log-line")).to_have_count(17)
    expect(page.locator(".cm-lint-marker-error")).to_be_visible()


def assert_accessible(page: Page) -> None:
    found = Axe().run(page).response["violations"]
    assert [(each["id"], [node["html"][:200] for node in each["nodes"]]) for each in found] == []


def test_components_are_all_accessible(screen: Page, site: Site) -> None:
    show_everything(screen, site)
    assert_accessible(screen)
    width = screen.viewport_size["width"] if screen.viewport_size else 0
    assert screen.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("keys", ["Control+k", "?"])
def test_dialogs_are_all_accessible(screen: Page, site: Site, keys: str) -> None:
    put(site, '<a href="/" data-key="c">Again</a>')
    screen.goto("/")
    screen.keyboard.press(keys)
    expect(screen.locator("dialog[open]")).to_be_visible()
    assert_accessible(screen)


def test_security_policy_violation_is_detected(browser: Browser, site: Site) -> None:
    put(site, '<p style="color: red">inline</p>')
    context = browser.new_context(base_url=site.url)
    with pytest.raises(AssertionError, match="style-src-attr"), watched(context) as page:
        page.goto("/")
    context.close()
