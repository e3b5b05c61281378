"""The page's one connection, and the fragments that are fetched anew when something changes."""

from __future__ import annotations

import time
from typing import Final

import pytest
from playwright.sync_api import Page, Route, expect

from tests.static.pages import put
from tests.static.site import Site
from tests.waiting import wait_for

pytestmark = pytest.mark.browser


FRAGMENTS: Final = """
<div id="jobs" data-live="jobs" hx-get="/fragment/jobs" hx-trigger="live:changed">0</div>
<div id="one" data-live="job:one" hx-get="/fragment/one" hx-trigger="live:changed">0</div>
<div id="body" hx-get="/fragment/body" hx-trigger="jobs:changed from:body">0</div>
"""

FORM: Final = """
<div id="form" data-live="jobs" hx-get="/fragment/form" hx-trigger="live:changed">
  <input aria-label="Name">
</div>
"""


def put_fragments(page: Page, site: Site) -> None:
    put(site, FRAGMENTS)
    page.goto("/")
    expect(page.locator("[data-live-status]")).to_have_attribute("data-state", "live")


def test_live_change_refetches_only_affected_fragments(page: Page, site: Site) -> None:
    put_fragments(page, site)
    site.changes.append(("changed", {"names": ["job:one"]}))
    expect(page.locator("#one")).to_have_text("1")
    site.changes.append(("changed", {"names": ["jobs"]}))
    expect(page.locator("#jobs")).to_have_text("1")
    expect(page.locator("#body")).to_have_text("1")
    assert len(site.asks("/fragment/one")) == 1


def test_live_changes_in_bulk_cause_at_most_two_fetches_per_second(page: Page, site: Site) -> None:
    put_fragments(page, site)
    started = time.monotonic()
    for _ in range(50):
        site.changes.append(("changed", {"names": ["jobs"]}))
        site.send_all()
    site.changes.append(("changed", {"names": ["job:one"]}))
    expect(page.locator("#one")).to_have_text("1")
    most = 2 * (time.monotonic() - started) + 2
    assert 2 <= len(site.asks("/fragment/jobs")) <= most


def test_live_stream_resumes_after_drop_and_reset_refetches_all(page: Page, site: Site) -> None:
    put_fragments(page, site)
    site.changes.append(("changed", {"names": ["job:one"]}))
    expect(page.locator("#one")).to_have_text("1")
    site.drop_streams()
    wait_for(lambda: site.asks("/stream")[-1].get("since") == "1-0")
    banner = page.locator("[data-live-banner]")
    page.context.set_offline(True)
    expect(banner).to_contain_text("Not connected", timeout=5000)
    page.context.set_offline(False)
    expect(banner).to_be_hidden()
    site.changes.append(("reset", {}))
    expect(page.locator("#jobs")).to_have_text("1")
    expect(page.locator("#one")).to_have_text("2")


def test_form_fragment_is_not_replaced_while_typing(page: Page, site: Site) -> None:
    put(site, f"{FRAGMENTS}{FORM}")
    page.goto("/")
    field = page.get_by_role("textbox", name="Name")
    field.fill("half a na")
    site.changes.append(("changed", {"names": ["jobs"]}))
    expect(page.locator("#jobs")).to_have_text("1")
    expect(field).to_have_value("half a na")
    field.blur()
    expect(page.locator("#form")).to_have_text("1")


def test_late_form_fragment_is_not_inserted_while_typing(page: Page, site: Site) -> None:
    put(site, f"{FRAGMENTS}{FORM}")
    page.goto("/")
    asked: list[Route] = []

    def keep_the_first(route: Route) -> None:
        asked.append(route)
        if len(asked) > 1:
            route.continue_()

    page.route("**/fragment/form*", keep_the_first)
    site.changes.append(("changed", {"names": ["jobs"]}))
    expect(page.locator("#jobs")).to_have_text("1")
    page.wait_for_timeout(1000)
    assert len(asked) == 1
    field = page.get_by_role("textbox", name="Name")
    field.fill("half a na")
    with page.expect_request_finished(lambda request: "/fragment/form" in request.url):
        asked[0].continue_()
    page.wait_for_timeout(200)
    expect(field).to_have_value("half a na")
    field.blur()
    expect(page.locator("#form")).to_have_text("2")


def test_job_state_is_shown_in_tab_title_and_icon(page: Page, site: Site) -> None:
    put(site, '<h1 data-tab-state="failed" data-tab-title="Failed">bert</h1>')
    page.goto("/")
    expect(page).to_have_title("Failed · Test · Job Console")
    icon = page.locator('link[rel="icon"]').get_attribute("href") or ""
    assert icon.startswith("data:image/svg+xml,")
