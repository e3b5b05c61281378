"""The names of the first workspace, cluster and quota, as people read them."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import translation

from jobs.messages import sentences
from quotas import default_names
from quotas.accounts.bootstrap import ensure_defaults
from quotas.models import Cluster, Quota, User, Workspace


@pytest.fixture
def admin(db: None) -> User:
    user = User.objects.create_superuser("root")
    ensure_defaults(user)
    return user


@pytest.mark.parametrize("language", ["zh-hans", "ja"])
def test_default_names_are_translated(admin: User, client: Client, language: str) -> None:
    User.objects.update(language=language)
    client.force_login(admin)
    page = client.get(reverse("quotas")).content.decode()
    with translation.override(language):
        titles = {Workspace.objects.get().title, Cluster.objects.get().title, Quota.objects.get().title}
    assert [title for title in titles if title not in page or title.isascii()] == []
    assert default_names.CLUSTER not in page


def test_name_typed_by_admin_is_not_translated(admin: User) -> None:
    Cluster.objects.update(name="Lab 3")
    with translation.override("ja"):
        assert Cluster.objects.get().title == "Lab 3"


def test_default_names_in_sentences_are_translated() -> None:
    with translation.override("ja"):
        assert sentences.say(("%(cluster)s",), {"cluster": default_names.CLUSTER}) != default_names.CLUSTER
    assert sentences.DEFAULT_NAMES == default_names.DEFAULT_NAMES
