"""The panel beside a job file: price, quota, and whether it would start."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from jobs.models import Attempt, Draft, Job, PersonalSecret
from quotas import ledger
from quotas.amounts import Amounts, Part
from quotas.models import (
    Cluster,
    Maintenance,
    Node,
    Quota,
    Request,
    Reservation,
    Source,
    Spec,
    SpotPrice,
    User,
)
from tests.factories import make_quota
from tests.jobs.web.conftest import People, browser, fragment, seen

HOUR_MICRO = 2_500_000


@pytest.fixture
def people(people: People) -> People:
    """One node of eight GPUs; the quota has six."""
    Node.objects.create(
        cluster=people.quota.cluster, name="n1", cpu_milli=64_000, memory_mib=262_144, gpus={"A100": 8}
    )
    has = {"cpu_milli": 64_000, "memory_mib": 262_144, "gpus": {"A100": 8}, "allow_plain": True}
    Cluster.objects.update(config=has)
    people.quota.gpus = 6
    people.quota.save()
    return people


def job(gpus: int = 4, replicas: int = 1, gpu_type: str = "A100", **more: Any) -> str:
    role = {"name": "w", "taskNumber": replicas, "cpuNumber": 4, "memoryMB": 8192, "gpuNumber": gpus}
    return json.dumps(
        {
            "jobName": "hello",
            "image": "busybox",
            "gpuType": gpu_type,
            "taskRoles": [{**role, "command": "true"}],
            **more,
        }
    )


def dlc(limit_minutes: int = 0, kept_minutes: int = 0, **settings: Any) -> str:
    asked = {"CPU": "4", "Memory": "8Gi", "GPU": "2", "GPUType": "A100"}
    role = {"Type": "Worker", "PodCount": 2, "Image": "busybox", "ResourceConfig": asked}
    if kept_minutes:
        settings |= {"JobReservedMinutes": kept_minutes, "JobReservedPolicy": "Always"}
    body: dict[str, Any] = {
        "DisplayName": "hello",
        "JobType": "PyTorchJob",
        "UserCommand": "true",
        "JobSpecs": [role],
    }
    if limit_minutes:
        body["JobMaxRunningTimeMinutes"] = limit_minutes
    return json.dumps({**body, "Settings": settings})


def ask(user: User, text: str, **fields: str) -> str:
    sent = {"text": text, **fields}
    return seen(browser(user).post("/jobs/form/panel", sent, headers=fragment("job-panel")))


def told(text: str) -> dict[str, str]:
    """The lines about the price."""
    pairs = re.findall(r"<dt>(.*?)</dt>\s*<dd[^>]*>(.*?)</dd>", text)
    return {name.strip(): value.strip() for name, value in pairs}


def hold(quota: Quota, owner: User, gpus: int, holder: str = "a") -> None:
    each = Amounts(1000, 1024, {"A100": gpus})
    request = ledger.ask(holder, quota=quota, owner=owner, parts=[Part(1, each)], priority=1, declared_s=None)
    ledger.reserve(request, [("n1", each)])
    ledger.record_start(holder)


def price(quota: Quota, micro: int = HOUR_MICRO) -> None:
    Spec.objects.create(
        name="gpu.large", cpu_milli=4000, memory_mib=8192, gpus={"A100": 2}, price_micro=micro
    )


def test_panel_shows_start_and_node_of_startable_job(people: People) -> None:
    assert "Can start now on n1." in ask(people.owner, job())


def test_panel_shows_pending_reason_of_job_not_starting(people: People) -> None:
    hold(people.quota, people.owner, 4)
    text = ask(people.owner, job())
    assert "Waiting for quota Default: 4 GPUs requested, 4 GPUs of 6 GPUs in use" in text
    assert 'href="#f-roles-0-gpus"' in text
    assert "Can start now with 2 GPUs" in text


def test_panel_names_network_access_where_the_cluster_enforces_it(people: People) -> None:
    assert "Network:" not in ask(people.owner, job())
    told_by_cluster = {"images": False, "plain": True, "network": "own", "image_network": ""}
    Cluster.objects.update(facilities=told_by_cluster)
    assert "Network: Internet" in ask(people.owner, job())
    people.quota.workspace.egress = ["192.0.2.0/24:443"]
    people.quota.workspace.save()
    assert "Network: 192.0.2.0/24:443" in ask(people.owner, job())
    Cluster.objects.update(facilities={**told_by_cluster, "network": ""})
    assert "Vision restricts its jobs' network access" in ask(people.owner, job())


def test_panel_stores_nothing(people: People) -> None:
    models = (Job, Attempt, Request, Reservation, Draft)
    before = [model.objects.count() for model in models]
    ask(people.owner, job())
    assert [model.objects.count() for model in models] == before


def test_panel_shows_quota_before_and_after(people: People) -> None:
    hold(people.quota, people.owner, 1)
    text = ask(people.owner, job(gpus=3))
    assert "1 in use · <b>+ 3</b> requested · 2 free" in text
    assert "4 in use" not in text


def test_panel_marks_amount_over_limit(people: People) -> None:
    text = ask(people.owner, job(gpus=7))
    assert "allows at most 6 GPUs" in text
    assert "over 6" in text


def test_panel_shows_every_limiting_quota_level(people: People) -> None:
    people.quota.person_gpus = 5
    people.quota.save()
    quota = people.quota
    child = make_quota(quota.workspace, quota.cluster, "child", name="Child", parent=quota)
    assert "Your limit in" not in ask(people.owner, job(), place=f"vision/local/{child.slug}")
    text = ask(people.owner, job(), place="vision/local/default")
    assert "Your limit in Default" in text
    text = ask(people.owner, job(), place=f"vision/local/{child.slug}")
    assert text.index("<h4> Child </h4>") < text.index("<h4> Default </h4>")


def test_panel_without_price_shows_notice(people: People) -> None:
    assert "No price configured." in ask(people.owner, job())


def test_panel_for_subscription_shows_reported_cost_as_included(people: People) -> None:
    price(people.quota)
    text = ask(people.owner, dlc())
    assert "Included in the subscription of Default; no extra cost." in text
    assert told(text)["Reported cost per hour"] == "5.00"


def test_panel_for_public_resources_shows_pay_as_you_go_price(people: People) -> None:
    people.quota.source = Source.PUBLIC
    people.quota.person_gpus = 8
    people.quota.person_cpu_milli = 64_000
    people.quota.save()
    price(people.quota)
    text = ask(people.owner, dlc(limit_minutes=90, kept_minutes=60))
    assert "Retention" not in text, "nothing is held after the end"
    assert "Pay as you go" in text
    assert told(text)["Per hour"] == "5.00"
    assert told(text)["At time limit (1 h 30 min)"] == "7.50"
    assert "priced as gpu.large" in text


def test_panel_for_job_above_public_limit_shows_refusal(people: People) -> None:
    people.quota.source = Source.PUBLIC
    people.quota.save()
    text = ask(people.owner, job(gpus=3))
    assert "notice-bad" in text
    assert "Can start now" not in text


def test_panel_for_preemptible_resources_shows_current_and_maximum_price(people: People) -> None:
    people.quota.source = Source.PREEMPTIBLE
    people.quota.save()
    SpotPrice.objects.create(
        cluster=people.quota.cluster, gpu_type="A100", market_micro=2_000_000, price_micro=500_000
    )
    text = ask(people.owner, job(gpus=2))
    assert "preemptible (may be reclaimed)" in text
    assert told(text)["Per hour"] == "1.00"
    assert told(text)["Per hour, at maximum bid"] == "4.00"


def test_panel_shows_fault_tolerance_without_charge(people: People) -> None:
    plain = ask(people.owner, dlc())
    text = ask(people.owner, dlc(EnableErrorMonitoringInAIMaster=True))
    assert "AIMaster" not in plain
    assert "AIMaster instance with 1 CPU core and 1 GiB" in text


def test_panel_for_held_job_shows_warning_instead_of_start(people: People) -> None:
    text = ask(people.owner, "#!/bin/bash\n#SBATCH --hold\n#SBATCH --gres=gpu:A100:1\ntrue\n")
    assert "Can start now" not in text
    assert "notice-warn" in text


def test_panel_for_paused_cluster_shows_no_start(people: People) -> None:
    Maintenance.objects.create(
        cluster=people.quota.cluster,
        text="a disk is replaced",
        from_at="2000-01-01T00:00Z",
        until_at="2999-01-01T00:00Z",
        keeps_free=True,
    )
    assert "Can start now" not in ask(people.owner, job())


def test_panel_for_invalid_text_counts_problems(people: People) -> None:
    text = ask(people.owner, job().replace('"true"', '""').replace('"taskNumber": 1', '"taskNumber": true'))
    assert "Fix 2 problems to see the preview." in text
    assert "Price" not in text


def test_panel_for_empty_or_odd_text_shows_hint(people: People) -> None:
    assert "cost and estimated start appear here." in ask(people.owner, "  \n")
    for text in ("hello", "\x00", "{" * 50_000):
        assert "to see the preview." in ask(people.owner, text)


def test_panel_does_not_repeat_known_sentence(people: People) -> None:
    first = ask(people.owner, job())
    digest = first.split('name="panel_said" value="')[1].split('"')[0]
    assert 'id="job-panel-says"' in first
    again = ask(people.owner, job(), panel_said=digest)
    assert 'id="job-panel-says"' not in again
    assert 'id="job-panel-says"' in ask(people.owner, job(gpus=7), panel_said=digest)


def test_panel_hides_quotas_of_others(people: People) -> None:
    foreign = make_quota(name="Foreign quota")
    place = f"{foreign.workspace.slug}/{foreign.cluster.slug}/{foreign.slug}"
    for user in (people.owner, people.member, people.stranger):
        text = ask(user, job(), place=place)
        assert "Foreign quota" not in text
        assert "Not found, or no permission" in text
    assert "Foreign quota" in ask(people.admin, job(), place=place)
    assert "Can start now" not in ask(people.stranger, job())


def test_panel_without_sign_in_redirects(people: People) -> None:
    assert browser().post("/jobs/form/panel", {"text": job()}).status_code == 302


def test_panel_without_scripts_is_full_page(people: People) -> None:
    text = seen(browser(people.owner).post("/jobs/form/panel", {"text": job()}))
    assert "<title>" in text
    assert "Can start now on n1." in text


def test_panel_query_count_does_not_grow_with_quotas(people: People, django_assert_num_queries: Any) -> None:
    client = browser(people.owner)
    client.post("/jobs/form/panel", {"text": job()}, headers=fragment("job-panel"))
    for number in range(6):
        hold(make_quota(people.quota.workspace, people.quota.cluster), people.owner, 0, f"h{number}")
    with django_assert_num_queries(19):  # two for the GPUs of the cluster, two for job policies
        client.post("/jobs/form/panel", {"text": job()}, headers=fragment("job-panel"))


# --- what will be sent -----------------------------------------------------------------------------------


def test_panel_sent_tab_shows_script_of_each_role(people: People) -> None:
    text = ask(people.owner, job(replicas=2, gpus=0), panel_tab="sent")
    assert "Script of w" in text
    assert "exec /bin/bash -c true" in text
    assert "set at start" in text
    assert "Price" not in text


def test_panel_sent_tab_masks_secrets(people: People) -> None:
    secret = "canary-77aa5c1e"
    header = f"#!/bin/bash\n#SBATCH --export=NONE,API_TOKEN={secret}\n"
    PersonalSecret.objects.create(owner=people.owner, name="HF_TOKEN", ciphertext="x")
    env = {"envs": {"API_TOKEN": secret, "HF_TOKEN": "$SECRET:HF_TOKEN"}}
    for file in (
        header + "true\n",
        dlc().replace('"Settings"', f'"Envs": {json.dumps(env["envs"])}, "Settings"'),
    ):
        text = ask(people.owner, file, panel_tab="sent")
        assert secret not in text
        assert "API_TOKEN" in text
        assert "***" in text


def test_panel_script_can_be_downloaded(people: People) -> None:
    client = browser(people.owner)
    response = client.post("/jobs/form/sent", {"text": job(gpus=0), "sent_role": "w"})
    assert response.headers["Content-Disposition"] == 'attachment; filename="w.sh"'
    assert response.content.startswith(b"#!/bin/bash\n")
    assert client.post("/jobs/form/sent", {"text": job(gpus=0), "sent_role": "x"}).status_code == 422
    assert client.post("/jobs/form/sent", {"text": "{", "sent_role": "w"}).status_code == 422


def test_panel_sent_tab_of_refused_job_shows_problem(people: People) -> None:
    file = job(gpus=0).replace('"memoryMB": 8192', '"memoryMB": 819200000')
    text = ask(people.owner, file, panel_tab="sent")
    assert "notice-bad" in text
    assert "Script of" not in text


def test_panel_sent_tab_of_misconfigured_cluster_shows_error(people: People) -> None:
    Cluster.objects.update(config={"gpu": {}})
    assert "make no sense" in ask(people.owner, job(), panel_tab="sent")
    Cluster.objects.update(config={}, backend="elsewhere")
    assert "The script for This machine can't be shown." in ask(people.owner, job(), panel_tab="sent")


def test_panel_counts_every_job_of_a_sweep(people: People) -> None:
    Spec.objects.create(
        cluster=people.quota.cluster,
        name="g",
        cpu_milli=1000,
        memory_mib=2048,
        gpus={"A100": 1},
        price_micro=HOUR_MICRO,
    )
    parameters = "lr = 0.1, 0.01\nroles.0.resources.gpus = 1, 2"
    page = ask(people.owner, job(taskRoles=_with("echo {lr}")), sweep_parameters=parameters)
    assert "Sweep of 4 jobs, all at once." in page
    assert "Submit 4 jobs" in page
    assert "+ 6 for 4 jobs" in re.sub(r"<[^>]*>", "", page)
    limited = ask(
        people.owner,
        job(taskRoles=_with("echo {lr}")),
        sweep_parameters=parameters,
        sweep_at_once="1",
    )
    assert "Sweep of 4 jobs, max 1 at once." in limited


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ("lr", "Line 1 is not a parameter with values"),
        ("nowhere.x = 1, 2", "Unknown field nowhere.x"),
        ("lr = 1, 2", "{lr}"),
    ],
)
def test_panel_shows_problems_of_sweep(people: People, parameters: str, told: str) -> None:
    page = ask(people.owner, job(taskRoles=_with("echo {lr}")), sweep_parameters=parameters)
    assert (told in page) is (told != "{lr}")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("python train.py --lr {lr} --seed {seed}", ["lr", "seed"]),
        ("echo ${HOME} {a,b} {1..3} find {} @{u} %{http_code} {{x}}", []),
        ("awk '{print}' log", []),
        ("cat <<E\n{name}\nE", []),
    ],
)
def test_panel_warns_of_words_without_parameter(people: People, command: str, words: list[str]) -> None:
    page = ask(people.owner, job(taskRoles=_with(command)))
    assert re.findall(r"The command contains {(\w+)}, but", page) == words


def _with(command: str) -> list[dict[str, Any]]:
    role = {"name": "w", "taskNumber": 1, "cpuNumber": 4, "memoryMB": 8192, "gpuNumber": 1}
    return [{**role, "command": command}]
