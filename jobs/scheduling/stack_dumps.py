"""Stack dumps of running jobs: collected beside every replica, compared, and stored with the attempt.

A request is a row: a worker that ends meanwhile leaves it to another one, and nothing is done to the job's
processes that could not be done twice.
"""

from __future__ import annotations

import asyncio
import sysconfig
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import structlog
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.db.models.lookups import Exact
from django.utils import timezone

from jobs.backends.base import Handle, ReplicaRef, Unreachable
from jobs.backends.sessions import Enterable, NoEntry, Session, SessionKind, SessionRequest
from jobs.clusters import NoSuchBackend, backend_for
from jobs.fault_tolerance import stacks
from jobs.fault_tolerance.stacks import ReplicaStacks, StackComparison, StackVerdict
from jobs.faults import fault
from jobs.lifecycle import transitions
from jobs.live import triggers
from jobs.models import Attempt, Event, LogProgress, Replica, StackDump
from jobs.states import ReplicaState
from jobs.submission import stack_dumps
from quotas.models.expressions import Unindexed

log = structlog.get_logger(__name__)

AT_ONCE: Final = 16
REPLICA_S: Final = 20.0
ALL_S: Final = 40.0
"""Replicas whose stacks are not there by then are named."""

AGAIN: Final = timedelta(seconds=60)
"""A dump that began so long ago is begun again; fault tolerance waits no longer for one."""

MOST_BYTES: Final = 4 << 20
"""Of one replica's output."""

PROGRAM: Final = Path(sysconfig.get_path("scripts"), "py-spy")

NO_PROGRAM: Final = "py-spy is not installed with the console"
NO_TIME: Final = "no answer in time"


def trigger_open() -> None:
    """Trigger the answer of open requests, as a trigger may be lost."""
    open_ones = StackDump.objects.filter(ended_at=None).values_list("attempt__job__cluster_id", flat=True)
    for cluster_id in set(open_ones):
        triggers.trigger("dump_stacks", cluster_id)


def answer(cluster_id: int) -> None:
    """Answer the cluster's open requests."""
    due = Q(state=StackDump.State.WAITING) | Q(
        state=StackDump.State.RUNNING, begun_at__lt=timezone.now() - AGAIN
    )
    rows = StackDump.objects.filter(
        due, Exact(Unindexed("attempt__job__cluster_id"), cluster_id), ended_at=None
    )
    for row in rows.select_related("attempt__job__cluster").order_by("pk"):
        mine = StackDump.objects.filter(due, pk=row.pk).update(state=StackDump.State.RUNNING, begun_at=Now())
        if mine:
            _store(row, _collect(row))


def _store(row: StackDump, replicas: Sequence[ReplicaStacks]) -> None:
    comparison = stacks.compare(replicas)
    done = {
        "state": StackDump.State.DONE,
        "comparison": comparison.to_json(),
        "report": stacks.render(replicas),
        "ended_at": Now(),
    }
    with transaction.atomic():
        is_first = StackDump.objects.filter(pk=row.pk, ended_at=None).update(**done)
        if is_first and row.asked_by_id is None:
            params = {"code": "stacks", "dump": row.pk, **_evidence(comparison)}
            transitions.record(row.attempt.job, Event.Kind.FAULT, params=params)
        fault("stacks.before_commit")


def _evidence(comparison: StackComparison) -> dict[str, Any]:
    """Return what an event shows of a comparison: its result, without the list of all replicas."""
    whole = comparison.to_json()
    return {**whole, "missing": len(whole["missing"]), "suspects": whole["suspects"][:5]}


# --- collecting ------------------------------------------------------------------------------------------


def _collect(row: StackDump) -> Sequence[ReplicaStacks]:
    replicas = list(
        Replica.objects.filter(attempt=row.attempt, run=row.run, state=ReplicaState.RUNNING).order_by(
            "ordinal"
        )
    )
    try:
        backend = backend_for(row.attempt.job.cluster)
    except (NoSuchBackend, Unreachable) as error:
        return [_without(each, str(error)) for each in replicas]
    if not isinstance(backend, Enterable):
        return [_without(each, "this cluster has no sessions beside replicas") for each in replicas]
    if not PROGRAM.is_file():
        return [_without(each, NO_PROGRAM) for each in replicas]
    return asyncio.run(collect(backend, Handle(row.attempt.handle), replicas))


def _without(replica: Replica, problem: str) -> ReplicaStacks:
    return ReplicaStacks(replica.role, replica.index, replica.node, problem=stacks.clean(problem))


async def collect(backend: Enterable, handle: Handle, replicas: Sequence[Replica]) -> Sequence[ReplicaStacks]:
    """Return the stacks of all replicas, in their order."""
    program = await asyncio.to_thread(PROGRAM.read_bytes)
    limit = asyncio.Semaphore(AT_ONCE)
    found: dict[int, ReplicaStacks] = {}

    async def run(replica: Replica) -> None:
        async with limit:
            found[replica.pk] = await _collect_one(backend, handle, replica, program)

    tasks = [asyncio.ensure_future(run(each)) for each in replicas]
    if tasks:
        _done, late = await asyncio.wait(tasks, timeout=ALL_S)
        for task in late:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return [found.get(each.pk) or _without(each, NO_TIME) for each in replicas]


async def _collect_one(backend: Enterable, handle: Handle, replica: Replica, program: bytes) -> ReplicaStacks:
    request = SessionRequest(SessionKind.PROGRAM, argv=("sh", "-c", stacks.COLLECT))
    where = ReplicaRef(replica.role, replica.index, replica.run)
    try:
        async with asyncio.timeout(REPLICA_S):
            session = await backend.exec(handle, where, request)
            try:
                output = await _talk(session, program)
            finally:
                await session.close()
    except TimeoutError:
        return _without(replica, NO_TIME)
    except (NoEntry, Unreachable, OSError) as error:
        return _without(replica, str(error) or type(error).__name__)
    processes = stacks.parse(output)
    return ReplicaStacks(replica.role, replica.index, replica.node, processes)


async def _talk(session: Session, program: bytes) -> str:
    """Send the program to the collector, and return what it prints."""

    async def send() -> None:
        try:
            await session.write(program)
            await session.write_eof()
        except BrokenPipeError:
            return

    sending = asyncio.ensure_future(send())
    output, error = await asyncio.gather(_read(session.read), _read(session.read_error))
    await sending
    if not output.strip() and error.strip():
        raise OSError(error.strip().splitlines()[-1])
    return output


async def _read(read: Callable[[int], Awaitable[bytes]]) -> str:
    data = bytearray()
    while part := await read(1 << 16):
        data += part[: max(0, MOST_BYTES - len(data))]
    return data.decode("utf-8", "replace")


# --- evidence of a hang ----------------------------------------------------------------------------------


def find_evidence(attempt: Attempt, progress: LogProgress) -> StackComparison | None:
    """Return what the stacks of a silent job tell; None while they are being collected.

    Where they can't be had, or took too long, an empty comparison.
    """
    nothing = StackComparison(StackVerdict.NOTHING)
    newest = _list_since(attempt, progress).first()
    if newest is None:
        if not _can_enter(attempt):
            return nothing
        stack_dumps.request(attempt, attempt.job)
        return None
    if newest.comparison is not None:
        return StackComparison.from_json(newest.comparison)
    return nothing if newest.created_at < timezone.now() - AGAIN else None


def find_stack_hang(attempt: Attempt, progress: LogProgress, interval_s: int) -> StackComparison | None:
    """Return the stacks of a silent job whose ranks wait for each other; None where that is not known (yet).

    They have to be the same in two dumps, `interval_s` apart.
    """
    dumps = list(_list_since(attempt, progress).defer("report")[:2])
    known = [StackComparison.from_json(each.comparison) for each in dumps if each.comparison is not None]
    if len(known) == len(dumps) == 2 and known[0].is_hang and known[0].digest == known[1].digest:
        return known[0]
    is_due = not dumps or dumps[0].created_at < timezone.now() - timedelta(seconds=interval_s)
    if is_due and len(known) == len(dumps) and _can_enter(attempt):
        stack_dumps.request(attempt, attempt.job)
    return None


def _list_since(attempt: Attempt, progress: LogProgress) -> QuerySet[StackDump]:
    rows = StackDump.objects.filter(attempt=attempt, run=attempt.job.run_number, asked_by=None)
    return rows.filter(created_at__gte=progress.grew_at).order_by("-pk")


def _can_enter(attempt: Attempt) -> bool:
    try:
        return isinstance(backend_for(attempt.job.cluster), Enterable) and PROGRAM.is_file()
    except (NoSuchBackend, Unreachable):
        return False
