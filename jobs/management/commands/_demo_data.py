"""Data of a demonstration: targets, job files and jobs, as rows that no worker ever takes up."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.db import transaction

from jobs import dialects
from jobs.lifecycle.transitions import key_of
from jobs.models import Attempt, Event, Job, JobFile, Replica, Run, Visibility
from jobs.spec import JobSpec
from jobs.states import TERMINAL, Phase, Reason, ReasonCode, ReplicaState, State
from jobs.submission import parts_of
from quotas.models import Cluster, Membership, Node, Quota, Request, Role, User, Workspace

WORKSPACES: Final[Mapping[str, str]] = {
    "vision": "Computer vision",
    "language": "Language models",
    "speech": "Speech",
    "ranking": "Search and ranking",
}
PEOPLE: Final[Mapping[str, Role]] = {
    "lead": Role.ADMIN,
    "operations": Role.OPERATOR,
    "researcher-1": Role.DEVELOPER,
    "researcher-2": Role.DEVELOPER,
    "intern": Role.DEVELOPER,
    "reviewer": Role.VIEWER,
}
NODES: Final = {"gpu": ("H800", 8, 8), "old": ("V100", 4, 4)}
"""By the beginning of their names: type of GPU, GPUs a node, nodes."""

CPU_OF_NODE: Final = 96_000
MEMORY_OF_NODE: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class DemoTarget:
    """A quota, and the people who may have submitted jobs to it."""

    quota: Quota
    owners: tuple[User, ...]


def make_places() -> list[DemoTarget]:
    """Make everything that is missing; none of the people can sign in.

    The cluster takes no jobs, so that no worker asks for its inventory and nobody submits to it.
    """
    cluster, _new = Cluster.objects.get_or_create(
        slug="demo", defaults={"name": "Demonstration", "enabled": False}
    )
    for name, (kind, gpus, count) in NODES.items():
        for number in range(1, count + 1):
            Node.objects.get_or_create(
                cluster=cluster,
                name=f"{name}-{number:02}",
                defaults={
                    "cpu_milli": CPU_OF_NODE,
                    "memory_mib": MEMORY_OF_NODE,
                    "gpus": {kind: gpus},
                    "gpu_list": [{"index": index, "type": kind} for index in range(gpus)],
                },
            )
    return [place for slug, name in WORKSPACES.items() for place in _workspace(cluster, slug, name)]


def _workspace(cluster: Cluster, slug: str, name: str) -> list[DemoTarget]:
    workspace, _new = Workspace.objects.get_or_create(slug=slug, defaults={"name": name})
    owners = []
    for person, role in PEOPLE.items():
        user, new = User.objects.get_or_create(
            username=f"{slug}-{person}",
            defaults={"is_active": False},  # nobody signs in as them
        )
        if new:
            user.set_unusable_password()
            user.save()
        Membership.objects.get_or_create(workspace=workspace, user=user, defaults={"role": role})
        if role is not Role.VIEWER:
            owners.append(user)
    return [
        DemoTarget(_quota(workspace, cluster, kind, gpus), tuple(owners)) for kind, gpus in _SHARES.items()
    ]


_SHARES: Final = {"research": 12, "production": 20}


def _quota(workspace: Workspace, cluster: Cluster, kind: str, gpus: int) -> Quota:
    defaults = {
        "name": kind.title(),
        "gpus": gpus,
        "cpu_milli": gpus * 12_000,
        "memory_mib": gpus * 128 * 1024,
    }
    return Quota.objects.get_or_create(workspace=workspace, cluster=cluster, slug=kind, defaults=defaults)[0]


NAME: Final = "NAME-OF-THE-JOB"
DIALECT: Final = "openpai-v1"

_KINDS: Final = (
    ("resnet50-imagenet", 2, 12, 64, 4, "H800", "torchrun --nproc_per_node=4 train.py --config r50.yaml"),
    ("detector-finetune", 1, 8, 32, 2, "V100", "python tools/train.py configs/detector.py"),
    ("lm-pretrain-1b", 4, 48, 512, 8, "H800", "bash run_pretrain.sh 1b"),
    ("tokenizer", 1, 16, 64, 0, "", "python build_vocab.py --size 64000"),
    ("asr-conformer", 2, 16, 128, 4, "V100", "python train_asr.py --epochs 60"),
    ("ranker-nightly", 1, 8, 64, 1, "V100", "python train_ranker.py --days 7"),
    ("evaluate", 1, 4, 16, 1, "V100", "python evaluate.py --all-checkpoints"),
    ("notebook", 1, 4, 16, 1, "V100", "jupyter lab --port $PAI_CONTAINER_HOST_jupyter_PORT_LIST"),
)
"""Name, replicas, CPUs, GiB, GPUs, their type, command."""


@dataclass(frozen=True, slots=True)
class File:
    """A job file whose name stands as `NAME` in its text and in its specification."""

    kind: str
    text: str
    spec: JobSpec
    spec_json: str

    def render(self, name: str) -> tuple[str, str]:
        """Text and specification of the job of that name."""
        return self.text.replace(NAME, name), self.spec_json.replace(NAME, name)


def files() -> list[File]:
    """Return one file of each kind."""
    return [_file(*kind) for kind in _KINDS]


def _file(kind: str, replicas: int, cpus: int, gib: int, gpus: int, gpu_type: str, command: str) -> File:
    role = {
        "name": "worker",
        "taskNumber": replicas,
        "cpuNumber": cpus,
        "memoryMB": gib * 1024,
        "gpuNumber": gpus,
        "minFailedTaskCount": 1,
        "command": command,
    }
    job = {"jobName": NAME, "image": "pytorch/pytorch:2.4.0", "gpuType": gpu_type, "taskRoles": [role]}
    text = json.dumps({key: value for key, value in job.items() if value}, indent=2)
    spec = dialects.parse(text, DIALECT)[1].spec
    return File(kind, text, spec, spec.model_dump_json())


UNFINISHED: Final = {State.RUNNING: 12, State.QUEUED: 5, State.PENDING: 1, State.SUBMITTING: 1}
FINISHED: Final = {State.SUCCEEDED: 70, State.FAILED: 18, State.STOPPED: 10, State.LOST: 1}
"""Frequency of each."""


BATCH: Final = 2000
MOST_UNFINISHED: Final = 400
"""Only the newest jobs have not ended, however many there are."""

PERIOD: Final = timedelta(days=90)
NEVER: Final = datetime(9999, 1, 1, tzinfo=UTC)
NODE_NAMES: Final = ("gpu-01", "gpu-02", "gpu-03", "old-01", "old-02")

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
    State.RUNNING: ReplicaState.RUNNING,
    State.SUCCEEDED: ReplicaState.SUCCEEDED,
    State.FAILED: ReplicaState.FAILED,
    State.STOPPED: ReplicaState.STOPPED,
    State.LOST: ReplicaState.RUNNING,
}


@dataclass(frozen=True, slots=True)
class DemoJob:
    """A job and its file."""

    job: Job
    file: File


def make_jobs(
    number: int, places: Sequence[DemoTarget], files: Sequence[File], now: datetime
) -> Iterator[int]:
    """Write `number` jobs, the oldest first; answers after each batch how many there are."""
    chance = random.Random(number)  # noqa: S311  # the same demonstration each time
    for first in range(0, number, BATCH):
        turns = range(first, min(number, first + BATCH))
        batch = [_make_job(chance, turn, number, places, files, now) for turn in turns]
        with transaction.atomic():
            _store(batch)
        yield first + len(batch)


def _make_job(
    chance: random.Random,
    turn: int,
    number: int,
    places: Sequence[DemoTarget],
    files: Sequence[File],
    now: datetime,
) -> DemoJob:
    state = _state(chance, number - turn)
    place, file = chance.choice(places), chance.choice(files)
    created = now - PERIOD * ((number - turn) / number) ** 2 if state in TERMINAL else _recently(chance, now)
    started = created + timedelta(seconds=chance.randint(2, 900)) if state in _TASKS else None
    ended = min(now, started + _duration(chance)) if started and state in TERMINAL else None
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
        replicas_total=replicas,
        replicas_running=replicas if state is State.RUNNING else 0,
        replicas_failed=1 if state is State.FAILED else 0,
        gpus=sum(role.replicas * role.resources.gpus for role in file.spec.roles),
        gpu_type=file.spec.roles[0].resources.gpu_type,
        created_at=created,
        started_at=started,
        ended_at=ended,
    )
    return DemoJob(job, file)


def _state(chance: random.Random, from_the_end: int) -> State:
    """Each state once among the newest, the others by chance."""
    if from_the_end <= len(State):
        return list(State)[from_the_end - 1]
    unfinished = from_the_end <= MOST_UNFINISHED and chance.random() < 0.25
    weights = UNFINISHED if unfinished else FINISHED
    return chance.choices(list(weights), list(weights.values()))[0]


def _recently(chance: random.Random, now: datetime) -> datetime:
    return now - timedelta(minutes=chance.randint(1, 600))


def _duration(chance: random.Random) -> timedelta:
    return timedelta(seconds=chance.lognormvariate(7.5, 1.5))


def _store(batch: Sequence[DemoJob]) -> None:
    """Write all rows of the batch, table by table."""
    Job.objects.bulk_create([made.job for made in batch])
    JobFile.objects.bulk_create([_job_file(made) for made in batch])
    attempts = Attempt.objects.bulk_create([_attempt(made.job) for made in batch])
    begun = [
        (made, attempt)
        for made, attempt in zip(batch, attempts, strict=True)
        if made.job.state not in {State.QUEUED, State.SUBMITTING}
    ]
    Run.objects.bulk_create([Run(attempt=attempt, started_at=made.job.started_at) for made, attempt in begun])
    Replica.objects.bulk_create([replica for made, attempt in begun for replica in _replicas(made, attempt)])
    Event.objects.bulk_create([event for made in batch for event in _events(made.job)])
    Request.objects.bulk_create([_request(made) for made in batch if made.job.state == State.QUEUED])


def _job_file(made: DemoJob) -> JobFile:
    text, spec_json = made.file.render(made.job.name)
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


def _replicas(made: DemoJob, attempt: Attempt) -> Iterator[Replica]:
    job, (role,) = made.job, made.file.spec.roles
    for index in range(role.replicas):
        state = _TASKS.get(State(job.state), ReplicaState.WAITING)
        if state is ReplicaState.FAILED and index:
            state = ReplicaState.STOPPED  # one fails, and the others are ended with the job
        yield Replica(
            attempt=attempt,
            ordinal=index,
            role=role.name,
            index=index,
            state=state,
            exit_code=_exit_code(job, state),
            node="" if state is ReplicaState.WAITING else NODE_NAMES[(job.pk + index) % len(NODE_NAMES)],
            started_at=job.started_at,
            ended_at=job.ended_at,
        )


def _exit_code(job: Job, state: ReplicaState) -> int | None:
    if state is ReplicaState.FAILED:
        return int(job.reason_params.get("exit_code", 137))
    return {ReplicaState.SUCCEEDED: 0, ReplicaState.STOPPED: 143}.get(state)


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


def _request(made: DemoJob) -> Request:
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
