"""Every field of the form filled in once, in a browser; the file beside it is then the expected one."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.stack import Stack
from tests.waiting import wait_for
from tests.wholeform import EXPECTED, VALUES

pytestmark = pytest.mark.browser

KIND = "from quotas.models import Quota; Quota.objects.update(kind='{}')"
PATIENCE_S = 30


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
def test_form_with_every_field_filled_in_makes_the_expected_file(page: Page) -> None:
    page.goto("/jobs/new")
    expect(page.locator(".cm-editor").first).to_be_visible()
    wait_for(lambda: unfolded(page), timeout=PATIENCE_S)
    for name, value in VALUES.items():
        fill_in(page, name, value)
    wait_for(lambda: json.loads(said(page)) == EXPECTED, timeout=PATIENCE_S)
