"""Errors of the Python client: one class for each kind of refusal, with its problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import httpx

from jobs.client.answers import Job, Problem


class ConsoleError(Exception):
    """The console refused a request, or did not answer; `status` is 0 then.

    `detail` is the console's sentence, `problems` says what is wrong with which field.
    """

    def __init__(
        self, detail: str, status: int = 0, code: str = "", problems: Sequence[Problem] = ()
    ) -> None:
        lines = [detail, *(f"  {each.pointer or '/'}: {each.message}" for each in problems)]
        super().__init__("\n".join(lines))
        self.detail, self.status, self.code = detail, status, code
        self.problems = tuple(problems)


class InvalidRequestError(ConsoleError):
    """The request or its job file has problems."""


class AuthenticationError(ConsoleError):
    """The token is missing, wrong, revoked or expired."""


class AccessDeniedError(ConsoleError):
    """The token's owner may not do this, or the token lacks a scope."""


class NotFoundError(ConsoleError):
    """There is no such thing, or it is not visible."""


class ConflictError(ConsoleError):
    """The job is in a state in which this can't be done, or was changed meanwhile."""


class RateLimitError(ConsoleError):
    """Too many requests, still after all retries."""


class UnavailableError(ConsoleError):
    """The console does not answer, still after all retries."""


class WaitTimeoutError(ConsoleError):
    """The job did not end in time; `job` is its last description."""

    def __init__(self, job: Job, seconds: float) -> None:
        super().__init__(f"{job.name} ({job.id}) is {job.state} after {seconds:g} s")
        self.job = job


_CLASSES: Final[dict[int, type[ConsoleError]]] = {
    400: InvalidRequestError,
    401: AuthenticationError,
    403: AccessDeniedError,
    404: NotFoundError,
    409: ConflictError,
    412: ConflictError,
    413: InvalidRequestError,
    422: InvalidRequestError,
    429: RateLimitError,
    **dict.fromkeys((502, 503, 504), UnavailableError),
}


def error_of(response: httpx.Response) -> ConsoleError:
    """Return the error of an answer that was read."""
    try:
        body: Any = response.json()
    except ValueError:
        body = None
    body = body if isinstance(body, dict) else {}
    detail = str(body.get("detail") or f"{response.status_code} {response.reason_phrase}")
    problems = [Problem.of(each) for each in body.get("problems") or ()]
    kind = _CLASSES.get(response.status_code, ConsoleError)
    return kind(detail, response.status_code, str(body.get("code") or ""), problems)
