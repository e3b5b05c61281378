"""One form for a new person: address, memberships, groups, and the link to their first password."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from quotas.admin.units import format_amount
from quotas.models import LocalGroup, LocalGroupRole, Membership, Quota, Role, Spec, User
from tests.factories import make_cluster, make_quota, make_user, make_workspace

pytestmark = pytest.mark.django_db

ADD = "/admin/quotas/user/add/"


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(make_user("root", admin=True))
    return client


def form(**more: object) -> dict[str, object]:
    vision = make_workspace("vision")
    lab = LocalGroup.objects.create(name="lab")
    LocalGroupRole.objects.create(group=lab, workspace=make_workspace("lab"), role=Role.VIEWER)
    return {
        "username": "ann",
        "email": "ann@example.org",
        "first_name": "Ann",
        "last_name": "",
        "local_groups": [lab.pk],
        "links": "show",
        "memberships-TOTAL_FORMS": "1",
        "memberships-INITIAL_FORMS": "0",
        "memberships-0-workspace": vision.pk,
        "memberships-0-role": "operator",
        **more,
    }


def test_person_is_added_by_one_form_with_memberships_groups_and_a_link(admin: Client) -> None:
    page = admin.post(ADD, form(), follow=True).content.decode()
    ann = User.objects.get(username="ann")
    assert (ann.email, ann.first_name, ann.has_usable_password()) == ("ann@example.org", "Ann", False)
    rows = Membership.objects.filter(user=ann).values_list("workspace__slug", "role", "by_groups")
    assert set(rows) == {("vision", "operator", False), ("lab", "viewer", True)}
    link = re.search(r"ann: https?://[^/]+(/\S+?)[\s<]", page)
    assert link is not None
    assert 'name="password1"' in Client().get(link[1], follow=True).content.decode()


def test_mailed_link_needs_an_address(admin: Client, settings: Any) -> None:
    settings.CONSOLE_MAIL = "smtp://mail.example.org"
    answer = admin.post(ADD, form(links="mail", email=""))
    assert "email" in answer.context["adminform"].form.errors
    assert not User.objects.filter(username="ann").exists()


def test_changed_local_group_changes_memberships_at_once(admin: Client) -> None:
    admin.post(ADD, form())
    lab = LocalGroup.objects.get()
    data = {
        "name": "lab",
        "description": "",
        "people": [],
        "roles-TOTAL_FORMS": "0",
        "roles-INITIAL_FORMS": "0",
    }
    assert admin.post(f"/admin/quotas/localgroup/{lab.pk}/change/", data).status_code == 302
    assert set(Membership.objects.values_list("workspace__slug", flat=True)) == {"vision"}
    assert admin.get("/admin/quotas/localgroup/").status_code == 200


def test_staff_without_the_right_put_nobody_into_groups(client: Client) -> None:
    helper = make_user("helper", is_staff=True)
    wanted = ("view_user", "add_user", "change_user")
    helper.user_permissions.set(Permission.objects.filter(codename__in=wanted))
    client.force_login(helper)
    assert client.post(ADD, form()).status_code == 302
    ann = User.objects.get(username="ann")
    assert not ann.local_groups.exists()
    assert not ann.memberships.exists()


def test_quota_and_spec_forms_take_and_show_units_of_the_pages(admin: Client) -> None:
    quota = make_quota(make_workspace("vision"), make_cluster("local"), "all", cpu_milli=7500, memory_mib=512)
    address = f"/admin/quotas/quota/{quota.pk}/change/"
    page = admin.get(address)
    data = {
        name: value
        for name, field in page.context["adminform"].form.fields.items()
        if (value := page.context["adminform"].form.get_initial_for_field(field, name)) not in (None, False)
    }
    shown = page.content.decode()
    assert 'value="7.5"' in shown
    assert 'value="0.5"' in shown
    data |= {"cpu_milli": "8.25", "memory_mib": "2", "gpus_by_type": "A100: 4, V100: 1", "period": "month"}
    data |= {"idle_exempt_people": [], "idle_exempt_roles": "[]", "idle_exempt_labels": "{}"}
    data |= {"policies-TOTAL_FORMS": "0", "policies-INITIAL_FORMS": "0"}
    answer = admin.post(address, data)
    assert answer.status_code == 302, answer.context["adminform"].form.errors
    changed = Quota.objects.get()
    assert (changed.cpu_milli, changed.memory_mib) == (8250, 2048)
    assert changed.gpus_by_type == {"A100": 4, "V100": 1}
    listed = admin.get("/admin/quotas/quota/").content.decode()
    assert "A100: 4, V100: 1" in listed
    assert "8.25" in listed
    size = {"name": "g1", "cpu_milli": "1.5", "memory_mib": "4", "gpus": "A100: 1", "price_micro": "1.23"}
    assert admin.post("/admin/quotas/spec/add/", {**size, "offered": "on"}).status_code == 302
    spec = Spec.objects.get()
    assert (spec.cpu_milli, spec.memory_mib, spec.gpus, spec.price_micro) == (
        *(1500, 4096, {"A100": 1}),
        1_230_000,
    )
    assert "1.23" in admin.get("/admin/quotas/spec/").content.decode()
    assert format_amount(None, 1000) == ""
