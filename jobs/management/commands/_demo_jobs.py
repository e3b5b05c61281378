"""The jobs of a demonstration: rows as the console leaves them, which no worker ever takes up.

Attempts are not live, those that would be sent have a handle, and requests wait until a day that does not
come; logs count as stored and attempts as removed from their engine.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.db import transaction

from jobs.lifecycle.transitions import key_of
from jobs.management.commands._demo_files import DIALECT, FINISHED, UNFINISHED, File
from jobs.management.commands._demo_places import Place
from jobs.models import Attempt, Event, Job, JobFile, Run, Task, Visibility
from jobs.states import TERMINAL, Phase, Reason, ReasonCode, State, TaskState
from jobs.submission import parts_of
from quotas.models import Request

BATCH: Final = 2000
MOST_UNFINISHED: Final = 400
"""Only the newest jobs have not ended, however many there are."""

PERIOD: Final = timedelta(days=90)
NEVER: Final = datetime(9999, 1, 1, tzinfo=UTC)
NODES: Final = ("gpu-01", "gpu-02", "gpu-03", "old-01", "old-02")

_REASONS: Final[dict[State, tuple[Reason, ...]]] = {
    State.QUEUED: (Reason(ReasonCode.WAITING_TURN), Reason(ReasonCode.WAITING_QUOTA)),
    State.SUBMITTING: (Reason(ReasonCode.SENDING),),
    State.PENDING: (Reason(ReasonCode.STARTING),),
    State.RUNNING: (Reason(ReasonCode.RUNNING),),
    State.SUCCEEDED: (Reason(ReasonCode.COMPLETED),),
    State.FAILED: (
        Reason(ReasonCode.EXIT_CODE, {"exit_code": 1}),
        Reason(ReasonCode.EXIT_CODE, {"exit_code": 127}),
        Reason(ReasonCode.OUT_OF_MEMORY),
        Reason(ReasonCode.SIGNALLED, {"signal": 11}),
    ),
    State.STOPPED: (Reason(ReasonCode.USER_STOP), Reason(ReasonCode.TIME_LIMIT)),
    State.LOST: (Reason(ReasonCode.LOST),),
}
_PHASES: Final = {State.QUEUED: Phase.QUEUING, State.RUNNING: Phase.RUNNING} | dict.fromkeys(
    TERMINAL, Phase.ENDED
)
_TASKS: Final = {
    State.RUNNING: TaskState.RUNNING,
    State.SUCCEEDED: TaskState.SUCCEEDED,
    State.FAILED: TaskState.FAILED,
    State.STOPPED: TaskState.STOPPED,
    State.LOST: TaskState.RUNNING,
}


@dataclass(frozen=True, slots=True)
class Made:
    """A job and what it was made from."""

    job: Job
    file: File


def make_jobs(number: int, places: Sequence[Place], files: Sequence[File], now: datetime) -> Iterator[int]:
    """Write `number` jobs, the oldest first; answers after each batch how many there are."""
    chance = random.Random(number)  # noqa: S311  # the same demonstration each time
    for first in range(0, number, BATCH):
        turns = range(first, min(number, first + BATCH))
        batch = [_made(chance, turn, number, places, files, now) for turn in turns]
        with transaction.atomic():
            _store(batch)
        yield first + len(batch)


def _made(
    chance: random.Random,
    turn: int,
    number: int,
    places: Sequence[Place],
    files: Sequence[File],
    now: datetime,
) -> Made:
    state = _state(chance, number - turn)
    place, file = chance.choice(places), chance.choice(files)
    created = now - PERIOD * ((number - turn) / number) ** 2 if state in TERMINAL else _recently(chance, now)
    started = created + timedelta(seconds=chance.randint(2, 900)) if state in _TASKS else None
    ended = min(now, started + _lasted(chance)) if started and state in TERMINAL else None
    reason = chance.choice(_REASONS[state])
    replicas = file.spec.replicas
    job = Job(
        name=f"{file.kind}-{turn + 1}",
        owner=chance.choice(place.owners),
        workspace_id=place.quota.workspace_id,
        cluster_id=place.quota.cluster_id,
        quota=place.quota,
        visibility=Visibility.PUBLIC if chance.random() < 0.2 else Visibility.PRIVATE,
        dialect=DIALECT,
        priority=chance.choice((1, 1, 1, 5, 9)),
        state=state,
        phase=_PHASES.get(state, Phase.CREATING),
        reason_code=reason.code,
        reason_params=dict(reason.params),
        tasks_total=replicas,
        tasks_running=replicas if state is State.RUNNING else 0,
        tasks_failed=1 if state is State.FAILED else 0,
        gpus=sum(role.replicas * role.resources.gpus for role in file.spec.roles),
        gpu_type=file.spec.roles[0].resources.gpu_type,
        created_at=created,
        started_at=started,
        ended_at=ended,
    )
    return Made(job, file)


def _state(chance: random.Random, from_the_end: int) -> State:
    """Each state once among the newest, the others by chance."""
    if from_the_end <= len(State):
        return list(State)[from_the_end - 1]
    unfinished = from_the_end <= MOST_UNFINISHED and chance.random() < 0.25
    weights = UNFINISHED if unfinished else FINISHED
    return chance.choices(list(weights), list(weights.values()))[0]


def _recently(chance: random.Random, now: datetime) -> datetime:
    return now - timedelta(minutes=chance.randint(1, 600))


def _lasted(chance: random.Random) -> timedelta:
    return timedelta(seconds=chance.lognormvariate(7.5, 1.5))


def _store(batch: Sequence[Made]) -> None:
    """All rows of the batch, table by table."""
    Job.objects.bulk_create([made.job for made in batch])
    JobFile.objects.bulk_create([_job_file(made) for made in batch])
    attempts = Attempt.objects.bulk_create([_attempt(made.job) for made in batch])
    begun = [
        (made, attempt)
        for made, attempt in zip(batch, attempts, strict=True)
        if made.job.state not in {State.QUEUED, State.SUBMITTING}
    ]
    Run.objects.bulk_create([Run(attempt=attempt, started_at=made.job.started_at) for made, attempt in begun])
    Task.objects.bulk_create([task for made, attempt in begun for task in _tasks(made, attempt)])
    Event.objects.bulk_create([event for made in batch for event in _events(made.job)])
    Request.objects.bulk_create([_request(made) for made in batch if made.job.state == State.QUEUED])


def _job_file(made: Made) -> JobFile:
    text, spec_json = made.file.called(made.job.name)
    return JobFile(job=made.job, text=text, spec_json=spec_json)


def _attempt(job: Job) -> Attempt:
    key = key_of(job.public_id, 1)
    return Attempt(
        job=job,
        key=key,
        handle="" if job.state == State.QUEUED else key,
        reason_code=job.reason_code if job.ended_at else "",
        created_at=job.created_at,
        submitted_at=job.started_at,
        started_at=job.started_at,
        ended_at=job.ended_at,
        logs_sealed_at=job.ended_at,
        forgotten_at=job.ended_at,
    )


def _tasks(made: Made, attempt: Attempt) -> Iterator[Task]:
    job, (role,) = made.job, made.file.spec.roles
    for index in range(role.replicas):
        state = _TASKS.get(State(job.state), TaskState.WAITING)
        if state is TaskState.FAILED and index:
            state = TaskState.STOPPED  # one fails, and the others are ended with the job
        yield Task(
            attempt=attempt,
            ordinal=index,
            role=role.name,
            index=index,
            state=state,
            exit_code=_exit_code(job, state),
            node="" if state is TaskState.WAITING else NODES[(job.pk + index) % len(NODES)],
            started_at=job.started_at,
            ended_at=job.ended_at,
        )


def _exit_code(job: Job, state: TaskState) -> int | None:
    if state is TaskState.FAILED:
        return int(job.reason_params.get("exit_code", 137))
    return {TaskState.SUCCEEDED: 0, TaskState.STOPPED: 143}.get(state)


def _events(job: Job) -> Iterator[Event]:
    told: list[tuple[Event.Kind, datetime | None, dict[str, Any]]] = [
        (Event.Kind.SUBMITTED, job.created_at, {"dialect": job.dialect}),
        (Event.Kind.STARTED, job.started_at, {"state": State.RUNNING, "reason": ReasonCode.RUNNING}),
        (
            Event.Kind.LOST if job.state == State.LOST else Event.Kind.ENDED,
            job.ended_at,
            {"state": job.state, "reason": job.reason_code, **job.reason_params},
        ),
    ]
    for kind, at, params in told:
        if at is not None:
            actor = job.owner if kind is Event.Kind.SUBMITTED else None
            yield Event(job=job, kind=kind, params=params, actor=actor, at=at)


def _request(made: Made) -> Request:
    job = made.job
    return Request(
        holder=key_of(job.public_id, 1),
        cluster_id=job.cluster_id,
        quota_id=job.quota_id,
        owner_id=job.owner_id,
        parts=[part.to_json() for part in parts_of(made.file.spec)],
        priority=job.priority,
        not_before=NEVER,
    )
