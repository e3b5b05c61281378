"""A terminal as a person uses it: `t` on a running job, typing, another size, and the page loaded again."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.flows.test_first_job import paste, state
from tests.stack import Stack
from tests.waiting import wait_for

pytestmark = pytest.mark.browser

JOB = """{"jobName": "terminal", "image": "none", "taskRoles": [
  {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 512,
   "command": "echo up; exec sleep 600"}]}"""

SHOWS = """([text]) => {
  const rows = document.querySelector(".xterm-rows");
  return rows?.textContent.replaceAll("\\u00a0", " ").includes(text);
}"""


def shows(page: Page, text: str) -> None:
    page.wait_for_function(SHOWS, arg=[text])


@pytest.fixture
def job(page: Page) -> str:
    """A running job's address."""
    paste(page, JOB)
    page.get_by_role("button", name="Submit").click()
    state(page, "Running", 30)
    return page.url.partition("?")[0]


def test_terminal_takes_typing_and_survives_a_page_reload(page: Page, job: str) -> None:
    page.keyboard.press("t")
    page.wait_for_url("**tab=terminal**")
    shows(page, "$")
    expect(page.locator("#terminal-bar .chip")).to_have_count(1)
    expect(page.locator("#terminal-bar").get_by_role("button", name="End")).to_be_visible()
    page.locator(".xterm-helper-textarea").focus()
    page.keyboard.type("kept=42; echo 'wor'ld 中文\n")
    shows(page, "world 中文")
    page.keyboard.type("printf '\\033[38;2;1;2;3mcolour\\033[0m\\n'\n")
    expect(page.locator(".xterm-rows span", has_text=re.compile("^colour$")).last).to_have_css(
        "color", "rgb(1, 2, 3)"
    )
    page.set_viewport_size({"width": 900, "height": 700})
    page.reload()
    shows(page, "world 中文")
    page.locator(".xterm-helper-textarea").focus()
    page.keyboard.type("echo $kept=kept\n")
    shows(page, "42=kept")
    page.get_by_role("link", name="New terminal").click()
    expect(page.locator("#terminal-bar .chip")).to_have_count(2)
    expect(page).to_have_url(re.compile("open="))
    shows(page, "$")
    page.locator(".xterm-helper-textarea").focus()
    page.keyboard.type("exit\n")
    expect(page.get_by_role("status").filter(has_text="This terminal has ended")).to_be_visible()


def test_downloaded_key_with_the_shown_command_opens_the_job(
    page: Page, job: str, stack: Stack, tmp_path: Path
) -> None:
    page.goto(f"{job}?tab=connect")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download a key for this job").click()
    key = tmp_path / download.value.suggested_filename
    download.value.save_as(key)
    key.chmod(0o600)
    page.goto(f"{job}?tab=connect")
    command = page.get_by_role("button", name="Copy Single command").get_attribute("data-copy")
    assert command is not None
    words = command.replace("nvidia-smi", "echo in; exit 5").split(" ", 1)[1]
    known = f"-o UserKnownHostsFile={tmp_path}/known -o StrictHostKeyChecking=no -o BatchMode=yes -F none"
    done = subprocess.run(
        ["sh", "-c", f"exec ssh {known} {words.replace('echo in; exit 5', '')} 'echo in; exit 5'"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.stdout, done.returncode) == ("in\n", 5), done.stderr
    seen = (tmp_path / "known").read_text().split()[1:3]
    wait_for(lambda: " ".join(seen) == (stack.home / "keys/ssh_host_ed25519_key.pub").read_text().strip())
