"""Requests to an apiserver: objects, watches and logs.

Nothing is asked twice here.  An answer that is not the apiserver's own (a proxy's page, a 5xx) says nothing
about any object, and is `base.Unreachable`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, NoReturn

import httpx

from jobs.backends.base import Unreachable
from jobs.backends.kubernetes.client.connection import ApiConnection
from jobs.backends.kubernetes.client.http_clients import client_for

Object = dict[str, Any]
"""An object as the apiserver has it: `metadata`, `spec`, `status` …"""

_MAX_MESSAGE: Final = 1000


class NotConnected(Unreachable):
    """No request was sent: nothing was created."""


class Silent(Unreachable):
    """Nothing has come for as long as was allowed."""


class Expired(Exception):
    """The apiserver has forgotten a resource version (410): list again."""


@dataclass(frozen=True, slots=True)
class RefusedField:
    """A reason for which an object was refused: the field's path, as in `spec.template.spec`, and a text."""

    field: str
    reason: str
    message: str


class ApiError(Exception):
    """The apiserver refused a request: HTTP `status`, its `reason` (a word), `message` and `causes`."""

    def __init__(self, status: int, reason: str, message: str, causes: tuple[RefusedField, ...] = ()) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status, self.reason, self.message, self.causes = status, reason, message, causes

    @property
    def is_absent(self) -> bool:
        """Whether there is no such object."""
        return self.status == HTTPStatus.NOT_FOUND

    @property
    def is_conflict(self) -> bool:
        """Whether there is one already, or another than the expected."""
        return self.status == HTTPStatus.CONFLICT


@dataclass(frozen=True, slots=True)
class Listing:
    """The objects of a list, and the version from which a watch goes on."""

    items: tuple[Object, ...]
    resource_version: str


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """A change that a watch reports: ADDED, MODIFIED, DELETED, or BOOKMARK, which only has a version."""

    kind: str
    object: Object = field(repr=False)

    @property
    def resource_version(self) -> str:
        """Return the version from which a watch goes on."""
        return str(self.object["metadata"]["resourceVersion"])


class Api:
    """The apiserver of one cluster.  Each call raises ApiError or Unreachable, and takes `timeout_s` at most.

    Paths are those of the API, as `/api/v1/namespaces/x/pods/y`; see `path` for names that others chose.
    """

    def __init__(self, connection: ApiConnection, timeout_s: float = 10) -> None:
        self._connection = connection
        self._timeout_s = timeout_s
        name = connection.server_name
        self._extensions = {"sni_hostname": name} if name else {}

    def get(self, path: str, **params: str) -> Object:
        """Return an object."""
        return self._ask("GET", path, params)

    def list(self, path: str, *, labels: str = "", fields: str = "", limit: int = 500) -> Listing:
        """Return all objects of a kind that a label selector and a field selector fit, by `limit` at a time.

        Raises Expired where the list changed too much while it was read.
        """
        params = _selectors(labels, fields) | {"limit": str(limit)}
        items: list[Object] = []
        while True:
            part = self._ask("GET", path, params)
            items += part.get("items") or ()
            about = part.get("metadata") or {}
            if not about.get("continue"):
                return Listing(tuple(items), str(about.get("resourceVersion", "")))
            params["continue"] = str(about["continue"])

    def create(self, path: str, body: Mapping[str, Any], *, dry_run: bool = False) -> Object:
        """Create an object at its kind's path.  Unreachable leaves open whether it was; NotConnected not."""
        return self._ask("POST", path, {"dryRun": "All"} if dry_run else {}, body)

    def patch(self, path: str, body: Mapping[str, Any]) -> Object:
        """Change the given fields of an object (a JSON merge patch); None removes one."""
        return self._ask("PATCH", path, {}, body, "application/merge-patch+json")

    def patch_if(self, path: str, operations: Sequence[Mapping[str, Any]]) -> Object | None:
        """Change an object by a JSON patch; return it, None where a `test` of the patch does not hold."""
        try:
            return self._ask("PATCH", path, {}, operations, "application/json-patch+json")
        except ApiError as error:
            if error.status != HTTPStatus.UNPROCESSABLE_ENTITY:
                raise
            return None

    def delete(
        self, path: str, *, grace_s: int | None = None, propagation: str = "Background", uid: str = ""
    ) -> None:
        """Delete an object, if it has this uid.  One that is gone, or another of its name, is fine."""
        options: Object = {"propagationPolicy": propagation}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        if uid:
            options["preconditions"] = {"uid": uid}
        try:
            self._ask("DELETE", path, {}, options)
        except ApiError as error:
            if not error.is_absent and not (uid and error.is_conflict):
                raise

    def delete_many(self, path: str, *, labels: str) -> None:
        """Delete all objects of a kind that a label selector fits.  Raises ValueError without one."""
        if not labels:
            raise ValueError("no label selector: this would delete all of them")
        self._ask("DELETE", path, _selectors(labels, ""), {"propagationPolicy": "Background"})

    def watch(
        self, path: str, resource_version: str, *, labels: str = "", fields: str = "", timeout_s: int = 300
    ) -> Iterator[WatchEvent]:
        """Yield the changes since a version, for `timeout_s` at the most.

        Raises Expired where the version is too old, Unreachable where the connection breaks.
        """
        params = _selectors(labels, fields) | {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(timeout_s),
        }
        with self._stream(path, params, timeout_s + self._timeout_s) as answer:
            for line in _lines(answer):
                event = _parse(line)
                if event.get("type") == "ERROR":
                    _raise_status(event.get("object") or {})
                yield WatchEvent(str(event.get("type")), event["object"])

    def read_log(
        self,
        namespace: str,
        pod: str,
        container: str,
        *,
        since: str = "",
        limit_bytes: int | None = None,
        follow: bool = False,
        silence_s: float | None = None,
    ) -> Iterator[bytes]:
        """Yield the output of a container as it comes, each line with its time (RFC 3339) before it.

        `since` is such a time; kubelets give the lines of its whole second.  When following, Silent is raised
        after `silence_s` without output.
        """
        params = {"container": container, "timestamps": "true"}
        if since:
            params["sinceTime"] = since
        if limit_bytes is not None:
            params["limitBytes"] = str(limit_bytes)
        if follow:
            params["follow"] = "true"
        where = path("/api/v1/namespaces/{}/pods/{}/log", namespace, pod)
        with self._stream(where, params, silence_s if follow else self._timeout_s) as answer:
            try:
                yield from answer.iter_raw()
            except httpx.ReadTimeout as error:
                raise Silent(where) from error

    def _ask(
        self,
        method: str,
        path: str,
        params: Mapping[str, str],
        body: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        content_type: str = "application/json",
    ) -> Object:
        client = client_for(self._connection, self._timeout_s)
        headers = self._connection.headers(self._timeout_s)
        content = None
        if body is not None:
            content, headers["Content-Type"] = json.dumps(body).encode(), content_type
        with _unreachable(self._connection.server):
            answer = client.request(
                method,
                path,
                params=params,
                content=content,
                headers=headers,
                timeout=self._timeout_s,
                extensions=self._extensions,
            )
        self._check(answer)
        return _parse(answer.content)

    @contextmanager
    def _stream(
        self, path: str, params: Mapping[str, str], silence_s: float | None
    ) -> Iterator[httpx.Response]:
        client = client_for(self._connection, self._timeout_s)
        headers = self._connection.headers(self._timeout_s) | {"Accept": "*/*", "Accept-Encoding": "identity"}
        timeout = httpx.Timeout(self._timeout_s, read=silence_s)
        with (
            _unreachable(self._connection.server),
            client.stream(
                "GET", path, params=params, headers=headers, timeout=timeout, extensions=self._extensions
            ) as answer,
        ):
            if not answer.is_success:
                answer.read()
            self._check(answer)
            yield answer

    def _check(self, answer: httpx.Response) -> None:
        """Raise what an answer says unless it is a success."""
        if not answer.is_success:
            where = f"{answer.request.method} {answer.request.url.path}"
            raise_refusal(self._connection, where, answer.status_code, answer.content)


def raise_refusal(connection: ApiConnection, where: str, status: int, text: bytes) -> NoReturn:
    """Raise what an answer with this HTTP status and text says: it refuses only in an apiserver's form."""
    if status == HTTPStatus.UNAUTHORIZED:
        connection.credentials.forget()
        raise NotConnected(f"{connection.server} does not accept the console's credentials (HTTP 401)")
    try:
        said = _parse(text)
    except Unreachable:
        said = {}
    if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        message = said.get("message") or text.decode(errors="replace")
        raise Unreachable(f"{where}: HTTP {status} {message}"[:_MAX_MESSAGE])
    if said.get("kind") != "Status":
        raise Unreachable(f"{where}: HTTP {status}, which is no answer of an apiserver")
    _raise_status(said)


def path(template: str, *names: str) -> str:
    """Return a path with names in place of `{}`.  Raises ValueError for what could be more than a name."""
    for name in names:
        if not name or "/" in name or "%" in name or "?" in name or "#" in name or name in {".", ".."}:
            raise ValueError(f"{name!r} is no name of an object")
    return template.format(*names)


def _selectors(labels: str, fields: str) -> dict[str, str]:
    both = {"labelSelector": labels, "fieldSelector": fields}
    return {name: selector for name, selector in both.items() if selector}


def _raise_status(status: Mapping[str, Any]) -> NoReturn:
    """Raise what a Status says."""
    code = int(status.get("code") or 0)
    message = str(status.get("message", ""))[:_MAX_MESSAGE]
    if code == HTTPStatus.GONE:
        raise Expired(message)
    if code == HTTPStatus.TOO_MANY_REQUESTS or code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise Unreachable(message)
    causes = tuple(
        RefusedField(str(each.get("field", "")), str(each.get("reason", "")), str(each.get("message", "")))
        for each in (status.get("details") or {}).get("causes") or ()
    )
    raise ApiError(code, str(status.get("reason", "")), message, causes)


def _parse(text: bytes) -> Object:
    """Return the object of a JSON text.  Raises Unreachable: whoever sent something else is no apiserver."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Unreachable("an answer that is no JSON object")
    return value


def _lines(answer: httpx.Response) -> Iterator[bytes]:
    """Yield lines; httpx's own would also end at other characters, which JSON may contain."""
    rest = b""
    for chunk in answer.iter_raw():
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
    if rest:
        raise Unreachable("the connection of a watch has ended within a line")


@contextmanager
def _unreachable(server: str) -> Iterator[None]:
    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
        raise NotConnected(f"{server}: {_describe(error)}") from error
    except httpx.HTTPError as error:
        raise Unreachable(f"{server} gave no answer: {_describe(error)}") from error


def _describe(error: Exception) -> str:
    return str(error) or type(error).__name__
