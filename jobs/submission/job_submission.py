"""Submission of a job file: read, fixed, placed in a quota, and stored as a job."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import Final, TypeVar

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from jobs.assets import personal_secrets, resolution
from jobs.assets.uploads import uploaded_trees
from jobs.dialects import sweep_words
from jobs.dialects.base import Array, Note, Problem, Refused
from jobs.dialects.document import Document
from jobs.faults import fault
from jobs.form import sizes
from jobs.lifecycle import transitions
from jobs.live import triggers
from jobs.models import Event, Job, JobFile, JobSecret, Sweep, Visibility
from jobs.submission import dependencies, tags, templates
from jobs.submission.checks import feasibility
from jobs.submission.job_policies import find_excess_of, set_default_time_limit
from jobs.submission.resource_requests import level_of, parts_of, terms_of
from jobs.submission.targets import ANYWHERE, JobTarget, find_quota
from quotas import ledger
from quotas.limits.job_limits import JobLimits, limits_for
from quotas.models import Quota, User, unixnames

T = TypeVar("T", Job, Sweep)


class Conflict(Exception):
    """The idempotency key was used for something else."""


@dataclass(frozen=True, slots=True)
class SubmissionRequest:
    """The request that a job is stored with: idempotency key, digest, original job and used assets.

    `template` is the version of a template that it came from.
    """

    idempotency_key: str | None = None
    digest: str = ""
    origin: Job | None = None
    made_of: Sequence[resolution.Use] = ()
    template: str = ""


@dataclass(frozen=True, slots=True)
class Submitted:
    """The job and the notes on its file.

    `replayed` says that the same request came before, `waits` that it starts after other jobs, `has_tags`
    that its file has tags.
    """

    job: Job
    notes: tuple[Note, ...]
    replayed: bool = False
    waits: bool = False
    has_tags: bool = False


@dataclass(frozen=True, slots=True)
class ResolvedJob:
    """A job as it would be stored, its quota, the assets that it uses, and the limits that hold there."""

    document: Document
    quota: Quota
    uses: Sequence[resolution.Use]
    limits: JobLimits


def submit(
    user: User,
    document: Document,
    *,
    place: JobTarget = ANYWHERE,
    idempotency_key: str | None = None,
    keep_original: bool = False,
    origin: Job | None = None,
    template: str = "",
) -> Submitted:
    """Accept a job file.

    With `keep_original` the fixes that the notes offer are not applied.  A job from a version of a template
    has to keep its locked fields.  Raises Refused (problems), Forbidden (no such right there), Conflict (same
    key, other request).
    """
    digest = request_digest(document, place, keep_original=keep_original, template=template)
    earlier = Job.objects.filter(owner=user)
    if before := find_replay(earlier, idempotency_key, digest):
        return Submitted(before, (), replayed=True)
    if not keep_original:
        document = apply_fixes(document)
    if wrong := find_problems(user, document, origin, template):
        raise Refused(wrong)
    if document.parsed.array is not None:
        raise Refused((_is_many(document, document.parsed.array),))
    made = resolve_job(user, document, place, origin)
    parsed = made.document.parsed
    if excess := find_excess_of(made.limits, parsed.spec):
        raise Refused(feasibility.locate(excess, made.document))
    request = SubmissionRequest(idempotency_key, digest, origin, made.uses, template)
    try:
        job = store(user, made.document, made.quota, request)
    except IntegrityError:
        if not (before := find_replay(earlier, idempotency_key, digest)):
            raise
        return Submitted(before, (), replayed=True)
    fault("accept.after_commit")
    return Submitted(job, parsed.notes, waits=bool(parsed.spec.after), has_tags=bool(parsed.spec.tags))


_GUESSES: Final = frozenset({"unknown_key", "template_unresolved"})
"""Notes whose fix is a guess: a person applies it, submitting does not."""


def apply_fixes(document: Document) -> Document:
    """Return the job file with the offered fixes applied, but for guesses.  Raises Refused."""
    parsed = document.parsed
    fixing_notes = [note for note in parsed.notes if note.fix is not None and note.code not in _GUESSES]
    fixes = [note.fix for note in fixing_notes if note.fix is not None]
    if not fixes:
        return document
    again = document.apply_fixes(fixes)
    return again.with_parsed(replace(again.parsed, notes=(*fixing_notes, *again.parsed.notes)))


def find_problems(
    user: User, document: Document, origin: Job | None = None, template: str = ""
) -> tuple[Problem, ...]:
    """Return the problems of a job file for this person: missing secrets, dependencies, locked fields."""
    missing = (*personal_secrets.problems(user, document, origin), *dependencies.problems(user, document))
    if not template:
        return missing
    chosen = templates.find(user, template)
    if chosen is None:
        return (Problem("no_such_template", ""), *missing)
    return (*templates.problems(chosen, document), *missing)


def resolve_job(user: User, document: Document, place: JobTarget, origin: Job | None = None) -> ResolvedJob:
    """Resolve a job file's secrets, target and assets; return it as it would be stored.  Raises Refused."""
    if wrong := personal_secrets.problems(user, document, origin) or uploaded_trees.problems(user, document):
        raise Refused(wrong)
    parsed = document.parsed
    parsed = replace(
        parsed, secrets={**personal_secrets.inherit_values(user, parsed, origin), **parsed.secrets}
    )
    quota = find_quota(user, place, parsed.spec)
    if unixnames.needs_unix_name(quota.cluster) and not user.unix_name:
        raise Refused((Problem("no_unix_name", "", params={"cluster": quota.cluster.name}),))
    parsed = sizes.fill_sizes(parsed, quota)
    document = document.with_parsed(parsed)
    made_of = resolution.resolve(user, document, quota.workspace)
    if made_of.problems:
        raise Refused(made_of.problems)
    meant = replace(parsed, spec=made_of.spec)
    limits = limits_for(user, quota)
    spec, defaults = set_default_time_limit(limits, meant)
    meant = replace(meant, spec=spec)
    if never := feasibility.problems(user, quota, meant):
        raise Refused(feasibility.locate(never, document))
    noted = feasibility.select_notes(quota, (*parsed.notes, *made_of.notes))
    there = feasibility.notes(user, quota, spec, document.dialect)
    parsed = replace(meant, notes=(*noted, *there, *defaults, *sweep_words.notes(spec)))
    return ResolvedJob(document.with_parsed(parsed), quota, made_of.uses, limits)


def _is_many(document: Document, array: Array) -> Problem:
    """Return the problem of submitting a job array as one job."""
    line, column = document.locate(array.pointer) or (None, None)
    params = {"count": len(array.indexes), "at_once": array.most_at_once}
    return Problem("array_is_sweep", array.pointer, line, column, params)


@transaction.atomic
def store(
    user: User,
    document: Document,
    quota: Quota,
    request: SubmissionRequest = SubmissionRequest(),
) -> Job:
    """Store a job, its first attempt and its request to the ledger, and wake a worker."""
    parsed, dialect = document.parsed, document.dialect
    spec = parsed.spec
    parts = parts_of(spec)
    job = Job.objects.create(
        name=spec.name,
        owner=user,
        workspace=quota.workspace,
        cluster=quota.cluster,
        quota=quota,
        visibility=Visibility[spec.visibility.name],
        dialect=dialect,
        description=spec.description,
        tolerates_faults=spec.fault_tolerance.enabled,
        priority=level_of(spec, quota),
        replicas_total=spec.replicas,
        gpus=sum(role.replicas * role.resources.gpus for role in spec.roles),
        gpu_type=next((kind for part in parts for kind in part.each.gpus if kind), ""),
        origin=request.origin,
        idempotency_key=request.idempotency_key,
        request_digest=request.digest,
    )
    resolution.write_down(job, request.made_of)
    JobFile.objects.create(
        job=job,
        text=parsed.text,
        spec_json=spec.model_dump_json(),
        extras=dict(parsed.extras),
        notes=[{"code": n.code, "pointer": n.pointer, "params": dict(n.params)} for n in parsed.notes],
    )
    tags.store_tags(job, spec.tags)
    uploaded_trees.use(user, job, parsed.spec)
    if chosen := request.template and templates.find(user, request.template):
        templates.note_use(job, chosen)
    for name, value in parsed.secrets.items():
        secret = JobSecret(job=job, name=name)
        secret.encrypt(value)
        secret.save()
    attempt = transitions.new_attempt(job, 1)
    waits = dependencies.store_dependencies(user, job, spec)
    ledger.ask(
        attempt.key,
        quota=quota,
        owner=user,
        parts=parts,
        priority=job.priority,
        declared_s=spec.time_limit_s,
        terms=replace(terms_of(spec), others=waits),
    )
    transitions.record(job, Event.Kind.SUBMITTED, params={"dialect": dialect}, actor=user)
    transitions.tell(job)
    triggers.trigger_on_commit("drain", job.cluster_id)
    fault("accept.before_commit")
    return job


def request_digest(
    document: Document, place: JobTarget, *, keep_original: bool = False, template: str = ""
) -> str:
    """Return the digest by which `submit` tells a repeated request from another one."""
    parts = [document.text, document.given or "", *astuple(place), str(keep_original)]
    parts += [template] if template else []
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def find_replay(rows: QuerySet[T], key: str | None, digest: str) -> T | None:
    """Return the row of an earlier request with the same idempotency key and digest, if any.

    Raises Conflict when the key was used for another request.
    """
    row = rows.filter(idempotency_key=key).first() if key else None
    if row is not None and row.request_digest != digest:
        raise Conflict
    return row
