"""Offboarding: what it shows before, what it ends and what somebody else has afterwards."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from jobs.models import Draft, Event, Job, Template
from jobs.states import State
from quotas import ledger
from quotas.accounts import groups, tokens
from quotas.models import AdminAction, LocalGroup, Membership, Quota, Request, Role, User
from tests.console.administration.conftest import OTHERS, client_of
from tests.factories import attempt_of, make_job, make_membership, make_quota, make_template, make_user

pytestmark = pytest.mark.django_db

ADDRESS = "/admin/incidents/offboard"


@pytest.fixture
def leaver(quota: Quota) -> User:
    """An admin of the workspace with a job of each kind, a template, a draft, a token and a group."""
    user = make_user("leaver")
    make_membership(user, quota.workspace, Role.ADMIN)
    for state in (State.RUNNING, State.QUEUED, State.SUCCEEDED):
        make_job(state, owner=user, quota=quota)
    waiting = Job.objects.get(state=State.QUEUED)
    key = attempt_of(waiting).key
    ledger.ask(key, quota=quota, owner=user, parts=[], priority=1, declared_s=None)
    make_template(user)
    Draft.objects.create(owner=user, text="{}")
    tokens.issue(user, scopes=[], lifetime=timedelta(days=1))
    LocalGroup.objects.create(name="staff").people.add(user)
    return user


def press(admin: Client, *, confirmed: bool = True, **values: object) -> str:
    data: dict[str, Any] = {"person": "leaver", "why": "has left", **values}
    return admin.post(
        ADDRESS, {**data, "confirmed": "yes"} if confirmed else data, follow=True
    ).content.decode()


@pytest.mark.parametrize("who", OTHERS)
def test_offboarding_refuses_who_is_no_admin_of_the_console(who: str, leaver: User, quota: Quota) -> None:
    answer = client_of(who, quota).post(ADDRESS, {"person": "leaver", "why": "x", "confirmed": "yes"})
    assert answer.status_code in {302, 403}
    assert User.objects.get(pk=leaver.pk).is_active


def test_offboarding_shows_what_is_handed_over_and_changes_nothing_yet(
    admin: Client, leaver: User, quota: Quota
) -> None:
    make_membership(make_user("heir"), quota.workspace)
    text = press(admin, confirmed=False, heir="heir")
    assert "Running and waiting jobs handed to heir: 2" in text
    assert "Ended jobs handed to heir: 1" in text
    assert "Templates handed to heir: 1" in text
    assert "Access tokens revoked: 1" in text
    assert "Vision has no other admin." in text
    assert "Jobs stopped" not in text
    assert User.objects.get(pk=leaver.pk).is_active
    assert not AdminAction.objects.exists()


def test_offboarding_hands_jobs_templates_and_drafts_over(admin: Client, leaver: User, quota: Quota) -> None:
    heir = make_user("heir")
    make_membership(heir, quota.workspace)
    elsewhere = make_job(State.RUNNING, owner=leaver, quota=make_quota())
    text = press(admin, heir="heir")
    assert "leaver was offboarded. heir has 3 more jobs, 1 templates and 1 drafts" in text
    assert set(Job.objects.filter(owner=leaver)) == {elsewhere}, "the heir can't submit there"
    assert list(Event.objects.filter(kind=Event.Kind.END_WANTED).values_list("job", flat=True)) == [
        elsewhere.pk
    ]
    assert Template.objects.get().owner == Draft.objects.get().owner == Request.objects.get().owner == heir
    leaver.refresh_from_db()
    assert not leaver.is_active
    assert not leaver.access_tokens.filter(revoked_at=None).exists()
    assert not Membership.objects.filter(user=leaver).exists()
    assert not leaver.local_groups.exists()
    groups.apply_to_all()
    assert AdminAction.objects.filter(kind="offboard", about="leaver", why="has left").exists()


def test_offboarding_without_an_heir_stops_what_runs_and_waits(admin: Client, leaver: User) -> None:
    assert "Jobs stopped: 2" in press(admin, confirmed=False)
    assert "leaver was offboarded. Jobs being stopped: 2." in press(admin)
    assert Event.objects.filter(kind=Event.Kind.END_WANTED).count() == 2
    assert Template.objects.get().owner == leaver


@pytest.mark.parametrize(
    ("heir", "told"),
    [
        ("leaver", "Select another user."),
        ("nobody", "User not found."),
        ("gone", "This account is disabled."),
    ],
)
def test_offboarding_names_a_wrong_heir_at_the_field(
    admin: Client, leaver: User, heir: str, told: str
) -> None:
    make_user("gone", is_active=False)
    assert told in press(admin, heir=heir)
    assert User.objects.get(pk=leaver.pk).is_active
