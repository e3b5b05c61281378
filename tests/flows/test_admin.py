"""An admin's day in Chromium."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, Request, expect

from tests.stack import Stack

pytestmark = pytest.mark.browser

LOOKED_AT = (
    "/admin/",
    "/admin/tree/local/",
    "/admin/incidents/",
    "/admin/tables/",
    "/admin/tables/quota/",
    "/admin/quotas/quota/",
    "/admin/quotas/quota/add/",
    "/admin/quotas/user/1/change/",
    "/admin/jobs/job/",
)


def test_admin_pages_load_nothing_from_other_sites(page: Page, stack: Stack, scenes: dict[str, str]) -> None:
    elsewhere: list[str] = []

    def note(request: Request) -> None:
        if not request.url.startswith((stack.base_url, "data:")):
            elsewhere.append(request.url)

    page.on("request", note)
    for address in LOOKED_AT:
        answer = page.goto(address)
        assert answer is not None
        assert answer.status == 200
        page.wait_for_load_state("networkidle")
    assert elsewhere == []


def test_overview_shows_part_status_and_links_to_quota_tree(page: Page, scenes: dict[str, str]) -> None:
    page.goto("/admin/")
    expect(page.get_by_role("heading", name="This machine")).to_be_visible()
    expect(page.get_by_text("worker-control: OK")).to_be_visible()
    page.get_by_role("link", name="Quota tree").first.click()
    expect(page).to_have_url("/admin/tree/local/")


def test_quota_limit_is_lowered_after_preview(page: Page, scenes: dict[str, str]) -> None:
    page.goto("/admin/tree/local/")
    jobs = page.get_by_label("Default: Concurrent jobs")
    jobs.fill("1")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("running jobs finish, and no new jobs start until usage drops")).to_be_visible()
    expect(page.get_by_role("link", name="running-job")).to_be_visible()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_label("Allow limits below current usage")).to_be_visible()  # it asks again
    page.get_by_label("Allow limits below current usage").check()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("1 quota was changed.")).to_be_visible()
    expect(jobs).to_have_value("1")
    jobs.fill("")
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("1 quota was changed.")).to_be_visible()


def test_paused_cluster_shows_its_reason_to_waiting_jobs(page: Page, scenes: dict[str, str]) -> None:
    page.goto("/admin/incidents/")
    page.locator("#freeze summary").click()
    page.locator("#freeze-cluster").select_option(label="This machine")
    page.locator("#freeze-why").fill("The switch is being replaced.")
    page.locator("#freeze").get_by_role("button", name="Preview").click()
    expect(page.get_by_text("No new jobs start on This machine until scheduling is resumed.")).to_be_visible()
    page.get_by_role("button", name="Pause scheduling").click()
    expect(page.get_by_text("Scheduling on This machine paused since")).to_be_visible()
    page.goto(f"/jobs/{scenes['waiting']}/")
    expect(page.get_by_text("The switch is being replaced.").first).to_be_visible()
    page.goto("/admin/incidents/?open=unfreeze")
    page.locator("#unfreeze-cluster").select_option(label="This machine")
    page.locator("#unfreeze-why").fill("It is new.")
    page.locator("#unfreeze").get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Resume scheduling").click()
    expect(page.get_by_text("Scheduling is active on all clusters.")).to_be_visible()


def test_jobs_are_held_and_released_from_the_admin_list(page: Page, scenes: dict[str, str]) -> None:
    page.goto(f"/admin/jobs/job/?q={scenes['waiting']}")
    for action, button, told in (
        ("Hold", "Hold jobs", "1 job held."),
        ("Release", "Release jobs", "1 job released."),
    ):
        page.locator("input.action-select").first.check()
        page.locator("select[name=action]").select_option(label=action)
        page.get_by_role("button", name="Run").click()
        expect(page.get_by_text("other jobs are not affected")).to_be_visible()
        if action == "Hold":
            page.get_by_label("Reason").fill("the disk is being moved")
        page.get_by_role("button", name=button).click()
        expect(page.get_by_text(told)).to_be_visible()
