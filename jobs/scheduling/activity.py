"""Activity of people in a job: open shells, visited pages, running notebooks."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from django.conf import settings
from django.db.models import Max, QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from jobs.access import connections, sessions
from jobs.access.connections import NotListening, Unchecked
from jobs.models import Attempt, Endpoint, EndpointVisit, Job
from jobs.states import ReplicaState
from quotas import encryption

RECENT: Final = timedelta(minutes=3)
"""A use within that time counts as activity: a little more than the time between two measurements."""

ASK_S: Final = 1.5
MOST_ASKED: Final = 5
PATIENCE_S: Final = 15.0
MOST_BYTES: Final = 1 << 20


def is_interactive(job: Job) -> bool:
    """Tell whether the job serves something in which people work."""
    return _ports(job).exists()


def _ports(job: Job) -> QuerySet[Endpoint]:
    return Endpoint.objects.filter(
        replica__attempt__job=job, replica__attempt__number=job.attempt_number, replica__run=job.run_number
    )


@dataclass(frozen=True, slots=True)
class Activity:
    """The attempts with open sessions and visited pages; for the others each notebook is asked."""

    entered: frozenset[int]
    visited: Mapping[int, datetime]
    until: float

    def of(self, attempt: Attempt) -> bool:
        """Tell whether somebody uses the attempt now.

        A notebook's own answer counts more than its open page, which polls by itself.  An attempt that can't
        be asked in time counts as used.
        """
        if attempt.pk in self.entered or time.monotonic() > self.until:
            return True
        answers = [_ask_notebook(port, attempt) for port in _ready(attempt)]
        if any(answers):
            return True
        seen = self.visited.get(attempt.pk)
        silent = not answers or None in answers
        return silent and seen is not None and seen > timezone.now() - _recent()


def of(attempts: Sequence[Attempt]) -> Activity:
    """Return the activity in these attempts; two queries."""
    keys = [attempt.pk for attempt in attempts]
    inside = (
        sessions.open_entries()
        .filter(replica__attempt__in=keys)
        .values_list("replica__attempt_id", flat=True)
    )
    visits = EndpointVisit.objects.filter(endpoint__replica__attempt__in=keys).order_by()
    seen = (
        visits.values("endpoint__replica__attempt_id")
        .annotate(last=Max("seen_at"))
        .values_list("endpoint__replica__attempt_id", "last")
    )
    last_seen = {key: last for key, last in seen if last is not None}
    return Activity(frozenset(inside), last_seen, time.monotonic() + PATIENCE_S)


def _ready(attempt: Attempt) -> Collection[Endpoint]:
    rows = _ports(attempt.job).filter(ready=True, replica__state=ReplicaState.RUNNING)
    rows = rows.select_related("replica__attempt__job__cluster")
    return list(rows.order_by("pk")[:MOST_ASKED])


def _ask_notebook(port: Endpoint, attempt: Attempt) -> bool | None:
    """Tell whether a Jupyter behind the port is in use; None when none answers there."""
    try:
        token = encryption.decrypt(attempt.endpoint_token) if attempt.endpoint_token else ""
    except encryption.Unreadable:
        return None
    status = _ask(port, "/api/status", token)
    if not isinstance(status, dict) or "last_activity" not in status:
        return None
    kernels = _ask(port, "/api/kernels", token)
    listed = kernels if isinstance(kernels, list) else []
    states = [each.get("execution_state") for each in listed if isinstance(each, dict)]
    last = parse_datetime(str(status["last_activity"]))
    if last is None:
        return None
    last = last if last.tzinfo else last.replace(tzinfo=UTC)
    return "busy" in states or last > timezone.now() - _recent()


def _recent() -> timedelta:
    return max(RECENT, timedelta(seconds=2 * settings.CONSOLE_MEASURE_SECONDS))


def _ask(port: Endpoint, path: str, token: str) -> object:
    """Return the JSON that the port answers; None for anything else.  No redirect is followed."""
    connection = http.client.HTTPConnection("localhost", port.port)
    try:
        connection.sock = connections.connect_blocking(port.replica, port.host, port.port, ASK_S)
        connection.request("GET", f"{path}?no_track_activity=1", headers={"Authorization": f"token {token}"})
        answer = connection.getresponse()
        return json.loads(answer.read(MOST_BYTES)) if answer.status == 200 else None
    except (NotListening, Unchecked, OSError, http.client.HTTPException, ValueError, RecursionError):
        return None
    finally:
        connection.close()
