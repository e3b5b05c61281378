"""Fields of each kind and section of the form filled in, in a browser; the file beside it then has them.

That each single field makes what it should is tested where the page sends it to: `tests/jobs/web/new_job`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.stack import Stack
from tests.waiting import wait_for
from tests.wholeform import VALUES

pytestmark = pytest.mark.browser

KIND = "from quotas.models import Quota; Quota.objects.update(kind='{}')"
PATIENCE_S = 30

FILLED = (
    *("name", "description", "visibility", "tags-0-name", "tags-0-value", "roles-0-image", "roles-0-command"),
    *("env-0-name", "env-0-value", "mounts-0-uri", "mounts-0-path", "mounts-0-purpose", "mounts-0-read-only"),
    *("framework", "roles-0-replicas", "roles-0-gpus", "roles-0-gpu-type", "roles-0-memory", "roles-0-shm"),
    *("roles-0-ports-0-label", "roles-0-ports-0-begin", "roles-0-ports-0-count", "roles-0-nodes-labels"),
    *("priority", "idle", "option-EnableResourcePreCheck", "time-limit", "hold", "retries", "vpc"),
)
IN_THE_FILE = (
    *(
        "whole",
        "All of it, once.",
        "vision",
        "registry.example.com/team/train:2",
        "python train.py",
        "EPOCHS",
    ),
    *("oss://bucket.oss-cn-hangzhou.aliyuncs.com/data/", "/mnt/data", "PyTorchJob", "A100", "16Gi", "8081"),
    *("zone", "EnableResourcePreCheck", "vpc-1"),
)


@pytest.fixture
def lingjun(stack: Stack) -> Iterator[None]:
    """The console's quota is one of Lingjun machines, where the pages offer the most."""
    stack.python(KIND.format("lingjun"))
    yield
    stack.python(KIND.format("general"))


def said(page: Page) -> str:
    return page.locator("#text").input_value()


def unfolded(page: Page) -> bool:
    """Press for all settings; until the form's script is there that does nothing."""
    button = page.locator("[data-form-unfold]")
    button.click()
    return button.get_attribute("aria-pressed") == "true"


def fill_in(page: Page, name: str, value: str) -> None:
    """As a person does: wherever the field is, and whatever it looks like."""
    field = page.locator(f'[name="{name}"]:not([type="hidden"])')
    expect(field).to_be_enabled()
    kind = str(field.evaluate("each => each.type || each.tagName"))
    before, is_so = said(page), field.input_value() == value and kind != "checkbox"
    if kind == "checkbox":
        field.check()
    elif kind.startswith("select"):
        field.select_option(value)
    elif name == "roles-0-command":
        write_command(page, field, value)
    else:
        field.fill(value)
        field.blur()
    is_half_a_row = name in {"env-0-value", "tags-0-value"} or name.endswith(("-path", "-begin"))
    if not is_half_a_row and not is_so and value not in before:
        wait_for(lambda: said(page) != before, timeout=PATIENCE_S)


def write_command(page: Page, field: Locator, value: str) -> None:
    """The command has an editor of its own, which comes when somebody goes there."""
    field.focus()
    content = page.locator(".form-editor .cm-content")
    expect(content).to_be_visible()
    content.click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(value)


@pytest.mark.usefixtures("lingjun")
def test_form_with_fields_of_each_kind_filled_in_makes_a_file_with_all(page: Page) -> None:
    page.goto("/jobs/new")
    expect(page.locator(".cm-editor").first).to_be_visible()
    wait_for(lambda: unfolded(page), timeout=PATIENCE_S)
    for name in FILLED:
        fill_in(page, name, VALUES[name])
    wait_for(lambda: [each for each in IN_THE_FILE if each not in said(page)] == [], timeout=PATIENCE_S)
    assert json.loads(said(page))["JobSpecs"][0]["PodCount"] == int(VALUES["roles-0-replicas"])
