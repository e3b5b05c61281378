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

    replica: Replica
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
    replicas = list(
        Replica.objects.filter(attempt=attempt, run=_last_run(attempt), ordinal__gte=start).order_by(
            "ordinal"
        )[: size + 1]
    )
    shown, more = replicas[:size], len(replicas) > size
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
    if not (failed and by_policy and any(_was_asked_to_end(row.replica) for row in rows)):
        return rows
    first = tail.first_failed(attempt, rows[0].replica.run)
    if first is None or _was_asked_to_end(first):
        return rows
    return [replace(row, stopped_for=first) if _was_asked_to_end(row.replica) else row for row in rows]


def _was_asked_to_end(replica: Replica) -> bool:
    return SIGTERM in (replica.signal, (replica.exit_code or 0) - SIGNAL_CODES)


def add_endpoints(replicas: Sequence[Replica]) -> list[ReplicaRow]:
    """Each replica with its endpoints; one query for all."""
    of_replica: dict[int, list[Endpoint]] = defaultdict(list)
    for endpoint in exclude_found(Endpoint.objects.filter(replica__in=replicas)).order_by("label", "ordinal"):
        of_replica[endpoint.replica_id].append(endpoint)
    return [ReplicaRow(replica, of_replica[replica.pk]) for replica in replicas]


@dataclass(frozen=True, slots=True)
class RetainedReplica:
    """The remains of a failed replica for debugging (`jobEnvs.isDebug`): its folder in the console's home,
    and the command that gives what its container wrote ('' without one).
    """

    until: datetime
    folder: str
    command: str


def find_retained(replica: Replica) -> RetainedReplica | None:
    """Return what is retained of the replica; None where nothing is, or no longer."""
    seconds, folder = replica.reason_params.get("kept_s"), replica.reason_params.get("kept_folder")
    if not isinstance(seconds, int) or replica.ended_at is None:
        return None
    until = replica.ended_at + timedelta(seconds=seconds)
    return (
        RetainedReplica(until, str(folder), str(replica.reason_params.get("kept_container") or ""))
        if until > now()
        else None
    )


def exclude_found(rows: QuerySet[Endpoint]) -> QuerySet[Endpoint]:
    """Return the declared endpoints, without those that were only found."""
    return rows.exclude(source=Endpoint.Source.FOUND)


def list_endpoints(job: Job, *, found: bool = False) -> list[Endpoint]:
    """The endpoints of a job's current run, the first replicas' first; with those that were merely found."""
    rows = Endpoint.objects.filter(
        replica__attempt__job=job, replica__attempt__number=job.attempt_number, replica__run=job.run_number
    )
    rows = rows if found else exclude_found(rows)
    return list(
        rows.select_related("replica").order_by("replica__ordinal", "label", "ordinal")[:MOST_ENDPOINTS]
    )


# --- one log of many -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PickedLog:
    """The log to show, and the other ones.  `attempt` is None for the newest."""

    role: str
    index: int
    attempt: int | None
    attempts: Sequence[int]
    replicas: Sequence[Replica]

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
    replicas = list(rows[:MOST_PICKED])
    role, _slash, index = query.get("replica", "").rpartition("/")
    replica = (
        rows.filter(role=role, index=number(index, 9) or 0).first() if role else _most_relevant(replicas)
    )
    if replica is None:
        return None
    if replica not in replicas:
        replicas.append(replica)
    numbers = [each.number for each in attempts]
    return PickedLog(
        replica.role, replica.index, wanted if attempt.number == wanted else None, numbers, replicas
    )


def find_log(attempt: Attempt, replica: Replica) -> LogStream | None:
    """The replica's log."""
    return LogStream.objects.filter(
        attempt=attempt, run=replica.run, role=replica.role, index=replica.index, name="output"
    ).first()


def _most_relevant(replicas: Iterable[Replica]) -> Replica | None:
    """The first that failed, else the first."""
    rows = list(replicas)
    failed = (replica for replica in rows if replica.state == ReplicaState.FAILED)
    return next(failed, rows[0] if rows else None)


def _choose_attempt(attempts: Sequence[Attempt], number: int | None) -> Attempt | None:
    newest = attempts[0] if attempts else None
    return next((each for each in attempts if each.number == number), newest)


def _last_run(attempt: Attempt) -> int:
    runs = Replica.objects.filter(attempt=attempt).order_by("-run").values_list("run", flat=True)
    return runs.first() or 1
