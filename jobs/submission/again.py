"""A job once more: as it was, or in place of one that waits."""

from __future__ import annotations

from django.db import transaction

from jobs import dialects
from jobs.dialects.document import Document
from jobs.lifecycle import transitions
from jobs.models import Job, JobFile, JobSecret
from jobs.spec import JobSpec
from jobs.states import TERMINAL, EndKind, State
from jobs.submission import templates
from jobs.submission.ending import stop_locked
from jobs.submission.places import Place
from jobs.submission.queued import NotWaiting
from jobs.submission.ran import as_it_ran
from jobs.submission.rights import require
from jobs.submission.submitting import Submitted, submit
from quotas.access import Verb
from quotas.models import User


class NotEnded(Exception):
    """The job has not ended, and nobody said that a second copy of it shall run."""


def retry(
    user: User, job: Job, *, idempotency_key: str | None = None, second_copy: bool = False
) -> Submitted:
    """Run the job again as it was: a new job, linked to this one, with the commit of a branch that it ran.

    The owner's secrets go along; another person's copy is refused while it needs secrets (Refused).
    Raises Forbidden, and NotEnded for a job that has not ended unless `second_copy`.
    """
    require(user, Verb.READ, job)
    if not (second_copy or State(job.state) in TERMINAL):
        raise NotEnded
    document = document_for(user, job, ran=True)
    place = Place(job.workspace.slug, job.cluster.slug, job.quota.slug)
    return submit(
        user,
        document,
        place=place,
        idempotency_key=idempotency_key,
        keep_original=True,
        origin=job,
        template=template_of(user, job),
    )


def instead(user: User, job: Job, spec: JobSpec, place: Place | None = None) -> Submitted:
    """A waiting job again as `spec`, in `place` or where it was, and the job itself stopped.

    Raises Forbidden, NotWaiting, Refused.
    """
    require(user, Verb.CONTROL, job)
    dialect, file = dialects.get(job.dialect), JobFile.objects.get(job=job)
    document = dialect.render(spec, file.extras, base=document_for(user, job)).document
    with transaction.atomic():
        if State(transitions.locked(job.pk).state) is not State.QUEUED:
            raise NotWaiting
        stop_locked(user, job, EndKind.USER_STOP, "")
        return submit(
            user,
            document,
            place=place or Place(job.workspace.slug, job.cluster.slug, job.quota.slug),
            keep_original=True,
            origin=job,
            template=template_of(user, job),
        )


def template_of(user: User, job: Job | None) -> str:
    """What the job came from, where the person may start from it too; "" else."""
    chosen = templates.of_job(user, job)
    return chosen.ref if chosen else ""


def document_for(user: User, job: Job, *, ran: bool = False) -> Document:
    """The job file as `user` may take it along: with secret values for the owner only when submitting.

    Placeholders stay where the person is not the owner, and `parse` then says which are missing.  With `ran`
    it names the commit that was fetched, if it names none and its template leaves that open.
    """
    document = Document(JobFile.objects.get(job=job).text, job.dialect)
    if ran:
        document = _as_it_ran(user, job, document)
    if job.owner_id != user.pk:
        return document
    values = {secret.name: secret.reveal() for secret in JobSecret.objects.filter(job=job)}
    return document.fill(values) if values else document


def _as_it_ran(user: User, job: Job, document: Document) -> Document:
    named = as_it_ran(job, document)
    chosen = templates.of_job(user, job)
    if named.text == document.text or chosen is None:
        return named
    return document if templates.problems(chosen, named) else named
