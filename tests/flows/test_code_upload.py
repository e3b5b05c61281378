"""Code from this computer in the form: a folder is chosen, sent, named in the job file, and run."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Page, expect

from tests.flows.test_first_job import paste, state

pytestmark = pytest.mark.browser

FILE: Final = json.dumps(
    {
        "DisplayName": "uploaded",
        "JobType": "PyTorchJob",
        "JobSpecs": [{"Type": "Worker", "PodCount": 1, "ResourceConfig": {"CPU": "1", "Memory": "1Gi"}}],
        "UserCommand": "cat pkg/word.txt 中文.txt && ./run.sh",
    },
    indent=2,
    ensure_ascii=False,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    (made / "pkg").mkdir(parents=True)
    (made / ".git").mkdir()
    (made / ".git" / "config").write_text("not sent")
    (made / "pkg" / "word.txt").write_text("from the browser\n")
    (made / "中文.txt").write_text("你好\n")
    (made / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (made / "large.bin").write_bytes(os.urandom(9 << 20))
    return made


def opened(page: Page) -> None:
    paste(page, FILE)
    expect(page.locator('[data-form] [name="name"]')).to_have_value("uploaded")
    page.locator("#group-code > summary").click()
    expect(page.locator("code-upload:defined")).to_be_visible()


def test_uploaded_folder_becomes_the_job_code_and_runs(page: Page, folder: Path) -> None:
    opened(page)
    page.locator("code-upload input[data-folder]").set_input_files(folder)
    expect(page.locator(".code-upload-status")).to_contain_text("uploaded")
    expect(page.locator("#new-form textarea[name=text]")).to_have_value(re.compile("upload://[0-9a-f]{64}"))
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/jobs/*/")
    state(page, "Succeeded", 60)
    page.get_by_role("link", name="Logs").click()
    expect(page.locator(".log-line")).to_have_text(["from the browser", "你好", "ran"])


def test_unchanged_folder_uploaded_again_sends_no_file(page: Page, folder: Path) -> None:
    opened(page)
    choose = page.locator("code-upload input[data-folder]")
    choose.set_input_files(folder)
    expect(page.locator(".code-upload-status")).to_contain_text("uploaded")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/uploads/" in request.url else None)
    with page.expect_response("**/uploads/trees"):
        choose.set_input_files(folder)
    assert [url.rpartition("/")[2] for url in asked] == ["missing", "trees"]


def test_code_upload_shows_console_refusal_beside_the_files(page: Page, folder: Path) -> None:
    opened(page)
    page.route(
        "**/uploads/packs",
        lambda route: route.fulfill(
            status=413, content_type="application/problem+json", body='{"detail": "You would have too much."}'
        ),
    )
    page.locator("code-upload input[data-files]").set_input_files(
        {"name": f"{os.urandom(8).hex()}.txt", "mimeType": "text/plain", "buffer": os.urandom(30)}
    )
    expect(page.locator(".code-upload-errors")).to_contain_text("You would have too much.")
    expect(page.locator(".code-upload-status")).to_have_text("Nothing was uploaded.")


def test_code_upload_works_by_keyboard_alone(page: Page, folder: Path) -> None:
    # From now on the browser's list of files is ours: told at the key itself, it may hear of that too late.
    page.on("filechooser", lambda _chooser: None)
    opened(page)
    choose = page.locator("code-upload input[data-files]")
    choose.focus()
    with page.expect_file_chooser() as chosen:
        page.keyboard.press("Enter")
    chosen.value.set_files(folder / "run.sh")
    expect(page.locator(".code-upload-status")).to_contain_text("1 file uploaded")
