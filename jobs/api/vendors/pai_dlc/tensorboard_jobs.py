"""TensorBoards as jobs: those that came from the built-in template, and the job files of new ones.

A TensorBoard is named after its first job.  Started again it is a copy of that job, which `origin` and the
idempotency key link to it, and the TensorBoard is then what the latest of them is.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import Q, QuerySet
from django.http import Http404

from jobs import submission
from jobs.api.vendors.operations import Call
from jobs.dialects.document import Document
from jobs.jobtemplates import SHIPPED, JobTemplate
from jobs.models import Job
from jobs.spec import JobSpec, Mount
from jobs.submission import JobTarget
from jobs.submission.forms import OUTPUTS, fill_template, first_answers
from quotas.access import Verb
from quotas.models import Node, Quota, User

TEMPLATE: Final[JobTemplate] = SHIPPED["tensorboard"]
PREFIX: Final = "tensorboard-"
AGAIN: Final = "tensorboard-start-"
"""The beginning of the idempotency key of a job that starts a TensorBoard again."""

STARTED_AGAIN: Final = Q(idempotency_key__startswith=AGAIN, origin__isnull=False)
"""The condition of the jobs that started a TensorBoard again."""

_MINUTE_S: Final = 60


def tensorboard_id(job: Job) -> str:
    """Return the TensorboardId of a TensorBoard's first job."""
    return f"{PREFIX}{job.public_id}"


def first_jobs(user: User) -> QuerySet[Job]:
    """Return the first jobs of the TensorBoards that the person may see."""
    rows = Job.objects.visible_to(user).filter(from_template__shipped=TEMPLATE.id).exclude(STARTED_AGAIN)
    return rows.select_related("owner", "workspace", "cluster", "quota")


def later_jobs(first: Collection[Job]) -> QuerySet[Job]:
    """Return the jobs that started these TensorBoards again, the latest first."""
    rows = Job.objects.filter(STARTED_AGAIN, origin__in=first, deleted_at=None)
    return rows.select_related("owner", "workspace", "cluster", "quota").order_by("-pk")


def find_first(call: Call, verb: Verb) -> Job:
    """Return the first job of the TensorBoard that a call names.

    Raises Http404, PermissionDenied or MissingScopeError.
    """
    text: str = call.values["TensorboardId"]
    if not text.startswith(PREFIX):
        raise Http404
    job = call.find_job(text.removeprefix(PREFIX), verb)
    if not first_jobs(call.person).filter(pk=job.pk).exists():
        raise Http404
    return job


def current_of(first: Job) -> Job:
    """Return the latest job of a TensorBoard."""
    return later_jobs([first]).first() or first


def start_again(user: User, first: Job, ended: Job) -> Job:
    """Start a TensorBoard whose latest job has ended; however often it is asked, once.

    Raises NotEnded, Refused.
    """
    key = f"{AGAIN}{ended.public_id}"
    return submission.retry(user, first, idempotency_key=key).job


@dataclass(frozen=True, slots=True)
class TensorboardRequest:
    """A TensorBoard to create; `jobs` are the public ids of own jobs, whose folders it shows."""

    name: str
    jobs: Sequence[str]
    mounts: Sequence[Mount]
    target: JobTarget
    minutes: int | None = None
    cores: int | None = None
    memory_gib: int | None = None
    priority: int | None = None
    instance_type: str = ""


def compose(user: User, request: TensorboardRequest) -> Document:
    """Return the job file of a new TensorBoard."""
    quotas = [each for each in submission.quotas_open_to(user) if _is_in(each, request.target)]
    answers = {**first_answers(TEMPLATE, quotas), "name": request.name, "jobs": list(request.jobs)}
    document = fill_template(user, TEMPLATE, answers, install=_lacks_program(quotas))
    return document.rewrite(_adjust(document.parsed.spec, request))


def _is_in(quota: Quota, target: JobTarget) -> bool:
    return (
        target.workspace in {"", quota.workspace.slug}
        and target.cluster in {"", quota.cluster.slug}
        and target.quota in {"", quota.slug}
    )


def _lacks_program(quotas: Sequence[Quota]) -> bool:
    """Tell whether no node of the cluster that is chosen is known to have TensorBoard, and some are known."""
    clusters = [quota.cluster_id for quota in quotas[:1]]
    known = Node.objects.filter(cluster__in=clusters, programs__isnull=False)
    programs = list(known.values_list("programs", flat=True))
    return bool(programs) and not any(set(TEMPLATE.programs) & set(each or ()) for each in programs)


def _adjust(spec: JobSpec, request: TensorboardRequest) -> JobSpec:
    """Return the template's job with what the request says of time, priority, size and data."""
    (role,) = spec.roles
    wanted = {
        "cpu_milli": request.cores and 1000 * request.cores,
        "memory_mib": request.memory_gib and 1024 * request.memory_gib,
        "instance_type": request.instance_type,
    }
    given = {name: value for name, value in wanted.items() if value}
    role = role.model_copy(update={"resources": role.resources.model_copy(update=given)})
    changes = {
        "roles": (role,),
        "mounts": (*spec.mounts, *request.mounts),
        "priority": request.priority or spec.priority,
        "time_limit_s": request.minutes * _MINUTE_S if request.minutes else spec.time_limit_s,
    }
    return spec.model_copy(update=changes)


def data_mount(index: int, *, uri: str = "", dataset: str = "") -> Mount:
    """Return a mount of data beside the folders of jobs."""
    return Mount(uri=uri, id=dataset, path=f"{OUTPUTS}/data-{index}", read_only=True)


def minutes_of(seconds: int | None) -> int:
    """Return a time limit in whole minutes; 0 for none."""
    return math.ceil((seconds or 0) / _MINUTE_S)
