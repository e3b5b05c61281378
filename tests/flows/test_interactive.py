"""From a click to the open page: JupyterLab, TensorBoard, Gradio and a shell, each the real thing."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import PATIENCE_MS
from tests.flows.test_first_job import SECONDS, paste, state
from tests.flows.test_jupyter import NEW_NOTEBOOK, run_cell
from tests.scenes import MACHINE, job_file
from tests.screenshots import sign_in
from tests.stack import Stack, running

pytestmark = pytest.mark.browser

START_S: Final = 90
WRITES_CURVES: Final = """
import os, time
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
writer = EventFileWriter("runs/first")
for step in range(20):
    value = Summary.Value(tag="training/loss", simple_value=4321.0 / (step + 1))
    writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=[value])))
writer.close()
"""
GRADIO: Final = """
import json, os, socket
import gradio
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
with gradio.Blocks() as app:
    name, told = gradio.Textbox(label="Name"), gradio.Textbox(label="Told")
    gradio.Button("Greet").click(lambda name: f"Hello {name}!", name, told)
app.launch(server_name="127.0.0.1", server_port=port, prevent_thread_lock=True, quiet=True)
with open(os.environ["JOB_CONSOLE_ENDPOINTS"], "a") as file:
    file.write(json.dumps({"label": "greeter", "port": port, "path": "/?__theme=light"}) + "\\n")
app.block_thread()
"""


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    """A console whose jobs have the tests' own programs, which lie where only this user may read."""
    machine = json.loads(MACHINE["CONSOLE_LOCAL"])
    path = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    local = {**machine, "isolation": "none", "path": path}
    with running({**MACHINE, "CONSOLE_LOCAL": json.dumps(local)}) as started:
        yield started


@pytest.fixture
def page(browser: Browser, stack: Stack) -> Iterator[Page]:
    """Not watched: the scripts of what jobs serve are not ours."""
    context = browser.new_context(
        viewport={"width": 1440, "height": 900}, locale="en-GB", base_url=stack.base_url
    )
    context.set_default_timeout(PATIENCE_MS)
    opened = context.new_page()
    sign_in(opened, stack)
    yield opened
    context.close()


def start(page: Page, title: str) -> None:
    page.get_by_role("link", name="Launch", exact=True).click()
    page.get_by_role("link", name=title, exact=True).click()
    page.get_by_label("GPUs").fill("0")
    page.get_by_role("button", name="Launch").click()


def submit(page: Page, name: str, program: str) -> None:
    command = f"GRADIO_ANALYTICS_ENABLED=False exec python3 -c {shlex.quote(program)}"
    paste(page, job_file(name, command=command, memoryMB=1024))
    page.get_by_role("button", name="Submit").click()


def is_on_its_own_host(page: Page, stack: Stack) -> None:
    assert urlsplit(page.url).netloc.endswith(f".apps.localhost:{stack.port}")


def test_jupyterlab_one_click_start_opens_and_runs_a_cell(page: Page, stack: Stack) -> None:
    start(page, "JupyterLab")
    expect(page.get_by_role("heading", name="Opens automatically when ready")).to_be_visible()
    page.wait_for_url("**/lab*", timeout=START_S * SECONDS)
    is_on_its_own_host(page, stack)
    expect(page.locator("#jp-main-dock-panel")).to_be_visible(timeout=START_S * SECONDS)
    assert page.evaluate(NEW_NOTEBOOK) == 201
    page.goto(f"http://{urlsplit(page.url).netloc}/lab/tree/cell.ipynb")
    run_cell(page)


def test_tensorboard_shows_a_scalar_written_by_a_job(page: Page, stack: Stack) -> None:
    submit(page, "writes-curves", WRITES_CURVES)
    state(page, "Succeeded", START_S)
    page.get_by_role("button", name="More").click()
    page.get_by_role("link", name="Open in TensorBoard").click()
    expect(page.get_by_role("checkbox", name="writes-curves")).to_be_checked()
    page.get_by_role("button", name="Launch").click()
    page.wait_for_url("**/*.apps.localhost*/**", timeout=START_S * SECONDS)
    is_on_its_own_host(page, stack)
    card = page.locator("scalar-card").first
    expect(card).to_contain_text("loss", timeout=START_S * SECONDS)
    card.scroll_into_view_if_needed()
    run = page.locator("runs-table-row, tb-data-table-content-row").first
    expect(page.locator("body")).to_contain_text("writes-curves", timeout=START_S * SECONDS)
    expect(run).to_be_visible(timeout=START_S * SECONDS)
    host = urlsplit(page.url).netloc
    told = page.evaluate(
        """async (address) => {
             const body = new FormData();
             body.set("requests", JSON.stringify([{plugin: "scalars", tag: "training/loss"}]));
             const answer = await fetch(address, {method: "POST", body});
             return JSON.stringify(await answer.json());
           }""",
        f"http://{host}/experiment/defaultExperimentId/data/plugin/timeseries/timeSeries",
    )
    assert "4321" in told


def test_tensorboard_beside_a_running_job_opens_from_its_page(page: Page, stack: Stack) -> None:
    program = WRITES_CURVES.replace('"runs/first"', 'os.environ["AIHC_TENSORBOARD_LOG_PATH"]')
    command = f"python3 -c {shlex.quote(program)} && sleep 600"
    job = {
        "name": "beside",
        "queue": "default",
        "jobType": "PyTorchJob",
        "command": command,
        "jobSpec": {"image": "registry.example.com/torch:2", "replicas": 1},
        "tensorboardConfig": {"enable": True},
    }
    paste(page, json.dumps(job))
    page.get_by_role("button", name="Submit").click()
    state(page, "Running", START_S)
    page.get_by_role("link", name="Connect").click()
    link = page.get_by_role("link", name="Open tensorboard")
    expect(link).to_be_visible(timeout=START_S * SECONDS)
    with page.context.expect_page() as opening:
        link.click()
    board = opening.value
    is_on_its_own_host(board, stack)
    expect(board.locator("scalar-card").first).to_contain_text("loss", timeout=START_S * SECONDS)


def test_gradio_app_announced_by_its_job_appears_and_responds(page: Page, stack: Stack) -> None:
    submit(page, "greets", GRADIO)
    state(page, "Running", START_S)
    page.get_by_role("link", name="Connect").click()
    link = page.get_by_role("link", name="Open greeter")
    expect(link).to_be_visible(timeout=START_S * SECONDS)
    with page.context.expect_page() as opening:
        link.click()
    app = opening.value
    app.wait_for_url("**/?__theme=light*", timeout=START_S * SECONDS)
    is_on_its_own_host(app, stack)
    app.get_by_label("Name").fill("Ada")
    app.get_by_role("button", name="Greet").click()
    expect(app.get_by_label("Told")).to_have_value("Hello Ada!", timeout=START_S * SECONDS)


def test_shell_start_opens_the_terminal_and_runs_commands(page: Page) -> None:
    start(page, "Shell")
    page.wait_for_url("**/?tab=terminal*", timeout=START_S * SECONDS)
    expect(page.locator(".xterm-rows")).to_contain_text(re.compile("[$#] "), timeout=START_S * SECONDS)
    page.locator(".xterm-helper-textarea").focus()
    page.keyboard.type("echo $((6 * 7000 + 1))\n")
    expect(page.locator(".xterm-rows")).to_contain_text("42001", timeout=START_S * SECONDS)


def test_interactive_start_of_missing_app_shows_the_reason(page: Page) -> None:
    start(page, "VS Code")
    expect(page.get_by_role("heading", name="The job ended before it could be opened")).to_be_visible(
        timeout=START_S * SECONDS
    )
    expect(page.locator("#opening")).to_contain_text("VS Code server is not installed where this job runs")
