"""The curves of training metrics."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.static.site import Site

pytestmark = pytest.mark.browser

CURVES = '[{"label": "loss", "points": [[1, 0.5], [2, -1]]}, {"label": "val_loss", "points": [[2, 4]]}]'
MODULE = "/static/console/training-charts.js"


def test_training_curves_share_steps_and_a_log_scale_has_no_value_below_zero(page: Page, site: Site) -> None:
    page.goto("/")
    read = "async ([module, curves, isLog]) => (await import(module)).columns(JSON.parse(curves), isLog)"
    assert page.evaluate(read, [MODULE, CURVES, False]) == [[1, 2], [0.5, -1], [None, 4]]
    assert page.evaluate(read, [MODULE, CURVES, True]) == [[1, 2], [0.5, None], [None, 4]]


def test_training_values_keep_the_digits_of_a_learning_rate(page: Page, site: Site) -> None:
    page.goto("/")
    read = "async ([module, values]) => values.map((await import(module)).valueText)"
    values = [0, 0.00025, 3.0000000000000003e-06, 1234.5, 2e9, None]
    assert page.evaluate(read, [MODULE, values]) == ["0", "0.00025", "3e-6", "1,234.5", "2e9", ""]


def test_training_chart_stays_in_its_box_when_new_data_comes(page: Page, site: Site) -> None:
    page.goto("/")
    page.evaluate(
        """async ([curves, module]) => {
          document.body.innerHTML = `<div id="curve-1"><label><input type="checkbox">Log</label>
            <div class="training-plot"></div></div><div data-box="curve-1"></div>`;
          document.querySelector("[data-box]").dataset.trainingCurves = curves;
          await import(module);
        }""",
        [CURVES, MODULE],
    )
    labels = page.locator("#curve-1 .u-legend .u-label")
    page.locator("#curve-1 canvas").wait_for()
    assert labels.all_inner_texts()[1:] == ["loss", "val_loss"]
    page.evaluate("document.querySelector('#curve-1 .uplot').dataset.isFirst = 'yes'")
    page.evaluate(
        """curves => {
          document.querySelector("[data-box]").dataset.trainingCurves = curves;
          document.body.dispatchEvent(new CustomEvent("htmx:afterSettle"));
        }""",
        CURVES.replace("[2, 4]", "[2, 4], [3, 5]"),
    )
    assert page.locator("#curve-1 .uplot").get_attribute("data-is-first") == "yes"
    page.get_by_label("Log").check()
    assert page.locator("#curve-1 .uplot").get_attribute("data-is-first") is None
    assert page.locator("#curve-1 .uplot").count() == 1
