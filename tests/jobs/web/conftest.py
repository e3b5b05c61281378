"""A workspace with everybody who may look at a job, and browsers for them."""

from __future__ import annotations

from dataclasses import dataclass
from html import unescape
from typing import TYPE_CHECKING

import pytest
from django.test import Client

from jobs.logs import log_store
from jobs.models import Job, LogStream
from quotas.models import Quota, Role, User
from tests.confirmed import sign_in
from tests.factories import make_cluster, make_quota, make_users, make_workspace

if TYPE_CHECKING:  # what the test client makes of a response has a name in the stubs only
    from django.test.client import _MonkeyPatchedWSGIResponse as Response


@dataclass(frozen=True)
class People:
    """`owner` has the jobs, `member` shares the workspace, `manager` keeps it, `stranger` is elsewhere,
    `admin` keeps the console.
    """

    owner: User
    member: User
    manager: User
    stranger: User
    admin: User
    quota: Quota


@pytest.fixture
def people(db: None) -> People:
    owner, member, manager, stranger, admin = make_users("alice", "bob", "carol", "mallory", admin="root")
    workspace = make_workspace(
        "vision",
        name="Vision",
        members={owner: Role.DEVELOPER, member: Role.DEVELOPER, manager: Role.ADMIN},
    )
    quota = make_quota(workspace, make_cluster("local", name="This machine"), "default", name="Default")
    make_workspace("elsewhere", members={stranger: Role.DEVELOPER})
    return People(owner, member, manager, stranger, admin, quota)


def browser(user: User | None = None) -> Client:
    """A browser in which `user` has signed in."""
    client = Client()
    if user is not None:
        sign_in(client, user)
    return client


def fragment(element: str) -> dict[str, str]:
    """The headers with which htmx asks for the element of that id."""
    return {"HX-Request": "true", "HX-Target": element}


def seen(response: Response) -> str:
    """The page's source as text: entities resolved, space squeezed."""
    return " ".join(unescape(response.content.decode()).split())


def write_log(job: Job, data: bytes, role: str = "main", index: int = 0) -> None:
    """Let `data` be the log of a replica, where the local backend would have written it."""
    stream = LogStream.objects.get(attempt__job=job, role=role, index=index)
    path = log_store.jobs_root() / job.public_id / "1" / f"{role}-{index}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    LogStream.objects.filter(pk=stream.pk).update(live_path=log_store.relative_to_root(str(path)))
