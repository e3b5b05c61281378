"""Ray's Jobs API and state API, by HTTP.

Each call has a time limit, and none is repeated.  The names in answers are Ray's own.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final
from urllib.parse import quote

import httpx

from jobs.backends.base import Unreachable
from jobs.backends.ray.config import RayConfig

LIMIT: Final = 10_000
"""The largest number of rows that the state API returns."""

_NOT_FOUND: Final = 404


class NotConnected(Unreachable):
    """No connection was made, so that nothing was asked."""


class JobExists(Exception):
    """Ray has a job with this submission id."""


class SubmissionFailed(Exception):
    """Ray refused a submission, for the reason in its own words."""


@dataclass(frozen=True, slots=True)
class RayJob:
    """A job as Ray lists it: `kind` is SUBMISSION or DRIVER.  Times are seconds since the epoch."""

    submission_id: str
    job_id: str
    kind: str
    status: str
    entrypoint: str
    message: str
    exit_code: int | None
    started_at: float | None
    ended_at: float | None

    @classmethod
    def load(cls, value: Mapping[str, Any]) -> RayJob:
        """Read it from an answer."""
        return cls(
            str(value.get("submission_id") or ""),
            str(value.get("job_id") or ""),
            str(value.get("type") or ""),
            str(value.get("status") or ""),
            str(value.get("entrypoint") or ""),
            str(value.get("message") or ""),
            value.get("driver_exit_code"),
            _seconds(value.get("start_time")),
            _seconds(value.get("end_time")),
        )

    @property
    def is_active(self) -> bool:
        """Return whether it waits or runs."""
        return self.status in ("PENDING", "RUNNING")


@dataclass(frozen=True, slots=True)
class RayNode:
    """A node: its id, name, address, and whole resources and labels in Ray's words.

    A head that is started anew has another id.
    """

    node_id: str
    name: str
    address: str
    is_alive: bool
    resources: Mapping[str, float]
    labels: Mapping[str, str] = field(default_factory=dict)
    is_head: bool = False


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle of a placement group: its group's name and job, its node, its resources."""

    group: str
    job_id: str
    node_id: str
    resources: Mapping[str, float]


class RayClient:
    """A cluster, asked by its dashboard."""

    def __init__(self, config: RayConfig) -> None:
        self._config = config

    def version(self) -> str:
        """Return Ray's version.  Raises Unreachable."""
        return str(self._get("/api/version").get("ray_version", ""))

    def list_jobs(self) -> list[RayJob]:
        """Return all jobs that Ray knows.  Raises Unreachable."""
        answer = self._ask("GET", "/api/jobs/")
        _check(answer)
        return [RayJob.load(each) for each in _json(answer, list)]

    def read_job(self, submission_id: str) -> RayJob | None:
        """Return one job, None where Ray knows none.  Raises Unreachable."""
        answer = self._ask("GET", f"/api/jobs/{quote(submission_id, safe='')}")
        if answer.status_code == _NOT_FOUND:
            return None
        _check(answer)
        return RayJob.load(_json(answer, dict))

    def submit(self, body: Mapping[str, Any]) -> None:
        """Submit a job.

        Raises JobExists, SubmissionFailed, NotConnected where nothing was asked, and Unreachable where it is
        not known what Ray has done.
        """
        answer = self._ask("POST", "/api/jobs/", json=body)
        if answer.is_success:
            return
        if "already exists" in answer.text:
            raise JobExists
        if 400 <= answer.status_code < 500 and answer.status_code not in (401, 403, 408, 429):
            raise SubmissionFailed(_last_line(answer.text))
        _check(answer)

    def stop(self, submission_id: str) -> None:
        """Have Ray end a job's driver; an absent one is fine.  Raises Unreachable."""
        answer = self._ask("POST", f"/api/jobs/{quote(submission_id, safe='')}/stop")
        if answer.status_code != _NOT_FOUND:
            _check(answer)

    def delete(self, submission_id: str) -> None:
        """Have Ray forget an ended job; an absent one is fine.  Raises Unreachable."""
        answer = self._ask("DELETE", f"/api/jobs/{quote(submission_id, safe='')}")
        if answer.status_code != _NOT_FOUND:
            _check(answer)

    def read_driver_log(self, submission_id: str) -> str:
        """Return what the driver has written, "" where there is nothing yet.  Raises Unreachable."""
        answer = self._ask("GET", f"/api/jobs/{quote(submission_id, safe='')}/logs")
        if answer.status_code == _NOT_FOUND:
            return ""
        _check(answer)
        return str(_json(answer, dict).get("logs") or "")

    def upload_package(self, name: str, data: bytes) -> None:
        """Store a package on the cluster.  Raises Unreachable."""
        _check(self._ask("PUT", f"/api/packages/gcs/{name}", content=data))

    def list_nodes(self) -> list[RayNode]:
        """Return all nodes, those that are gone too.  Raises Unreachable."""
        return [
            RayNode(
                str(each["node_id"]),
                str(each.get("node_name") or each.get("node_ip") or ""),
                str(each.get("node_ip") or ""),
                each.get("state") == "ALIVE",
                each.get("resources_total") or {},
                each.get("labels") or {},
                bool(each.get("is_head_node")),
            )
            for each in self._rows("nodes")
        ]

    def find_head(self) -> str:
        """Return the id of the head that lives, "" where Ray tells none.  Raises Unreachable."""
        return next((each.node_id for each in self.list_nodes() if each.is_head and each.is_alive), "")

    def list_bundles(self) -> Iterator[Bundle]:
        """Yield the bundles of placement groups that have their nodes.  Raises Unreachable."""
        for each in self._rows("placement_groups"):
            if each.get("state") == "REMOVED":
                continue
            for bundle in each.get("bundles") or ():
                yield Bundle(
                    str(each.get("name") or ""),
                    str(each.get("creator_job_id") or ""),
                    str(bundle.get("node_id") or ""),
                    bundle.get("unit_resources") or {},
                )

    def read_usage(self) -> Mapping[str, Mapping[str, Sequence[float]]]:
        """Return what is used on each node, by its id: resource → used, whole.

        It is some seconds old.  Raises Unreachable.
        """
        status = self._get("/api/cluster_status").get("data", {}).get("clusterStatus") or {}
        found: Mapping[str, Any] = (status.get("loadMetricsReport") or {}).get("usageByNode") or {}
        return found

    def _rows(self, kind: str) -> Sequence[Mapping[str, Any]]:
        found = self._get(f"/api/v0/{kind}?detail=1&limit={LIMIT}")
        rows: Sequence[Mapping[str, Any]] = found.get("data", {}).get("result", {}).get("result") or ()
        return rows

    def _get(self, path: str) -> dict[str, Any]:
        answer = self._ask("GET", path)
        _check(answer)
        found: dict[str, Any] = _json(answer, dict)
        return found

    def _ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Return the answer, whatever its status.  Raises Unreachable."""
        headers = {"Authorization": f"Bearer {self._config.token}"} if self._config.token else {}
        limit, client = httpx.Timeout(self._config.timeout_s), _make_client(os.getpid())
        try:
            return client.request(method, f"{self._config.url}{path}", headers=headers, timeout=limit, **more)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise NotConnected(f"Ray's dashboard at {self._config.url} can't be reached: {error}") from error
        except httpx.HTTPError as error:
            raise Unreachable(f"Ray's dashboard at {self._config.url} gave no answer: {error!r}") from error


@cache
def _make_client(_process: int) -> httpx.Client:
    """Return a process's client, which keeps its connections: making one takes longer than a request."""
    made = httpx.Client(trust_env=False)
    atexit.register(made.close)
    return made


def _check(answer: httpx.Response) -> None:
    """Raise Unreachable for an answer that tells nothing."""
    if not answer.is_success:
        raise Unreachable(f"Ray's dashboard answered {answer.status_code}: {_last_line(answer.text)}")


def _json(answer: httpx.Response, kind: type[Any]) -> Any:
    try:
        value = answer.json()
    except ValueError:
        value = None
    if not isinstance(value, kind):
        raise Unreachable("Ray's dashboard gave an answer that is none of Ray's")
    return value


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip()[:500] if lines else ""


def _seconds(milliseconds: object) -> float | None:
    return milliseconds / 1000 if isinstance(milliseconds, int | float) and milliseconds else None
