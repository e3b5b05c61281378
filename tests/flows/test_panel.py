"""The panel beside the form: what it says follows the form, and what will be sent is what is downloaded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.flows.test_first_job import paste
from tests.flows.test_form import field
from tests.stack import Stack

pytestmark = pytest.mark.browser

PRICE: Final = """
from quotas.models import Quota, Spec
Spec.objects.update_or_create(
    name="panel.small", defaults={"cpu_milli": 1000, "memory_mib": 1024, "price_micro": 2_000_000}
)
Quota.objects.update(source="public")
"""
NO_PRICE: Final = """
from quotas.models import Quota, Spec
Spec.objects.filter(name="panel.small").delete()
Quota.objects.update(source="quota")
"""
FILE: Final = json.dumps(
    {
        "DisplayName": "looked-at",
        "JobType": "PyTorchJob",
        "JobSpecs": [{"Type": "Worker", "PodCount": 1, "ResourceConfig": {"CPU": "1", "Memory": "1Gi"}}],
        "UserCommand": "echo looked at",
        "JobMaxRunningTimeMinutes": 120,
    },
    indent=2,
)


@pytest.fixture
def priced(stack: Stack) -> Iterator[None]:
    """A core with a GiB costs 2 an hour, and the console's quota is paid as one goes."""
    stack.python(PRICE)
    yield
    stack.python(NO_PRICE)


def panel(page: Page) -> Locator:
    return page.locator("#job-panel")


def per_hour(page: Page) -> Locator:
    """The figure beside “Per hour”."""
    return panel(page).locator("dt", has_text=re.compile(r"^\s*Per hour\s*$")).locator("xpath=../dd")


@pytest.mark.usefixtures("priced")
def test_panel_price_follows_the_replicas_field(page: Page) -> None:
    paste(page, FILE)
    expect(field(page, "name")).to_have_value("looked-at")
    expect(panel(page)).to_contain_text("Can start now on")
    expect(panel(page)).to_contain_text("Pay as you go")
    expect(per_hour(page)).to_contain_text(re.compile(r"\b2\.00"))
    replicas = field(page, "roles-0-replicas")
    replicas.fill("3")
    expect(per_hour(page)).to_contain_text(re.compile(r"\b6\.00"))
    expect(panel(page)).to_contain_text(re.compile(r"\b12\.00"))
    expect(replicas).to_be_focused()
    replicas.fill("100000")
    expect(panel(page)).not_to_contain_text("Can start now on")


def test_panel_start_suggestion_leads_to_its_form_field(page: Page) -> None:
    large = {"PodCount": 3, "ResourceConfig": {"CPU": "22", "Memory": "1Gi"}}  # of 64; others' jobs need some
    paste(page, json.dumps({**json.loads(FILE), "JobSpecs": [{"Type": "Worker", **large}]}))
    expect(field(page, "name")).to_have_value("looked-at")
    panel(page).get_by_role("link", name="Can start now with 2 replicas").click()
    expect(field(page, "roles-0-replicas")).to_be_focused()
    expect(field(page, "roles-0-replicas")).to_have_value("2")
    expect(panel(page)).to_contain_text("Can start now on")


def test_panel_script_preview_equals_the_download(page: Page) -> None:
    paste(page, FILE)
    expect(field(page, "name")).to_have_value("looked-at")
    expect(panel(page).get_by_role("heading", name="Resource quota")).to_be_visible()
    page.get_by_role("radio", name="Cost & quota").focus()
    page.keyboard.press("ArrowRight")
    script = panel(page).locator("pre")
    expect(script).to_contain_text("echo looked at")
    expect(panel(page).get_by_role("heading", name="Resource quota")).to_have_count(0)
    with page.expect_download() as downloaded:
        panel(page).get_by_role("button", name="Download the script of Worker").click()
    assert downloaded.value.suggested_filename == "Worker.sh"
    assert Path(downloaded.value.path()).read_text(encoding="utf-8").rstrip() == script.inner_text().rstrip()
    page.locator(".new-editor .cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(FILE.replace("looked at", "looked again"))
    expect(script).to_contain_text("echo looked again")


def test_panel_dry_run_validates_on_the_cluster(page: Page) -> None:
    paste(page, FILE)
    expect(field(page, "name")).to_have_value("looked-at")
    page.get_by_role("radio", name="Generated script").check(force=True)
    dry_run = page.locator("#dry-run")
    expect(dry_run).to_contain_text("Nothing is started")
    dry_run.get_by_role("button", name="Validate on cluster").click()
    expect(dry_run).to_contain_text("Checked")
    expect(dry_run.locator(".job-panel-found > li").first).to_be_visible()
    expect(dry_run.get_by_role("button", name="Try again")).to_be_enabled()


ARRAY: Final = (
    "#!/bin/bash\n#SBATCH -J seeds -c1 --mem=1G -t 60\n#SBATCH --array=0-5%2\necho $SLURM_ARRAY_TASK_ID\n"
)


@pytest.mark.usefixtures("priced")
def test_panel_for_an_array_shows_job_count_and_total_cost(page: Page) -> None:
    paste(page, ARRAY)
    submit = page.locator("[data-primary]")
    expect(submit).to_contain_text("Submit 6 jobs")
    expect(panel(page)).to_contain_text("Sweep of 6 jobs, max 2 at once.")
    expect(panel(page)).to_contain_text(re.compile(r"Per hour, 2 jobs at once\s+\S*4\.00"))
    expect(panel(page)).to_contain_text(re.compile(r"6 jobs, each at time limit\s+\S*12\.00"))
    page.locator(".new-editor .cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(ARRAY.replace("#SBATCH --array=0-5%2\n", ""))
    expect(submit).not_to_contain_text("jobs")
    expect(panel(page)).not_to_contain_text("Sweep of")
