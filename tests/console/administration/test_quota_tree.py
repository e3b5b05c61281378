"""The quota tree of a cluster: seen, previewed, saved as it was shown."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from jobs.states import State
from quotas import ledger
from quotas.amounts import Amounts, Part
from quotas.limits.treeform import FIELDS, TreeForm
from quotas.models import AdminAction, Quota
from tests.console.administration.conftest import OTHERS, client_of
from tests.factories import attempt_of, make_cluster, make_job, make_quota, make_user

pytestmark = pytest.mark.django_db

PAGE = "/admin/tree/north/"


@pytest.fixture
def leaf(quota: Quota) -> Quota:
    return make_quota(quota.workspace, quota.cluster, "leaf", name="Leaf", parent=quota, gpus=4)


def fields(quota: Quota, **changes: Any) -> dict[str, Any]:
    """What the page sends: every field as shown, but for `changes` (`leaf_gpus=…`)."""
    sent = {}
    for form in TreeForm(quota.cluster).forms:
        for name in (*FIELDS, "was"):
            key = f"{form.quota.slug}_{name}"
            value = changes[key] if key in changes else form[name].value()
            sent[f"{form.prefix}-{name}"] = "" if value is None else value
    return sent


def text_of(answer: Any) -> str:
    return re.sub(r"\s+", " ", answer.content.decode())


def shown(admin: Client, sent: dict[str, Any]) -> str:
    found = re.search(r'name="shown"\s+value="(\w+)"', admin.post(PAGE, sent).content.decode())
    assert found is not None
    return found[1]


def running(quota: Quota, gpus: int) -> None:
    job = make_job(State.RUNNING, quota=quota, name="training-42")
    each = Amounts(1000, 1024, {"A100": gpus})
    request = ledger.ask(
        attempt_of(job).key,
        quota=quota,
        owner=job.owner,
        parts=[Part(1, each)],
        priority=1,
        declared_s=None,
    )
    ledger.reserve(request, [("n1", each)])
    ledger.record_start(request.holder)


@pytest.mark.parametrize("who", OTHERS)
def test_quota_tree_refuses_non_admins(who: str, quota: Quota) -> None:
    client, sent = client_of(who, quota), fields(quota, default_gpus=1)
    assert client.get("/admin/tree/").status_code in {302, 403}
    assert client.get(PAGE).status_code in {302, 403}
    assert client.post(PAGE, {**sent, "save": "yes", "shown": "x"}).status_code in {302, 403}
    quota.refresh_from_db()
    assert quota.gpus == 8


def test_quota_tree_shows_all_quotas_and_usage_on_one_page(admin: Client, quota: Quota, leaf: Quota) -> None:
    running(leaf, 3)
    text = text_of(admin.get("/admin/tree/", follow=True))
    assert text.index("Default") < text.index("Leaf")
    assert "house-depth-1" in text
    assert "3 in use · 75%" in text
    assert "A100: 3 in use" in text


def test_quota_change_is_previewed_before_saving(admin: Client, quota: Quota) -> None:
    running(quota, 3)
    sent = fields(quota, default_gpus=2)
    text = text_of(admin.post(PAGE, sent))
    assert "running jobs finish, and no new jobs start until usage drops" in text
    assert "Default: 3 GPUs in use, above the limit of 2 GPUs." in text
    assert "training-42" in text
    quota.refresh_from_db()
    assert quota.gpus == 8
    token = shown(admin, sent)
    admin.post(PAGE, {**sent, "save": "yes", "shown": token})
    quota.refresh_from_db()
    assert quota.gpus == 8, "nobody said that it may drain"
    admin.post(PAGE, {**sent, "save": "yes", "shown": token, "drain": "yes"})
    quota.refresh_from_db()
    assert quota.gpus == 2
    assert AdminAction.objects.get().params["told"] == ["default gpus: 8 → 2"]


def test_quota_change_other_than_previewed_is_not_saved(admin: Client, quota: Quota) -> None:
    token = shown(admin, fields(quota, default_gpus=6))
    answer = admin.post(PAGE, {**fields(quota, default_gpus=5), "save": "yes", "shown": token})
    assert "Impact of changing 1 quota" in text_of(answer)
    quota.refresh_from_db()
    assert quota.gpus == 8
    assert not AdminAction.objects.exists()


def test_quota_form_takes_human_units(admin: Client, quota: Quota) -> None:
    sent = fields(
        quota,
        default_cpu_milli="12.5",
        default_memory_mib="2.5",
        default_gpus_by_type="A100: 4, V100: 2",
        default_most_jobs="9",
    )
    admin.post(PAGE, {**sent, "save": "yes", "shown": shown(admin, sent)})
    quota.refresh_from_db()
    assert (quota.cpu_milli, quota.memory_mib, quota.most_jobs) == (12_500, 2560, 9)
    assert quota.gpus_by_type == {"A100": 4, "V100": 2}
    text = text_of(admin.get(PAGE))
    assert 'value="12.5"' in text
    assert 'value="A100: 4, V100: 2"' in text


def test_quota_limit_left_empty_means_no_limit(admin: Client, quota: Quota) -> None:
    sent = fields(quota, default_gpus="")
    admin.post(PAGE, {**sent, "save": "yes", "shown": shown(admin, sent)})
    quota.refresh_from_db()
    assert quota.gpus is None


def test_quota_form_shows_all_errors_and_keeps_input(admin: Client, quota: Quota, leaf: Quota) -> None:
    sent = fields(quota, default_gpus="-1", leaf_gpus_by_type="many", leaf_most_jobs="x")
    answer = admin.post(PAGE, sent)
    assert answer.status_code == 422
    text = text_of(answer)
    assert "greater than or equal to 0" in text
    assert "Enter types and numbers" in text
    assert "Enter a whole number" in text
    assert 'value="many"' in text


def test_quota_limits_are_checked_against_new_parent_limits(admin: Client, quota: Quota, leaf: Quota) -> None:
    text = text_of(admin.post(PAGE, fields(quota, leaf_gpus="9")))
    assert "Limit of Default exceeded: 8 available, but its child quotas would have 9 in total." in text
    both = fields(quota, leaf_gpus="9", default_gpus="10")
    admin.post(PAGE, {**both, "save": "yes", "shown": shown(admin, both)})
    leaf.refresh_from_db()
    assert leaf.gpus == 9


def test_quota_changed_by_another_user_is_not_overwritten(admin: Client, quota: Quota) -> None:
    sent = fields(quota, default_gpus=6)
    token = shown(admin, sent)
    Quota.objects.update(gpus=7)
    answer = admin.post(PAGE, {**sent, "save": "yes", "shown": token})
    assert "was changed in the meantime. Review the current values." in text_of(answer)
    quota.refresh_from_db()
    assert quota.gpus == 7


def test_quota_tree_without_quotas_shows_a_hint(admin: Client) -> None:
    make_cluster("empty")
    assert "so no one can submit jobs to it" in text_of(admin.get("/admin/tree/empty/"))
    assert admin.get("/admin/tree/nowhere/").status_code == 404


def test_quota_tree_query_count_stays_fixed(
    admin: Client, quota: Quota, django_assert_max_num_queries: Any
) -> None:
    for number in range(30):
        make_quota(quota.workspace, quota.cluster, f"q{number}", parent=quota)
    make_user()
    admin.get(PAGE)
    with django_assert_max_num_queries(20):
        admin.get(PAGE)
