"""Drafts, templates, keys, secrets, tokens and notifications of the caller over the native API."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpResponse

from jobs.access import sshkeys
from jobs.api.native.account import NewKeyShape
from jobs.api.native.examples import EXAMPLES
from jobs.models import Channel, Draft, ExternalJob, Idleness, Job, PersonalSecret, SshKey, Template
from jobs.states import State
from quotas.models import AccessToken
from tests.factories import TEMPLATE_FILE, make_job, make_template
from tests.jobs.api.conftest import HELLO, V1, Api, People, api, body_of, file, problem

KEY = str(EXAMPLES[NewKeyShape]["text"])


def send(caller: Api, method: str, path: str, body: Any = None) -> HttpResponse:
    return caller.send(method, f"{V1}/{path}", json.dumps(body))


# --- drafts ----------------------------------------------------------------------------------------------


def test_draft_is_created_read_saved_and_deleted(people: People) -> None:
    caller = api(people.owner)
    made = body_of(caller.post("drafts", {"file": file(), "target": "vision/local/default"}), 201)
    assert (made["name"], made["version"], made["target"]) == ("hello", 1, "vision/local/default")
    path = f"drafts/{made['id']}"
    read = caller.get(path)
    assert body_of(read) == made
    tag = {"If-Match": read.headers["ETag"]}
    saved = body_of(send(api(people.owner, **tag), "put", path, {"file": "half"}))
    assert (saved["file"], saved["version"], saved["target"]) == ("half", 2, "")
    assert problem(send(api(people.owner, **tag), "put", path, {"file": "x"}))["status"] == 412
    [row] = body_of(caller.get("drafts"))["drafts"]
    assert (row["id"], "file" in row) == (made["id"], False)
    assert body_of(caller.get(f"{path}/versions"))["versions"][0]["file"] == file()
    assert caller.delete(path).status_code == 204
    assert not Draft.objects.exists()


def test_draft_is_its_owners_alone(people: People) -> None:
    made = body_of(api(people.owner).post("drafts", {"file": "a"}), 201)
    path = f"drafts/{made['id']}"
    for person in (people.member, people.manager, people.stranger, people.admin):
        assert problem(api(person).get(path))["status"] == 404
        assert problem(send(api(person), "put", path, {"file": "b"}))["status"] == 404
        assert problem(api(person).delete(path))["status"] == 404
        assert body_of(api(person).get("drafts"))["drafts"] == []


def test_drafts_have_pages_by_key(people: People) -> None:
    caller = api(people.owner)
    ids = [body_of(caller.post("drafts", {"file": f"{n}"}), 201)["id"] for n in range(3)]
    first = body_of(caller.get("drafts", limit=2))
    assert [row["id"] for row in first["drafts"]] == ids[:0:-1]
    assert [row["id"] for row in body_of(caller.get(first["next"]))["drafts"]] == ids[:1]


# --- templates -------------------------------------------------------------------------------------------


def test_template_is_created_versioned_changed_and_retired(people: People) -> None:
    caller = api(people.owner)
    body = {"name": "Mine", "file": TEMPLATE_FILE, "constraints": {"/env/LR": "locked"}}
    made = body_of(caller.post("templates", body), 201)
    path = f"templates/{made['id']}"
    whole = body_of(caller.get(path))
    assert (whole["title"], whole["version"], whole["constraints"]) == ("Mine", 1, {"/env/LR": "locked"})
    second = body_of(caller.post(f"{path}/versions", {"file": TEMPLATE_FILE, "as_default": False}), 201)
    assert (second["version"], second["latest"]) == (2, 2)
    numbers = [row["number"] for row in body_of(caller.get(f"{path}/versions"))["versions"]]
    assert numbers == [2, 1]
    changed = body_of(send(caller, "patch", path, {"name": "Ours", "default": 2}))
    assert (changed["title"], changed["version"]) == ("Ours", 2)
    assert problem(send(caller, "patch", path, {"default": 9}))["status"] == 400
    assert body_of(caller.get(f"{path}/versions/1"))["constraints"] == {"/env/LR": "locked"}
    assert caller.delete(path).status_code == 204
    assert body_of(caller.get(path))["retired"]
    assert not body_of(send(caller, "patch", path, {"retired": False}))["retired"]


def test_template_changed_meanwhile_is_not_overwritten(people: People) -> None:
    row = make_template(people.owner)
    path = f"templates/{row.public_id}"
    tag = {"If-Match": api(people.owner).get(path).headers["ETag"]}
    body_of(send(api(people.owner, **tag), "patch", path, {"name": "First"}))
    assert problem(send(api(people.owner, **tag), "patch", path, {"name": "Second"}))["status"] == 412
    assert Template.objects.get().name == "First"


def test_template_with_wrong_content_is_refused_with_problems(people: People) -> None:
    caller = api(people.owner)
    told = problem(caller.post("templates", {"name": "a", "file": "{}"}))
    assert told["problems"]
    wrong: dict[str, Any] = {"name": "a", "file": file(), "constraints": {"/nothing": "locked"}}
    assert problem(caller.post("templates", wrong))["status"] == 400
    wrong = {"name": "a", "file": file(), "parameters": [{"nonsense": 1}]}
    assert problem(caller.post("templates", wrong))["status"] == 400
    assert not Template.objects.exists()


def test_template_of_others_is_hidden_and_a_workspaces_is_its_managers(people: People) -> None:
    mine = f"templates/{make_template(people.owner).public_id}"
    for person in (people.member, people.stranger):
        assert problem(api(person).get(mine))["status"] == 404
        assert problem(send(api(person), "patch", mine, {"name": "x"}))["status"] == 404
    body = {"name": "Shared", "file": TEMPLATE_FILE, "workspace": "vision"}
    assert problem(api(people.owner).post("templates", body))["status"] == 403
    without = api(people.manager, {"read", "submit"}).post("templates", body)
    assert 'scope="admin"' in without.headers["WWW-Authenticate"]
    shared = f"templates/{body_of(api(people.manager).post('templates', body), 201)['id']}"
    assert body_of(api(people.member).get(shared))["workspace"] == "vision"
    assert problem(send(api(people.member), "patch", shared, {"name": "x"}))["status"] == 403
    assert problem(api(people.stranger).post("templates", body))["status"] == 404


def test_template_is_proposed_and_adopted(people: People) -> None:
    row = make_template(people.owner)
    path = f"templates/{row.public_id}"
    told = body_of(send(api(people.owner), "patch", path, {"proposed_to": "vision"}))
    assert told["proposed_to"] == "vision"
    assert problem(api(people.owner).post(f"{path}/adopt"))["status"] == 403
    made = body_of(api(people.manager).post(f"{path}/adopt"), 201)
    assert made["workspace"] == "vision"
    send(api(people.owner), "patch", path, {"proposed_to": "vision"})
    assert api(people.manager).post(f"{path}/decline").status_code == 204


# --- jobs ------------------------------------------------------------------------------------------------


def test_job_is_shared_and_made_private(people: People, job: Job) -> None:
    path = f"jobs/{job.public_id}"
    assert body_of(send(api(people.owner), "patch", path, {"visibility": "PUBLIC"}))["visibility"] == "PUBLIC"
    assert body_of(api(people.member).get(path))["notes"] == []
    body_of(send(api(people.owner), "patch", path, {"visibility": "PRIVATE"}))
    assert body_of(api(people.member).get(path))["notes"] is None
    assert problem(send(api(people.owner), "patch", path, {"visibility": "x"}))["status"] == 400


def test_job_that_is_not_idle_or_extendable_is_a_conflict(people: People, job: Job) -> None:
    for action in ("keep", "extend", "files/keep"):
        assert problem(api(people.owner).post(f"jobs/{job.public_id}/{action}"))["status"] == 409
    assert not Idleness.objects.exists()


def test_waiting_job_is_replaced_by_a_smaller_one(people: People) -> None:
    roles = [{**HELLO["taskRoles"][0], "taskNumber": 4}]
    job = body_of(api(people.owner).submit(file(taskRoles=roles)), 201)
    path = f"jobs/{job['id']}/replace"
    assert problem(api(people.owner).post(path, {"kind": "replicas", "value": "9"}))["status"] == 400
    key = {"Idempotency-Key": "r"}
    made = body_of(api(people.owner).post(path, {"kind": "replicas", "value": "2"}, **key), 201)
    assert made["replicas"] == 2
    assert body_of(api(people.owner).get(f"jobs/{job['id']}"))["state"] == "STOPPED"
    assert body_of(api(people.owner).post(path, {"kind": "replicas", "value": "2"}, **key)) == made
    assert problem(api(people.owner).post(path, {"kind": "replicas", "value": "1"}))["status"] == 409
    assert Job.objects.count() == 2


def test_history_and_difference_show_changes_to_the_original(people: People) -> None:
    caller = api(people.owner)
    first = body_of(caller.submit(file()), 201)["id"]
    changed = file(jobName="second", image="python:3.13")
    second = body_of(caller.submit(changed, like=first), 201)["id"]
    told = body_of(caller.get(f"jobs/{second}/history"))
    assert [step["job"] for step in told["steps"]] == [second, first]
    assert "python:3.13" in told["steps"][0]["change"]
    assert [step["job"] for step in body_of(caller.get(f"jobs/{first}/history"))["copies"]] == [second]
    for other in ({"job": second}, {"file": changed}):
        found = body_of(caller.post(f"jobs/{first}/difference", other))
        assert [(row["before"], row["after"]) for row in found["changes"]] == [("python:3.12", "python:3.13")]
        assert any(line.startswith("+") for line in found["lines"])
    assert problem(caller.post(f"jobs/{first}/difference", {}))["status"] == 400
    foreign = make_job(State.RUNNING, owner=people.manager, quota=people.quota)
    compared = api(people.owner).post(f"jobs/{first}/difference", {"job": foreign.public_id})
    assert problem(compared)["status"] == 403


def test_dry_run_is_requested_and_its_owners_alone(people: People) -> None:
    made = body_of(api(people.owner).post("dry-runs", {"file": file()}), 202)
    assert (made["state"], made["findings"]) == ("waiting", [])
    path = f"dry-runs/{made['id']}"
    assert body_of(api(people.owner).get(path))["id"] == made["id"]
    assert problem(api(people.member).get(path))["status"] == 404
    assert problem(api(people.owner).post("dry-runs", {"file": "{}"}))["problems"]
    assert problem(api(people.stranger).post("dry-runs", {"file": file()}))["status"] == 400


# --- targets ---------------------------------------------------------------------------------------------


def test_quotas_and_external_jobs_are_those_of_ones_workspaces(people: People) -> None:
    [row] = body_of(api(people.owner).get("quotas"))["quotas"]
    assert (row["target"], row["may_submit"], row["jobs"]) == ("vision/local/default", True, 0)
    assert body_of(api(people.stranger).get("quotas"))["quotas"] == []
    ExternalJob.objects.create(cluster=people.quota.cluster, number="7", name="sim", user="u", running=True)
    [job] = body_of(api(people.member).get("external-jobs"))["jobs"]
    assert (job["number"], job["cluster"], job["has_log"]) == ("7", "local", False)
    assert body_of(api(people.stranger).get("external-jobs"))["jobs"] == []
    assert problem(api(people.member).get(f"external-jobs/{job['id']}/log"))["status"] == 404
    assert body_of(api(people.admin).get("external-jobs", cluster="none"))["jobs"] == []


def test_sweeps_are_listed_to_members_without_values(people: People) -> None:
    made = body_of(api(people.owner).post("sweeps", {"file": file(), "grid": {"env.LR": [1, 2]}}), 201)
    [row] = body_of(api(people.member).get("sweeps"))["sweeps"]
    assert (row["id"], row["states"], "runs" in row) == (made["id"], {"QUEUED": 2}, False)
    assert body_of(api(people.stranger).get("sweeps"))["sweeps"] == []


# --- account ---------------------------------------------------------------------------------------------


def test_me_shows_scopes_and_workspaces(people: People) -> None:
    told = body_of(api(people.manager, {"read"}).get("me"))
    assert (told["username"], told["is_admin"], told["scopes"]) == ("otto", False, ["read"])
    assert [(each["workspace"], each["role"]) for each in told["workspaces"]] == [("vision", "admin")]


def test_tokens_are_listed_without_values_and_revoked(people: People) -> None:
    caller = api(people.owner)
    [row] = body_of(caller.get("tokens"))["tokens"]
    assert not {"token", "digest"} & row.keys()
    assert problem(api(people.member).delete(f"tokens/{row['id']}"))["status"] == 404
    assert caller.delete(f"tokens/{row['id']}").status_code == 204
    assert caller.get("me").status_code == 401
    assert AccessToken.objects.filter(user=people.owner, revoked_at=None).count() == 0


def test_secret_is_written_and_never_read(people: People) -> None:
    caller = api(people.owner)
    first = send(caller, "put", "secrets/HF_TOKEN", {"value": "hunter2"})
    assert (first.status_code, b"hunter2" in first.content) == (201, False)
    assert send(caller, "put", "secrets/HF_TOKEN", {"value": "hunter3"}).status_code == 200
    assert PersonalSecret.objects.get().reveal() == "hunter3"
    [row] = body_of(caller.get("secrets"))["secrets"]
    assert set(row) == {"name", "created_at"}
    assert body_of(api(people.manager).get("secrets"))["secrets"] == []
    assert problem(api(people.manager).delete("secrets/HF_TOKEN"))["status"] == 404
    assert problem(send(caller, "put", "secrets/1-a", {"value": "x"}))["status"] == 400
    assert caller.delete("secrets/HF_TOKEN").status_code == 204


def test_ssh_key_is_added_and_removed_with_a_token(people: People) -> None:
    caller = api(people.owner)
    made = body_of(caller.post("ssh-keys", {"text": KEY, "title": "laptop"}), 201)
    assert (made["title"], made["fingerprint"]) == ("laptop", sshkeys.read(KEY).fingerprint)
    assert [row["id"] for row in body_of(caller.get("ssh-keys"))["keys"]] == [made["id"]]
    [found] = problem(caller.post("ssh-keys", {"text": KEY}))["problems"]
    assert (found["pointer"], found["code"]) == ("/text", "there")
    assert problem(api(people.member).delete(f"ssh-keys/{made['id']}"))["status"] == 404
    assert caller.delete(f"ssh-keys/{made['id']}").status_code == 204
    assert not SshKey.objects.exists()


def test_ssh_key_is_not_added_by_a_session(people: People, client: Any) -> None:
    client.force_login(people.owner)
    answer = client.post(f"{V1}/ssh-keys", {"text": KEY}, content_type="application/json")
    assert problem(answer)["status"] == 403
    assert not SshKey.objects.exists()


def test_channel_is_switched_and_removed_by_its_person_alone(people: People) -> None:
    row = Channel.objects.create(person=people.owner, kind=Channel.Kind.WEBHOOK, shown="example.org")
    path = f"channels/{row.pk}"
    [told] = body_of(api(people.owner).get("channels"))["channels"]
    assert (told["destination"], told["enabled"]) == ("example.org", True)
    assert problem(send(api(people.member), "patch", path, {"enabled": False}))["status"] == 404
    assert not body_of(send(api(people.owner), "patch", path, {"enabled": False}))["enabled"]
    assert body_of(api(people.owner).post(f"{path}/test"), 202)["id"] == row.pk
    assert problem(api(people.owner).post(f"{path}/test"))["status"] == 409
    assert api(people.owner).delete(path).status_code == 204


def test_notifications_are_empty_and_marked_as_read(people: People) -> None:
    assert body_of(api(people.owner).get("notifications")) == {"notifications": [], "next": None}
    assert body_of(api(people.owner).post("notifications/read", {"up_to": 5})) == {"read": 0}
    assert problem(api(people.owner).post("notifications/read", {"up_to": "x"}))["status"] == 400
