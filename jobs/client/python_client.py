"""The Python client of the native API: `from job_console import Client`."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import httpx

from jobs import dialects
from jobs.client import login
from jobs.client.answers import Endpoint, Entry, Job
from jobs.client.api import AWAY, FIRST_PAUSE_S, LONGEST_PAUSE_S, V1
from jobs.client.errors import (
    ConflictError,
    ConsoleError,
    InvalidRequestError,
    NotFoundError,
    UnavailableError,
    WaitTimeoutError,
    error_of,
)
from jobs.client.failure import CommandFailure
from jobs.client.job_stream import SILENCE_S, Event, parse_events
from jobs.client.login import Login
from jobs.spec import JobSpec

T = TypeVar("T")

DIALECT_OF_SPECS: Final = "openpai-v2"
"""The format in which a JobSpec is sent."""

JobFile = str | Path | Mapping[str, Any] | JobSpec
"""A job file: its text, the path of a file, JSON as a mapping, or a JobSpec."""


class Client:
    """A console, by its address and an access token.

    Without them those of the environment (JOB_CONSOLE_URL, JOB_CONSOLE_TOKEN) or of the last
    `job-console login` are used.  Requests that the console does not answer are repeated `retries` times with
    growing pauses; none creates anything twice.  Methods raise ConsoleError.
    """

    def __init__(
        self, url: str | None = None, token: str | None = None, *, timeout: float = 60, retries: int = 5
    ) -> None:
        found = _find_login(url, token)
        self.url, self._retries = found.server, retries
        headers = {"Authorization": f"Bearer {found.token}", "User-Agent": "job-console-python"}
        self._http = httpx.Client(base_url=found.server + V1, headers=headers, timeout=timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    # --- jobs --------------------------------------------------------------------------------------------

    def submit(
        self,
        file: JobFile,
        *,
        dialect: str | None = None,
        workspace: str | None = None,
        cluster: str | None = None,
        quota: str | None = None,
        idempotency_key: str | None = None,
    ) -> Job:
        """Submit a job file; the same key again returns the job that there is.

        A text is the file itself, a Path the file to read.  What is not given is detected or chosen.
        """
        text, named = _text_of(file)
        target = {"workspace": workspace, "cluster": cluster, "quota": quota}
        body = {"file": text, "dialect": dialect or named, **target}
        return Job.of(self._create("jobs", body, idempotency_key))

    def get(self, job: str) -> Job:
        """Return a job by its id."""
        return Job.of(self._json("GET", f"jobs/{job}"))

    def list(
        self,
        *,
        state: str | tuple[str, ...] = (),
        owner: str | None = None,
        workspace: str | None = None,
        name: str | None = None,
        page_size: int = 100,
    ) -> Iterator[Job]:
        """Yield jobs, newest first, page by page; `owner` may be `me`, `name` is the whole name."""
        query = {"state": state, "owner": owner, "workspace": workspace, "name": name, "limit": page_size}
        address: str | None = "jobs"
        params: dict[str, Any] | None = {key: value for key, value in query.items() if value}
        while address:
            page = self._json("GET", address, params=params)
            yield from map(Job.of, page["jobs"])
            address, params = page["next"], None

    def wait(self, job: str, timeout: float | None = None) -> Job:
        """Wait until a job has ended; return it.  Raises WaitTimeoutError after `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        pause = FIRST_PAUSE_S
        while not (found := self.get(job)).is_ended:
            left = pause if deadline is None else deadline - time.monotonic()
            if left <= 0:
                raise WaitTimeoutError(found, timeout or 0)
            time.sleep(min(pause, left))
            pause = min(1.5 * pause, 5.0)
        return found

    def stop(self, job: str) -> Job:
        """Ask for a job's end; its state changes when the end was observed."""
        return Job.of(self._json("POST", f"jobs/{job}/stop"))

    def again(self, job: str, *, second_copy: bool = False, idempotency_key: str | None = None) -> Job:
        """Run a job again as it was; one that has not ended only with `second_copy`."""
        query = "?second_copy=true" if second_copy else ""
        return Job.of(self._create(f"jobs/{job}/again{query}", None, idempotency_key))

    def endpoints(self, job: str) -> tuple[Endpoint, ...]:
        """Return what the job's replicas serve; needs the scope `exec`."""
        return tuple(map(Endpoint.of, self._json("GET", f"jobs/{job}/endpoints")))

    # --- logs and events ---------------------------------------------------------------------------------

    def logs(self, job: str, role: str = "", index: int = 0, *, follow: bool = False) -> Iterator[bytes]:
        """Yield the log of a replica in pieces, by default the first role's; with `follow` to its end."""
        role = role or self._json("GET", f"jobs/{job}/file")["roles"][0]
        if follow:
            for event in self.stream(job, log=f"{role}/{index}"):
                if event.name == "log":
                    yield str(event.data).encode("utf-8", "surrogatepass")
            return
        offset = 0
        while True:
            params = {"role": role, "index": index, "offset": offset}
            response = self._call("GET", f"jobs/{job}/logs", params=params)
            if not response.content:
                return
            yield response.content
            offset = int(response.headers["X-Next-Offset"])

    def stream(self, job: str, *, log: str = "") -> Iterator[Event]:
        """Yield events until the job, and the log ROLE/INDEX, have ended: `state`, `log`, `attempt`, `end`.

        After a broken connection it continues where it was.
        """
        last, failures = "", 0
        while True:
            try:
                for event in self._events(job, log, last):
                    last, failures = event.identity or last, 0
                    yield event
            except httpx.TransportError as error:
                failures += 1
                self._pause(failures, error)
            else:
                if self.get(job).is_ended:
                    return

    def _events(self, job: str, log: str, last: str) -> Iterator[Event]:
        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last} if last else {})}
        params: dict[str, Any] = {"log": log, "offset": 0} if log else {}
        timeout = httpx.Timeout(SILENCE_S, connect=10)
        path = f"/jobs/{job}/stream"
        with self._http.stream("GET", path, params=params, headers=headers, timeout=timeout) as response:
            _check(response)
            yield from parse_events(response.iter_raw())

    # --- files -------------------------------------------------------------------------------------------

    def list_files(self, job: str, path: str = "", *, role: str = "", index: int = 0) -> Iterator[Entry]:
        """Yield the entries of a folder of a replica, by default its working folder."""
        address: str | None = f"jobs/{job}/files"
        params: dict[str, Any] | None = _location(path, role, index)
        while address:
            page = self._json("GET", address, params=params)
            for row in page["entries"]:
                yield Entry.of(row, path)
            address, params = page["next"], None

    def download(self, job: str, path: str, target: Path, *, role: str = "", index: int = 0) -> Path:
        """Write a file of a replica to `target`, whole or not at all; return that path."""
        part = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
        params = _location(path, role, index)

        def fetch() -> None:
            with self._http.stream("GET", f"/jobs/{job}/files/content", params=params) as response:
                _check(response)
                with part.open("wb") as file:
                    for piece in response.iter_bytes():
                        file.write(piece)

        try:
            self._repeat(fetch)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
        return target

    def has_folder(self, job: str, path: str, *, role: str = "", index: int = 0) -> bool:
        """Tell whether the path of a replica is a folder; False where there is nothing."""
        params = {**_location(path, role, index), "limit": 1}
        try:
            return bool(self._json("GET", f"jobs/{job}/files", params=params)["kind"] == "folder")
        except NotFoundError:
            return False

    def make_folder(self, job: str, path: str, *, role: str = "", index: int = 0) -> None:
        """Make a folder of a running replica, in one that is there; needs the scope `exec`."""
        around, _slash, name = path.strip("/").rpartition("/")
        try:
            params = _location(around, role, index)
            self._call("POST", f"jobs/{job}/files/folder", params=params, json={"name": name})
        except ConflictError as conflict:
            if conflict.code != "exists":
                raise

    def upload(self, job: str, source: Path, path: str, *, role: str = "", index: int = 0) -> None:
        """Write a file into a running replica's folder, whole or not at all; needs the scope `exec`."""
        params = {**_location(path, role, index), "replace": True}

        def send() -> None:
            with source.open("rb") as file:
                headers = {"Content-Type": "application/octet-stream"}
                _check(
                    self._http.put(f"/jobs/{job}/files/content", params=params, content=file, headers=headers)
                )

        self._repeat(send)

    # --- requests ----------------------------------------------------------------------------------------

    def _create(self, path: str, body: object, key: str | None) -> Any:
        return self._json("POST", path, json=body, headers={"Idempotency-Key": key or str(uuid.uuid4())})

    def _json(self, method: str, path: str, **options: Any) -> Any:
        return self._call(method, path, **options).json()

    def _call(self, method: str, path: str, **options: Any) -> httpx.Response:
        def send() -> httpx.Response:
            response = self._http.request(method, path, **options)
            _check(response)
            return response

        return self._repeat(send)

    def _repeat(self, send: Callable[[], T]) -> T:
        """Call until there is an answer.  Raises ConsoleError after all retries."""
        failures = 0
        while True:
            try:
                return send()
            except (httpx.TransportError, _AwayError) as error:
                failures += 1
                self._pause(failures, error)

    def _pause(self, failures: int, error: Exception) -> None:
        """Wait before the next try.  Raises ConsoleError if there is none."""
        away = error if isinstance(error, _AwayError) else None
        if failures > self._retries:
            raise away.error if away else UnavailableError(f"{self.url}: {error}") from error
        pause = min(FIRST_PAUSE_S * 2 ** (failures - 1), LONGEST_PAUSE_S)
        time.sleep(max(pause, min(away.retry_after_s, LONGEST_PAUSE_S)) if away else pause)


class _AwayError(Exception):
    """An answer that says to come again."""

    def __init__(self, error: ConsoleError, retry_after_s: float) -> None:
        super().__init__(str(error))
        self.error, self.retry_after_s = error, retry_after_s


def _check(response: httpx.Response) -> None:
    """Raise the error of an answer, if it is one."""
    if not response.is_error:
        return
    response.read()
    if response.status_code in AWAY:
        after = response.headers.get("Retry-After", "")
        raise _AwayError(error_of(response), float(after) if after.isdigit() else 0.0)
    raise error_of(response)


def _location(path: str, role: str, index: int) -> dict[str, Any]:
    place = {"role": role, "index": index} if role else {}
    return {"path": path, **place} if path else place


def _text_of(file: JobFile) -> tuple[str, str | None]:
    """Return a job file's text, and its dialect if that is known."""
    if isinstance(file, JobSpec):
        rendered = dialects.get(DIALECT_OF_SPECS).render(file, {})
        return rendered.text, DIALECT_OF_SPECS
    if isinstance(file, Path):
        return file.read_text(encoding="utf-8"), None
    if isinstance(file, Mapping):
        try:
            return json.dumps(file, ensure_ascii=False), None
        except (TypeError, ValueError) as error:
            raise InvalidRequestError(f"This is no JSON: {error}") from error
    return file, None


def _find_login(url: str | None, token: str | None) -> Login:
    try:
        if url and token:
            return Login(login.address(url), token)
        found = login.find(url)
    except CommandFailure as failure:
        raise ConsoleError(str(failure)) from failure
    return Login(found.server, token) if token else found
