"""<merged-log> in a real browser: each line once, live and after a break, and the way to what is found."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.static.pages import put_merged
from tests.static.site import Site
from tests.waiting import wait_for

pytestmark = pytest.mark.browser


def lines(page: Page) -> list[str]:
    """The texts of the rows."""
    script = "rows => rows.map(row => row.lastElementChild.textContent)"
    found: list[str] = page.eval_on_selector_all(".log-merged", script)
    return found


def open_logs(page: Page, site: Site, count: int) -> None:
    site.merged = [(number % 2, f"line {number}") for number in range(count)]
    put_merged(site)
    page.goto("/")
    expect(page.locator(".log-merged").last).to_contain_text(f"line {count - 1}")
    expect(page.locator("[data-live-status]")).to_have_attribute("data-state", "live")


def test_merged_log_streams_each_line_once_also_after_a_break(page: Page, site: Site) -> None:
    open_logs(page, site, 3)
    wait_for(lambda: any("merged" in query for query in site.asks("/stream")))
    asked = len(site.asks("/merged"))
    for number in range(3, 60):
        site.merged.append((number % 2, f"line {number}"))
        if number == 30:
            site.send_all()
            site.drop_streams()
    expect(page.locator(".log-merged").last).to_contain_text("line 59", timeout=10_000)
    assert lines(page) == [f"line {number}" for number in range(60)]
    assert len(site.asks("/merged")) == asked
    site.state = "complete"
    site.merged.append((0, "the end"))
    expect(page.locator('[data-log="bottom"]')).to_have_text("End of the log.")
    assert lines(page)[-1] == "the end"


def test_merged_log_search_leads_to_the_line_and_back_to_the_end(page: Page, site: Site) -> None:
    site.state = "complete"
    open_logs(page, site, 2000)
    site.merged[5] = (1, "ValueError: <b>x</b>")
    site.merged[1500] = (0, "TypeError: y")
    page.get_by_role("button", name="First error").click()
    here = page.locator(".log-line-here")
    expect(here).to_contain_text("ValueError: <b>x</b>")
    expect(here.locator(".log-rank")).to_have_text("worker/1")
    assert lines(page)[:3] == ["line 0", "line 1", "line 2"]
    page.get_by_label("Find in this log").fill("Error")
    page.keyboard.press("Enter")
    hits = page.locator(".log-hit")
    expect(hits).to_have_count(2)
    expect(hits.nth(1)).to_contain_text("worker/0 TypeError: y")
    hits.nth(1).click()
    expect(here).to_contain_text("TypeError: y")
    page.get_by_role("button", name="Jump to the end").click()
    expect(page.locator(".log-merged").last).to_contain_text("line 1999")
    assert page.get_by_role("link", name="Download").get_attribute("href") == "/merged?download=1"
