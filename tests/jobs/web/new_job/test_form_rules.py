"""The form where a job would run: fields that the rules hide, switch off or bound, and what is told."""

from __future__ import annotations

import json
from html import unescape
from typing import Any

import pytest
from django.test import Client

from jobs.form.fields import FIELDS, ROWS
from jobs.form.rules import RULES
from jobs.web.new_job.form.hints import FIRST_FIELD
from quotas.models import Kind, Quota, Source, Spec
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


def test_what_belongs_to_quotas_is_off_on_public_resources_and_says_whose_rule_that_is(
    public: People,
) -> None:
    form = shown(browser(public.owner))
    priority = field_of(form, "priority")
    assert "disabled" in priority
    assert "Priorities apply only among the jobs of a resource quota." in priority
    assert "PAI-DLC documentation, Resources" in priority
    assert 'name="quota"' not in form


def test_on_a_quota_it_can_be_filled_in(people: People) -> None:
    assert "disabled" not in field_of(shown(browser(people.owner)), "priority")


def test_what_the_file_says_stays_in_reach_with_a_warning(public: People) -> None:
    priority = field_of(shown(browser(public.owner), with_(Priority=5)), "priority")
    assert 'value="5"' in priority
    assert "disabled" not in priority
    assert 'id="f-priority_warned"' in priority


def test_lingjun_offers_fewer_frameworks_and_keeps_the_one_that_is_said(lingjun: People) -> None:
    framework = field_of(shown(browser(lingjun.owner)), "framework")
    assert 'value="xgboost"' not in framework
    assert 'value="ray"' in framework
    said = field_of(shown(browser(lingjun.owner), with_(JobType="XGBoostJob")), "framework")
    assert 'value="xgboost" selected' in said
    assert "xgboost does not run on Lingjun resources." in said


def test_bids_are_for_preemptible_resources(people: People) -> None:
    assert BID not in shown(browser(people.owner))
    Quota.objects.filter(pk=people.quota.pk).update(source=Source.PREEMPTIBLE)
    assert BID in shown(browser(people.owner))


def test_what_the_backend_does_not_do_is_said_beside_its_field(people: People) -> None:
    form = shown(browser(people.owner))
    assert "No effect on this cluster (kept for export)." in field_of(form, "vpc")
    assert "No effect on this cluster" not in field_of(form, "time-limit")


def test_what_it_does_with_a_whole_group_is_said_once(people: People) -> None:
    group = shown(browser(people.owner)).partition('id="group-sanity"')[2].partition("</details>")[0]
    assert group.count("No effect on this cluster") == 1
    assert group.count('class="field form-field"') > 1


def test_the_place_that_is_chosen_counts(people: People) -> None:
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


def test_whoever_may_send_jobs_nowhere_has_a_form_without_rules(people: People) -> None:
    Quota.objects.update(accepts_jobs=False)
    assert "disabled" not in field_of(shown(browser(people.owner)), "priority")


def test_a_sentence_about_several_fields_is_told_at_one_that_there_is() -> None:
    assert all(key in FIELDS or key in ROWS for key in FIRST_FIELD.values())
    assert len(RULES) > 60


def test_a_closed_fields_value_is_not_lost_by_a_change_beside_it(public: People) -> None:
    client = browser(public.owner)
    text = with_(Settings={"EnableCPUAffinity": True})
    answer = json.loads(
        client.post("/jobs/form/change", {"text": text, "form-shown": "{}", "name": "other"}).content
    )
    assert json.loads(answer["text"])["Settings"] == {"EnableCPUAffinity": True}
    assert unescape(answer["form"])


def test_the_quotas_are_there_to_choose_from_with_what_is_free_in_them(people: People) -> None:
    Quota.objects.filter(pk=people.quota.pk).update(gpus=6, kind=Kind.LINGJUN)
    Quota.objects.create(
        workspace=people.quota.workspace, cluster=people.quota.cluster, slug="b", name="Beside"
    )
    form = shown(browser(people.owner))
    assert "Lingjun intelligent computing" in form
    assert "6 GPUs" in form
    assert f'value="{people.quota.workspace.slug}/{people.quota.cluster.slug}/b"' in form
    assert "Use Beside" in form


def test_quotas_of_others_are_not_told(people: People) -> None:
    Quota.objects.filter(pk=people.quota.pk).update(name="Night shift")
    assert "Night shift" in shown(browser(people.owner))
    assert "Night shift" not in shown(browser(people.stranger))


def test_only_the_frameworks_own_settings_are_asked_for(people: People) -> None:
    form = shown(browser(people.owner))
    assert 'name="option-createSvcForAllWorkers"' in form
    assert 'name="option-RayRedisAddress"' not in form


def test_the_roles_and_sizes_that_there_are_are_suggested(people: People) -> None:
    Spec.objects.create(name="own.large", cpu_milli=8000, memory_mib=16384, price_micro=2_500_000)
    form = shown(browser(people.owner))
    assert '<option value="Master"></option>' in form
    assert '<option value="own.large" label="8 CPU cores, 16 GiB: 2.5 per hour"></option>' in form
