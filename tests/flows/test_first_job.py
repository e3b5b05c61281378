"""From signing in to a running job, as a person does it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Page, expect

from tests.scenes import job_file
from tests.stack import Stack
from tests.waiting import wait_for

pytestmark = pytest.mark.browser

SEEDS: Final = Path(__file__).parents[1] / "data" / "seeds"
SECONDS: Final = 1000


def paste(page: Page, text: str) -> None:
    """Put `text` in place of what a new form begins with."""
    page.goto("/jobs/new")
    page.locator(".new-editor .cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def test_new_job_page_keys_on_load_leave_the_file_unchanged(page: Page) -> None:
    page.goto("/jobs/new")
    expect(page.locator(".new-editor .cm-editor")).to_be_visible()
    text = page.locator("#text").input_value()
    page.keyboard.type("q")
    expect(page.locator("#text")).to_have_value(text)
    page.keyboard.type("gh")
    page.wait_for_url("**/")


def test_new_job_page_paste_on_load_replaces_the_initial_text(page: Page) -> None:
    page.goto("/jobs/new")
    expect(page.locator(".new-editor .cm-editor")).to_be_visible()
    page.evaluate(
        """text => {
            const data = new DataTransfer();
            data.setData("text/plain", text);
            const how = { clipboardData: data, bubbles: true, cancelable: true };
            document.body.dispatchEvent(new ClipboardEvent("paste", how));
        }""",
        job_file("pasted"),
    )
    expect(page.locator("#text")).to_have_value(job_file("pasted"))
    page.keyboard.press("Control+Enter")
    expect(page.locator("h1")).to_have_text("pasted")


def test_submit_key_with_sweep_parameters_submits_the_sweep(page: Page) -> None:
    paste(page, job_file("swept", command="echo lr={lr}"))
    expect(page.locator("#job-panel")).to_contain_text("The command contains {lr}")
    page.locator("#sweep summary").first.click()
    page.locator("#id_sweep_parameters").fill("lr = 0.1, 0.01\nenv.SEED = 1, 2, 3")
    button = page.locator("button[data-primary]")
    expect(button).to_contain_text("Submit 6 jobs")
    expect(page.locator("#job-panel")).to_contain_text("Sweep of 6 jobs")
    expect(page.locator("#job-panel")).not_to_contain_text("The command contains")
    page.locator("#id_sweep_parameters").press("Control+Enter")
    page.wait_for_url("**/sweeps/*")
    page.goto("/drafts/")
    expect(page.locator("main")).not_to_contain_text("swept")


def state(page: Page, word: str, seconds: int = 30) -> None:
    expect(page.locator("#job-head .state-lg")).to_contain_text(word, timeout=seconds * SECONDS)


def test_pasted_helloworld_runs_and_reports_its_end(page: Page) -> None:
    paste(page, (SEEDS / "helloworld.json").read_text(encoding="utf-8"))
    expect(page.locator("[data-problems-for]")).to_contain_text("storageGB")
    expect(page.locator("[data-problems-for]")).to_contain_text("tmp")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/jobs/*/")
    expect(page.locator("h1")).to_have_text("helloworld_16be675e")
    state(page, "Succeeded")
    expect(page).to_have_title("Succeeded · helloworld_16be675e · Job Console")
    expect(page.locator("#job-head .state-lg")).to_contain_text("1 of 1 replicas failed")
    expect(page.locator(".cause")).to_contain_text("Exit code 127")
    expect(page.locator(".cause")).to_contain_text("nvidia-smi")


def test_gpu_missing_from_the_cluster_is_a_problem_before_submission(page: Page) -> None:
    text = (SEEDS / "helloworld.json").read_text(encoding="utf-8").replace("TITANX", "H9000")
    paste(page, text)
    expect(page.locator("[data-problems-for]")).to_contain_text("no H9000 GPU")


def test_log_view_shows_lines_as_they_are_written(page: Page) -> None:
    command = "n=0; while true; do n=$((n+1)); echo line $n of many; sleep 0.5; done"
    paste(page, job_file("talker", command=command))
    page.keyboard.press("Control+Enter")
    state(page, "Running")
    page.get_by_role("link", name="Logs").click()
    expect(page.locator(".log-line").first).to_have_text("line 1 of many")
    page.evaluate("window.notLoadedAnew = true")
    shown = page.locator(".log-line").count()
    expect(page.locator(".log-line").nth(shown + 3)).to_have_text(f"line {shown + 4} of many")
    assert page.evaluate("window.notLoadedAnew")
    page.get_by_role("button", name="Stop").click()
    page.locator("#confirm-yes").click()
    state(page, "Stopped")


def test_job_page_opens_on_its_live_log(page: Page) -> None:
    paste(page, job_file("spoken", command="echo said at once; sleep 60"))
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/jobs/*/")
    page.evaluate("window.notLoadedAnew = true")
    expect(page.locator(".log-line")).to_have_text(["said at once"])
    state(page, "Running")  # the head and the facts were fetched anew, and the log was not
    expect(page.locator(".log-line")).to_have_text(["said at once"])
    assert page.evaluate("window.notLoadedAnew")
    page.get_by_role("button", name="Stop").click()
    page.locator("#confirm-yes").click()
    state(page, "Stopped")


def test_job_copy_with_one_change_takes_three_actions(page: Page, scenes: dict[str, str]) -> None:
    page.goto(f"/jobs/{scenes['succeeded']}/")
    page.keyboard.press("c")
    page.wait_for_url("**/jobs/new?like=*")
    expect(page.locator(".new-editor .cm-activeLine")).to_contain_text('"command"')
    page.keyboard.insert_text("echo changed; ")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/jobs/*/")
    expect(page.locator("h1")).to_have_text("succeeded-job-2")
    expect(page.locator("#command-1")).to_contain_text("echo changed; for epoch")
    expect(page.get_by_role("link", name="succeeded-job", exact=True)).to_be_visible()


def test_invalid_job_file_shows_problem_beside_line_and_loses_nothing(page: Page) -> None:
    broken = job_file("broken").replace('"cpuNumber": 1', '"cpuNumber": "many"')
    paste(page, broken)
    expect(page.locator("[data-problem-count]")).to_have_text("1 problem")
    expect(page.locator(".new-editor .cm-lint-marker-error")).to_be_visible()
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-problems-for]")).to_contain_text("cpuNumber")
    assert json.loads(page.locator("#text").input_value())["jobName"] == "broken"
    page.goto("/drafts/")
    page.get_by_role("link", name="Untitled draft").first.click()
    expect(page.locator(".new-editor .cm-content")).to_contain_text('"many"')


def test_draft_survives_closing_the_tab(page: Page) -> None:
    paste(page, job_file("forgotten"))
    expect(page.locator("#draft-state")).to_contain_text("Draft saved")
    page.goto("/")
    page.get_by_role("link", name="forgotten").click()
    expect(page.locator(".new-editor .cm-content")).to_contain_text('"forgotten"')


def test_back_button_after_submission_restores_the_job_file(page: Page) -> None:
    paste(page, job_file("there-and-back"))
    page.keyboard.press("Control+Enter")
    expect(page.locator("h1")).to_have_text("there-and-back")
    page.go_back()
    expect(page.locator(".new-editor .cm-content")).to_contain_text('"there-and-back"')


def test_job_file_chosen_from_disk_is_loaded_and_submitted(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    path.write_text(job_file("dropped"))
    page.goto("/jobs/new")
    expect(page.locator(".new-editor .cm-editor")).to_be_visible()
    page.set_input_files("[data-editor-file]", path)
    expect(page.locator(".new-editor .cm-content")).to_contain_text('"dropped"')
    page.get_by_role("button", name="Submit").click()
    expect(page.locator("h1")).to_have_text("dropped")


def test_job_list_updates_by_itself(page: Page, stack: Stack, scenes: dict[str, str]) -> None:
    page.goto("/jobs/?q=live-job")
    expect(page.locator(".empty-title")).to_be_visible()
    other = page.context.new_page()
    paste(other, job_file("live-job", command="sleep 60"))
    other.keyboard.press("Control+Enter")
    other.wait_for_url("**/jobs/*/")
    expect(page.locator("#jobs-list .row-link")).to_have_text("live-job")
    expect(page.locator("#jobs-list .state")).to_have_text("Running")
    page.locator("#jobs-list [name=id]").check()
    page.get_by_role("group", name="Selected jobs").get_by_role("button", name="Stop").click()
    page.locator("#confirm-yes").click()
    expect(page.locator("#jobs-list .state")).to_have_text("Stopped")


def test_job_submission_works_without_javascript(page: Page, stack: Stack, tmp_path: Path) -> None:
    browser = page.context.browser
    assert browser is not None
    context = browser.new_context(java_script_enabled=False, base_url=stack.base_url)
    plain = context.new_page()
    plain.goto("/sign-in?next=/jobs/new")
    plain.fill("#id_username", "admin")
    plain.fill("#id_password", stack.password)
    plain.press("#id_password", "Enter")
    plain.fill("#text", job_file("plain", cpuNumber="many"))
    plain.get_by_role("button", name="Check").click()
    expect(plain.locator("[data-problems-for] .problem").first).to_be_visible()
    (tmp_path / "job.json").write_text(job_file("plain"))
    plain.set_input_files("[name=upload]", tmp_path / "job.json")
    plain.get_by_role("button", name="Submit").click()
    expect(plain.locator("h1")).to_have_text("plain")

    def shown() -> bool:
        plain.reload()
        return plain.locator("#job-head .state-succeeded").count() == 1

    wait_for(shown, interval=0.3)
    context.close()
