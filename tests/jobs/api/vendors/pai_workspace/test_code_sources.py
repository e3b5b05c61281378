"""Code sources over the workspace service."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from jobs.models import AssetUse, CodeSource
from quotas.models import AuditEntry
from tests.factories import make_job
from tests.jobs.api.conftest import People
from tests.jobs.api.vendors.pai_workspace.conftest import FORBIDDEN, INVALID, NOT_FOUND, client, ids
from tests.jobs.assets.conftest import make_code

Queries = Callable[[int], AbstractContextManager[object]]

ROOT = "/api/v1/codesources"
NEW: dict[str, Any] = {
    "WorkspaceId": "vision",
    "DisplayName": "trainer",
    "CodeRepo": "https://git.example.org/ml/trainer.git",
    "CodeBranch": "main",
    "CodeRepoUserName": "otto",
    "CodeRepoAccessToken": "canary",
    "MountPath": "/root/code",
    "Accessibility": "PUBLIC",
}


def test_code_source_is_created_by_those_who_manage_the_workspace(people: People) -> None:
    for user in (people.owner, people.member):
        assert client(user).refusal("POST", ROOT, NEW) == FORBIDDEN
    assert client(people.stranger).refusal("POST", ROOT, NEW) == NOT_FOUND
    for user in (people.manager, people.admin):
        key = client(user).call("POST", ROOT, NEW)["CodeSourceId"]
        found = client(people.owner).call("GET", f"{ROOT}/{key}")
        repeated = ("DisplayName", "CodeRepo", "CodeBranch", "CodeRepoUserName", "MountPath", "WorkspaceId")
        assert {name: found[name] for name in repeated} == {name: NEW[name] for name in repeated}
        assert found["UserId"] == user.username


def test_access_token_is_stored_encrypted_and_never_answered(people: People) -> None:
    caller = client(people.manager)
    key = caller.call("POST", ROOT, NEW)["CodeSourceId"]
    row = CodeSource.objects.get()
    assert (row.reveal(), "canary" in row.ciphertext) == ("canary", False)
    for address in (ROOT, f"{ROOT}/{key}"):
        assert b"canary" not in caller.send("GET", address).content
    refused = caller.send("POST", ROOT, {**NEW, "CodeRepo": "ftp://x"})
    assert (refused.status_code, b"canary" in refused.content) == (400, False)
    assert not any("canary" in str(entry.changes) for entry in AuditEntry.objects.all())
    assert AuditEntry.objects.filter(actor=people.manager, object_repr="trainer").exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"CodeRepo": "git@git.example.org:ml/trainer.git"},
        {"CodeRepo": "https://otto:canary@git.example.org/x"},
        {"CodeCommit": "no commit"},
        {"MountPath": "relative"},
        {"MountPath": "/a/../b"},
        {"DisplayName": "x" * 201},
    ],
)
def test_wrong_code_source_is_refused(people: People, changes: dict[str, str]) -> None:
    assert client(people.manager).refusal("POST", ROOT, {**NEW, **changes}) == INVALID
    assert not CodeSource.objects.exists()


def test_code_sources_are_those_that_the_person_may_use(people: People) -> None:
    ours = make_code(people.quota.workspace, name="ours")
    make_code(name="all")
    for user in (people.owner, people.member, people.manager, people.admin):
        caller = client(user)
        assert ids(caller.call("GET", ROOT, SortBy="DisplayName"), "CodeSources", "DisplayName") == [
            "all",
            "ours",
        ]
        assert ids(caller.call("GET", ROOT, WorkspaceId="vision"), "CodeSources", "DisplayName") == ["ours"]
        assert ids(caller.call("GET", ROOT, DisplayName="OUR"), "CodeSources", "DisplayName") == ["ours"]
    stranger = client(people.stranger)
    assert ids(stranger.call("GET", ROOT), "CodeSources", "DisplayName") == ["all"]
    assert stranger.refusal("GET", f"{ROOT}/{ours.key}") == NOT_FOUND
    assert stranger.refusal("GET", ROOT, WorkspaceId="vision") == NOT_FOUND


def test_code_source_list_takes_few_queries(people: People, django_assert_max_num_queries: Queries) -> None:
    for number in range(20):
        make_code(people.quota.workspace, name=str(number), created_by=people.owner)
    caller = client(people.owner)
    caller.call("GET", ROOT)
    with django_assert_max_num_queries(10):
        assert len(caller.call("GET", ROOT, PageSize=100)["CodeSources"]) == 20


def test_code_source_is_deleted_by_those_who_manage_it(people: People) -> None:
    row = make_code(people.quota.workspace)
    for user in (people.owner, people.member):
        assert client(user).refusal("DELETE", f"{ROOT}/{row.key}") == FORBIDDEN
    assert client(people.stranger).refusal("DELETE", f"{ROOT}/{row.key}") == NOT_FOUND
    assert client(people.manager).call("DELETE", f"{ROOT}/{row.key}")["CodeSourceId"] == row.key
    assert not CodeSource.objects.exists()
    assert client(people.admin).refusal("DELETE", f"{ROOT}/{row.key}") == NOT_FOUND


def test_used_code_source_is_retired(people: People) -> None:
    row = make_code(people.quota.workspace)
    AssetUse.objects.create(job=make_job(owner=people.owner, quota=people.quota), kind="code", key=row.key)
    client(people.admin).call("DELETE", f"{ROOT}/{row.key}")
    assert CodeSource.objects.get().is_retired


def test_code_source_is_published_without_effect(people: People) -> None:
    row = make_code(people.quota.workspace)
    assert client(people.manager).call("PUT", f"{ROOT}/{row.key}/publish")["CodeSourceId"] == row.key
    assert client(people.owner).refusal("PUT", f"{ROOT}/{row.key}/publish") == FORBIDDEN
    assert client(people.stranger).refusal("PUT", f"{ROOT}/{row.key}/publish") == NOT_FOUND
