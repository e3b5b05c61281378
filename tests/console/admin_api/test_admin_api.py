"""The administration's API: for admins of the console with the scope `admin`, and nobody else."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from jobs.models import Attempt, Job
from jobs.states import State
from quotas import ledger
from quotas.accounts import tokens
from quotas.amounts import Amounts, Part
from quotas.models import (
    AccessToken,
    AdminAction,
    AuditEntry,
    Maintenance,
    Membership,
    Node,
    NodeState,
    Quota,
    Request,
    Role,
    User,
)
from tests.factories import make_cluster, make_job, make_membership, make_quota, make_user, make_workspace
from tests.jobs.api.conftest import V1, Api, api, body_of, problem

pytestmark = pytest.mark.django_db

SOON = {"from_at": "2100-01-01T00:00:00Z", "until_at": "2100-01-01T04:00:00Z", "text": "new disks"}


@pytest.fixture
def root() -> User:
    return make_user("root", admin=True)


@pytest.fixture
def caller(root: User) -> Api:
    return api(root, ["admin"])


@pytest.fixture
def quota() -> Quota:
    return make_quota(make_workspace("vision"), make_cluster("north", name="North"), "default", gpus=8)


def send(caller: Api, method: str, path: str, body: Any = None, status: int = 200) -> Any:
    """Return the JSON of the answer, or its problem details."""
    answer = caller.send(method, f"{V1}/admin/{path}", json.dumps(body))
    assert answer.status_code == status, answer.content
    if status == 204:
        return None
    return problem(answer) if status >= 400 else json.loads(answer.content)


def problems(found: dict[str, Any]) -> dict[str, str]:
    """Return the message of each field."""
    return {each["pointer"]: each["message"] for each in found["problems"]}


def run_job(quota: Quota, state: State = State.RUNNING, **columns: Any) -> Job:
    """Return a job that waits, or holds a CPU on the node n1, without a time limit."""
    job = make_job(state, quota=quota, **columns)
    each = Amounts(1000, 1024)
    request = ledger.ask(
        Attempt.objects.get(job=job).key,
        quota=quota,
        owner=job.owner,
        parts=[Part(1, each)],
        priority=1,
        declared_s=None,
    )
    if state is State.RUNNING:
        ledger.reserve(request, [("n1", each)])
    return job


@pytest.mark.parametrize("path", ["people", "workspaces", "quotas", "nodes", "maintenance"])
def test_admin_api_refuses_others_and_tokens_without_the_scope(root: User, quota: Quota, path: str) -> None:
    keeper, staff = make_user("keeper"), make_user("staff", is_staff=True)
    make_membership(keeper, quota.workspace, Role.ADMIN)
    for person in (keeper, staff):
        send(api(person), "get", path, status=403)
    without = api(root, [scope for scope in tokens.SCOPES if scope != "admin"])
    assert "scope “admin”" in send(without, "get", path, status=403)["detail"]
    assert without._client.head(f"{V1}/admin/{path}", headers=without._headers).status_code == 403
    assert Client().get(f"{V1}/admin/{path}").status_code == 401
    send(api(root, ["admin"]), "get", path)


def test_person_is_added_with_memberships_and_changed(caller: Api, quota: Quota) -> None:
    new = {"username": "mei", "email": "mei@example.org", "workspaces": {"vision": "operator"}}
    made = send(caller, "post", "people", new, 201)
    assert (made["username"], made["is_active"], made["is_admin"]) == ("mei", True, False)
    assert made["workspaces"] == [{"workspace": "vision", "name": "Vision", "role": "operator"}]
    assert not User.objects.get(username="mei").has_usable_password()
    assert send(caller, "patch", "people/mei", {"last_name": "Lin"})["last_name"] == "Lin"
    assert send(caller, "get", "people/mei")["email"] == "mei@example.org"
    assert "/sign-in/" in send(caller, "post", "people/mei/password-link", status=201)["url"]


def test_person_with_wrong_fields_is_refused_at_each_field(caller: Api, quota: Quota) -> None:
    make_user("mei")
    wrong = {"username": "mei", "email": "nobody", "unix_name": "no such name!"}
    found = problems(send(caller, "post", "people", wrong, 400))
    assert found.keys() == {"/username", "/email", "/unix_name"}
    found = problems(send(caller, "post", "people", {"username": "x", "workspaces": {"no": "admin"}}, 400))
    assert found == {"/workspaces": "Unknown workspace: no."}
    assert not User.objects.filter(username="x").exists()


def test_person_is_deactivated_after_a_preview_and_activated(caller: Api, quota: Quota, root: User) -> None:
    mei = make_user("mei")
    job = run_job(quota, State.QUEUED, owner=mei)
    tokens.issue(mei, scopes=["read"], lifetime=timedelta(days=1))
    shown = send(caller, "post", "people/mei/deactivate", {"reason": "left", "preview": True})
    assert (shown["jobs"], shown["tokens"]) == (1, 1)
    assert User.objects.get(username="mei").is_active
    assert send(caller, "post", "people/mei/deactivate", {"reason": "left"}) == shown
    assert not User.objects.get(username="mei").is_active
    assert Job.objects.get(pk=job.pk).state == State.STOPPED
    assert AccessToken.objects.filter(user=mei, revoked_at=None).count() == 0
    action = AdminAction.objects.get()
    assert (action.kind, action.by, action.why) == ("end_person", root, "left")
    send(caller, "post", "people/mei/password-link", status=409)
    assert send(caller, "post", "people/mei/activate")["is_active"]


@pytest.mark.parametrize(
    "call", ["patch people/{}", "post people/{}/deactivate", "post people/{}/password-link"]
)
def test_accounts_of_admins_cannot_be_changed_by_a_token(caller: Api, root: User, call: str) -> None:
    method, path = call.split()
    body = {"reason": "x", "email": "thief@example.org"}
    for person in (root, make_user("staff", is_staff=True)):
        send(caller, method, path.format(person.username), body, 409)
    root.refresh_from_db()
    assert (root.is_active, root.email) == (True, "")


def test_people_come_in_pages_with_filters_and_few_queries(
    caller: Api, quota: Quota, django_assert_max_num_queries: Any
) -> None:
    for number in range(5):
        make_membership(make_user(f"p{number}"), quota.workspace)
    with django_assert_max_num_queries(6):
        page = send(caller, "get", "people?workspace=vision&limit=3")
    assert [each["username"] for each in page["people"]] == ["p0", "p1", "p2"]
    rest = body_of(caller.get(page["next"]))
    assert [each["username"] for each in rest["people"]] == ["p3", "p4"]
    assert rest["next"] is None
    User.objects.filter(username="p4").update(is_active=False)
    assert [each["username"] for each in send(caller, "get", "people?active=false")["people"]] == ["p4"]
    assert [each["username"] for each in send(caller, "get", "people?q=P3")["people"]] == ["p3"]


def test_workspace_is_added_changed_and_given_members(caller: Api) -> None:
    made = send(caller, "post", "workspaces", {"slug": "speech", "name": "Speech"}, 201)
    assert (made["name"], made["egress"]) == ("Speech", ["internet"])
    wrong = {"slug": "a b", "name": "X", "egress": ["?"]}
    found = problems(send(caller, "post", "workspaces", wrong, 400))
    assert found.keys() == {"/slug", "/egress"}
    changed = send(caller, "patch", "workspaces/speech", {"description": "ASR", "egress": []})
    assert (changed["description"], changed["egress"]) == ("ASR", [])
    make_user("mei")
    address = "workspaces/speech/members/mei"
    assert send(caller, "put", address, {"role": "admin"}, 201)["role"] == "admin"
    assert send(caller, "put", address, {"role": "viewer"})["role"] == "viewer"
    assert [each["username"] for each in send(caller, "get", "workspaces/speech/members")["members"]] == [
        "mei"
    ]
    send(caller, "delete", address, status=204)
    send(caller, "delete", address, status=404)
    send(caller, "put", "workspaces/speech/members/nobody", {"role": "viewer"}, 404)
    assert AuditEntry.objects.filter(content_type__model="membership", action="delete").exists()


def test_membership_of_a_group_is_not_changed(caller: Api, quota: Quota) -> None:
    row = make_membership(make_user("mei"), quota.workspace)
    Membership.objects.filter(pk=row.pk).update(by_groups=True)
    for method, body in (("put", {"role": "admin"}), ("delete", None)):
        found = send(caller, method, "workspaces/vision/members/mei", body, 409)
        assert "comes from a group" in found["detail"]


def test_quota_is_added_changed_and_removed_within_its_parent(caller: Api, quota: Quota) -> None:
    new = {
        "workspace": "vision",
        "cluster": "north",
        "slug": "lab",
        "name": "Lab",
        "parent": quota.pk,
        "gpus": 4,
    }
    made = send(caller, "post", "quotas", new, 201)
    assert (made["parent"], made["gpus"], made["memory_mib"]) == (quota.pk, 4, None)
    address = f"quotas/{made['id']}"
    found = problems(send(caller, "patch", address, {"gpus": 9}, 400))
    assert found["/gpus"].startswith("Limit of Default exceeded: 8 available")
    changed = send(caller, "patch", address, {"gpus": 2, "person_gpus": 1, "gpus_by_type": {"A100": 2}})
    assert (changed["gpus"], changed["person_gpus"], changed["gpus_by_type"]) == (2, 1, {"A100": 2})
    assert send(caller, "patch", address, {"gpus": None})["gpus"] is None
    assert len(send(caller, "get", "quotas?workspace=vision&cluster=north")["quotas"]) == 2
    send(caller, "delete", f"quotas/{quota.pk}", status=409)
    send(caller, "delete", address, status=204)
    assert {row.kind for row in AdminAction.objects.all()} == {"quotas"}
    found = problems(send(caller, "post", "quotas", {**new, "workspace": "a", "cluster": "b"}, 400))
    assert found == {"/workspace": "Unknown: a.", "/cluster": "Unknown: b."}


def test_quota_limit_below_use_needs_a_word(caller: Api, quota: Quota) -> None:
    run_job(quota)
    found = problems(send(caller, "patch", f"quotas/{quota.pk}", {"cpu_milli": 500}, 400))
    assert found["/cpu_milli"].startswith("1 in use. A limit of 0.5 stops nothing")
    body = {"cpu_milli": 500, "allow_below_use": True}
    assert send(caller, "patch", f"quotas/{quota.pk}", body)["cpu_milli"] == 500


def test_node_is_drained_with_the_jobs_named_and_uncordoned(caller: Api, quota: Quota, root: User) -> None:
    node = Node.objects.create(cluster=quota.cluster, name="n1", cpu_milli=8000)
    job = run_job(quota, name="long-run")
    address = "nodes/north/n1"
    assert send(caller, "get", address)["jobs"] == [
        {"id": job.public_id, "name": "long-run", "owner": job.owner.username}
    ]
    over = (timezone.now() - timedelta(hours=1)).isoformat()
    found = problems(send(caller, "put", f"{address}/state", {"state": "draining", "empty_by": over}, 400))
    assert found == {"/reason": "Required.", "/empty_by": "This time is in the past."}
    body = {"state": "draining", "reason": "new disks", "empty_by": "2100-01-01T00:00:00Z"}
    drained = send(caller, "put", f"{address}/state", body)
    assert (drained["state"], drained["reason"]) == ("draining", "new disks")
    node.refresh_from_db()
    assert (node.state, node.state_by) == (NodeState.DRAINING, root)
    assert [each["name"] for each in send(caller, "get", "nodes?state=draining")["nodes"]] == ["n1"]
    assert send(caller, "put", f"{address}/state", {"state": "schedulable"})["empty_by"] is None
    send(caller, "get", "nodes/north/n2", status=404)


def test_window_is_previewed_added_changed_and_removed(caller: Api, quota: Quota) -> None:
    Node.objects.create(cluster=quota.cluster, name="n1", cpu_milli=8000)
    run_job(quota, name="long-run")
    run_job(quota, State.QUEUED, name="waits")
    new = {**SOON, "cluster": "north"}
    shown = send(caller, "post", "maintenance/preview", new)
    assert (shown["blocked_count"], shown["overlapping_count"]) == (0, 1)
    assert shown["overlapping"][0]["name"] == "long-run"
    assert not Maintenance.objects.exists()
    now = {**new, "from_at": (timezone.now() - timedelta(hours=1)).isoformat()}
    assert [each["name"] for each in send(caller, "post", "maintenance/preview", now)["blocked"]] == ["waits"]
    made = send(caller, "post", "maintenance", new, 201)
    assert (made["cluster"], made["keeps_free"], made["lead_hours"]) == ("north", True, 0)
    address = f"maintenance/{made['id']}"
    changed = send(caller, "patch", address, {"cluster": None, "keeps_free": False})
    assert (changed["cluster"], changed["keeps_free"]) == (None, False)
    found = problems(send(caller, "patch", address, {"until_at": "2099-01-01T00:00:00Z"}, 400))
    assert found == {"/until_at": "The end must be after the start."}
    found = problems(send(caller, "post", "maintenance", {**SOON, "cluster": "south"}, 400))
    assert found == {"/cluster": "Unknown cluster: south."}
    send(caller, "delete", address, status=204)
    assert send(caller, "get", "maintenance")["windows"] == []


def test_priority_of_a_waiting_job_is_changed(caller: Api, quota: Quota) -> None:
    waits, runs = run_job(quota, State.QUEUED), run_job(quota)
    body = {"priority": 9, "reason": "deadline"}
    assert send(caller, "put", f"jobs/{waits.public_id}/priority", body)["priority"] == 9
    assert Request.objects.get(holder__contains=waits.public_id).priority == 9
    assert AdminAction.objects.get().why == "deadline"
    send(caller, "put", f"jobs/{runs.public_id}/priority", body, 409)
    found = problems(send(caller, "put", f"jobs/{waits.public_id}/priority", {"priority": 10}, 400))
    assert found.keys() == {"/priority", "/reason"}
