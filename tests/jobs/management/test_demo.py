"""`manage.py demo`: every state is there, and no worker finds anything to do about it."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client

from jobs.models import Job
from jobs.scheduling import admission, reconcile
from jobs.states import State
from quotas.models import Cluster, User, Workspace
from tests.factories import make_job, make_user

pytestmark = pytest.mark.django_db


def demo(*arguments: str) -> str:
    out = StringIO()
    call_command("demo", *arguments, stdout=out)
    return out.getvalue()


def test_demo_creates_every_state_and_pages_show_them(client: Client) -> None:
    assert demo("--jobs", "60").startswith("60 jobs in ")
    assert set(Job.objects.values_list("state", flat=True)) == set(State)
    client.force_login(make_user(admin=True))
    for job in Job.objects.order_by("-pk")[: len(State)]:
        for tab in ("overview", "replicas", "events", "file"):
            page = client.get(f"/jobs/{job.public_id}/?tab={tab}")
            assert page.status_code == 200
            assert job.name in page.content.decode()


def test_demo_leaves_workers_nothing_to_do() -> None:
    demo("--jobs", "60")
    cluster = Cluster.objects.get(slug="demo")
    before = list(Job.objects.order_by("pk").values_list("pk", "state", "reason_code", "version"))
    assert admission.admit(cluster.pk) + reconcile.send(cluster.pk) == 0
    assert reconcile.due_clusters()["observe"] == []
    assert reconcile.sealable() == []
    assert list(Job.objects.order_by("pk").values_list("pk", "state", "reason_code", "version")) == before
    assert not cluster.enabled


def test_demo_users_cannot_sign_in() -> None:
    demo("--jobs", "1")
    assert User.objects.exists()
    assert not any(user.has_usable_password() for user in User.objects.all())


def test_demo_refuses_console_with_jobs_unless_confirmed() -> None:
    make_job()
    with pytest.raises(CommandError, match="--yes"):
        demo()
    assert Job.objects.count() == 1
    demo("--jobs", "3", "--yes")
    demo("--jobs", "3", "--yes")
    assert Job.objects.count() == 7
    assert Workspace.objects.filter(slug="vision").count() == 1
