"""What running jobs may ask the console, and who counts as one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from django.db.models import QuerySet
from django.utils import timezone

from jobs.access import job_service
from jobs.models import Attempt, Job, Replica
from jobs.node.network.request_head import MAX_BODY
from jobs.spec import RoleSpec
from jobs.states import ReplicaState, State
from tests.factories import attempt_of, make_job, make_spec, replica_of

pytestmark = pytest.mark.django_db(transaction=True)


Identity = Mapping[str, str | list[str]]


def ask(
    identity: Identity,
    target: str = "/v1/job",
    method: str = "GET",
    body: bytes = b"",
    authorization: str = "",
) -> tuple[int, Any]:
    """One request to the application; its status and the object of its answer."""
    headers = [
        (f"job-console-{name}".encode(), value.encode())
        for name, values in identity.items()
        for value in ([values] if isinstance(values, str) else values)
    ]
    if authorization:
        headers.append((b"authorization", authorization.encode()))
    path, _, query = target.partition("?")
    scope = {"type": "http", "method": method, "path": path, "query_string": query.encode()}
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(job_service.application({**scope, "headers": headers}, receive, send))
    return sent[0]["status"], json.loads(sent[1]["body"])


@pytest.fixture
def job() -> Job:
    roles = (RoleSpec(name="ps", command="serve"), RoleSpec(name="Worker", command="train", replicas=2))
    return make_job(State.RUNNING, spec=make_spec(name="mnist", roles=roles))


def test_job_learns_which_of_its_replicas_asks(job: Job) -> None:
    assert ask({"attempt": attempt_of(job).key, "replica": "2"}) == (
        200,
        {
            "id": job.public_id,
            "name": "mnist",
            "attempt": 1,
            "role": "Worker",
            "index": 1,
            "state": "RUNNING",
        },
    )


def test_everything_else_is_not_found(job: Job) -> None:
    identity: Identity = {"attempt": attempt_of(job).key, "replica": "0"}
    for method, target in [
        ("POST", "/v1/job"),
        ("GET", "/v1/job/"),
        ("GET", "/v1"),
        ("GET", "/"),
        ("GET", "/metrics"),
        ("GET", "/api/v1/jobs"),
        ("GET", "/v1/../v1/job"),
    ]:
        assert ask(identity, target, method) == (404, {"error": "Not Found"})


@pytest.mark.parametrize(
    "identity",
    [
        {},
        {"attempt": "KEY"},
        {"replica": "0"},
        {"attempt": "KEY", "replica": "3"},
        {"attempt": "KEY", "replica": "-1"},
        {"attempt": "KEY", "replica": "01"},
        {"attempt": "KEY", "replica": ["0", "0"]},
        {"attempt": ["KEY", "KEY"], "replica": "0"},
        {"attempt": "other-key-1", "replica": "0"},
    ],
)
def test_request_without_one_identity_is_refused(job: Job, identity: Identity) -> None:
    key = attempt_of(job).key
    filled = json.loads(json.dumps(identity).replace("KEY", key))
    assert ask(filled) == (403, {"error": "Forbidden"})


def test_identity_that_has_ended_is_refused(job: Job) -> None:
    attempt, replica = attempt_of(job), replica_of(job, "ps")
    identity: Identity = {"attempt": attempt.key, "replica": "0"}
    running = {"state": ReplicaState.RUNNING}
    changes: list[tuple[QuerySet[Any], dict[str, Any], dict[str, Any]]] = [
        (Replica.objects.filter(pk=replica.pk), {"state": ReplicaState.FAILED}, running),
        (Attempt.objects.filter(pk=attempt.pk), {"ended_at": timezone.now()}, {"ended_at": None}),
        (Job.objects.filter(pk=job.pk), {"attempt_number": 2}, {"attempt_number": 1}),
        (Job.objects.filter(pk=job.pk), {"state": State.STOPPED}, {"state": State.RUNNING}),
        (Job.objects.filter(pk=job.pk), {"deleted_at": timezone.now()}, {"deleted_at": None}),
    ]
    for rows, change, before in changes:
        assert ask(identity)[0] == 200
        rows.update(**change)
        assert ask(identity) == (403, {"error": "Forbidden"}), change
        rows.update(**before)


def test_body_too_long_is_refused(job: Job) -> None:
    body = b"x" * (MAX_BODY + 1)
    assert ask({"attempt": attempt_of(job).key, "replica": "0"}, body=body)[0] == 413
