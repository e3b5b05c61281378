"""An admin's day in Chromium."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, Request

from tests.stack import Stack

pytestmark = pytest.mark.browser

LOOKED_AT = (
    "/admin/",
    "/admin/quotas/quota/",
    "/admin/quotas/quota/add/",
    "/admin/quotas/user/1/change/",
    "/admin/jobs/job/",
)


def test_the_admin_keeps_to_its_policy_and_loads_nothing_from_elsewhere(
    page: Page, stack: Stack, scenes: dict[str, str]
) -> None:
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


def test_the_admins_own_scripts_work_under_its_policy(page: Page, stack: Stack) -> None:
    page.goto("/admin/quotas/quota/")
    page.get_by_text("Filters").click()
    page.get_by_role("heading", name="Filters").or_(page.get_by_text("By cluster")).first.wait_for()
