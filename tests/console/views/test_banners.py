"""Banners and maintenance: who is told what, in which language, until when."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from quotas.models import Banner, Maintenance, User
from tests.factories import make_cluster, make_membership, make_user, make_workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def member(db: None) -> User:
    user = make_user("member")
    make_membership(user, make_workspace("vision"))
    return user


def shown(user: User | None) -> str:
    client = Client()
    if user is not None:
        client.force_login(user)
    return client.get("/" if user else "/sign-in").content.decode()


def test_banner_without_audience_is_shown_on_every_page(member: User) -> None:
    Banner.objects.create(text="Cake at noon", level="warn")
    assert "Cake at noon" in shown(member)
    assert "Cake at noon" in shown(None), "also before signing in"


def test_banner_of_a_workspace_is_shown_to_its_members_and_admins(member: User) -> None:
    workspace = member.memberships.get().workspace
    Banner.objects.create(text="Your data moves", workspace=workspace)
    assert "Your data moves" in shown(member)
    assert "Your data moves" in shown(make_user("root", admin=True))
    assert "Your data moves" not in shown(make_user("stranger"))
    assert "Your data moves" not in shown(None)


def test_banner_of_a_person_is_shown_to_no_other_user(member: User) -> None:
    Banner.objects.create(text="Look at node 3", person=member)
    assert "Look at node 3" in shown(member)
    assert "Look at node 3" not in shown(make_user("root", admin=True))


def test_banner_is_shown_only_within_its_period(member: User) -> None:
    now = timezone.now()
    Banner.objects.create(text="Not yet", from_at=now + timedelta(hours=1))
    Banner.objects.create(text="No more", until_at=now - timedelta(hours=1))
    text = shown(member)
    assert "Not yet" not in text
    assert "No more" not in text


def test_banner_uses_language_of_the_user_or_english(member: User) -> None:
    Banner.objects.create(text="Hello", text_ja="こんにちは")
    assert "Hello" in shown(member)
    member.language = "ja"
    member.save()
    assert "こんにちは" in shown(member)
    member.language = "zh-hans"
    member.save()
    assert "Hello" in shown(member)


def test_info_banner_is_dismissed_and_others_stay(client: Client, member: User) -> None:
    client.force_login(member)
    note = Banner.objects.create(text="Cake at noon")
    alarm = Banner.objects.create(text="The roof leaks", level="bad")
    for row in (note, alarm):
        answer = client.post(f"/banners/{row.pk}/dismiss", {"next": "/jobs/"})
        assert answer.headers["Location"] == "/jobs/"
    text = client.get("/").content.decode()
    assert "Cake at noon" not in text
    assert "The roof leaks" in text
    assert "Cake at noon" in shown(member), "in another sign-in it is still there"


def test_banner_dismissal_does_not_redirect_to_another_site(client: Client, member: User) -> None:
    client.force_login(member)
    note = Banner.objects.create(text="x")
    answer = client.post(f"/banners/{note.pk}/dismiss", {"next": "https://elsewhere.example/"})
    assert answer.headers["Location"] == "/"


def test_maintenance_is_announced_a_week_before(member: User) -> None:
    now = timezone.now()
    soon = {"from_at": now + timedelta(days=6), "until_at": now + timedelta(days=7)}
    Maintenance.objects.create(text="new disks", cluster=make_cluster(name="North"), **soon)
    Maintenance.objects.create(
        text="new roof", from_at=now + timedelta(days=9), until_at=now + timedelta(days=10)
    )
    text = shown(member)
    assert "Maintenance of North" in text
    assert "new disks" in text
    assert "new roof" not in text
