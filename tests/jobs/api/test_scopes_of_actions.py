"""Scopes of everything that changes something or shows what is the caller's own."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from django.http import HttpResponse

from jobs.models import Job
from quotas.accounts import tokens
from tests.jobs.api.conftest import V1, Api, People, api, file, problem

Call = Callable[[Api, Job], HttpResponse]


def patch(path: str, body: object) -> Call:
    return lambda caller, job: caller.send(
        "patch", f"{V1}/{path.format(job=job.public_id)}", json.dumps(body)
    )


def put(path: str, body: object) -> Call:
    return lambda caller, job: caller.send("put", f"{V1}/{path.format(job=job.public_id)}", json.dumps(body))


def post(path: str, body: object = None) -> Call:
    return lambda caller, job: caller.post(path.format(job=job.public_id), body)


def get(path: str) -> Call:
    return lambda caller, job: caller.get(path.format(job=job.public_id))


def delete(path: str) -> Call:
    return lambda caller, job: caller.delete(path.format(job=job.public_id))


CALLS: dict[str, tuple[str, Call]] = {
    "share": ("submit", patch("jobs/{job}", {"visibility": "PUBLIC"})),
    "keep": ("stop", post("jobs/{job}/keep")),
    "extend": ("submit", post("jobs/{job}/extend")),
    "keep files": ("submit", post("jobs/{job}/files/keep")),
    "suggestions": ("read", get("jobs/{job}/suggestions")),
    "replace": ("submit", post("jobs/{job}/replace", {"kind": "gpus", "value": "1"})),
    "history": ("read", get("jobs/{job}/history")),
    "difference": ("read", post("jobs/{job}/difference", {"file": file()})),
    "dry run": ("submit", post("dry-runs", {"file": file()})),
    "dry run result": ("read", get("dry-runs/1")),
    "drafts": ("read", get("drafts")),
    "new draft": ("submit", post("drafts", {"file": "a"})),
    "draft": ("read", get("drafts/1")),
    "draft versions": ("read", get("drafts/1/versions")),
    "save draft": ("submit", put("drafts/1", {"file": "a"})),
    "delete draft": ("submit", delete("drafts/1")),
    "new template": ("submit", post("templates", {"name": "a", "file": file()})),
    "template": ("read", get("templates/a")),
    "template versions": ("read", get("templates/a/versions")),
    "template version": ("read", get("templates/a/versions/1")),
    "new template version": ("submit", post("templates/a/versions", {"file": file()})),
    "change template": ("submit", patch("templates/a", {"name": "b"})),
    "delete template": ("submit", delete("templates/a")),
    "adopt template": ("admin", post("templates/a/adopt")),
    "decline template": ("admin", post("templates/a/decline")),
    "sweeps": ("read", get("sweeps")),
    "quotas": ("read", get("quotas")),
    "nodes": ("read", get("nodes")),
    "external jobs": ("read", get("external-jobs")),
    "external log": ("read", get("external-jobs/1/log")),
    "me": ("read", get("me")),
    "tokens": ("read", get("tokens")),
    "revoke token": ("admin", delete("tokens/1")),
    "keys": ("read", get("ssh-keys")),
    "new key": ("admin", post("ssh-keys", {"text": "a"})),
    "remove key": ("admin", delete("ssh-keys/1")),
    "secrets": ("read", get("secrets")),
    "save secret": ("submit", put("secrets/A", {"value": "a"})),
    "remove secret": ("submit", delete("secrets/A")),
    "notifications": ("read", get("notifications")),
    "read notifications": ("submit", post("notifications/read", {"up_to": 1})),
    "channels": ("read", get("channels")),
    "change channel": ("submit", patch("channels/1", {"enabled": False})),
    "remove channel": ("submit", delete("channels/1")),
    "test channel": ("submit", post("channels/1/test")),
}


@pytest.mark.parametrize(("scope", "call"), CALLS.values(), ids=list(CALLS))
def test_action_without_its_scope_is_refused(people: People, job: Job, scope: str, call: Call) -> None:
    answer = call(api(people.owner, set(tokens.SCOPES) - {scope}), job)
    assert problem(answer)["status"] == 403
    assert f'error="insufficient_scope", scope="{scope}"' in answer.headers["WWW-Authenticate"]


@pytest.mark.parametrize(("scope", "call"), CALLS.values(), ids=list(CALLS))
def test_action_with_only_its_scope_is_allowed(people: People, job: Job, scope: str, call: Call) -> None:
    answer = call(api(people.owner, {scope}), job)
    assert answer.status_code in {200, 201, 202, 204, 400, 404, 409}
    assert "WWW-Authenticate" not in answer.headers


@pytest.mark.parametrize("call", [call for _scope, call in CALLS.values()], ids=list(CALLS))
def test_action_without_credentials_is_refused(people: People, job: Job, call: Call) -> None:
    assert problem(call(Api(), job))["status"] == 401


OF_JOBS = {
    name: call
    for name, (_scope, call) in CALLS.items()
    if name
    in {
        "share",
        "keep",
        "extend",
        "keep files",
        "suggestions",
        "replace",
        "history",
        "difference",
    }
}


@pytest.mark.parametrize("call", OF_JOBS.values(), ids=list(OF_JOBS))
def test_action_on_a_job_is_hidden_from_strangers_and_refused_to_members(
    people: People, job: Job, call: Call
) -> None:
    assert problem(call(api(people.stranger), job))["status"] == 404
    assert problem(call(api(people.member), job))["status"] == 403
    assert call(api(people.admin), job).status_code != 403
    without_admin = api(people.manager, set(tokens.SCOPES) - {"admin"})
    assert 'scope="admin"' in call(without_admin, job).headers["WWW-Authenticate"]
