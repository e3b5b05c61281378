"""Quotas from a cluster's accounts and back, on a page: shown first, done as shown, by admins alone."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.test import Client

from console.site_yaml import accounts
from jobs.backends.accounts import Account, AccountLimits, AccountTree
from jobs.backends.base import Unreachable
from quotas.models import AdminAction, AuditEntry, Cluster, Quota
from tests.console.administration.conftest import OTHERS, client_of
from tests.factories import make_cluster, make_quota, make_user, make_workspace

pytestmark = pytest.mark.django_db

TAKE = "/admin/clusters/hpc/accounts/"
GIVE = "/admin/clusters/hpc/accounts/write/"


@dataclass
class FakeAccounting:
    """An engine that keeps accounts, or does not answer."""

    tree: AccountTree = field(default_factory=AccountTree)
    away: str = ""
    written: list[tuple[str, AccountLimits, int | None]] = field(default_factory=list)

    def read_accounts(self) -> AccountTree:
        if self.away:
            raise Unreachable(self.away)
        return self.tree

    def limit(self, account: str, limits: AccountLimits, jobs_of_one: int | None) -> None:
        self.written.append((account, limits, jobs_of_one))


@pytest.fixture
def accounting(monkeypatch: pytest.MonkeyPatch) -> FakeAccounting:
    vision = Account(
        "vision", "", ("alice",), AccountLimits(cpus=40, gpus=8), None, ("normal",), ("MaxWall=60",)
    )
    made = FakeAccounting(AccountTree((vision,)))
    monkeypatch.setattr(accounts, "backend_for", lambda _cluster: made)
    return made


@pytest.fixture
def cluster(accounting: FakeAccounting) -> Cluster:
    make_user("alice")
    return make_cluster("hpc", backend="slurm", config={"write_back": True})


def text_of(answer: Any) -> str:
    return re.sub(r"\s+", " ", answer.content.decode())


def shown(answer: Any) -> str:
    found = re.search(r'name="shown"\s+value="(\w+)"', answer.content.decode())
    assert found is not None
    return found[1]


def test_account_import_shows_changes_and_applies_them_on_confirmation(
    admin: Client, cluster: Cluster
) -> None:
    assert f'href="{TAKE}"' in admin.get(f"/admin/quotas/cluster/{cluster.pk}/change/").content.decode()
    page = admin.get(TAKE)
    assert "+ /workspaces/vision/quotas/hpc/vision" in text_of(page)
    assert "vision: MaxWall=60" in text_of(page)
    assert not Quota.objects.exists()
    done = admin.post(TAKE, {"shown": shown(page)}, follow=True)
    assert "No changes: everything matches the accounts." in text_of(done)
    assert Quota.objects.get(slug="vision").gpus == 8
    assert AdminAction.objects.get().kind == AdminAction.Kind.QUOTAS
    entries = AuditEntry.objects.filter(object_repr__contains="vision", action="create")
    assert set(entries.values_list("actor_name", "way")) == {("root", "admin")}


def test_account_import_refuses_changes_different_from_the_preview(
    admin: Client, cluster: Cluster, accounting: FakeAccounting
) -> None:
    before = shown(admin.get(TAKE))
    accounting.tree = AccountTree((Account("speech", "", (), AccountLimits(gpus=1), None, (), ()),))
    answer = admin.post(TAKE, {"shown": before})
    assert answer.status_code == 409
    assert "Nothing was changed: the data has changed since the preview." in text_of(answer)
    assert not Quota.objects.exists()
    assert admin.post(TAKE).status_code == 409
    assert admin.post(TAKE, {"shown": shown(answer)}).status_code == 302
    assert Quota.objects.get().slug == "speech"


def test_account_export_writes_quota_limits_into_accounts(
    admin: Client, cluster: Cluster, accounting: FakeAccounting
) -> None:
    make_quota(make_workspace("vision"), cluster, "vision", gpus=4)
    page = admin.get(GIVE)
    assert "~ /accounts/vision: gpus 8 → 4" in text_of(page)
    assert accounting.written == []
    assert admin.post(GIVE, {"shown": shown(page)}).status_code == 302
    assert accounting.written == [("vision", AccountLimits(gpus=4), None)]
    entry = AuditEntry.objects.filter(way="admin", object_repr="vision")
    assert entry.filter(actor_name="root").exists()


@pytest.mark.parametrize("url", [TAKE, GIVE])
def test_account_pages_show_reason_for_refusal(
    admin: Client, cluster: Cluster, accounting: FakeAccounting, url: str
) -> None:
    accounting.away = "sacctmgr: no slurmdbd answers"
    assert "sacctmgr: no slurmdbd answers" in text_of(admin.get(url))
    assert admin.post(url, {"shown": "x"}).status_code == 409
    accounting.away, accounting.tree = "", AccountTree()
    assert "This cluster has no accounts." in text_of(admin.get(url))
    Cluster.objects.update(config={})
    assert "Set write_back to true there." in text_of(admin.get(GIVE))


@pytest.mark.parametrize("who", OTHERS)
@pytest.mark.parametrize("url", [TAKE, GIVE])
def test_account_pages_refuse_non_admins(cluster: Cluster, quota: Quota, who: str, url: str) -> None:
    client = client_of(who, quota)
    for answer in (client.get(url), client.post(url, {"shown": "x"})):
        assert answer.status_code in (302, 403)
        assert "next=" in answer.headers.get("Location", "next=")
    assert Quota.objects.count() == 1
