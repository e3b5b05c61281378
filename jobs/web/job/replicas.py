"""The replicas of one run, their endpoints and their logs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from signal import SIGTERM
from typing import Final
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import QueryDict
from django.utils.timezone import now

from jobs.logs import tail
from jobs.models import Attempt, Endpoint, Event, Job, LogStream, Replica, StackDump
from jobs.states import EndKind, ReplicaState, State
from jobs.submission import stack_dumps
from jobs.web.http import number

PAGE: Final = 100
MOST_PICKED: Final = 200
MOST_ENDPOINTS: Final = 20
GRID_FROM: Final = 17
"""Replicas; fewer are seen at a glance in the table."""

MOST_IN_GRID: Final = 5000


SIGNAL_CODES: Final = 128
"""A shell adds this to the number of the signal that ended a program."""


@dataclass(frozen=True, slots=True)
class ReplicaRow:
    """One replica and its endpoints; `stopped_for` is the replica whose failure ended this one.

    `is_slow` says that it is a straggler.
    """

    replica: Replica
    endpoints: Sequence[Endpoint]
    stopped_for: Replica | None = None
    is_slow: bool = False


@dataclass(frozen=True, slots=True)
class ReplicaGrid:
    """All replicas of a run.

    `roles` has each role with the indices and states of its replicas, `states` each state with its number and
    the query that shows only those replicas.
    """

    roles: Sequence[tuple[str, Sequence[tuple[int, ReplicaState]]]]
    states: Sequence[tuple[ReplicaState, int, str]]


@dataclass(frozen=True, slots=True)
class ReplicaPage:
    """A page of an attempt's replicas; the queries lead to its neighbours, empty where there is none.

    `state` is the one that is shown alone; `log_query` begins the address of a replica's log.
    """

    attempt: Attempt | None
    attempts: Sequence[int]
    rows: Sequence[ReplicaRow]
    previous_query: str
    next_query: str
    log_query: str = ""
    grid: ReplicaGrid | None = None
    state: ReplicaState | None = None
    stack_dumps: Sequence[StackDump] = ()


def list_replicas(job: Job, query: QueryDict, size: int = PAGE) -> ReplicaPage:
    """The page that `query` (attempt, state, after, before: places among the replicas) asks for."""
    attempts = list(Attempt.objects.filter(job=job).select_related("job").order_by("-number"))
    attempt = _choose_attempt(attempts, number(query.get("attempt"), 9))
    if attempt is None:
        return ReplicaPage(None, [], [], "", "")
    after, before = number(query.get("after"), 9), number(query.get("before"), 9)
    start = after + 1 if after is not None else max(0, before - size) if before is not None else 0
    rows = Replica.objects.filter(attempt=attempt, run=_last_run(attempt))
    state = query.get("state") if query.get("state") in set(ReplicaState) else None
    common = {"tab": "replicas", **({"attempt": attempt.number} if attempt is not attempts[0] else {})}
    log_query = "?" + urlencode({**common, "tab": "logs"})
    grid = _lay_out_grid(rows, common) if job.replicas_total >= GRID_FROM else None
    if state:
        rows, common = rows.filter(state=state), common | {"state": state}
    # Of one state the places have gaps: its pages lead back to the first.
    back = common if state else common | {"before": start}
    replicas = list(rows.filter(ordinal__gte=start).order_by("ordinal")[: size + 1])
    shown, more = replicas[:size], len(replicas) > size
    slow = find_stragglers(job, attempt.number)
    listed = [
        replace(row, is_slow=(row.replica.role, row.replica.index) in slow)
        for row in _add_cause(add_endpoints(shown), attempt)
    ]
    return ReplicaPage(
        attempt,
        [each.number for each in attempts],
        listed,
        "?" + urlencode(back) if start else "",
        "?" + urlencode({**common, "after": shown[-1].ordinal}) if more else "",
        log_query,
        grid,
        ReplicaState(state) if state else None,
        stack_dumps.list_dumps(attempt),
    )


def find_stragglers(job: Job, attempt: int) -> set[tuple[str, int]]:
    """Return role and index of the ranks that were found to be slower than the others in an attempt."""
    rows = Event.objects.filter(job=job, kind=Event.Kind.FAULT, attempt=attempt, params__code="straggler")
    return set(rows.values_list("params__role", "params__index")[:MOST_IN_GRID])


def _lay_out_grid(rows: QuerySet[Replica], common: Mapping[str, object]) -> ReplicaGrid:
    roles: dict[str, list[tuple[int, ReplicaState]]] = {}
    counts = Counter[ReplicaState]()
    for role, index, state in rows.order_by("ordinal").values_list("role", "index", "state")[:MOST_IN_GRID]:
        roles.setdefault(role, []).append((index, ReplicaState(state)))
        counts[ReplicaState(state)] += 1
    states = [
        (state, counts[state], "?" + urlencode({**common, "state": state}))
        for state in ReplicaState
        if counts[state]
    ]
    return ReplicaGrid(list(roles.items()), states)


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
    at: int | None = None
    """The byte of the log to begin at; None for its end."""
    is_merged: bool = False
    """Whether the logs of all replicas are shown, by time."""

    @property
    def first(self) -> Replica | None:
        """The replica of rank 0."""
        return self.replicas[0] if self.replicas else None

    @property
    def is_first(self) -> bool:
        """Whether the log is that of rank 0."""
        if self.is_merged or self.first is None:
            return False
        return (self.first.role, self.first.index) == (self.role, self.index)

    @property
    def query(self) -> str:
        """The log's name in an address."""
        pairs: dict[str, object] = {"role": self.role, "index": self.index}
        return urlencode(pairs | ({"attempt": self.attempt} if self.attempt else {}))

    @property
    def download_query(self) -> str:
        """The query for the text of all logs."""
        return f"?download=1&attempt={self.attempt}" if self.attempt else "?download=1"


ALL: Final = "all"
"""What a query names instead of a replica for the logs of all of them."""


def pick_log(job: Job, query: QueryDict) -> PickedLog | None:
    """The log that `query` (replica: `role/index` or `all`, attempt) asks for, else the most relevant one."""
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
        replica.role,
        replica.index,
        wanted if attempt.number == wanted else None,
        numbers,
        replicas,
        number(query.get("at"), 15),
        query.get("replica") == ALL,
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
