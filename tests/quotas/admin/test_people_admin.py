"""Staff who may change people: whom they reach, and what they can't make of anybody."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from quotas.models import GroupMapping, User
from tests.factories import make_user, make_workspace

pytestmark = pytest.mark.django_db

HELPER = (
    "view_user",
    "change_user",
    "delete_user",
    "change_group",
    "add_group",
    "view_groupmapping",
    "add_groupmapping",
    "change_groupmapping",
)


@pytest.fixture
def helper() -> User:
    user = make_user("helper", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=HELPER))
    return user


@pytest.fixture
def staff(helper: User, client: Client) -> Client:
    client.force_login(helper)
    return client


def fields_of(user: User) -> dict[str, str]:
    return {
        "username": user.username,
        "is_active": "on",
        "date_joined_0": "2026-01-01",
        "date_joined_1": "00:00:00",
        "theme": "auto",
        "memberships-TOTAL_FORMS": "0",
        "memberships-INITIAL_FORMS": "0",
    }


def test_staff_cannot_grant_powers_to_a_user(staff: Client) -> None:
    user = make_user("bob")
    powers = {
        "is_staff": "on",
        "is_superuser": "on",
        "break_glass": "on",
        "directory_dn": "uid=root",
        "unix_name": "root",
    }
    page = staff.get(f"/admin/quotas/user/{user.pk}/change/").content.decode()
    assert 'name="email"' in page
    assert not [name for name in powers if f'name="{name}"' in page]
    data = {
        **fields_of(user),
        **powers,
        "email": "bob@example.org",
        "groups": ["1"],
        "user_permissions": ["1"],
    }
    staff.post(f"/admin/quotas/user/{user.pk}/change/", data)
    user.refresh_from_db()
    assert user.email == "bob@example.org", "the rest was saved"
    given = (user.is_staff, user.is_superuser, user.break_glass, user.directory_dn, user.unix_name)
    assert not any(given)
    assert not user.user_permissions.exists()


def test_staff_cannot_change_themselves_other_staff_or_superusers(staff: Client, helper: User) -> None:
    root, other = make_user("root", admin=True), make_user("other", is_staff=True)
    for user in (helper, root, other):
        for path in ("change/", "password/", "delete/"):
            answer = staff.post(
                f"/admin/quotas/user/{user.pk}/{path}",
                {**fields_of(user), "password1": "a-Long-one-7", "password2": "a-Long-one-7", "post": "yes"},
            )
            assert answer.status_code == 403, (user, path)
    helper.refresh_from_db()
    assert not helper.is_superuser


def test_staff_cannot_grant_permissions_or_superusers_by_groups(staff: Client) -> None:
    assert staff.post("/admin/auth/group/add/", {"name": "all"}).status_code == 403
    made = {
        "source": "ldap",
        "group": "everybody",
        "superuser": "on",
        "workspace": make_workspace("w").pk,
        "role": "viewer",
    }
    staff.post("/admin/quotas/groupmapping/add/", made)
    assert not GroupMapping.objects.filter(superuser=True).exists()
    mapping = GroupMapping.objects.create(source="ldap", group="roots", superuser=True)
    answer = staff.post(f"/admin/quotas/groupmapping/{mapping.pk}/change/", made)
    assert answer.status_code == 403
