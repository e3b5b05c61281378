"""As which UNIX user somebody's jobs run: who says it, and who does not."""

from __future__ import annotations

import json

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from quotas import ledger
from quotas.amounts import Amounts, Part
from quotas.models import Cluster, User, unixnames
from tests.factories import make_cluster, make_quota, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin() -> Client:
    client = Client()
    client.force_login(make_user("chief", admin=True))
    return client


@pytest.mark.parametrize("name", ["alice", "a.smith", "_build", "a-1"])
def test_valid_unix_name_is_accepted(name: str) -> None:
    unixnames.check(name)


@pytest.mark.parametrize(
    "name", ["root", "slurm", "nobody", "1000", "-u", "a b", "Alice", "a/b", "a\n", "%sudo", "#0", "a" * 33]
)
def test_invalid_unix_name_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        unixnames.check(name)


def test_unix_name_from_a_source_is_stored_and_removed() -> None:
    user = make_user("alice")
    unixnames.learn(user, "corp", "asmith")
    assert User.objects.get().unix_name == "asmith"
    unixnames.learn(user, "ldap", "other")
    assert User.objects.get().unix_name == "asmith", "another source's"
    unixnames.learn(user, "corp", "")
    assert User.objects.get().unix_name == ""


def test_unix_name_entered_by_admin_is_not_changed_by_a_source() -> None:
    user = make_user("alice", unix_name="asmith")
    unixnames.learn(user, "corp", "bjones")
    unixnames.learn(user, "corp", "")
    assert User.objects.get().unix_name == "asmith"


def test_unix_name_root_from_a_source_is_not_stored() -> None:
    user = make_user("alice")
    unixnames.learn(user, "corp", "asmith")
    unixnames.learn(user, "corp", "root")
    assert User.objects.get().unix_name == ""


def changed(admin: Client, user: User, unix_name: str) -> int:
    """The status of an admin's form that was sent with that name."""
    page = admin.get(f"/admin/quotas/user/{user.pk}/change/")
    form = page.context["adminform"].form
    data = {name: form[name].value() for name in form.fields}
    data |= {"unix_name": unix_name, "date_joined_0": "2026-01-01", "date_joined_1": "00:00"}
    for formset in page.context["inline_admin_formsets"]:
        prefix = formset.formset.prefix
        data |= {f"{prefix}-TOTAL_FORMS": "0", f"{prefix}-INITIAL_FORMS": "0"}
    sent = {name: value for name, value in data.items() if value not in (None, False)}
    return admin.post(f"/admin/quotas/user/{user.pk}/change/", sent).status_code


def test_unix_name_entered_by_admin_replaces_the_source_value(admin: Client) -> None:
    user = make_user("alice", unix_name="earlier", unix_name_from="corp")
    assert changed(admin, user, "asmith") == 302
    user.refresh_from_db()
    assert (user.unix_name, user.unix_name_from) == ("asmith", "")


def test_unix_name_root_entered_by_admin_is_refused(admin: Client) -> None:
    user = make_user("alice")
    assert changed(admin, user, "root") == 200
    user.refresh_from_db()
    assert user.unix_name == ""


def test_unix_name_cannot_be_set_by_the_user() -> None:
    user = make_user("alice")
    client = Client()
    client.force_login(user)
    for path in ("/settings/", "/settings/profile", f"/admin/quotas/user/{user.pk}/change/"):
        client.post(path, {"unix_name": "bob", "language": "en", "theme": "auto", "time_zone": "UTC"})
    user.refresh_from_db()
    assert user.unix_name == ""


@pytest.mark.parametrize(
    ("backend", "config", "told"),
    [
        ("slurm", {}, "console&#x27;s UNIX user, "),
        ("slurm", {"identity": "single"}, "console&#x27;s UNIX user, "),
        ("slurm", {"identity": "sudo"}, "its owner&#x27;s UNIX user"),
        ("local", {}, "–"),
    ],
)
def test_cluster_admin_page_shows_user_running_the_jobs(
    admin: Client, backend: str, config: dict[str, str], told: str
) -> None:
    cluster = make_cluster(backend=backend, config=config)
    page = admin.get(f"/admin/quotas/cluster/{cluster.pk}/change/").content.decode()
    assert told in page
    assert ("All jobs run as" in page) == (told == "console&#x27;s UNIX user, ")


def held(cluster: Cluster, holder: str) -> None:
    """A job of the console's that has not ended there."""
    parts = [Part(1, Amounts(1000, 1024))]
    quota = make_quota(cluster=cluster)
    request = ledger.ask(holder, quota=quota, owner=make_user(), parts=parts, priority=1, declared_s=None)
    ledger.reserve(request, [])


def test_cluster_identity_cannot_change_while_jobs_are_on_it(admin: Client) -> None:
    cluster = make_cluster(backend="slurm", config={"identity": "sudo"})
    url = f"/admin/quotas/cluster/{cluster.pk}/change/"
    fields = {
        "slug": cluster.slug,
        "name": cluster.name,
        "backend": "slurm",
        "admission": "engine",
        "cordon_percent": "10",
        "save_untested": "on",
    }

    def changed(to: dict[str, str]) -> str:
        answer = admin.post(url, {**fields, "config": json.dumps(to)})
        cluster.refresh_from_db()
        return answer.content.decode() if answer.status_code == 200 else ""

    held(make_cluster("other"), "elsewhere")
    held(cluster, "a")
    held(cluster, "b")
    assert "while 2 jobs of this console are on the cluster" in changed({})
    assert cluster.config == {"identity": "sudo"}
    assert changed({"identity": "sudo", "partition": "gpu"}) == ""
    ledger.close("a")
    assert "while 1 job of this console is on the cluster" in changed({"identity": "single"})
    ledger.close("b")
    assert changed({}) == ""
    assert cluster.config == {}
