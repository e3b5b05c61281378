"""A web server, people with tokens, and files to send."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

import httpx
import pytest

from jobs.assets.uploads import arrivals
from jobs.trees import Entry, Kind, Tree
from quotas.accounts import tokens
from quotas.models import Quota, Role, User
from tests.factories import make_cluster, make_membership, make_quota, make_user, make_workspace
from tests.serving import web_server

UPLOADS = "/api/console/v1/uploads"


@dataclass(frozen=True)
class People:
    """`owner` and `member` share a workspace that `manager` keeps; `stranger` is elsewhere."""

    owner: User
    member: User
    manager: User
    stranger: User
    admin: User
    quota: Quota


@pytest.fixture
def people(transactional_db: None) -> People:
    owner, member, manager, stranger = (make_user(name) for name in ("olga", "mei", "otto", "sam"))
    roles = {owner: Role.DEVELOPER, member: Role.DEVELOPER, manager: Role.ADMIN}
    quota = make_quota(make_workspace("vision", members=roles), make_cluster("local"), "default")
    make_membership(stranger, make_workspace("speech"))
    return People(owner, member, manager, stranger, make_user("root", admin=True), quota)


@pytest.fixture
def base_url(transactional_db: None) -> Iterator[str]:
    with web_server() as url:
        yield url


Sender = Callable[..., httpx.Client]


@pytest.fixture
def sender(base_url: str) -> Iterator[Sender]:
    """A client with a token of somebody."""
    made: list[httpx.Client] = []

    def sending(user: User, scopes: Iterable[str] = ("submit", "read")) -> httpx.Client:
        token = tokens.issue(user, scopes=scopes, lifetime=timedelta(days=1))
        headers = {"Authorization": f"Bearer {token}"}
        made.append(httpx.Client(base_url=base_url, headers=headers, trust_env=False, timeout=60))
        return made[-1]

    yield sending
    for client in made:
        client.close()


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def packed(*contents: bytes) -> bytes:
    """The contents as the body of a pack."""
    return b"".join(arrivals.HEAD.pack(hashlib.sha256(each).digest(), len(each)) + each for each in contents)


def tree_of(files: Mapping[str, bytes], *more: Entry) -> Tree:
    """A tree of files by their paths."""
    entries = (Entry(path, Kind.FILE, digest(data), len(data)) for path, data in files.items())
    return Tree.of([*entries, *more])


def send(client: httpx.Client, files: Mapping[str, bytes], *more: Entry) -> str:
    """Send files as somebody; the address of the tree."""
    if files:
        assert client.post(f"{UPLOADS}/packs", content=packed(*files.values())).status_code == 201
    answer = client.post(f"{UPLOADS}/trees", content=tree_of(files, *more).dump())
    assert answer.status_code == 201, answer.text
    return str(answer.json()["uri"])
