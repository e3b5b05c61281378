"""The Jupyter job of the SCM page: pasted, mended, running, opened from its link, a cell run in it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, TimeoutError, expect  # noqa: A004  # theirs

from tests.browser import PATIENCE_MS
from tests.flows.test_first_job import SECONDS, SEEDS, paste, state
from tests.scenes import MACHINE
from tests.screenshots import sign_in
from tests.stack import Stack, running
from tests.waiting import wait_for

pytestmark = pytest.mark.browser

JUPYTER: Final = (SEEDS / "jupyter.json").read_text(encoding="utf-8")
START_S: Final = 150

NEW_NOTEBOOK: Final = """async () => {
  const [, xsrf] = /_xsrf=([^;]+)/.exec(document.cookie);
  const cell = {cell_type: "code", id: "one", metadata: {}, outputs: [], execution_count: null,
                source: "print(6 * 7 * 1000 + 1)"};
  const content = {cells: [cell], nbformat: 4, nbformat_minor: 5,
                   metadata: {kernelspec: {name: "python3", display_name: "Python 3", language: "python"}}};
  const answer = await fetch("/api/contents/cell.ipynb", {
    method: "PUT",
    headers: {"X-XSRFToken": xsrf, "Content-Type": "application/json"},
    body: JSON.stringify({type: "notebook", format: "json", content}),
  });
  return answer.status;
}"""


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    """A console whose jobs have the tests' own Jupyter, which lies where only this user may read."""
    machine = json.loads(MACHINE["CONSOLE_LOCAL"])
    path = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    local = {**machine, "isolation": "none", "path": path}
    with running({**MACHINE, "CONSOLE_LOCAL": json.dumps(local)}) as started:
        yield started


@pytest.fixture
def page(browser: Browser, stack: Stack) -> Iterator[Page]:
    """Not watched: Jupyter's own scripts are not ours."""
    context = browser.new_context(
        viewport={"width": 1440, "height": 900}, locale="en-GB", base_url=stack.base_url
    )
    context.set_default_timeout(PATIENCE_MS)
    opened = context.new_page()
    sign_in(opened, stack)
    yield opened
    context.close()


def submit(page: Page, *, keep_original: bool) -> None:
    paste(page, JUPYTER)
    box = page.get_by_label("Keep the original command")
    expect(page.locator(".diff-old")).to_contain_text("--ip 0.0.0.0")
    expect(page.locator(".diff-new")).to_contain_text("--ip=${JOB_CONSOLE_ENDPOINT_IP:-127.0.0.1}")
    box.set_checked(keep_original)
    page.get_by_role("button", name="Submit").click()
    state(page, "Running", START_S)


def run_cell(page: Page) -> None:
    cell = page.locator(".jp-CodeCell").first
    printed = cell.locator(".jp-OutputArea-output")
    cell.wait_for(timeout=START_S * SECONDS)
    # Jupyter drops what is asked of a kernel that still starts, and shows it; a person tries again.
    wait_for(lambda: _tried(cell) and printed.count(), START_S, 1)
    expect(printed).to_contain_text("42001")


def _tried(cell: Locator) -> bool:
    try:
        return _run(cell)
    except TimeoutError:
        return False  # a question came up just then


def _run(cell: Locator) -> bool:
    question = cell.page.locator(".jp-Dialog .jp-mod-accept")
    if question.count():  # on a slow machine Jupyter asks which kernel, or says that one is still starting
        question.first.click()
        return False
    cell.locator(".cm-content").click(timeout=2 * SECONDS)
    cell.page.keyboard.press("Control+Enter")
    return True


def test_new_job_page_shows_fixes_after_a_delayed_earlier_check(page: Page) -> None:
    asked: list[Route] = []

    def keep_the_first(route: Route) -> None:
        if route.request.method == "POST" and not asked:
            asked.append(route)
        else:
            route.continue_()

    page.route("**/jobs/new", keep_the_first)
    paste(page, "{}")
    expect(page.locator("[data-problems-for]")).to_contain_text("line 1")
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(JUPYTER)
    expect(page.locator("[data-problems-for]")).to_contain_text("storageGB")
    asked[0].continue_()
    expect(page.locator(".diff-old")).to_contain_text("--ip 0.0.0.0")


def test_fixed_jupyter_job_opens_from_its_link_and_runs_a_cell(page: Page, stack: Stack) -> None:
    submit(page, keep_original=False)
    expect(page.locator("#command-1")).to_contain_text("--ip=${JOB_CONSOLE_ENDPOINT_IP:-127.0.0.1}")
    link = page.get_by_role("link", name="Open jupyter")
    expect(link).to_be_visible(timeout=START_S * SECONDS)
    with page.context.expect_page() as opening:
        link.click()
    notebook = opening.value
    expect(notebook).to_have_title("Home", timeout=START_S * SECONDS)
    host = urlsplit(notebook.url).netloc
    assert host.endswith(f".apps.localhost:{stack.port}")
    assert notebook.evaluate(NEW_NOTEBOOK) == 201
    notebook.goto(f"http://{host}/notebooks/cell.ipynb")
    run_cell(notebook)


def test_jupyter_original_requested_unfixed_runs_unchanged(page: Page) -> None:
    submit(page, keep_original=True)
    expect(page.locator("#command-1")).to_contain_text("--ip 0.0.0.0")
    page.get_by_role("link", name="Logs").click()
    expect(page.locator("log-view")).to_contain_text("is running at", timeout=START_S * SECONDS)
