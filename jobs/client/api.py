"""The console's API over HTTP, with a token; an outage is waited out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Self

import httpx

from jobs import language
from jobs.client.failure import CommandFailure
from jobs.client.login import Login
from jobs.language import gettext as _

V1: Final = "/api/console/v1"
TIMEOUT: Final = httpx.Timeout(60, connect=10)
FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 15.0
AWAY: Final = frozenset({429, 502, 503, 504})
"""Statuses after which a request is repeated."""

Tell = Callable[[str], None]


class RequestRefused(CommandFailure):
    """The console refused.  `body` is its answer, `code` the reason in it."""

    def __init__(self, response: httpx.Response) -> None:
        self.status_code = response.status_code
        self.body = _body(response)
        self.code = str(self.body.get("code") or "")
        super().__init__(_sentence(self.body, response))


class Console:
    """A connection to the console; `tell` is called with messages for the person."""

    def __init__(self, login: Login, tell: Tell) -> None:
        self.server, self.token, self._tell = login.server, login.token, tell
        headers = {
            "Authorization": f"Bearer {login.token}",
            "Accept-Language": language.current(),
            "User-Agent": "job-console",
        }
        self.http = httpx.Client(base_url=login.server + V1, headers=headers, timeout=TIMEOUT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def get(self, path: str, **query: Any) -> Any:
        """An answer's JSON.  Raises RequestRefused."""
        return self.call("GET", path, params={name: one for name, one in query.items() if one is not None})

    def post(self, path: str, body: object, **options: Any) -> Any:
        """Post JSON that may be sent twice; return the answer's JSON."""
        return self.call("POST", path, json=body, **options)

    def call(self, method: str, path: str, **options: Any) -> Any:
        """Repeat a request until there is an answer; return its JSON.  Raises RequestRefused."""
        response = self.request(method, path, **options)
        return response.json() if response.content else None

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Repeat a request until there is an answer; return it.  Raises RequestRefused."""
        for attempt in self.tries():
            with attempt:
                response = self.http.request(method, path, **options)
                check_status(response)
                return response
        raise AssertionError

    def tries(self) -> Iterator[Any]:
        """Yield attempts with growing pauses until one does not end in a network error."""
        outage = Outage(self.server, self._tell)
        while not outage.over:
            yield outage.attempt()

    @contextmanager
    def stream(self, path: str, **options: Any) -> Iterator[httpx.Response]:
        """An answer that goes on.  Raises RequestRefused, httpx.TransportError."""
        with self.http.stream("GET", path, **options) as response:
            check_status(response)
            yield response


def check_status(response: httpx.Response) -> None:
    """Raise httpx.RemoteProtocolError for an answer that says to come again, Refused for other errors."""
    if response.status_code in AWAY:
        raise httpx.RemoteProtocolError(f"{response.status_code}")
    if response.is_error:
        response.read()
        raise RequestRefused(response)


class Outage:
    """An outage of the console: reported once when it begins, and when it is over."""

    def __init__(self, server: str, tell: Tell) -> None:
        self._server, self._tell = server, tell
        self._pause = FIRST_PAUSE_S
        self._said = False
        self.over = False

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Attempt a request; a network error ends in a pause."""
        try:
            yield
        except httpx.TransportError as error:
            self.wait(error)
        else:
            self.back()

    def back(self) -> None:
        """Note that the console answers."""
        if self._said:
            self._tell(_("The console is responding again."))
        self._said, self._pause, self.over = False, FIRST_PAUSE_S, True

    def wait(self, error: Exception) -> None:
        """Note that it does not answer, and pause."""
        if not self._said:
            params = {"server": self._server, "why": str(error) or type(error).__name__}
            self._tell(_("%(server)s is not responding (%(why)s). Retrying until it does …") % params)
        self._said = True
        time.sleep(self._pause)
        self._pause = min(2 * self._pause, LONGEST_PAUSE_S)


def _body(response: httpx.Response) -> dict[str, Any]:
    try:
        value = response.json()
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _sentence(body: Mapping[str, Any], response: httpx.Response) -> str:
    lines = [str(body.get("detail") or f"{response.status_code} {response.reason_phrase}")]
    lines += [_problem(problem) for problem in body.get("problems") or ()]
    return "\n".join(lines)


def _problem(problem: Mapping[str, Any]) -> str:
    where = f"{problem['pointer']}: " if problem.get("pointer") else ""
    return f"  {where}{problem.get('message')}"
