"""The Files tab as a person uses it: looking around, a text, uploading, replacing, downloading, a zip."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.flows.test_first_job import paste, state

pytestmark = pytest.mark.browser

JOB = """{"jobName": "files", "image": "none", "taskRoles": [
  {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 512,
   "command": "mkdir results; echo 'epoch,loss' > results/metrics.csv; touch .hidden; exec sleep 600"}]}"""


@pytest.fixture
def job(page: Page) -> str:
    """A running job's address."""
    paste(page, JOB)
    page.get_by_role("button", name="Submit").click()
    state(page, "Running", 30)
    return page.url.partition("?")[0]


def upload(page: Page, *files: Path) -> None:
    page.locator('job-files input[type="file"]').set_input_files(files)


def test_hidden_files_switch_shows_hidden_files_and_is_remembered(page: Page, job: str) -> None:
    page.goto(f"{job}?tab=files")
    hidden = page.get_by_role("link", name=".hidden", exact=True)
    expect(page.get_by_role("link", name="results (folder)")).to_be_visible()
    expect(hidden).to_be_hidden()
    page.locator(".files-all").check()
    expect(page.locator('input[name="chosen"][aria-label="Select .hidden"]')).not_to_be_checked()
    page.get_by_role("switch", name="Show hidden files").check()
    expect(hidden).to_be_visible()
    page.reload()
    expect(hidden).to_be_visible()


def test_files_tab_browses_uploads_and_downloads(page: Page, job: str, tmp_path: Path) -> None:
    page.keyboard.press("7")
    page.wait_for_url("**tab=files**")
    page.get_by_role("link", name="results (folder)").click()
    page.get_by_role("link", name="metrics.csv", exact=True).click()
    expect(page.locator(".files-text")).to_contain_text("epoch,loss")
    page.get_by_role("navigation", name="Path").get_by_role("link", name="/job").click()

    one, two = tmp_path / "模型 1.bin", tmp_path / "b.txt"
    one.write_bytes(bytes(3_000_000))
    two.write_text("first")
    upload(page, one, two)
    expect(page.get_by_role("link", name="模型 1.bin", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="b.txt", exact=True)).to_be_visible()
    two.write_text("second")
    upload(page, two)
    page.get_by_role("alertdialog").get_by_role("button", name="Replace").click()
    expect(page.get_by_role("row").filter(has_text="b.txt")).to_contain_text("6 bytes")

    with page.expect_download() as download:
        page.get_by_role("link", name="Download b.txt").click()
    assert download.value.suggested_filename == "b.txt"
    assert Path(download.value.path()).read_text() == "second"

    page.get_by_role("checkbox", name="Select 模型 1.bin").check()
    page.get_by_role("checkbox", name="Select results").check()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download selected as zip").click()
    with zipfile.ZipFile(download.value.path()) as packed:
        assert packed.namelist() == ["results/", "results/metrics.csv", "模型 1.bin"]

    page.get_by_role("button", name="New folder").click()
    page.get_by_label("Name", exact=True).fill("made here")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_text("Folder made here created.")).to_be_visible()
    page.get_by_role("button", name="Rename b.txt").click()
    page.get_by_label("New name").fill("c.txt")
    page.get_by_role("dialog").get_by_role("button", name="Rename").click()
    expect(page.get_by_role("link", name="c.txt", exact=True)).to_be_visible()
    page.get_by_role("checkbox", name="Select c.txt").check()
    page.get_by_role("button", name="Delete selected").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("1 item deleted.")).to_be_visible()
    expect(page.get_by_role("link", name="c.txt", exact=True)).to_have_count(0)


def test_files_tab_uploads_dropped_file_and_refuses_too_large_one(page: Page, job: str) -> None:
    page.goto(f"{job}?tab=files")
    dropped = page.evaluate_handle(
        """() => {
          const data = new DataTransfer();
          data.items.add(new File(["dropped"], "dropped.txt"));
          return data;
        }"""
    )
    page.dispatch_event("job-files", "drop", {"dataTransfer": dropped})
    expect(page.get_by_role("link", name="dropped.txt", exact=True)).to_be_visible()
    page.locator("job-files").evaluate("element => { element.dataset.most = '3'; }")
    again = page.evaluate_handle(
        """() => {
          const data = new DataTransfer();
          data.items.add(new File(["dropped"], "more.txt"));
          return data;
        }"""
    )
    page.dispatch_event("job-files", "drop", {"dataTransfer": again})
    expect(page.get_by_text(re.compile("more.txt is too large"))).to_be_visible()
