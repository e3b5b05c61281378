"""Who gets into the native API: tokens and their scopes, sessions, and what everybody else is told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from jobs.models import Job
from jobs.states import State
from quotas.accounts import tokens
from quotas.models import AccessToken, User
from tests.factories import make_endpoint, replica_of
from tests.jobs.api.conftest import V1, Api, People, api, body_of, file, problem

Call = Callable[[Api, Job], HttpResponse]

CALLS: list[tuple[str, str, Call]] = [
    ("read", "list", lambda caller, _job: caller.get("jobs")),
    ("read", "job", lambda caller, job: caller.get(f"jobs/{job.public_id}")),
    ("read", "tasks", lambda caller, job: caller.get(f"jobs/{job.public_id}/tasks")),
    ("read", "events", lambda caller, job: caller.get(f"jobs/{job.public_id}/events")),
    ("read", "logs", lambda caller, job: caller.get(f"jobs/{job.public_id}/logs", role="main")),
    ("read", "stream", lambda caller, job: caller.get(f"jobs/{job.public_id}/stream")),
    ("read", "preview", lambda caller, _job: caller.post("preview", {"file": file()})),
    ("read", "check", lambda caller, _job: caller.post("check", {"file": file()})),
    ("submit", "submit", lambda caller, _job: caller.submit(file())),
    ("stop", "stop", lambda caller, job: caller.post(f"jobs/{job.public_id}/stop")),
    ("stop", "delete", lambda caller, job: caller.delete(f"jobs/{job.public_id}")),
    ("exec", "endpoints", lambda caller, job: caller.get(f"jobs/{job.public_id}/endpoints")),
]


@pytest.mark.parametrize(("scope", "name", "call"), CALLS, ids=[name for _scope, name, _call in CALLS])
def test_token_without_the_scope_is_refused(
    people: People, job: Job, scope: str, name: str, call: Call
) -> None:
    answer = call(api(people.owner, set(tokens.SCOPES) - {scope}), job)
    assert problem(answer)["status"] == 403
    assert f'error="insufficient_scope", scope="{scope}"' in answer.headers["WWW-Authenticate"]
    job.refresh_from_db()
    assert (job.state, job.phase, job.deleted_at) == (State.RUNNING, "Running", None)
    assert Job.objects.count() == 1


@pytest.mark.parametrize(("scope", "name", "call"), CALLS, ids=[name for _scope, name, _call in CALLS])
def test_token_with_only_the_scope_is_enough(
    people: People, job: Job, scope: str, name: str, call: Call
) -> None:
    if name == "delete":
        Job.objects.filter(pk=job.pk).update(state=State.FAILED)
    assert call(api(people.owner, {scope}), job).status_code in {200, 201, 204}


MANAGED: list[Call] = [
    lambda caller, job: caller.get(f"jobs/{job.public_id}/tasks"),
    lambda caller, job: caller.get(f"jobs/{job.public_id}/logs", role="main"),
    lambda caller, job: caller.get(f"jobs/{job.public_id}/stream", log="main/0"),
    lambda caller, job: caller.post(f"jobs/{job.public_id}/stop"),
    lambda caller, job: caller.get(f"jobs/{job.public_id}/endpoints"),
]


@pytest.mark.parametrize("call", MANAGED)
def test_token_without_admin_scope_cannot_manage_jobs_of_others(people: People, job: Job, call: Call) -> None:
    answer = call(api(people.manager, set(tokens.SCOPES) - {"admin"}), job)
    assert problem(answer)["status"] == 403
    assert 'scope="admin"' in answer.headers["WWW-Authenticate"]
    assert call(api(people.manager), job).status_code == 200


def test_token_without_admin_scope_sees_a_summary_of_jobs_of_others(people: People, job: Job) -> None:
    told = body_of(api(people.manager, {"read"}).get(f"jobs/{job.public_id}"))
    assert (told["state"], told["tasks"]) == ("RUNNING", None)


def test_endpoint_links_are_shown_only_to_tokens_with_exec_scope(people: People, job: Job) -> None:
    make_endpoint(replica_of(job))
    for scopes, linked in (({"read"}, False), ({"read", "exec"}, True)):
        [replica] = body_of(api(people.owner, scopes).get(f"jobs/{job.public_id}"))["tasks"]
        assert (replica["endpoints"][0]["url"] is not None) is linked


# --- tokens that don't work ------------------------------------------------------------------------------


def turned_away(token: str) -> None:
    answer = Api(token).get("jobs")
    assert problem(answer)["status"] == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.usefixtures("db")
@pytest.mark.parametrize("token", ["jc_", "jc_0123456789_x", "nonsense", "jc_\x7f", "é"])
def test_token_of_invalid_form_is_refused(token: str) -> None:
    turned_away(token)


def test_token_changed_by_one_character_is_refused(people: People) -> None:
    token = tokens.issue(people.owner, scopes=["read"], lifetime=timedelta(days=1))
    turned_away(token[:-1] + ("a" if token[-1] != "a" else "b"))


def test_token_revoked_expired_or_of_disabled_account_is_refused(
    people: People,
) -> None:
    for end in (
        lambda rows: rows.update(revoked_at=timezone.now()),
        lambda rows: rows.update(expires_at=timezone.now()),
        lambda _rows: User.objects.filter(pk=people.owner.pk).update(is_active=False),
    ):
        token = tokens.issue(people.owner, scopes=["read"], lifetime=timedelta(days=1))
        body_of(Api(token).get("jobs"))
        end(AccessToken.objects.filter(prefix="_".join(token.split("_")[:2])))
        turned_away(token)


def test_token_invalid_beside_a_valid_session_is_refused(people: People) -> None:
    client = Client(headers={"Authorization": "Bearer jc_0123456789_x"})
    client.force_login(people.owner)
    assert client.get(f"{V1}/jobs").status_code == 401


@pytest.mark.usefixtures("db")
def test_api_without_credentials_answers_401_with_bearer_challenge() -> None:
    for path in ("jobs", "jobs/abc", "jobs/abc/stream", "jobs/abc/logs"):
        answer = Api().get(path)
        assert problem(answer)["status"] == 401
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")


# --- sessions --------------------------------------------------------------------------------------------


def test_session_reads_and_writes_only_with_csrf_token(people: People) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(people.owner)
    assert client.get(f"{V1}/jobs").status_code == 200
    page = client.get("/jobs/new")
    body = {"file": file()}
    refused = client.post(f"{V1}/jobs", body, content_type="application/json")
    assert refused.status_code == 403
    assert refused.headers["Content-Type"] == "application/problem+json"
    token = str(page.context["csrf_token"])
    accepted = client.post(
        f"{V1}/jobs", body, content_type="application/json", headers={"X-CSRFToken": token}
    )
    assert accepted.status_code == 201


# --- everything else -------------------------------------------------------------------------------------


def test_api_unknown_path_or_method_answers_with_a_problem(people: People) -> None:
    caller = api(people.owner)
    assert problem(caller.post("jobs/abc", {}))["status"] == 405
    assert caller.get("nothing/here").headers["Content-Type"] == "application/problem+json"


def test_api_answers_json_for_any_accept_header(people: People) -> None:
    assert body_of(api(people.owner, Accept="text/html").get("jobs")) == {"jobs": [], "next": None}


def test_api_internal_error_is_a_problem_without_details(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object) -> None:
        raise RuntimeError("the password is hunter2")

    monkeypatch.setattr("jobs.api.native.shapes.JobShape.render", broken)
    answer = api(people.owner).submit(file())
    assert problem(answer)["status"] == 500
    assert b"hunter2" not in answer.content
