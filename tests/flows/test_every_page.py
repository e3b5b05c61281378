"""Every page, wide and dark and on a phone: axe finds nothing, nothing sticks out.

In a console of its own, so that what is on the pages does not depend on what others did before.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.browser import watched
from tests.scenes import MACHINE, fill
from tests.screenshots import LOOKS, pages, show_again, sign_in
from tests.stack import Stack, running
from tests.waiting import wait_for

pytestmark = pytest.mark.browser

DJANGOS_OWN = {
    "admin-quotas": "/admin/quotas/quota/",
    "admin-quota": "/admin/quotas/quota/1/change/",
    "admin-quota-new": "/admin/quotas/quota/add/",
    "admin-cluster": "/admin/quotas/cluster/1/change/",
    "admin-user": "/admin/quotas/user/1/change/",
    "admin-workspace": "/admin/quotas/workspace/1/change/",
    "admin-workspace-delete": "/admin/quotas/workspace/1/delete/",
}
"""Pages that Django's admin makes: tables, forms, questions."""

EVERYTHING: dict[str, Any] = {"resultTypes": ["violations"], "preload": False}
"""Of what is right nothing is told: to name each element of it takes most of the time."""

CONTRAST: dict[str, Any] = {**EVERYTHING, "runOnly": ["color-contrast"]}
WITHOUT_CONTRAST: dict[str, Any] = {**EVERYTHING, "rules": {"color-contrast": {"enabled": False}}}
"""A phone has another layout, and the colours of light."""

OTHERWISE_ON_A_PHONE = frozenset(
    {
        *("admin", "home", "job-files", "job-log", "job-running", "jobs", "members", "new", "new-form"),
        *("nodes", "quotas", "settings", "start-pytorch"),
    }
)
"""The pages that have other elements there; each of the others is looked at for its width alone, by making a
wide window as narrow as a phone."""

SEEN = frozenset({"new-helloworld", "new-environment", "new-resources", "start-search"})
"""Pages that differ from another one in where they are scrolled to, or in what was typed."""

IN_THE_DARK = OTHERWISE_ON_A_PHONE | {
    *(
        "admin-jobs",
        "admin-quotas",
        "asset",
        "audit",
        "job-events",
        "job-failed",
        "job-metrics",
        "new-faults",
    ),
    *("notifications", "reports", "sign-in-settings", "sweep", "template-edit", "jobs-compare"),
}
"""The pages that have, together, every kind of element: a colour of the dark is set for all of its kind."""

SHARES = 4
"""So many tests look at the pages of a wide screen: in one it would take ten minutes on a busy machine."""

AT_REST = """
() => Promise.allSettled(
  document.getAnimations()
    .filter((each) => each.effect.getComputedTiming().endTime < Infinity)
    .map((each) => each.finished),
)
"""
"""Colours that are on their way from light to dark have less contrast than both."""


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with running(MACHINE) as started:
        yield started


@pytest.fixture(scope="module")
def scenes(stack: Stack) -> dict[str, str]:
    return fill(stack)


@pytest.fixture
def screen(look: str, browser: Browser, stack: Stack) -> Iterator[Page]:
    width, height, scheme = LOOKS[look]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,
        base_url=stack.base_url,
        reduced_motion="reduce",
    )
    with watched(context) as page:
        sign_in(page, stack)
        show_again(page, stack)
        yield page
    context.close()


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("look", "share"), [*(("light", n) for n in range(SHARES)), ("phone", None)])
def test_pages_are_accessible_and_fit_the_screen(
    look: str, share: int | None, screen: Page, scenes: dict[str, str]
) -> None:
    """A wide screen turns dark while it shows a page, as it does in the evening."""
    found: list[tuple[str, str, str, list[str]]] = []
    shown = [each for each in {**pages(scenes), **DJANGOS_OWN}.items() if each[0] not in SEEN]
    if share is None:
        shown = [each for each in shown if each[0] in OTHERWISE_ON_A_PHONE]
    for name, address in shown if share is None else shown[share::SHARES]:
        screen.goto(address)
        screen.wait_for_load_state("load")
        if screen.locator("textarea[data-editor]").count():
            screen.locator(".cm-editor").first.wait_for(state="attached")  # on a phone it is behind the form
        expect(screen.locator(".htmx-request")).to_have_count(0)  # what is asked anew is greyed
        found += too_wide(screen, name, look)
        found += violations(screen, name, look, WITHOUT_CONTRAST if look == "phone" else EVERYTHING)
        if look == "phone":
            continue
        if name in IN_THE_DARK:
            found += in_the_dark(screen, name)
        if name not in OTHERWISE_ON_A_PHONE:
            found += on_a_phone(screen, name)
    assert found == []


def too_wide(screen: Page, name: str, look: str) -> list[tuple[str, str, str, list[str]]]:
    """Whether a page sticks out of the window; how wide the admin is, is unfold's."""
    width = screen.viewport_size["width"] if screen.viewport_size else 0
    if name.startswith("admin") or screen.evaluate("document.documentElement.scrollWidth") <= width:
        return []
    return [(name, look, "sticks out", [])]


def in_the_dark(screen: Page, name: str) -> list[tuple[str, str, str, list[str]]]:
    """What has too little contrast there."""
    screen.emulate_media(color_scheme="dark")
    if not screen.locator("html[data-bs-theme=dark], html.dark").count():
        screen.reload()  # a page that follows the system only when it is loaded
    expect(screen.locator("html[data-bs-theme=dark], html.dark")).to_have_count(1)
    screen.evaluate(AT_REST)
    found = violations(screen, name, "dark", CONTRAST)
    screen.emulate_media(color_scheme="light")
    return found


def on_a_phone(screen: Page, name: str) -> list[tuple[str, str, str, list[str]]]:
    """Whether a page is too wide for one."""
    (width, height, _), (narrow, tall, _) = LOOKS["light"], LOOKS["phone"]
    screen.set_viewport_size({"width": narrow, "height": tall})
    with suppress(AssertionError):  # a chart learns of another width some frames later
        wait_for(lambda: not too_wide(screen, name, "phone"), 5)
    found = too_wide(screen, name, "phone")
    screen.set_viewport_size({"width": width, "height": height})
    return found


def violations(
    screen: Page, name: str, look: str, rules: dict[str, Any]
) -> list[tuple[str, str, str, list[str]]]:
    """What axe finds on a page."""
    return [
        (name, look, each["id"], [node["html"][:160] for node in each["nodes"]])
        for each in Axe().run(screen, options=rules).response["violations"]
    ]
