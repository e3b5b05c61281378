"""A dry run on demand: asked for in the panel, answered by a worker, seen by who asked."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.models import DryRun, Job
from jobs.submission import dry_runs
from quotas.models import Cluster, Quota
from tests.factories import make_spec
from tests.jobs.web.conftest import People, browser, fragment, seen
from tests.jobs.web.new_job.test_panel import job

HAS = {"cpu_milli": 64_000, "memory_mib": 262_144, "gpus": {"A100": 1}, "engine": "none", "allow_plain": True}


@pytest.fixture
def people(people: People) -> People:
    Cluster.objects.update(config=HAS)
    return people


def asked(people: People, text: str) -> str:
    return seen(browser(people.owner).post("/jobs/form/dry-run", {"text": text}, headers=fragment("dry-run")))


def answered(people: People, text: str) -> str:
    """The panel's word once a worker has looked."""
    shown = asked(people, text)
    address = re.search(r'hx-get="([^"]+)"', shown)
    assert address is not None, shown
    assert dry_runs.answer(people.quota.cluster_id) == 1
    return seen(browser(people.owner).get(address[1], headers=fragment("dry-run")))


def test_dry_run_of_acceptable_job_lists_findings(people: People) -> None:
    text = answered(people, job(gpus=1).replace('"true"', '"no-such-program --x"'))
    assert "Would be accepted." in text
    assert "Free capacity on" in text
    assert "Image busybox would not be used: the cluster has no container engine." in text
    assert "Program no-such-program not found." in text
    assert "Processes would run with user ID" in text
    assert 'hx-trigger="load' not in text, "nothing more is to come"
    assert not Job.objects.exists()


def test_dry_run_of_refused_or_waiting_job_shows_reason(people: People) -> None:
    text = answered(people, job(gpus=1).replace('"memoryMB": 8192', '"memoryMB": 819200000'))
    assert "notice-bad" in text
    assert "Would be accepted" not in text
    assert "Waiting: no P100 GPU on the cluster." in answered(people, job(gpus=1, gpu_type="P100"))


@pytest.mark.parametrize(
    ("pointer", "input_id"),
    [
        ("/roles/1/image", "f-roles-1-image"),
        ("/roles/0/resources/cpu_milli", "f-roles-0-cpu"),
        ("/roles/0/nodes", "f-roles-0-nodes-only"),
        ("/roles/0/init_containers/2", "rows-roles-0-init-containers"),
        ("/mounts", "rows-mounts"),
        ("/time_limit_s", "f-time-limit"),
    ],
)
def test_dry_run_finding_about_a_field_leads_to_its_input(
    people: People, pointer: str, input_id: str
) -> None:
    asked(people, job())
    finding = {"what": "accepted", "ok": False, "detail": "", "reason": None, "pointer": pointer}
    DryRun.objects.update(state=DryRun.State.DONE, findings=[finding], ended_at=timezone.now())
    shown = seen(browser(people.owner).get(f"/jobs/form/dry-run/{DryRun.objects.get().pk}"))
    assert f'href="#{input_id}"' in shown


def test_dry_run_unfinished_is_shown_as_queued_or_in_progress(people: People) -> None:
    assert "queued" in asked(people, job())
    DryRun.objects.update(state=DryRun.State.TRYING, begun_at=timezone.now())
    run = DryRun.objects.get()
    assert dry_runs.answer(people.quota.cluster_id) == 0, "somebody is at it"
    assert "in progress" in seen(browser(people.owner).get(f"/jobs/form/dry-run/{run.pk}"))
    DryRun.objects.update(begun_at=timezone.now() - timedelta(minutes=2))
    assert dry_runs.answer(people.quota.cluster_id) == 1, "whoever began is gone"


def test_dry_run_polling_address_contains_no_input(people: People) -> None:
    shown = asked(people, job())
    assert 'hx-include="unset" hx-params="none"' in shown.split('hx-trigger="load')[1], "secrets may be in it"


def test_dry_run_is_hidden_from_others(people: People) -> None:
    asked(people, job())
    run = DryRun.objects.get()
    for user in (people.member, people.manager, people.stranger, people.admin):
        assert browser(user).get(f"/jobs/form/dry-run/{run.pk}").status_code == 404
    assert browser().get(f"/jobs/form/dry-run/{run.pk}").status_code == 302
    assert "queued" in seen(browser(people.owner).get(f"/jobs/form/dry-run/{run.pk}"))


def test_dry_run_without_submit_right_is_refused(people: People) -> None:
    place = f"{people.quota.workspace.slug}/{people.quota.cluster.slug}/{people.quota.slug}"
    client = browser(people.stranger)
    client.post("/jobs/form/dry-run", {"text": job(), "place": place})
    assert not DryRun.objects.exists()
    spec = make_spec()
    with pytest.raises(dry_runs.NotAllowed):
        dry_runs.ask(people.stranger, Quota.objects.get(pk=people.quota.pk), spec)


def test_dry_run_of_invalid_text_is_not_created(people: People) -> None:
    assert "Fix 1 problem to see the preview." in asked(people, "{")
    assert not DryRun.objects.exists()


def test_dry_run_replaces_earlier_one_and_removes_old_ones(people: People) -> None:
    asked(people, job())
    asked(people, job(gpus=1))
    assert DryRun.objects.count() == 1
    DryRun.objects.update(created_at=timezone.now() - timedelta(hours=2), owner=people.member)
    asked(people, job())
    assert DryRun.objects.get().owner == people.owner


def test_dry_run_contains_no_secret_values(people: People) -> None:
    asked(people, "#!/bin/bash\n#SBATCH --export=NONE,API_TOKEN=canary-77aa5c1e\ntrue\n")
    assert "canary-77aa5c1e" not in DryRun.objects.get().spec_json
    assert dry_runs.answer(people.quota.cluster_id) == 1
    assert "canary" not in str(DryRun.objects.get().findings)


def test_dry_run_on_misconfigured_cluster_shows_error(people: People) -> None:
    Cluster.objects.update(config={"gpu": {}})
    assert "The cluster did not respond" in answered(people, job())
