"""Any job file in, any job file out, as people meet it in the browser."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Error, Page, Route, expect

from jobs import dialects
from jobs.dialects.document import Document
from jobs.dialects.formats import FORMATS
from jobs.messages import dialect_label
from tests.browser import watched
from tests.scenes import job_file, submit
from tests.screenshots import LOOKS, sign_in
from tests.stack import Stack
from tests.waiting import wait_for

pytestmark = pytest.mark.browser

SEEDS: Final = Path(__file__).parents[1] / "data" / "seeds"
DLC: Final = (SEEDS / "dlc-tfjob.json").read_text(encoding="utf-8")
SECONDS: Final = 1000
AS_A_PERSON: Final = 40
"""Milliseconds between keys: a list that opened within the last 75 takes no key for a choice."""
BOTH: Final = """{"jobName": "both", "image": "python:3.12", "JobType": "PyTorchJob", "JobSpecs": [],
"taskRoles": [{"name": "m", "cpuNumber": 1, "memoryMB": 256, "gpuNumber": 0, "command": "true"}]}"""


def written(page: Page, text: str) -> None:
    """Open the form and let `text` be in it, checked."""
    page.goto("/jobs/new?view=file")
    page.locator(".new-editor .cm-content").click()
    page.keyboard.press("Control+a")
    with page.expect_response("**/jobs/form/read"):
        page.keyboard.insert_text(text)


def value(page: Page) -> str:
    return page.locator("#text").input_value()


def show_as(page: Page, option: str) -> None:
    """Open the dialog and choose what to see."""
    page.get_by_role("button", name="Convert to …").click()
    page.locator("[data-compare-what]").select_option(option)


# --- What people paste -------------------------------------------------------------------------------------


def test_pasted_program_is_replaced_with_its_job_file(page: Page) -> None:
    written(page, (SEEDS.parent / "pasted" / "sdk-quota.txt").read_text(encoding="utf-8"))
    told = page.locator('[data-code="read_from_python"]')
    expect(told).to_contain_text("Nothing was run")
    expect(told).to_contain_text("line 33")
    told.get_by_role("button", name="Replace with the job file").click()
    expect(told).to_have_count(0)
    assert json.loads(value(page))["DisplayName"] == "sample-dlc-job"


def test_pasted_command_becomes_start_command_of_a_new_job(page: Page) -> None:
    written(page, "torchrun --nproc_per_node=2 train.py")
    told = page.locator('[data-code="is_a_command"]')
    expect(told).to_be_visible()
    told.get_by_role("button", name="Use as start command").click()
    expect(told).to_have_count(0)
    assert json.loads(value(page))["UserCommand"] == "torchrun --nproc_per_node=2 train.py"


# --- Completion and help -----------------------------------------------------------------------------------


def test_editor_completes_keys_allowed_at_the_cursor(page: Page) -> None:
    written(page, '{\n"jobName": "a",\n"taskRoles": [\n{\n"name": "w"\n}\n]\n}')
    expect(page.locator("[data-editor-state]")).to_contain_text("has jobName and taskRoles")
    page.locator(".new-editor .cm-line", has_text='"name"').click()
    page.keyboard.press("End")
    page.keyboard.press("Control+Space")
    options = page.locator(".cm-tooltip-autocomplete li")
    expect(options.first).to_contain_text("command")
    names = [text.split()[0] for text in options.all_text_contents()]
    assert any(name.startswith("cpuNumber") for name in names)
    assert not any(name.startswith("jobName") for name in names)
    expect(page.locator(".cm-completionInfo")).to_contain_text("runs in a shell")
    page.keyboard.type("gpuN", delay=AS_A_PERSON)
    expect(options).to_have_count(1)
    page.keyboard.press("Enter")
    page.keyboard.type("2")
    assert json.loads(value(page))["taskRoles"] == [{"name": "w", "gpuNumber": 2}]


def test_editor_completes_values_with_few_choices(page: Page) -> None:
    written(page, '{"DisplayName": "a", "JobSpecs": [], "JobType": ""}')
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Control+Space")
    options = page.locator(".cm-tooltip-autocomplete li")
    expect(options.filter(has_text="TFJob")).to_be_visible()
    page.keyboard.type("PyT", delay=AS_A_PERSON)
    expect(options).to_have_count(1)
    page.keyboard.press("Enter")
    assert json.loads(value(page))["JobType"] == "PyTorchJob"


@pytest.mark.parametrize("name", dialects.NAMES)
def test_editor_detects_checks_and_completes_each_dialect(page: Page, name: str) -> None:
    text = dialects.convert(
        Document((SEEDS / "jupyter.json").read_text(encoding="utf-8")), name
    ).document.text
    written(page, text)
    expect(page.locator("[data-editor-state]")).to_contain_text(dialect_label(name))
    page.keyboard.press("Control+Home")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    start = {"json": "", "yaml": "", "properties": "", "shell": "#SBATCH --"}[FORMATS[name].syntax]
    page.keyboard.press("Home")
    page.keyboard.type(start)
    page.keyboard.press("Control+Space")
    expect(page.locator(".cm-tooltip-autocomplete li").first).to_be_visible()
    expect(page.locator(".cm-completionInfo .cm-help")).to_be_visible()


def test_key_help_is_shown_under_pointer_and_by_keyboard(page: Page) -> None:
    written(page, job_file("explained"))
    key = page.locator(".new-editor .cm-line", has_text='"taskNumber"').locator("span", has_text="taskNumber")
    help_ = page.locator(".cm-help")

    def is_explained() -> int:
        """A check that is answered meanwhile draws the line anew, and takes the pointer's rest from it."""
        page.mouse.move(5, 5)
        key.hover()
        page.wait_for_timeout(1000)
        return help_.count()

    wait_for(is_explained)
    expect(help_).to_contain_text("taskNumber integer")
    page.mouse.move(5, 5)
    expect(help_).to_have_count(0)
    page.locator(".new-editor .cm-line", has_text='"gpuNumber"').locator("span", has_text="gpuNumber").click()
    page.mouse.move(5, 5)
    page.keyboard.press("F1")
    expect(help_).to_contain_text("gpuNumber integer")
    expect(page.locator("#announcer")).to_contain_text("gpuNumber")
    page.keyboard.press("ArrowDown")
    expect(help_).to_have_count(0)


# --- Checking and mending ----------------------------------------------------------------------------------


def test_problems_are_fixed_one_by_one_or_all_at_once(page: Page) -> None:
    text = job_file("a b", minFailedTaskCount=9, shmMB=900)
    written(page, text)
    name = page.locator(".problem", has_text="jobName")
    name.get_by_role("button", name="Fix").click()
    expect(name).to_have_count(0)
    expect(page.locator("#text")).to_have_js_property("value", text.replace("a b", "a_b"))
    page.get_by_role("button", name=re.compile("Fix all")).click()
    expect(page.locator("[data-problem-count]")).to_be_hidden()
    assert json.loads(value(page))["taskRoles"][0]["shmMB"] == 256
    page.get_by_role("textbox", name="Job file").focus()
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+z")
    expect(page.locator("#text")).to_have_js_property("value", text)


def test_problem_is_fixed_from_its_mark_in_the_editor(page: Page) -> None:
    written(page, job_file("a b"))
    page.locator(".cm-lintRange-error").hover()
    page.locator(".cm-tooltip .cm-diagnosticAction").click()
    expect(page.locator("[data-problem-count]")).to_be_hidden()
    assert json.loads(value(page))["jobName"] == "a_b"


def test_late_form_answer_is_not_shown(page: Page) -> None:
    page.goto("/jobs/new")
    page.locator(".new-editor .cm-content").click()
    page.keyboard.press("Control+a")
    asked: list[Route] = []
    page.route("**/jobs/form/read", lambda route: asked.append(route))  # noqa: PLW0108  # it wants a function
    page.keyboard.insert_text("{")
    wait_for(lambda: page.evaluate("1") and len(asked) == 1)
    page.keyboard.insert_text("}")
    wait_for(lambda: page.evaluate("1") and len(asked) == 2)
    for route, message in zip(reversed(asked), ("of now", "of then"), strict=True):
        told = {"code": "x", "message": message, "pointer": "", "line": 1, "column": 1, "fix": None}
        try:
            route.fulfill(json={"dialect": None, "problems": [told], "notes": []})
        except Error:
            assert message == "of then"  # the page did not wait for it any more
    expect(page.locator(".problem")).to_have_text(re.compile("of now"))


# --- Two that both fit -------------------------------------------------------------------------------------


def test_chosen_dialect_of_ambiguous_file_is_stored_in_the_draft(page: Page) -> None:
    written(page, BOTH)
    choices = page.locator(".problem-choices button")
    expect(choices).to_have_count(2)
    draft = page.locator("#draft-state input[name=draft]")
    expect(draft).to_be_attached()
    page.get_by_role("button", name="OpenPAI / SCM JSON").click()
    expect(page.locator("#id_dialect")).to_have_value("openpai-v1")
    expect(page.locator("[data-problem-count]")).to_be_hidden()
    with page.expect_response("**/drafts/save"):
        page.get_by_role("textbox", name="Job file").press("Control+End")
        page.keyboard.insert_text("\n")
    page.goto(f"/jobs/new?draft={draft.input_value()}")
    expect(page.locator("#id_dialect")).to_have_value("openpai-v1")
    page.keyboard.press("Control+Enter")
    expect(page.locator("h1")).to_have_text("both")


def test_dialect_is_detected_again_after_pasting_over_all_text(page: Page) -> None:
    written(page, BOTH)
    page.get_by_role("button", name="PAI-DLC CreateJob").click()
    expect(page.locator("#id_dialect")).to_have_value("dlc")
    page.get_by_role("textbox", name="Job file").focus()
    page.keyboard.press("Control+a")
    page.evaluate(
        """(text) => {
          const data = new DataTransfer();
          data.setData("text/plain", text);
          const root = document.querySelector(".editor-host").shadowRoot;
          const content = root.querySelector(".cm-content");
          const options = { clipboardData: data, bubbles: true, cancelable: true };
          content.dispatchEvent(new ClipboardEvent("paste", options));
        }""",
        job_file("pasted"),
    )
    expect(page.locator("#id_dialect")).to_have_value("")
    expect(page.locator("[data-problem-count]")).to_be_hidden()


# --- Show as -----------------------------------------------------------------------------------------------


def test_compare_dialog_shows_other_dialect_and_marks_each_loss(page: Page) -> None:
    written(page, DLC)
    show_as(page, "to:aihc")
    dialog = page.locator("dialog.compare")
    losses = dialects.convert(Document(DLC), "aihc").losses
    expect(dialog.locator(".problem")).to_have_count(len(losses))
    limit = dialog.locator(".problem", has_text="/time_limit_s")
    expect(limit).to_contain_text("Not supported: time limits.")
    expect(dialog.locator(".cm-merge-b .cm-content")).to_contain_text('"jobSpec"')
    limit.get_by_role("button").click()
    marked = dialog.locator(".cm-merge-a .cm-lintRange-warning", has_text="1024")
    expect(marked).to_be_visible()
    expect(dialog.get_by_role("textbox", name="Original")).to_be_focused()


def test_converted_text_is_downloaded_and_replaces_the_original(page: Page) -> None:
    text = job_file("taken")[:-1] + ', "jobEnvs": {"MY_TOKEN": "s3cret"}}'
    written(page, text)
    show_as(page, "to:dlc-params")
    dialog = page.locator("dialog.compare")
    expect(dialog.locator(".cm-merge-b .cm-content")).to_contain_text("$SECRET:MY_TOKEN")
    with page.expect_download() as started:
        dialog.get_by_role("button", name="Download").click()
    assert started.value.suggested_filename == "taken.params"
    kept = Path(started.value.path()).read_text()
    assert kept == dialects.convert(Document(text), "dlc-params").document.text
    dialog.get_by_role("button", name="Replace with this").click()
    expect(dialog).to_be_hidden()
    expect(page.locator("[data-editor-state]")).to_contain_text("PAI-DLC command line")
    assert "MY_TOKEN=s3cret" in value(page)
    page.keyboard.press("Control+z")
    expect(page.locator("#text")).to_have_js_property("value", text)


def test_fixes_are_previewed_before_applying(page: Page) -> None:
    written(page, job_file("a b"))
    show_as(page, "fixed")
    dialog = page.locator("dialog.compare")
    expect(dialog.locator(".cm-merge-a .cm-changedText")).to_have_count(1)
    expect(dialog.locator(".cm-merge-b .cm-changedLine")).to_contain_text("a_b")
    dialog.get_by_role("button", name="Replace with this").click()
    expect(page.locator("[data-problem-count]")).to_be_hidden()


def test_compare_dialog_for_invalid_file_shows_problems(page: Page) -> None:
    written(page, '{"jobName": "a", "taskRoles": []}')
    show_as(page, "to:dlc")
    dialog = page.locator("dialog.compare")
    expect(dialog.locator("[data-compare-state]")).to_contain_text("Fix these problems before converting")
    expect(dialog.locator(".problem").first).to_be_visible()
    expect(dialog.get_by_role("button", name="Replace with this")).to_be_disabled()


def test_compare_dialog_shows_changes_since_the_copied_job(page: Page, scenes: dict[str, str]) -> None:
    page.goto(f"/jobs/new?like={scenes['succeeded']}")
    expect(page.locator(".new-editor .cm-editor")).to_be_visible()
    page.keyboard.insert_text("echo changed; ")
    show_as(page, "before")
    dialog = page.locator("dialog.compare")
    expect(dialog.locator(".cm-merge-a .cm-changedText").first).to_be_visible()
    expect(dialog.locator(".cm-merge-a .cm-content")).to_contain_text(re.compile(r"succeeded-job-\d"))
    expect(dialog.locator(".cm-merge-b .cm-content")).not_to_contain_text("echo changed")


def test_job_file_is_shown_and_downloaded_in_any_dialect_without_secrets(page: Page, stack: Stack) -> None:
    text = job_file("kept")[:-1] + ', "jobEnvs": {"MY_TOKEN": "s3cret"}}'
    with closing(stack.client()) as client:
        job = submit(client, text)
    page.goto(f"/jobs/{job}/?tab=file")
    show_as(page, "to:dlc")
    dialog = page.locator("dialog.compare")
    expect(dialog.locator(".cm-merge-b .cm-content")).to_contain_text("$SECRET:MY_TOKEN")
    expect(dialog.get_by_role("button", name="Replace with this")).to_have_count(0)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Download as …").click()
    with page.expect_download() as started:
        page.get_by_role("link", name="PAI-DLC CreateJob JSON").click()
    assert started.value.suggested_filename == "kept.json"
    kept = Path(started.value.path()).read_text()
    assert "DisplayName" in kept
    assert "s3cret" not in kept


# --- For everybody -----------------------------------------------------------------------------------------


def test_compare_dialog_works_by_keyboard_alone(page: Page) -> None:
    written(page, job_file("a b"))
    reached = None
    for _step in range(12):
        page.keyboard.press("Tab")
        reached = page.evaluate("document.activeElement.textContent.trim()")
        if reached == "Convert to …":
            break
    assert reached == "Convert to …"
    page.keyboard.press("Enter")
    what = page.locator("[data-compare-what]")
    expect(what).to_be_focused()
    page.keyboard.type("With all")
    expect(what).to_have_value("fixed")
    use = page.get_by_role("button", name="Replace with this")
    expect(use).to_be_enabled()
    page.keyboard.press("Shift+Tab")
    for _step in range(12):
        if use.evaluate("button => button === document.activeElement"):
            break
        page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("textbox", name="Job file")).to_be_focused()
    assert json.loads(value(page))["jobName"] == "a_b"


@pytest.mark.parametrize("look", LOOKS)
def test_compare_dialog_is_accessible_and_fits_the_screen(browser: Browser, stack: Stack, look: str) -> None:
    width, height, scheme = LOOKS[look]
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, base_url=stack.base_url
    )
    with watched(context) as page:
        sign_in(page, stack)
        written(page, DLC)
        for option in ("to:openpai-v1", "fixed"):
            show_as(page, option)
            expect(page.locator("dialog.compare .cm-merge-b .cm-line").first).to_be_visible()
            found = Axe().run(page).response["violations"]
            assert [(each["id"], [node["html"][:160] for node in each["nodes"]]) for each in found] == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            page.keyboard.press("Escape")
        written(page, BOTH)
        expect(page.locator(".problem-choices")).to_be_visible()
        found = Axe().run(page).response["violations"]
        assert [(each["id"], [node["html"][:160] for node in each["nodes"]]) for each in found] == []
    context.close()


def test_pages_without_an_editor_load_no_editor_code(page: Page) -> None:
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url))
    for address in (
        "/",
        "/jobs/",
        "/nodes/",
        "/settings",
        "/settings/keys",
        "/settings/tokens",
        "/settings/secrets",
    ):
        page.goto(address)
        page.wait_for_load_state("load")
    assert [url for url in loaded if "codemirror" in url or "editor" in url] == []
