"""The panel beside a job file, as people meet it: it follows what is typed, by keyboard too."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.scenes import job_file

pytestmark = pytest.mark.browser


def test_the_panel_follows_what_is_typed_and_asks_the_cluster(page: Page, tmp_path: Path) -> None:
    page.goto("/jobs/new")
    panel = page.locator(".job-panel")
    expect(panel).to_contain_text("appears here")
    page.locator(".cm-content").first.click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(job_file("panel-job", gpuNumber=1))
    expect(panel).to_contain_text("It would start now on")
    expect(panel).to_contain_text("this job")
    says = page.locator("#job-panel-says")
    expect(says).to_contain_text("It would start now on")
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(job_file("panel-job", gpuNumber=400))
    expect(says).not_to_contain_text("It would start now on")
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(job_file("panel-job"))
    expect(says).to_contain_text("It would start now on")
    page.get_by_role("radio", name="Cost and quota").focus()
    page.keyboard.press("ArrowRight")
    expect(panel.get_by_text("exec /bin/bash -c true")).to_be_visible()
    with page.expect_download() as kept:
        panel.get_by_role("button", name=re.compile("Download the script")).click()
    assert "exec /bin/bash -c true" in Path(kept.value.path()).read_text(encoding="utf-8")
    panel.get_by_role("button", name="Ask the cluster").click()
    expect(panel).to_contain_text("It would be accepted.", timeout=15_000)
    page.screenshot(path=tmp_path / "panel.png", full_page=True)
