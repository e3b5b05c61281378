"""The audit log: every change with before and after, by whom, from where; refusals; nothing secret."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone

from console.home import CHECKOUT
from jobs import submission
from jobs.access import sshkeys
from jobs.lifecycle import transitions
from jobs.models import PersonalSecret, Visibility
from jobs.states import State
from quotas import audit, ledger
from quotas.accounts import tokens
from quotas.audit import audit_log, origin
from quotas.audit.origin import Origin
from quotas.clusters import inventory
from quotas.models import Action, AuditEntry, Membership, Node, NodeState, Quota, Role, User, Way
from tests.factories import (
    PASSWORD,
    audited,
    make_cluster,
    make_job,
    make_membership,
    make_quota,
    make_user,
    make_workspace,
)

pytestmark = pytest.mark.django_db

CANARY = "c4n4ry-do-not-show"


@pytest.fixture(autouse=True)
def _factories_are_audited() -> Iterator[None]:
    with audited():
        yield


def last(**columns: Any) -> AuditEntry:
    entry = AuditEntry.objects.filter(**columns).order_by("-id").first()
    assert entry is not None
    return entry


def everything() -> str:
    return json.dumps(list(AuditEntry.objects.values()), default=str)


def test_change_entry_has_before_and_after() -> None:
    quota = make_quota(gpus=4)
    quota.gpus = 8
    quota.save()
    entry = last(action="update")
    assert entry.changes == {"gpus": [4, 8]}
    assert (entry.object_repr, entry.workspace) == (quota.name, quota.workspace)
    assert entry.content_type is not None
    assert entry.content_type.model_class() is Quota


def test_creations_and_deletions_are_logged() -> None:
    user, workspace = make_user("alice"), make_workspace("vision")
    make_membership(user, workspace, Role.VIEWER)
    made = last(content_type__model="workspace").changes
    assert {name for name in made if name not in {"id", "created_at"}} == {"slug", "name", "egress"}
    assert last(content_type__model="membership").changes["role"] == [None, "viewer"]
    Membership.objects.all().delete()
    gone = last(content_type__model="membership")
    assert (gone.action, gone.person, gone.workspace) == ("delete", user, workspace)
    assert gone.changes["user"] == ["alice", None]


def test_entry_stays_unchanged_after_deletion_of_its_subject() -> None:
    actor = make_user("gone")
    with origin.of(Origin(Way.PAGE, user=actor)):
        workspace = make_workspace("vision")
        workspace.delete()
    key = actor.pk
    actor.delete()
    entry = last(content_type__model="workspace", action="delete")
    assert (entry.actor_id, entry.actor_name, entry.object_repr) == (key, "gone", "Vision")


def test_change_and_its_entry_share_one_transaction() -> None:
    workspace = make_workspace("vision")
    before = AuditEntry.objects.count()
    with pytest.raises(IntegrityError), transaction.atomic():
        make_workspace("vision")
    workspace.slug = make_workspace("other").slug
    with pytest.raises(IntegrityError), transaction.atomic():
        workspace.save()
    assert AuditEntry.objects.count() == before + 1, "the other workspace's alone"


def test_machine_written_rows_are_not_logged() -> None:
    quota, owner = make_quota(), make_user()
    cluster = quota.cluster
    before = AuditEntry.objects.count()
    inventory.record(cluster, [])
    request = ledger.ask("h", quota=quota, owner=owner, parts=[], priority=1, declared_s=None)
    ledger.reserve(request, [])
    ledger.close("h")
    assert AuditEntry.objects.count() == before


def test_job_actions_are_logged_with_their_actor() -> None:
    owner = make_user("alice")
    job = make_job(owner=owner)
    ledger.ask(
        transitions.key_of(job.public_id, 1),
        quota=job.quota,
        owner=owner,
        parts=[],
        priority=1,
        declared_s=None,
    )
    submission.hold(owner, job)
    submission.release(owner, job)
    submission.share(owner, job, Visibility.PUBLIC)
    submission.stop(owner, job)
    job.refresh_from_db()
    submission.delete(owner, job)
    rows = AuditEntry.objects.filter(object_repr=job.public_id).order_by("id")
    told = [(row.action, row.actor_name, row.changes) for row in rows]
    assert told == [
        ("hold", "alice", {"held": [False, True]}),
        ("release", "alice", {"held": [True, False]}),
        ("share", "alice", {"visibility": ["PRIVATE", "PUBLIC"]}),
        ("stop", "alice", {}),
        ("delete", "alice", {}),
    ]
    assert {row.workspace for row in rows} == {job.workspace}


def test_node_decision_of_an_admin_is_logged_once() -> None:
    admin = make_user("root", admin=True)
    Node.objects.create(cluster=make_cluster("local"), name="n1")
    for _again in range(2):
        inventory.decide(Node.objects.all(), NodeState.CORDONED, by=admin, why="new disks")
    [entry] = AuditEntry.objects.filter(content_type__model="node")
    assert entry.object_repr == "local/n1"
    assert entry.changes == {"state": ["schedulable", "cordoned"], "state_why": ["", "new disks"]}


def test_audit_log_contains_no_secret() -> None:
    user = make_user("alice")
    user.set_password(CANARY)
    user.save()
    token = tokens.issue(user, scopes=["read"], lifetime=timedelta(days=1))
    secret = PersonalSecret(owner=user, name="HF_TOKEN")
    secret.encrypt(CANARY)
    secret.save()
    secret.encrypt(CANARY + "2")
    secret.save()
    make_cluster(
        config={
            "access_key_secret": CANARY,
            "deep": [{"password": CANARY}],
            "url": f"https://u:{CANARY}@host/",
        }
    )
    audit.log(Action.USE, name=f"somebody pasted {token}", details={"note": f"Bearer {token}"})
    text = everything()
    assert CANARY not in text
    assert token.split("_", 2)[2] not in text
    assert user.password not in text
    assert secret.ciphertext not in text
    changed = last(content_type__model="personalsecret", action="update")
    assert (changed.object_repr, changed.changes) == ("HF_TOKEN", {"ciphertext": [audit.MASK, audit.MASK]})


def test_tokens_and_keys_are_logged_by_name() -> None:
    user = make_user("alice")
    prefix = tokens.issue(user, name="ci", scopes=["read"], lifetime=timedelta(days=1)).rsplit("_", 1)[0][:13]
    row = user.access_tokens.get()
    assert prefix.startswith(row.prefix)
    made = last(content_type__model="accesstoken")
    assert (made.object_repr, made.person, "digest" in made.changes) == ("ci", user, False)
    tokens.revoke(user, row.pk)
    assert last(content_type__model="accesstoken").changes == {"revoked": [False, True]}
    key, private = sshkeys.make(user, make_job(State.RUNNING, owner=user))
    assert last(content_type__model="sshkey").person == user
    assert private not in everything()
    key.delete()
    assert last(content_type__model="sshkey").action == "delete"


def test_request_entry_has_actor_address_and_way(client: Client) -> None:
    user = make_user("alice")
    job = make_job(owner=user)
    token = tokens.issue(user, scopes=["read", "stop"], lifetime=timedelta(days=1))
    path = f"/api/console/v1/jobs/{job.public_id}/stop"
    answer = client.post(path, headers={"Authorization": f"Bearer {token}"}, REMOTE_ADDR="192.0.2.7")
    assert answer.status_code < 300
    entry = last(action="stop")
    told = (entry.actor, entry.way, entry.remote_addr, entry.token, entry.object_repr)
    assert told == (user, "api", "192.0.2.7", user.access_tokens.get().prefix, job.public_id)
    assert entry.cid
    client.force_login(user)
    client.post("/settings", {"language": "ja", "time_zone": "", "theme": "dark"}, REMOTE_ADDR="2001:db8::1")
    entry = last(content_type__model="user", action="update", person=user)
    assert (entry.way, entry.remote_addr, entry.token) == ("page", "2001:db8::1", "")
    assert entry.changes["theme"] == ["auto", "dark"]


def test_untrusted_forwarded_header_is_not_used_as_address(client: Client) -> None:
    client.force_login(make_user("alice"))
    client.get("/admin/", REMOTE_ADDR="192.0.2.7", headers={"X-Forwarded-For": "203.0.113.9"}, follow=True)
    assert last(denied=True).remote_addr == "192.0.2.7"


def test_refusals_are_logged(client: Client) -> None:
    job = make_job(State.RUNNING, owner=make_user("alice"))
    member, stranger = make_user("bob"), make_user("mallory")
    make_membership(member, job.workspace)
    client.force_login(member)
    client.post(f"/jobs/{job.public_id}/stop")
    entry = last(denied=True)
    assert (entry.actor, entry.object_repr, entry.workspace) == (member, job.public_id, job.workspace)
    assert AuditEntry.objects.filter(denied=True).count() == 1, "and once"
    client.force_login(stranger)
    client.get(f"/jobs/{job.public_id}/")
    assert (last(denied=True).actor, last(denied=True).workspace) == (stranger, None)
    client.get("/admin/", follow=True)
    assert last(denied=True).actor == stranger
    token = tokens.issue(member, scopes=["read"], lifetime=timedelta(days=1))
    client.post(f"/api/console/v1/jobs/{job.public_id}/stop", headers={"Authorization": f"Bearer {token}"})
    assert (last(denied=True).way, last(denied=True).token) == ("api", member.access_tokens.get().prefix)
    client.get("/api/console/v1/jobs", headers={"Authorization": "Bearer jc_none_x"})
    assert (last(denied=True).action, last(denied=True).actor_name) == ("sign_in_failed", "")


def test_sign_in_attempts_are_logged_without_passwords_typed_as_name(client: Client) -> None:
    user = make_user("alice")
    client.post("/sign-in", {"username": "alice", "password": "wrong"}, REMOTE_ADDR="192.0.2.7")
    entry = last(denied=True)
    assert (entry.action, entry.person, entry.remote_addr) == ("sign_in_failed", user, "192.0.2.7")
    client.post("/sign-in", {"username": CANARY, "password": "wrong"})
    assert last(denied=True).object_repr == "?"
    assert CANARY not in everything()
    client.post("/sign-in", {"username": "alice", "password": PASSWORD})
    assert (last(action="sign_in").actor, last(action="sign_in").denied) == (user, False)


def test_repeated_refusals_are_logged_up_to_a_limit(client: Client) -> None:
    client.force_login(make_user("mallory"))
    for _again in range(audit.refusals.at_once + 15):
        client.get("/jobs/nosuchjob123/")
    assert AuditEntry.objects.filter(denied=True).count() == audit.refusals.at_once


def test_audit_log_is_append_only() -> None:
    make_workspace("vision")
    entry = last()
    entry.actor_name = "somebody else"
    for change in (
        entry.save,
        entry.delete,
        AuditEntry.objects.all().delete,
        lambda: AuditEntry.objects.update(actor_name="somebody else"),
    ):
        with pytest.raises(TypeError):
            change()
    assert last().actor_name == "system"


@pytest.mark.parametrize("address", ["", "1/change/", "1/delete/", "add/"])
def test_audit_entries_cannot_be_changed_by_admins(client: Client, address: str) -> None:
    client.force_login(make_user("root", admin=True))
    key = last().pk
    answer = client.post(f"/admin/quotas/auditentry/{address.replace('1', str(key))}", {"actor_name": "x"})
    assert answer.status_code in {200, 403}
    assert AuditEntry.objects.get(pk=key).actor_name != "x"
    page = client.get(f"/admin/quotas/auditentry/{key}/change/")
    assert page.status_code == 200
    assert 'name="_save"' not in page.content.decode()


def test_audit_admin_search_runs_no_count_queries(client: Client, django_assert_max_num_queries: Any) -> None:
    root = make_user("root", admin=True)
    for number in range(30):
        make_workspace(f"w{number}", name=f"Workspace {number}")
    client.force_login(root)
    with django_assert_max_num_queries(12) as asked:
        text = client.get("/admin/quotas/auditentry/", {"q": "Workspace 7"}).content.decode()
    assert "Workspace 7" in text
    assert "Workspace 8" not in text
    assert not [each["sql"] for each in asked.captured_queries if "COUNT(" in each["sql"]]


def test_audit_log_queries_use_an_index() -> None:
    user = make_user("alice")
    for wanted in (
        audit_log.AuditFilter(person="alice"),
        audit_log.AuditFilter(thing="x"),
        audit_log.AuditFilter(action="stop"),
        audit_log.AuditFilter(refused=True),
        audit_log.AuditFilter(since=timezone.now()),
    ):
        user.is_superuser = True
        plan = audit_log.entries_of(user, wanted).order_by("-timestamp", "-id").explain()
        assert "audit_" in plan or "Seq Scan" in plan, plan  # a server may read a small table as a whole


def test_audit_log_pages_continue_after_the_previous_one() -> None:
    for number in range(12):
        make_workspace(f"w{number}")
    root = make_user("root", admin=True)
    seen: list[int] = []
    before = None
    while True:
        found, before = audit_log.page_of(audit_log.entries_of(root, audit_log.AuditFilter()), before, 5)
        seen += [entry.pk for entry in found]
        if before is None:
            break
    assert seen == sorted(AuditEntry.objects.values_list("pk", flat=True), reverse=True)


def test_expired_entries_are_deleted_and_the_deletion_is_logged(settings: LazySettings) -> None:
    settings.CONSOLE_AUDIT_DAYS, settings.CONSOLE_AUDIT_REFUSED_DAYS = 100, 10
    make_workspace("vision")
    audit.log_refusal("a door")
    now = timezone.now()
    assert audit_log.delete_old_entries(now) == 0
    assert audit_log.delete_old_entries(now + timedelta(days=11)) == 1
    assert not AuditEntry.objects.filter(denied=True).exists()
    assert audit_log.delete_old_entries(now + timedelta(days=101)) > 0
    assert [(row.action, row.actor_name) for row in AuditEntry.objects.all()] == [("tidy", "system")]
    settings.CONSOLE_AUDIT_DAYS = settings.CONSOLE_AUDIT_REFUSED_DAYS = 0
    assert audit_log.delete_old_entries(now + timedelta(days=1000)) == 0


def test_management_command_is_named_as_origin() -> None:
    """In a process of its own, as `manage.py` is."""
    script = (
        "import manage, sys\n"
        "sys.argv = ['manage.py', 'shell', '--no-imports', '-c', "
        "'from quotas.audit import origin; print(origin.current().name)']\n"
        "manage.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "system: manage.py shell"


def test_audit_log_is_hidden_from_users_without_admin_role() -> None:
    workspace = make_workspace("vision")
    manager, member = make_user("carol"), make_user("bob")
    make_membership(manager, workspace, Role.ADMIN)
    make_membership(member, workspace, Role.OPERATOR)
    other = make_workspace("elsewhere")
    make_membership(manager, other, Role.DEVELOPER)
    mine = {entry.workspace_id for entry in audit_log.entries_of(manager, audit_log.AuditFilter())}
    assert mine == {workspace.pk}
    assert not audit_log.entries_of(member, audit_log.AuditFilter()).exists()
    root = User(is_superuser=True, username="root")
    assert audit_log.entries_of(root, audit_log.AuditFilter()).count() == AuditEntry.objects.count()
