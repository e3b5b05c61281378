"""A real Jupyter through the gateway: its pages, its kernels, and a person's browser in front of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import BrowserContext, Locator, TimeoutError, expect  # noqa: A004  # theirs

from jobs.dialects.jupyter_commands import fix_command
from jobs.models import Endpoint
from quotas.encryption import decrypt
from tests.factories import make_endpoint
from tests.jobs.access.gateway.chromium import in_chromium
from tests.jobs.access.gateway.kernels import execute
from tests.jobs.access.gateway.served import CONSOLE, Browser
from tests.ports import free_port
from tests.waiting import wait_for

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

SEED = (
    "jupyter notebook --allow-root --no-browser --ip 0.0.0.0 --port=$PAI_CONTAINER_HOST_jupyter_PORT_LIST "
    r"--NotebookApp.token=\"\" --NotebookApp.allow_origin=\"*\" --NotebookApp.base_url=\"/\""
)
"""The command of the SCM page's sample, as the shell gets it."""

NOTEBOOK = {
    "cells": [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": "one",
            "metadata": {},
            "outputs": [],
            "source": "print(6 * 7 * 1000 + 1)",
        }
    ],
    "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}


def fixed_seed() -> str:
    fixed = fix_command(SEED)
    assert fixed is not None
    return fixed.command


COMMANDS = {
    "fixed": fixed_seed(),
    "lab": (
        "JUPYTER_TOKEN=$JOB_CONSOLE_ENDPOINT_TOKEN exec jupyter lab --allow-root --no-browser --ip=127.0.0.1 "
        "--port=$PAI_CONTAINER_HOST_jupyter_PORT_LIST"
    ),
}
"""The seed's, as the console fixes it; and one that never heard of a gateway."""


@pytest.fixture
def jupyter(request: pytest.FixtureRequest, transactional_db: None, tmp_path: Path) -> Iterator[Endpoint]:
    """The endpoint of a Jupyter that runs as a job would run it."""
    port = free_port()
    endpoint = make_endpoint(port=port)
    (tmp_path / "cell.ipynb").write_text(json.dumps(NOTEBOOK))
    environ = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path / "home"),
        "PAI_CONTAINER_HOST_jupyter_PORT_LIST": str(port),
        "JOB_CONSOLE_ENDPOINT_TOKEN": decrypt(endpoint.replica.attempt.endpoint_token),
    }
    command = ["bash", "-c", COMMANDS[getattr(request, "param", "fixed")]]
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(
            command, cwd=tmp_path, env=environ, stdout=log, stderr=log, start_new_session=True
        ) as process,
    ):
        try:
            wait_for(lambda: process.poll() is not None or answers(port), 60, 0.1)
            assert process.poll() is None, (tmp_path / "log").read_text()
            yield endpoint
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/api", trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


@pytest.fixture
def visitor(new_browser: Any, jupyter: Endpoint) -> Browser:
    """The owner's browser."""
    made: Browser = new_browser()
    made.sign_in(jupyter.replica.attempt.job.owner)
    return made


@pytest.mark.parametrize("jupyter", COMMANDS, indirect=True)
def test_jupyter_kernel_executes_a_cell_through_the_gateway(visitor: Browser, jupyter: Endpoint) -> None:
    host = visitor.host(jupyter)
    answer, way = visitor.follow(CONSOLE, f"/endpoints/{jupyter.slug}/open")
    assert answer.status_code == 200
    assert "jupyter" in answer.text.lower()
    assert way[-1].startswith(host)
    sent = {"X-XSRFToken": visitor.cookies(host)["_xsrf"], "Origin": f"http://{host}:{visitor.port}"}
    started = visitor.request("POST", host, "/api/kernels", sent, json={"name": "python3"})
    assert started.status_code == 201, started.text
    assert execute(visitor, host, started.json()["id"], "print(6 * 7)") == "42\n"
    assert len(execute(visitor, host, started.json()["id"], "print('x' * 300_000)")) == 300_001


def test_jupyter_refuses_requests_without_the_link_token(visitor: Browser, jupyter: Endpoint) -> None:
    host = visitor.host(jupyter)
    visitor.open(jupyter)
    kept = visitor.cookies(host)
    for name in [name for name in kept if not name.startswith("job-console")]:
        del kept[name]
    assert visitor.request("GET", host, "/api/contents").status_code == 403


@pytest.mark.browser
@pytest.mark.parametrize(
    ("jupyter", "then"),
    [("fixed", "/notebooks/cell.ipynb"), ("lab", "/lab/tree/cell.ipynb")],
    indirect=["jupyter"],
)
def test_jupyter_link_opens_in_a_browser_and_runs_a_cell(
    visitor: Browser, jupyter: Endpoint, then: str
) -> None:
    link = f"http://{CONSOLE}:{visitor.port}/endpoints/{jupyter.slug}/open?next={then}"

    def look(context: BrowserContext) -> str:
        page = context.new_page()
        page.goto(link)
        cell = page.locator(".jp-CodeCell").first
        printed = cell.locator(".jp-OutputArea-output")
        cell.wait_for()
        # Jupyter drops what is asked of a kernel that still starts, and shows it; a person tries again.
        wait_for(lambda: run(cell) and printed.count(), 60, 1)
        expect(printed).to_contain_text("42001")
        return page.url

    def run(cell: Locator) -> bool:
        question = cell.page.locator(".jp-Dialog .jp-mod-accept")
        try:
            if question.count():  # on a slow machine Jupyter asks which kernel, or says that one still starts
                question.first.click(timeout=5000)
                return False
            cell.locator(".cm-content").click(timeout=5000)
        except TimeoutError:
            return False  # a question came up just then, or went
        cell.page.keyboard.press("Control+Enter")
        return True

    at = in_chromium(look, session_key=visitor.sign_in(jupyter.replica.attempt.job.owner))
    assert at.startswith(f"http://{visitor.host(jupyter)}:{visitor.port}{then}")
