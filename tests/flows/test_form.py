"""The form beside the job file: each in step with the other, and nothing typed is lost."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator, Page, Response, Route, expect

from tests.flows.test_first_job import paste, state

pytestmark = pytest.mark.browser

DLC = """{
  // the first one of the week
  "DisplayName": "commented",
  "JobType": "PyTorchJob",
  "JobSpecs": [
    {"Type": "Worker", "PodCount": 1, "ResourceConfig": {"CPU": "4", "Memory": "16Gi"}}
  ],
  "UserCommand": "python train.py", // later with --epochs
  "JobMaxRunningTimeMinutes": 60
}
"""
SBATCH = "#!/bin/bash\n#SBATCH --job-name=scripted\n#SBATCH --nodes=1\npython train.py\n"
FOCUSED = """() => {
  const { activeElement } = document;
  return activeElement.name ?? activeElement.closest(".editor")?.querySelector("textarea")?.name;
}"""
"""The name of the field that one is in; that of a command stands beside its editor."""


def field(page: Page, name: str) -> Locator:
    return page.locator(f'[data-form] [name="{name}"]:not([type=hidden])')


def text(page: Page) -> Locator:
    return page.locator("#text")


def says(page: Page, pattern: str) -> None:
    """The job file comes to hold what matches."""
    expect(text(page)).to_have_value(re.compile(pattern, re.DOTALL))


def _hold_first(held: list[Route], route: Route) -> None:
    """Let the first request wait until the test sends it on."""
    if held:
        route.continue_()
    else:
        held.append(route)


def test_form_field_change_edits_text_and_keeps_comments_and_focus(page: Page) -> None:
    paste(page, DLC)
    expect(field(page, "name")).to_have_value("commented")
    cpu = field(page, "roles-0-cpu")
    cpu.fill("6.5")
    expect(text(page)).to_have_value(DLC.replace('"CPU": "4"', '"CPU": "6.5"'))
    expect(cpu).to_be_focused()
    page.locator(".new-editor .cm-content").click()
    page.keyboard.press("Control+z")
    expect(text(page)).to_have_value(DLC)
    expect(cpu).to_have_value("4")


def test_form_fields_follow_text_changes(page: Page) -> None:
    paste(page, DLC.replace("commented", "first"))
    expect(field(page, "name")).to_have_value("first")
    page.locator(".new-editor .cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(DLC.replace("commented", "second").replace('"4"', '"3"'))
    expect(field(page, "name")).to_have_value("second")
    expect(field(page, "roles-0-cpu")).to_have_value("3")


def test_form_with_unreadable_text_waits_and_loses_nothing(page: Page) -> None:
    paste(page, DLC)
    expect(field(page, "name")).to_have_value("commented")
    page.locator(".new-editor .cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text('{"DisplayName": ')
    expect(page.get_by_text("Waiting for a valid job file")).to_be_visible()
    expect(field(page, "name")).to_be_disabled()
    expect(field(page, "name")).to_have_value("commented")
    expect(text(page)).to_have_value('{"DisplayName": ')
    page.keyboard.press("Control+z")
    expect(field(page, "name")).to_be_enabled()
    expect(page.get_by_text("Waiting for a valid job file")).to_have_count(0)
    expect(text(page)).to_have_value(DLC)


def test_form_keeps_later_of_two_fast_edits_and_typing_in_between(page: Page) -> None:
    paste(page, DLC)
    expect(field(page, "name")).to_have_value("commented")
    held: list[Route] = []
    page.route("**/jobs/form/change", lambda route: _hold_first(held, route))
    name = field(page, "name")
    with page.expect_request("**/jobs/form/change"):
        name.fill("early")
        name.press("Enter")
    name.fill("late")
    field(page, "roles-0-memory").fill("8")
    held[0].continue_()
    says(page, '"DisplayName": "late".*"Memory": "8Gi".*// later with --epochs')
    expect(name).to_have_value("late")
    expect(field(page, "roles-0-memory")).to_have_value("8")


def test_form_selection_made_during_a_pending_change_survives(page: Page) -> None:
    paste(page, DLC)
    expect(field(page, "name")).to_have_value("commented")
    page.locator("[data-form-unfold]").click()
    held: list[Route] = []
    page.route("**/jobs/form/change", lambda route: _hold_first(held, route))
    with page.expect_request("**/jobs/form/change"):
        field(page, "after-0-job").fill("9f2k4m7q1x3z")
    field(page, "after-0-when").select_option("ended")
    held[0].continue_()
    says(page, '"when": "ended"')
    expect(field(page, "after-0-when")).to_have_value("ended")


def test_text_typed_during_a_pending_change_survives(page: Page) -> None:
    paste(page, DLC)
    expect(field(page, "name")).to_have_value("commented")
    held: list[Route] = []
    page.route("**/jobs/form/change", lambda route: _hold_first(held, route))
    with page.expect_request("**/jobs/form/change"):
        field(page, "name").fill("from-the-form")
    page.locator(".new-editor .cm-content").click()
    page.keyboard.press("Control+Home")
    page.keyboard.insert_text("// mine\n")
    held[0].continue_()
    says(page, "^// mine\n.*from-the-form")


def test_form_invalid_value_shows_problem_at_its_field_and_stays(page: Page) -> None:
    paste(page, DLC)
    expect(field(page, "name")).to_have_value("commented")
    gpus = field(page, "roles-0-gpus")
    gpus.fill("two")
    expect(page.locator("#f-roles-0-gpus_problem")).to_have_text("“two” is not a number.")
    expect(page.locator("[data-form-count]")).to_have_text("1 field to fix")
    assert text(page).input_value() == DLC
    field(page, "name").fill("other")
    says(page, '"DisplayName": "other"')
    expect(gpus).to_have_value("two")
    asked: list[str] = []

    def has_said_it_again(response: Response) -> bool:
        """The page that answers reads its file, and then says in it what the form says."""
        asked.append(urlsplit(response.url).path)
        return asked[-1] == "/jobs/form/change" and "/jobs/form/read" in asked

    with page.expect_response(has_said_it_again):
        page.get_by_role("button", name="Submit").click()
    expect(page.locator("#f-roles-0-gpus_problem")).to_be_in_viewport()
    expect(gpus).to_be_focused()
    page.locator(".new-editor .cm-content").click()
    page.get_by_role("link", name="1 field to fix").click()
    expect(gpus).to_be_focused()
    expect(gpus).to_have_value("two")


def test_form_adds_and_removes_rows(page: Page) -> None:
    paste(page, DLC)
    expect(field(page, "name")).to_have_value("commented")
    page.locator("#group-env > summary").click()
    field(page, "env-0-name").fill("EPOCHS")
    field(page, "env-0-value").fill("3")
    says(page, '"Envs": {\\s*"EPOCHS": "3"')
    field(page, "env-1-name").fill("SEED")
    field(page, "env-1-value").fill("7")
    says(page, '"SEED": "7"')
    page.get_by_role("button", name="Environment variables: remove row 1").click()
    expect(text(page)).not_to_have_value(re.compile("EPOCHS"))
    expect(field(page, "env-0-name")).to_have_value("SEED")
    expect(page.locator("#group-env > summary")).to_contain_text("1 set")


def test_form_converts_to_dlc_for_fields_the_dialect_lacks(page: Page) -> None:
    paste(page, SBATCH)
    expect(field(page, "name")).to_have_value("scripted")
    page.locator("#group-libraries > summary").click()
    expect(field(page, "libraries-folder")).to_be_disabled()
    page.locator("#f-libraries-folder_field").get_by_role("button", name="Convert to PAI-DLC").click()
    expect(field(page, "libraries-folder")).to_be_enabled()
    says(page, '"DisplayName": "scripted"')
    field(page, "libraries-folder").fill("/root/code")
    says(page, '"ThirdpartyLibDir": "/root/code"')


def test_command_editor_completes_variables(page: Page) -> None:
    page.goto("/jobs/new")
    expect(page.locator(".new-editor .cm-editor")).to_be_visible()
    field(page, "roles-0-command").focus()
    small = page.locator("#f-roles-0-command_field .cm-content")
    expect(small).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type("torchrun --nnodes $WORLD_")
    expect(page.locator(".cm-tooltip-autocomplete")).to_contain_text("number of nodes")
    page.keyboard.type("SIZ", delay=50)  # what is taken in the blink of an eye was not seen yet
    page.keyboard.press("Enter")
    says(page, r"torchrun --nnodes \$WORLD_SIZE")
    expect(small).to_be_focused()


def test_view_choice_by_keyboard_is_remembered(page: Page) -> None:
    page.goto("/jobs/new")
    expect(page.locator(".new-editor .cm-editor")).to_be_visible()
    page.get_by_role("radio", name="Side by side").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".new-editor")).to_be_hidden()
    page.reload()
    expect(page.get_by_role("radio", name="Form")).to_be_checked()
    expect(page.locator(".new-editor")).to_be_hidden()
    expect(field(page, "name")).to_be_focused()
    page.get_by_role("radio", name="Form").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(field(page, "name")).to_be_hidden()
    expect(page.locator(".new-editor")).to_be_visible()


def test_form_by_keyboard_alone_submits_helloworld_of_the_manual(page: Page) -> None:
    """Seed 002, section 2: basic information, cluster and GPU, environment, task role, submit, look."""
    page.add_init_script("localStorage.setItem('console.new-view', 'form')")
    page.goto("/jobs/new")
    expect(field(page, "name")).to_be_focused()
    _fill_in(page, "helloworld_16be675e")
    _go_to(page, "roles-0-image")
    _fill_in(page, "sitonholy/tensorflow:16.04-9.0-3.5-1.8.0")
    _go_to(page, "roles-0-command")
    expect(page.locator("#f-roles-0-command_field .cm-content")).to_be_focused()
    page.keyboard.press("Control+a")
    # The machine of the tests has the GPU in name only.
    page.keyboard.type('nvidia-smi || echo "Hello World"')
    for name, value in {"gpus": "1", "gpu-type": "TITANX", "cpu": "1", "memory": "8"}.items():
        _go_to(page, f"roles-0-{name}")
        _fill_in(page, value)
    page.keyboard.press("Tab")
    says(page, '"Memory": "8Gi"')
    expect(page.locator("#job-panel")).to_contain_text("Can start now on")
    wanted: dict[str, Any] = {
        "DisplayName": "helloworld_16be675e",
        "JobType": "PyTorchJob",
        "JobSpecs": [
            {
                "Type": "Worker",
                "PodCount": 1,
                "ResourceConfig": {"CPU": "1", "Memory": "8Gi", "GPU": "1", "GPUType": "TITANX"},
                "Image": "sitonholy/tensorflow:16.04-9.0-3.5-1.8.0",
            }
        ],
        "UserCommand": 'nvidia-smi || echo "Hello World"',
        "JobMaxRunningTimeMinutes": 1800,
    }
    assert json.loads(text(page).input_value()) == wanted
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/jobs/*/")
    expect(page.locator("h1")).to_have_text("helloworld_16be675e")
    state(page, "Succeeded")
    page.get_by_role("link", name="Logs").click()
    expect(page.locator(".log-line").last).to_contain_text("Hello World")


def _go_to(page: Page, name: str) -> None:
    """On with Tab until the field is reached."""
    for _step in range(80):
        page.keyboard.press("Tab")
        if page.evaluate(FOCUSED) == name:
            return
    raise AssertionError(f"{name} is not reached by keys")


def _fill_in(page: Page, value: str) -> None:
    page.keyboard.press("Control+a")
    page.keyboard.type(value)


def test_form_without_javascript_is_written_into_file_and_submitted(page: Page) -> None:
    browser = page.context.browser
    assert browser is not None
    base = page.url.split("/", 3)
    context = browser.new_context(
        java_script_enabled=False,
        base_url="/".join(base[:3]),
        storage_state=page.context.storage_state(),
    )
    plain = context.new_page()
    plain.goto("/jobs/new")
    plain.fill('[data-form] [name="name"]', "unscripted")
    plain.fill('[data-form] [name="roles-0-cpu"]', "many")
    plain.get_by_role("button", name="Update job file").click()
    expect(plain.locator("#f-roles-0-cpu_problem")).to_be_visible()
    assert '"DisplayName": "unscripted"' in plain.locator("#text").input_value()
    plain.fill('[data-form] [name="roles-0-cpu"]', "2")
    plain.get_by_role("button", name="Submit").click()
    expect(plain.locator("h1")).to_have_text("unscripted")
    context.close()
