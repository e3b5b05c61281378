"""The chart of what was held over time."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.static.site import Site

pytestmark = pytest.mark.browser

USAGE = '{"A100": [[1700000000, 2], [1700003600, 4]], "P100": [[1700003600, 1]]}'


def test_chart_rows_have_zero_for_hours_without_a_type(page: Page, site: Site) -> None:
    page.goto("/")
    rows = page.evaluate(
        "async usage => (await import('/static/console/usage-chart.js')).rows(JSON.parse(usage))", USAGE
    )
    assert rows == [[1700000000, 1700003600], [2, 4], [0, 1]]


def test_usage_box_becomes_a_chart_within_the_security_policy(page: Page, site: Site) -> None:
    page.goto("/")
    page.evaluate(
        """async usage => {
          const box = Object.assign(document.createElement("div"), { className: "usage-chart" });
          box.dataset.usage = usage;
          document.body.append(box);
          await import("/static/console/usage-chart.js");
        }""",
        USAGE,
    )
    page.locator(".usage-chart canvas").wait_for()
    assert page.locator(".usage-chart .u-legend .u-label").all_inner_texts()[1:] == ["A100", "P100"]


def test_single_hour_is_charted_with_those_beside_it(page: Page, site: Site) -> None:
    page.goto("/")
    shown = page.evaluate(
        """async usage => {
          const box = Object.assign(document.createElement("div"), { className: "usage-chart" });
          box.dataset.usage = usage;
          document.body.append(box);
          return (await import("/static/console/usage-chart.js")).around(1700000000);
        }""",
        '{"admin": [[1700000000, 2]]}',
    )
    assert shown == [1700000000 - 3600, 1700000000 + 3600]
    page.locator(".usage-chart canvas").wait_for()


def test_chart_times_use_the_users_time_zone_and_language(page: Page, site: Site) -> None:
    site.pages["/of-a-person"] = (
        '<!doctype html><html lang="ja" data-time-zone="Asia/Tokyo"><title>x</title></html>'
    )
    page.goto("/of-a-person")
    shown = page.evaluate(
        """async () => {
          const { axisTexts, momentText } = await import("/static/console/times.js");
          const hour = 3_600_000, start = 1_700_000_000_000;
          const hours = axisTexts([start, start + hour, start + 24 * hour], false);
          const seconds = axisTexts([start, start + 20_000], false, true);
          return [hours, axisTexts([start], true), momentText(start), seconds];
        }"""
    )
    hours = ["07:13\n11月15日", "08:13", "07:13\n11月16日"]
    seconds = ["07:13:20\n11月15日", "07:13:40"]
    assert shown == [hours, ["11月15日"], "2023/11/15 7:13", seconds]
