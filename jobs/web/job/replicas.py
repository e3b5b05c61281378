"""The replicas of one run, their endpoints and their logs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from signal import SIGTERM
from typing import Final
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import QueryDict
from django.utils.timezone import now

from jobs.logs import tail
from jobs.models import Attempt, Endpoint, Job, LogStream, Replica
from jobs.states import EndKind, ReplicaState, State
from jobs.web.http import number

PAGE: Final = 100
MOST_PICKED: Final = 200
MOST_ENDPOINTS: Final = 20


SIGNAL_CODES: Final = 128
"""A shell adds this to the number of the signal that ended a program."""


@dataclass(frozen=True, slots=True)
class ReplicaRow:
    """One replica and its endpoints; `stopped_for` is the replica whose failure ended this one."""

    task: Replica
    endpoints: Sequence[Endpoint]
    stopped_for: Replica | None = None


@dataclass(frozen=True, slots=True)
class ReplicaPage:
    """A page of an attempt's replicas; the queries lead to its neighbours, empty where there is none."""

    attempt: Attempt | None
    attempts: Sequence[int]
    rows: Sequence[ReplicaRow]
    previous_query: str
    next_query: str


def list_replicas(job: Job, query: QueryDict, size: int = PAGE) -> ReplicaPage:
    """The page that `query` (attempt, after, before: places among the replicas) asks for."""
    attempts = list(Attempt.objects.filter(job=job).select_related("job").order_by("-number"))
    attempt = _choose_attempt(attempts, number(query.get("attempt"), 9))
    if attempt is None:
        return ReplicaPage(None, [], [], "", "")
    after, before = number(query.get("after"), 9), number(query.get("before"), 9)
    start = after + 1 if after is not None else max(0, before - size) if before is not None else 0
    tasks = list(
        Replica.objects.filter(attempt=attempt, run=_last_run(attempt), ordinal__gte=start).order_by(
            "ordinal"
        )[: size + 1]
    )
    shown, more = tasks[:size], len(tasks) > size
    common = {"tab": "replicas", **({"attempt": attempt.number} if attempt is not attempts[0] else {})}
    return ReplicaPage(
        attempt,
        [each.number for each in attempts],
        _add_cause(add_endpoints(shown), attempt),
        "?" + urlencode({**common, "before": start}) if start else "",
        "?" + urlencode({**common, "after": shown[-1].ordinal}) if more else "",
    )


def _add_cause(rows: list[ReplicaRow], attempt: Attempt) -> list[ReplicaRow]:
    """Return the rows, those ended by the failure of another replica with that replica."""
    failed = attempt.number != attempt.job.attempt_number or attempt.job.state == State.FAILED
    by_policy = attempt.end_kind in {"", EndKind.COMPLETION}
    if not (failed and by_policy and any(_was_asked_to_end(row.task) for row in rows)):
        return rows
    first = tail.first_failed(attempt, rows[0].task.run)
    if first is None or _was_asked_to_end(first):
        return rows
    return [replace(row, stopped_for=first) if _was_asked_to_end(row.task) else row for row in rows]


def _was_asked_to_end(task: Replica) -> bool:
    return SIGTERM in (task.signal, (task.exit_code or 0) - SIGNAL_CODES)


def add_endpoints(tasks: Sequence[Replica]) -> list[ReplicaRow]:
    """Each replica with its endpoints; one query for all."""
    of_task: dict[int, list[Endpoint]] = defaultdict(list)
    for endpoint in exclude_found(Endpoint.objects.filter(task__in=tasks)).order_by("label", "ordinal"):
        of_task[endpoint.task_id].append(endpoint)
    return [ReplicaRow(task, of_task[task.pk]) for task in tasks]


@dataclass(frozen=True, slots=True)
class RetainedReplica:
    """The remains of a failed replica for debugging (`jobEnvs.isDebug`): its folder in the console's home,
    and the command that gives what its container wrote ('' without one).
    """

    until: datetime
    folder: str
    command: str


def find_retained(task: Replica) -> RetainedReplica | None:
    """Return what is retained of the replica; None where nothing is, or no longer."""
    seconds, folder = task.reason_params.get("kept_s"), task.reason_params.get("kept_folder")
    if not isinstance(seconds, int) or task.ended_at is None:
        return None
    until = task.ended_at + timedelta(seconds=seconds)
    return (
        RetainedReplica(until, str(folder), str(task.reason_params.get("kept_container") or ""))
        if until > now()
        else None
    )


def exclude_found(rows: QuerySet[Endpoint]) -> QuerySet[Endpoint]:
    """Return the declared endpoints, without those that were only found."""
    return rows.exclude(source=Endpoint.Source.FOUND)


def list_endpoints(job: Job, *, found: bool = False) -> list[Endpoint]:
    """The endpoints of a job's current run, the first replicas' first; with those that were merely found."""
    rows = Endpoint.objects.filter(
        task__attempt__job=job, task__attempt__number=job.attempt_number, task__run=job.run_number
    )
    rows = rows if found else exclude_found(rows)
    return list(rows.select_related("task").order_by("task__ordinal", "label", "ordinal")[:MOST_ENDPOINTS])


# --- one log of many -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PickedLog:
    """The log to show, and the other ones.  `attempt` is None for the newest."""

    role: str
    index: int
    attempt: int | None
    attempts: Sequence[int]
    tasks: Sequence[Replica]

    @property
    def query(self) -> str:
        """The log's name in an address."""
        pairs: dict[str, object] = {"role": self.role, "index": self.index}
        return urlencode(pairs | ({"attempt": self.attempt} if self.attempt else {}))


def pick_log(job: Job, query: QueryDict) -> PickedLog | None:
    """The log that `query` (replica: `role/index`, attempt) asks for, else the one most worth reading."""
    attempts = list(Attempt.objects.filter(job=job).order_by("-number"))
    wanted = number(query.get("attempt"), 9)
    attempt = _choose_attempt(attempts, wanted)
    if attempt is None:
        return None
    rows = Replica.objects.filter(attempt=attempt, run=_last_run(attempt)).order_by("ordinal")
    tasks = list(rows[:MOST_PICKED])
    role, _slash, index = query.get("replica", "").rpartition("/")
    task = rows.filter(role=role, index=number(index, 9) or 0).first() if role else _most_relevant(tasks)
    if task is None:
        return None
    if task not in tasks:
        tasks.append(task)
    numbers = [each.number for each in attempts]
    return PickedLog(task.role, task.index, wanted if attempt.number == wanted else None, numbers, tasks)


def find_log(attempt: Attempt, task: Replica) -> LogStream | None:
    """The replica's log."""
    return LogStream.objects.filter(
        attempt=attempt, run=task.run, role=task.role, index=task.index, name="output"
    ).first()


def _most_relevant(tasks: Iterable[Replica]) -> Replica | None:
    """The first that failed, else the first."""
    rows = list(tasks)
    failed = (task for task in rows if task.state == ReplicaState.FAILED)
    return next(failed, rows[0] if rows else None)


def _choose_attempt(attempts: Sequence[Attempt], number: int | None) -> Attempt | None:
    newest = attempts[0] if attempts else None
    return next((each for each in attempts if each.number == number), newest)


def _last_run(attempt: Attempt) -> int:
    runs = Replica.objects.filter(attempt=attempt).order_by("-run").values_list("run", flat=True)
    return runs.first() or 1
