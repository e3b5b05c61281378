"""A console's admin, and everybody who is none."""

from __future__ import annotations

import pytest
from django.test import Client

from quotas.models import Quota, Role, User
from tests.confirmed import sign_in
from tests.factories import make_cluster, make_membership, make_quota, make_user, make_workspace

OTHERS = ("anonymous", "stranger", "member", "workspace admin", "staff")
"""Nobody of these administers the console; staff sees only what Django's permissions open."""


@pytest.fixture
def root(db: None) -> User:
    return make_user("root", admin=True)


@pytest.fixture
def admin(client: Client, root: User) -> Client:
    sign_in(client, root)
    return client


@pytest.fixture
def quota(db: None) -> Quota:
    """Eight GPUs of a workspace, on a cluster called North."""
    return make_quota(make_workspace("vision"), make_cluster("north", name="North"), "default", gpus=8)


def client_of(who: str, quota: Quota) -> Client:
    """Somebody who is not the console's admin."""
    client = Client()
    if who == "anonymous":
        return client
    user = make_user(who.replace(" ", "-"), is_staff=who == "staff")
    if who in {"member", "workspace admin"}:
        make_membership(user, quota.workspace, Role.ADMIN if who == "workspace admin" else Role.DEVELOPER)
    sign_in(client, user)
    return client
