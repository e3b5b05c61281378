"""The editor that stands in for a textarea."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.static.pages import put
from tests.static.site import Site

pytestmark = pytest.mark.browser

EDITOR = """
<form method="post" action="/submit">
  {% include "components/editor.html" with id="file" name="file" label="Job file" %}
  <div data-problems-for="file"></div>
  <span data-problem-count hidden></span>
  <button name="draft">Draft</button>
  <button class="btn btn-primary" data-primary name="submit" value="yes">Submit</button>
</form>
"""


def put_editor(page: Page, site: Site, value: str = "") -> None:
    put(site, EDITOR, value=value, check_url="/check", fix_url="/fix", upload=True)
    page.goto("/")
    expect(page.locator("#file")).to_have_attribute("data-editor-mounted", "")


def test_editor_text_fills_the_field_and_shows_problems_in_place(page: Page, site: Site) -> None:
    site.checked["problems"] = [
        {
            "message": "No such GPU: <b>K80</b>",
            "code": "gpu",
            "pointer": "/gpuType",
            "line": 2,
            "column": 4,
            "fix": {"pointer": "/gpuType", "value": "A100"},
        }
    ]
    put_editor(page, site)
    page.get_by_role("textbox", name="Job file").click()
    page.keyboard.insert_text('{\n"😀": "K80"\n}')
    expect(page.locator("#file")).to_have_js_property("value", '{\n"😀": "K80"\n}')
    problem = page.locator(".problem")
    expect(problem).to_contain_text("No such GPU: <b>K80</b>")
    expect(page.locator("[data-problem-count]")).to_have_text("1 problem")
    expect(page.locator(".cm-lint-marker-error")).to_be_visible()
    # Columns count characters, and that one is two units long in the editor's own counting.
    expect(page.locator(".cm-lintRange-error")).to_have_text(":")
    path, fields = site.posted[-1]
    assert (path, fields["text"], fields["X-CSRFToken"]) == ("/check", '{\n"😀": "K80"\n}', "t0k3n")
    site.checked["problems"] = []
    problem.get_by_role("button", name="Fix").click()
    expect(page.locator("#file")).to_have_js_property("value", '{"mended": true}')
    expect(page.locator(".problem")).to_have_count(0)
    expect(page.locator("[data-problem-count]")).to_be_hidden()


@pytest.mark.parametrize(
    ("typed", "found"), [("x", "x"), ("[", '[{"a": 1}]'), ("{\n}\n", "{\n}\n"), ("中", "中")]
)
def test_editor_text_typed_over_a_problem_replaces_it(page: Page, site: Site, typed: str, found: str) -> None:
    site.checked["problems"] = [{"message": "No", "code": "no", "pointer": "/", "line": 1, "column": 1}]
    put_editor(page, site)
    page.get_by_role("textbox", name="Job file").click()
    page.keyboard.insert_text('{"a": 1}')
    expect(page.locator(".cm-lint-marker-error")).to_be_visible()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(typed)
    expect(page.locator("#file")).to_have_js_property("value", found)
    page.keyboard.press("Control+z")
    expect(page.locator("#file")).to_have_js_property("value", '{"a": 1}')
    page.keyboard.press("Control+a")
    page.keyboard.press("y")
    expect(page.locator("#file")).to_have_js_property("value", "y")


def test_control_enter_submits_with_the_main_button(page: Page, site: Site) -> None:
    put_editor(page, site, '{"a": 1}')
    page.get_by_role("textbox", name="Job file").click()
    page.keyboard.press("Control+End")
    page.keyboard.insert_text(" ")
    with page.expect_navigation():
        page.keyboard.press("Control+Enter")
    [fields] = [fields for path, fields in site.posted if path == "/submit"]
    assert (fields["file"], fields["submit"]) == ('{"a": 1} ', "yes")


def test_dropped_file_replaces_the_text_and_can_be_undone(page: Page, site: Site) -> None:
    put_editor(page, site, "old")
    transfer = page.evaluate_handle(
        """() => {
          const transfer = new DataTransfer();
          transfer.items.add(new File(["jobName: dropped\\n"], "job.yaml"));
          return transfer;
        }"""
    )
    page.dispatch_event(".cm-content", "dragover", {"dataTransfer": transfer})
    expect(page.locator(".editor-drop")).to_be_visible()
    page.dispatch_event(".cm-content", "drop", {"dataTransfer": transfer})
    expect(page.locator("#file")).to_have_js_property("value", "jobName: dropped\n")
    page.keyboard.press("Control+z")
    expect(page.locator("#file")).to_have_js_property("value", "old")


def test_non_text_upload_is_refused(page: Page, site: Site) -> None:
    put_editor(page, site, "kept")
    page.set_input_files(
        "[data-editor-file]", {"name": "job.bin", "mimeType": "text/plain", "buffer": b"\xff\xfe\x00"}
    )
    expect(page.locator(".toast-note")).to_contain_text("job.bin is not UTF-8 text.")
    expect(page.locator("#file")).to_have_js_property("value", "kept")


def test_editor_releases_keyboard_focus_on_tab(page: Page, site: Site) -> None:
    put_editor(page, site, "text")
    page.get_by_role("textbox", name="Job file").click()
    page.keyboard.press("Tab")
    expect(page.get_by_role("textbox", name="Job file")).not_to_be_focused()
