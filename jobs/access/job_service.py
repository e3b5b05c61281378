"""Requests that running jobs may make to the console, at their service address.

`jobs.node.network.service_proxy` passes them on by a Unix socket of the console's own user, and adds which
attempt and replica ask.  A job may ask what `ROUTES` lists, and nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final, TypeAlias

import structlog
from django.db import DatabaseError

from jobs.access import attempt_tokens
from jobs.access.attempt_tokens import Purpose
from jobs.access.gateway.asgi import Receive, Reply, Scope, Send, answer
from jobs.access.instance_roles import answers, credentials
from jobs.live.thread_pool import run_in_thread
from jobs.models import Attempt, RamRole, Replica, TrainingSeries
from jobs.node.network.request_head import MAX_BODY
from jobs.node.network.service import ALIBABA_PATH, ATTEMPT, AWS_PATH, MLFLOW_PATH, REPLICA
from jobs.states import REPLICA_TERMINAL, TERMINAL, State
from jobs.tracking import mlflow
from jobs.training_metrics.series import Origin

log = structlog.get_logger(__name__)

_POSITION: Final = re.compile(rb"0|[1-9][0-9]{0,6}")


class RequestRefused(Exception):
    """The request is refused with `status`."""

    def __init__(self, status: HTTPStatus, content: Mapping[str, Any] | None = None) -> None:
        """With the object of the answer, if it is not the usual one."""
        super().__init__(status)
        self.status = status
        self.content = content or {"error": status.phrase}


@dataclass(frozen=True, slots=True)
class Caller:
    """The running replica that asks."""

    attempt: Attempt
    role: str
    index: int


@dataclass(frozen=True, slots=True)
class ServiceRequest:
    """A request of a job; `query` is as it came, `authorization` the header or ""."""

    caller: Caller
    query: bytes
    body: bytes
    authorization: str = ""


Route: TypeAlias = Callable[[ServiceRequest], Mapping[str, Any]]


def describe_job(request: ServiceRequest) -> Mapping[str, Any]:
    """Return the job, and which replica of it asks."""
    caller = request.caller
    job = caller.attempt.job
    return {
        "id": job.public_id,
        "name": job.name,
        "attempt": caller.attempt.number,
        "role": caller.role,
        "index": caller.index,
        "state": job.state,
    }


def give_alibaba_credentials(request: ServiceRequest) -> Mapping[str, Any]:
    """Return credentials of the job's role as Alibaba's SDKs read them (ALIBABA_CLOUD_CREDENTIALS_URI)."""
    return _give_credentials(request, RamRole.Provider.ALIBABA)


def give_aws_credentials(request: ServiceRequest) -> Mapping[str, Any]:
    """Return credentials of the job's role as AWS's SDKs read them, to whoever shows the attempt's token."""
    key = request.caller.attempt.key
    if not attempt_tokens.is_token(request.authorization, key, Purpose.ROLE_CREDENTIALS):
        raise RequestRefused(HTTPStatus.UNAUTHORIZED)
    return _give_credentials(request, RamRole.Provider.AWS)


def track(operation: mlflow.Operation, request: ServiceRequest) -> Mapping[str, Any]:
    """Serve an operation of MLflow's API for the replica that asks."""
    caller = request.caller
    attempt = caller.attempt
    origin = Origin(
        attempt.job_id,
        caller.role,
        attempt.number,
        attempt.job.run_number,
        TrainingSeries.Source.MLFLOW,
    )
    status, content = mlflow.respond(operation, origin, request.query, request.body)
    if status is not HTTPStatus.OK:
        raise RequestRefused(status, content)
    return content


def _give_credentials(request: ServiceRequest, provider: RamRole.Provider) -> Mapping[str, Any]:
    attempt = request.caller.attempt
    role = credentials.role_of(attempt.job)
    if role is None or role.provider != provider:
        raise RequestRefused(HTTPStatus.NOT_FOUND)
    found = credentials.CACHE.find(attempt, role)
    if found is None:
        raise RequestRefused(HTTPStatus.SERVICE_UNAVAILABLE)
    return answers.render(provider, found)


ROUTES: Final[Mapping[tuple[str, str], Route]] = {
    ("GET", "/v1/job"): describe_job,
    ("GET", ALIBABA_PATH): give_alibaba_credentials,
    ("GET", AWS_PATH): give_aws_credentials,
    **{
        (method, MLFLOW_PATH + path): partial(track, operation)
        for (method, path), operation in mlflow.OPERATIONS.items()
    },
}
"""Everything that a job may ask.  Routes block, raise RequestRefused, and return the object of the answer."""


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve one request; whoever may connect to the socket is believed."""
    try:
        route = ROUTES.get((scope["method"], scope["path"]))
        if route is None:
            raise RequestRefused(HTTPStatus.NOT_FOUND)
        key, position = _read_identity(scope)
        body = await _read_body(receive)
        authorization = _read_authorization(scope)
        found = await run_in_thread(
            _respond, route, key, position, (scope["query_string"], body, authorization)
        )
        reply = _reply(HTTPStatus.OK, found)
    except RequestRefused as refused:
        reply = _reply(refused.status, refused.content)
    except DatabaseError as error:
        log.warning("job_service_unavailable", problem=type(error).__name__)
        status = HTTPStatus.SERVICE_UNAVAILABLE
        reply = _reply(status, {"error": status.phrase})
    await answer(scope, send, reply)


def _respond(route: Route, key: str, position: int, rest: tuple[bytes, bytes, str]) -> Mapping[str, Any]:
    return route(ServiceRequest(find_caller(key, position), *rest))


def find_caller(key: str, position: int) -> Caller:
    """Return the replica at a position of an attempt's plan.  Raises RequestRefused once it has ended."""
    attempt = Attempt.objects.select_related("job__workspace").filter(key=key, ended_at=None).first()
    if attempt is None or not _is_current(attempt):
        raise RequestRefused(HTTPStatus.FORBIDDEN)
    replica = Replica.objects.filter(attempt=attempt, run=attempt.job.run_number, ordinal=position).first()
    if replica is None or replica.state in REPLICA_TERMINAL:
        raise RequestRefused(HTTPStatus.FORBIDDEN)
    return Caller(attempt, replica.role, replica.index)


def _is_current(attempt: Attempt) -> bool:
    job = attempt.job
    current = job.deleted_at is None and attempt.number == job.attempt_number
    return current and State(job.state) not in TERMINAL


def _read_identity(scope: Scope) -> tuple[str, int]:
    """Return the attempt's key and the replica's position.  Raises RequestRefused without them."""
    keys, positions = (
        [value for name, value in scope["headers"] if name == each] for each in (ATTEMPT, REPLICA)
    )
    if len(keys) != 1 or len(positions) != 1 or _POSITION.fullmatch(positions[0]) is None:
        raise RequestRefused(HTTPStatus.FORBIDDEN)
    return keys[0].decode("latin-1"), int(positions[0])


def _read_authorization(scope: Scope) -> str:
    values = [value for name, value in scope["headers"] if name == b"authorization"]
    return values[0].decode("latin-1") if len(values) == 1 else ""


async def _read_body(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RequestRefused(HTTPStatus.BAD_REQUEST)
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > MAX_BODY:
            raise RequestRefused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    return body


def _reply(status: HTTPStatus, found: Mapping[str, Any]) -> Reply:
    headers = ((b"content-type", b"application/json"), (b"cache-control", b"no-store"))
    return Reply(status, json.dumps(found).encode(), headers)
