"""What is typed is never lost: not by a browser that dies, a sign-in that ends, nor a second window."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import ARGUMENTS, executable
from tests.flows.test_first_job import paste
from tests.scenes import job_file
from tests.screenshots import sign_in
from tests.stack import Stack
from tests.waiting import wait_for

pytestmark = pytest.mark.browser

MOST_LOST_S = 2.0
BUSY_S = 6.0
"""What a machine that does much else may take for a save, beyond that."""


def draft_of(page: Page) -> str:
    """The number of the draft that the page has been given."""
    page.wait_for_url(re.compile(r"/jobs/new\?draft=\d+"))
    return page.url.rpartition("=")[2]


def kept(page: Page, draft: str) -> str:
    """The draft's text, as the console has it."""
    return page.request.get(f"/drafts/{draft}/file").text()


def test_draft_loses_two_seconds_at_most_when_browser_is_killed(
    browser: Browser, stack: Stack, page: Page, tmp_path: Path
) -> None:
    context = browser.browser_type.launch_persistent_context(
        str(tmp_path), executable_path=executable(), args=list(ARGUMENTS), base_url=stack.base_url
    )
    typing = context.pages[0]
    sign_in(typing, stack)
    typing.goto("/jobs/new")
    typing.locator(".new-editor .cm-content").click()
    typing.keyboard.press("Control+a")
    typed: list[tuple[float, str]] = []
    began, text = time.monotonic(), ""
    while time.monotonic() - began < BUSY_S + 3 * MOST_LOST_S:  # without a pause that a save could wait for
        letter = "abcdefghij"[len(text) % 10]
        typing.keyboard.type(letter)
        text += letter
        typed.append((time.monotonic(), text))
    draft = draft_of(typing)
    for process in _of(tmp_path):
        os.kill(process, signal.SIGKILL)
    died = time.monotonic()
    wait_for(lambda: not _of(tmp_path))
    saved = kept(page, draft)
    safe = max((each for when, each in typed if when < died - MOST_LOST_S - BUSY_S), key=len)
    assert text.startswith(saved)
    assert len(saved) >= len(safe)


def _of(profile: Path) -> list[int]:
    """The browser's processes."""
    return [each.pid for each in psutil.process_iter(["cmdline"]) if _uses(each, str(profile))]


def _uses(process: psutil.Process, profile: str) -> bool:
    return any(profile in word for word in process.info["cmdline"] or ())


def test_draft_typed_after_session_end_is_restored_on_sign_in(page: Page, stack: Stack) -> None:
    paste(page, job_file("signed-out"))
    draft = draft_of(page)
    page.context.clear_cookies(name="session")
    page.keyboard.insert_text("typed since")
    expect(page.locator("#draft-state")).to_contain_text("you are signed out")
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("link", name="Sign in").click()
    page.fill("#id_username", "admin")
    page.fill("#id_password", stack.password)
    page.press("#id_password", "Enter")
    page.wait_for_url(f"**/jobs/new?draft={draft}")
    expect(page.get_by_text("Unsaved input restored.")).to_be_visible()
    expect(page.locator(".new-editor .cm-content")).to_contain_text("typed since")
    wait_for(lambda: "typed since" in kept(page, draft))


def test_draft_open_in_two_windows_keeps_both_texts(page: Page) -> None:
    paste(page, job_file("in-two-windows"))
    draft = draft_of(page)
    second = page.context.new_page()
    second.goto(f"/jobs/new?draft={draft}")
    expect(second.locator(".new-editor .cm-content")).to_contain_text("in-two-windows")
    second.locator(".new-editor .cm-content").click()
    second.keyboard.insert_text("second window")
    wait_for(lambda: "second window" in kept(page, draft))
    page.locator(".new-editor .cm-content").click()
    page.keyboard.insert_text("first window")
    state = page.locator("#draft-state")
    expect(state).to_contain_text("This draft was changed in another window")
    assert "first window" not in kept(page, draft)
    with page.expect_popup() as opened:
        state.get_by_role("link", name="Show both").click()
    expect(opened.value.get_by_role("table")).to_contain_text("Edited in another window, saved separately")
    state.get_by_role("button", name="Continue with this text").click()
    expect(state).to_contain_text("Draft saved")
    assert "first window" in kept(page, draft)
    page.goto(f"/drafts/{draft}/versions")
    page.get_by_role("link").filter(has=page.locator("time")).nth(1).click()
    expect(page.locator("main")).to_contain_text("Draft version")
    expect(page.locator(".new-editor .cm-content")).to_contain_text("second window")
