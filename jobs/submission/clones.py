"""Copies of a job: run again as it was, or changed, in place of one that waits."""

from __future__ import annotations

from django.db import transaction

from jobs import dialects
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.lifecycle import transitions
from jobs.models import Job, JobFile, JobSecret, Replica
from jobs.spec import JobSpec, RoleSpec
from jobs.states import TERMINAL, EndKind, ReasonCode, State
from jobs.submission import templates
from jobs.submission.access import require
from jobs.submission.job_control import NotWaiting, stop_locked
from jobs.submission.job_submission import Submitted, submit
from jobs.submission.targets import JobTarget
from quotas.access import Verb
from quotas.models import User


class NotEnded(Exception):
    """The job has not ended, and no second copy of it was asked for."""


class MemoryNotChanged(Exception):
    """The job did not run out of memory, or its memory can't be changed by itself."""


def retry(
    user: User,
    job: Job,
    *,
    idempotency_key: str | None = None,
    second_copy: bool = False,
    memory: bool = False,
) -> Submitted:
    """Run the job again as it was: a new job, linked to this one, with the commit of a branch that it ran.

    With `memory` the replicas that ran out of memory get twice as much; raises MemoryNotChanged.

    The owner's secrets go along; another person's copy is refused while it needs secrets (Refused).
    Raises Forbidden, and NotEnded for a job that has not ended unless `second_copy`.
    """
    require(user, Verb.READ, job)
    if not (second_copy or State(job.state) in TERMINAL):
        raise NotEnded
    document = _file_that_ran(user, job)
    if memory:
        document = _with_more_memory(job, document)
    place = JobTarget(job.workspace.slug, job.cluster.slug, job.quota.slug)
    return submit(
        user,
        _with_secrets(user, job, document),
        place=place,
        idempotency_key=idempotency_key,
        keep_original=True,
        origin=job,
        template=template_of(user, job),
    )


def larger_memory(job: Job) -> int | None:
    """Return twice the memory of a job that ran out of it, in MiB; None for another job."""
    if job.reason_code != ReasonCode.OUT_OF_MEMORY:
        return None
    role = _role_without_memory(job, JobFile.objects.get(job=job).spec)
    return 2 * role.resources.memory_mib if role else None


def _role_without_memory(job: Job, spec: JobSpec) -> RoleSpec | None:
    """Return the role whose replica ran out of memory; None if unknown, or of a ready-made size."""
    name = job.reason_params.get("role")
    named = [role for role in spec.roles if role.name == name or (name is None and len(spec.roles) == 1)]
    return next((role for role in named if not role.resources.instance_type), None)


def _with_more_memory(job: Job, document: Document) -> Document:
    file = JobFile.objects.get(job=job)
    role = _role_without_memory(job, file.spec) if job.reason_code == ReasonCode.OUT_OF_MEMORY else None
    if role is None:
        raise MemoryNotChanged
    resources = role.resources.model_copy(update={"memory_mib": 2 * role.resources.memory_mib})
    larger = role.model_copy(update={"resources": resources})
    spec = document.parsed.spec
    roles = tuple(larger if each.name == role.name else each for each in spec.roles)
    return document.render(spec.model_copy(update={"roles": roles})).document


def replace_queued(user: User, job: Job, spec: JobSpec, place: JobTarget | None = None) -> Submitted:
    """Replace a queued job by one with `spec`, in `place` or where it was.

    Raises Forbidden, NotWaiting, Refused.
    """
    require(user, Verb.CONTROL, job)
    dialect, file = dialects.get(job.dialect), JobFile.objects.get(job=job)
    document = dialect.render(spec, file.extras, base=document_for(user, job)).document
    with transaction.atomic():
        if State(transitions.lock_job(job.pk).state) is not State.QUEUED:
            raise NotWaiting
        stop_locked(user, job, EndKind.USER_STOP, "")
        return submit(
            user,
            document,
            place=place or JobTarget(job.workspace.slug, job.cluster.slug, job.quota.slug),
            keep_original=True,
            origin=job,
            template=template_of(user, job),
        )


def template_of(user: User, job: Job | None) -> str:
    """Return the template version that the job came from, if the person may start from it; "" else."""
    chosen = templates.of_job(user, job)
    return chosen.ref if chosen else ""


def _file_that_ran(user: User, job: Job) -> Document:
    """Return the job file, naming the commit that was fetched if it names none and its template allows it."""
    document = Document(JobFile.objects.get(job=job).text, job.dialect)
    named, chosen = with_resolved_commit(job, document), templates.of_job(user, job)
    return named if chosen is None or not templates.problems(chosen, named) else document


def document_for(user: User, job: Job) -> Document:
    """Return the job file as `user` may submit it: with secret values for the owner only.

    Placeholders stay where the person is not the owner, and `parse` then says which are missing.
    """
    return _with_secrets(user, job, Document(JobFile.objects.get(job=job).text, job.dialect))


def _with_secrets(user: User, job: Job, document: Document) -> Document:
    if job.owner_id != user.pk:
        return document
    values = {secret.name: secret.reveal() for secret in JobSecret.objects.filter(job=job)}
    return document.fill(values) if values else document


def commit_of(job: Job) -> str:
    """Return the commit that git resolved for the job's latest run; "" if none."""
    fetched = Replica.objects.filter(attempt__job=job).exclude(commit="")
    rows = fetched.order_by("-attempt__number", "-run", "ordinal").values_list("commit", flat=True)
    return rows.first() or ""


def with_resolved_commit(job: Job, document: Document) -> Document:
    """Return the job's file with the commit that it ran, where it names none itself."""
    commit = commit_of(job)
    if not commit:
        return document
    try:
        parsed = document.parsed
    except Refused:
        return document
    code = parsed.spec.code
    if code is None or code.commit:
        return document
    spec = parsed.spec.model_copy(update={"code": code.model_copy(update={"commit": commit})})
    return document.render(spec).document
