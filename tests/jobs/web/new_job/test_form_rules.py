"""The form where a job would run: fields that the rules hide, switch off or bound, and what is told."""

from __future__ import annotations

import json
from html import unescape
from typing import Any

import pytest
from django.test import Client

from jobs.backends import registry
from jobs.backends.support import keep
from jobs.facilities import Facilities
from jobs.form.fields import FIELDS, ROWS
from jobs.form.rules import RULES
from jobs.web.new_job.form.hints import FIRST_FIELD
from quotas.models import Cluster, Kind, Quota, Source, Spec
from tests.jobs.web.conftest import People, browser
from tests.jobs.web.new_job.test_form_change import DLC, form_of


def shown(client: Client, text: str = DLC, **more: str) -> str:
    return form_of(json.loads(client.post("/jobs/form/read", {"text": text, **more}).content))


BID = 'name="roles-0-bid-discount"'


def with_(**more: Any) -> str:
    return json.dumps(
        {**json.loads(DLC.replace("// the first one of the week", "").replace("  \n", "")), **more}
    )


@pytest.fixture
def lingjun(people: People) -> People:
    Quota.objects.filter(pk=people.quota.pk).update(kind=Kind.LINGJUN)
    return people


@pytest.fixture
def public(people: People) -> People:
    Quota.objects.filter(pk=people.quota.pk).update(source=Source.PUBLIC)
    return people


def field_of(form: str, name: str) -> str:
    """The markup of one field."""
    start = form.index(f'id="f-{name}_field"')
    end = form.find('class="field form-field"', start)
    return form[start:end]


def test_priority_field_on_public_resources_is_disabled_with_rule(
    public: People,
) -> None:
    form = shown(browser(public.owner))
    priority = field_of(form, "priority")
    assert "disabled" in priority
    assert "Priorities apply only among the jobs of a resource quota." in priority
    assert "PAI-DLC documentation, Resources" in priority
    assert 'name="quota"' not in form


def test_priority_field_on_quota_is_enabled(people: People) -> None:
    assert "disabled" not in field_of(shown(browser(people.owner)), "priority")


def test_priority_field_with_value_in_file_stays_enabled_with_warning(public: People) -> None:
    priority = field_of(shown(browser(public.owner), with_(Priority=5)), "priority")
    assert 'value="5"' in priority
    assert "disabled" not in priority
    assert 'id="f-priority_warned"' in priority


def test_framework_field_on_lingjun_offers_fewer_and_keeps_current(lingjun: People) -> None:
    framework = field_of(shown(browser(lingjun.owner)), "framework")
    assert 'value="xgboost"' not in framework
    assert 'value="ray"' in framework
    said = field_of(shown(browser(lingjun.owner), with_(JobType="XGBoostJob")), "framework")
    assert 'value="xgboost" selected' in said
    assert "PAI-DLC does not run xgboost on Lingjun resources." in said


def test_bid_field_appears_only_on_preemptible_resources(people: People) -> None:
    assert BID not in shown(browser(people.owner))
    Quota.objects.filter(pk=people.quota.pk).update(source=Source.PREEMPTIBLE)
    assert BID in shown(browser(people.owner))


def test_field_without_effect_on_backend_is_marked(people: People) -> None:
    form = shown(browser(people.owner))
    assert "No effect on this cluster (kept for export)." in field_of(form, "workspace")
    assert "No effect on this cluster" not in field_of(form, "time-limit")


def test_fields_without_effect_are_folded_under_one_heading(people: People) -> None:
    client, text = browser(people.owner), with_(UserVpc={"VpcId": "vpc-1"})
    unfolded, _heading, folded = shown(client, text).partition('id="group-unused"')
    group = folded.partition('aria-label="VPC"')[2].partition('role="group"')[0]
    assert group.count("No effect on this cluster") == 1
    assert group.count('class="field form-field"') > 1
    heading = folded.partition("<summary>")[2].partition("</summary>")[0]
    count = folded.count('class="field form-field"')
    assert f"No effect on this cluster ({count})" in heading
    assert "1 set" in heading
    assert 'id="f-vpc_field"' in folded
    assert 'id="f-vpc_field"' not in unfolded
    Cluster.objects.update(backend="slurm")
    assert 'id="f-cpu-affinity_field"' in unfolded + folded
    assert f"No effect on this cluster ({count})" not in shown(client, text)


def test_containers_are_counted_have_problems_at_their_list_and_fold_without_support(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    facilities = Facilities(images=False, plain=True, one_machine=True)
    Cluster.objects.update(facilities=facilities.to_json())
    env = [{"Name": "API_TOKEN", "Value": "canary-7c1e"}]
    pod = {"InitContainers": [{"Name": "fetch", "Env": env}], "SideCarContainers": [{"Name": "metrics"}]}
    text = with_(JobSpecs=[{"Type": "Worker", "Image": "a/b:1", "PodCount": 1, "ExtraPodSpec": pod}])
    form = shown(browser(people.owner), text)
    group = form.partition('id="group-containers-0"')[2].partition("</details>")[0]
    assert group.partition(">")[0].endswith("open")
    assert "2 set" in group.partition("</summary>")[0]
    first, _rows, beside = group.partition('id="rows-roles-0-sidecars"')
    assert "container fetch of role Worker needs a command" in first
    assert "container metrics of role Worker needs a command" in beside
    assert 'aria-label="Sidecars: remove row 1"' in beside
    assert "API_TOKEN=$SECRET:API_TOKEN" in first
    assert "canary-7c1e" not in form

    table = {**registry.support_of("local"), "roles[].sidecars": keep("None here.")}
    monkeypatch.setattr(registry, "support_of", lambda _backend: table)
    sections, _heading, folded = shown(browser(people.owner), text).partition('id="group-unused"')
    assert 'id="rows-roles-0-sidecars"' not in sections
    assert 'id="rows-roles-0-init-containers"' in sections
    group = folded.partition('id="rows-roles-0-sidecars"')[2]
    assert "No effect on this cluster (kept for export). None here." in group
    assert 'value="metrics"' in group


def test_form_rules_follow_chosen_place(people: People) -> None:
    other = Quota.objects.create(
        workspace=people.quota.workspace,
        cluster=people.quota.cluster,
        slug="spot",
        name="Spot",
        source=Source.PREEMPTIBLE,
    )
    place = f"{other.workspace.slug}/{other.cluster.slug}/{other.slug}"
    assert BID in shown(browser(people.owner), place=place)
    assert BID not in shown(browser(people.owner))


def test_form_without_usable_quota_has_no_rules(people: People) -> None:
    Quota.objects.update(accepts_jobs=False)
    assert "disabled" not in field_of(shown(browser(people.owner)), "priority")


def test_rule_messages_belong_to_existing_fields() -> None:
    assert all(key in FIELDS or key in ROWS for key in FIRST_FIELD.values())
    assert len(RULES) > 60


def test_disabled_field_value_survives_change_of_another_field(public: People) -> None:
    client = browser(public.owner)
    text = with_(Settings={"EnableCPUAffinity": True})
    answer = json.loads(
        client.post("/jobs/form/change", {"text": text, "form-shown": "{}", "name": "other"}).content
    )
    assert json.loads(answer["text"])["Settings"] == {"EnableCPUAffinity": True}
    assert unescape(answer["form"])


def test_quota_field_offers_quotas_with_free_amounts(people: People) -> None:
    Quota.objects.filter(pk=people.quota.pk).update(gpus=6, kind=Kind.LINGJUN)
    Quota.objects.create(
        workspace=people.quota.workspace, cluster=people.quota.cluster, slug="b", name="Beside"
    )
    form = shown(browser(people.owner))
    assert "Lingjun intelligent computing" in form
    assert "6 GPUs" in form
    assert f'value="{people.quota.workspace.slug}/{people.quota.cluster.slug}/b"' in form
    assert "Use Beside" in form


def test_quota_field_hides_quotas_of_others(people: People) -> None:
    Quota.objects.filter(pk=people.quota.pk).update(name="Night shift")
    assert "Night shift" in shown(browser(people.owner))
    assert "Night shift" not in shown(browser(people.stranger))


def test_framework_options_belong_only_to_current_framework(people: People) -> None:
    form = shown(browser(people.owner))
    assert 'name="option-createSvcForAllWorkers"' in form
    assert 'name="option-RayRedisAddress"' not in form


def test_role_and_size_fields_suggest_known_values(people: People) -> None:
    Spec.objects.create(name="own.large", cpu_milli=8000, memory_mib=16384, price_micro=2_500_000)
    form = shown(browser(people.owner))
    assert '<option value="Master"></option>' in form
    assert '<option value="own.large" label="8 CPU cores, 16 GiB: 2.5 per hour"></option>' in form
