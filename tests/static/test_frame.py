"""What every page has: keys, the palette, asking first, copying, the theme, times, a phone's navigation."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.static.pages import put
from tests.static.site import Site
from tests.waiting import wait_for

pytestmark = pytest.mark.browser

SHELL = """
<a href="/there" data-key="c" data-command="there">Go there</a>
{% include "components/copyable.html" with text="4f7k2m9x" what="the id" %}
<form method="post" action="/stop" data-confirm="Stop it?" data-confirm-label="Stop">
  <button>Stop job</button>
</form>
<input aria-label="Name">
<time datetime="2020-01-01T00:00:00+00:00" data-relative>2020</time>
"""


@pytest.fixture
def shell(page: Page, site: Site) -> Page:
    put(site, SHELL)
    put(site, "there", path="/there")
    page.goto("/")
    expect(page.locator("[data-live-status]")).to_have_attribute("data-state", "live")
    return page


def test_shortcut_key_acts_unless_typing_or_disabled(shell: Page, site: Site) -> None:
    shell.get_by_role("textbox", name="Name").press("c")
    assert shell.url == f"{site.url}/"
    shell.get_by_role("textbox", name="Name").blur()
    shell.keyboard.press("?")
    dialog = shell.get_by_role("dialog", name="Keyboard shortcuts")
    expect(dialog).to_contain_text("Go there")
    dialog.get_by_role("checkbox").uncheck()
    shell.keyboard.press("Escape")
    shell.keyboard.press("c")
    assert shell.url == f"{site.url}/"
    shell.evaluate("document.getElementById('keys-on').click()")
    shell.keyboard.press("c")
    shell.wait_for_url("**/there")


def test_palette_runs_commands_by_keyboard_alone(shell: Page) -> None:
    shell.keyboard.press("Control+k")
    box = shell.get_by_role("combobox", name="Search and commands")
    expect(box).to_be_focused()
    box.fill("go th")
    expect(shell.get_by_role("option", selected=True)).to_contain_text("Go there")
    shell.keyboard.press("Enter")
    shell.wait_for_url("**/there")


def test_final_action_requires_confirmation(shell: Page, site: Site) -> None:
    shell.get_by_role("button", name="Stop job").click()
    question = shell.get_by_role("alertdialog")
    expect(question).to_contain_text("Stop it?")
    question.get_by_role("button", name="Cancel").click()
    assert site.posted == []
    shell.get_by_role("button", name="Stop job").click()
    with shell.expect_navigation():
        question.get_by_role("button", name="Stop").click()
    assert [path for path, _ in site.posted] == ["/stop"]


def test_copy_button_copies_the_id_and_announces_it(shell: Page) -> None:
    shell.context.grant_permissions(["clipboard-read", "clipboard-write"])
    shell.get_by_role("button", name="Copy the id").click()
    expect(shell.locator("#announcer")).to_have_text("Copied")
    assert shell.evaluate("navigator.clipboard.readText()") == "4f7k2m9x"


def test_theme_follows_the_system_until_chosen_and_is_remembered(shell: Page) -> None:
    root = shell.locator("html")
    shell.emulate_media(color_scheme="dark")
    expect(root).to_have_attribute("data-bs-theme", "dark")
    shell.get_by_role("button", name="Theme").click()
    shell.get_by_role("menuitemradio", name="Light").click()
    expect(root).to_have_attribute("data-bs-theme", "light")
    shell.reload()
    expect(root).to_have_attribute("data-bs-theme", "light")


def test_times_are_shown_short_with_exact_time_as_title(shell: Page) -> None:
    time = shell.locator("time")
    expect(time).to_have_text("Jan 1, 2020")
    expect(time).to_have_attribute("title", re.compile("2020"))


def test_hidden_page_closes_its_connection(shell: Page, site: Site) -> None:
    wait_for(lambda: site.open_streams == 1)
    hide = "Object.defineProperty(document, 'hidden', {value: %s, configurable: true});"
    tell = "document.dispatchEvent(new Event('visibilitychange'))"
    shell.evaluate(hide % "true" + tell)
    wait_for(lambda: site.open_streams == 0)
    shell.evaluate(hide % "false" + tell)
    wait_for(lambda: site.open_streams == 1)


def test_page_on_a_phone_fits_and_toggles_navigation(shell: Page) -> None:
    shell.set_viewport_size({"width": 390, "height": 844})
    assert shell.evaluate("document.documentElement.scrollWidth") <= 390
    navigation = shell.locator("#sidebar")
    expect(navigation).to_be_hidden()
    shell.get_by_role("button", name="Navigation").click()
    expect(navigation).to_have_class(re.compile(r"\bshow\b"))
    shell.keyboard.press("Escape")
    expect(navigation).to_be_hidden()
