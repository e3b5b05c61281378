"""A job file becomes a job: read, mended, found a place for, and written down."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from django.db import IntegrityError, transaction

from jobs.assets import ownsecrets, resolving
from jobs.assets.uploads import holding
from jobs.dialects import sweep_words
from jobs.dialects.base import Array, Note, Problem, Refused
from jobs.dialects.document import Document
from jobs.faults import fault
from jobs.form import rules, sizes
from jobs.form.ground import ground_of
from jobs.lifecycle import transitions
from jobs.live import queue
from jobs.models import Event, Job, JobFile, JobSecret
from jobs.submission import afters, feasibility, templates
from jobs.submission.asking import parts_of, terms_of
from jobs.submission.places import ANYWHERE, Place, find_quota, refuse_beyond_public
from quotas import ledger
from quotas.models import Quota, User, unixnames


class Conflict(Exception):
    """The idempotency key was used for something else."""


@dataclass(frozen=True, slots=True)
class Request:
    """How a job was asked for: under which key, with which content, after which job, made of what assets.

    `template` is the version of a template that it came from.
    """

    idempotency_key: str | None = None
    digest: str = ""
    origin: Job | None = None
    made_of: Sequence[resolving.Use] = ()
    template: str = ""


@dataclass(frozen=True, slots=True)
class Submitted:
    """The job, what there was to tell about its file, whether the same request came before, and whether it
    starts after others.
    """

    job: Job
    notes: tuple[Note, ...]
    replayed: bool = False
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Ready:
    """A job as it would be stored, in which quota, and the assets that it is made of."""

    document: Document
    quota: Quota
    uses: Sequence[resolving.Use]


def submit(
    user: User,
    document: Document,
    *,
    place: Place = ANYWHERE,
    idempotency_key: str | None = None,
    keep_original: bool = False,
    origin: Job | None = None,
    template: str = "",
) -> Submitted:
    """Accept a job file.

    Raises Refused (problems), Forbidden (no such right there), Conflict (same key, other request).
    With `keep_original` the fixes that the notes offer are not applied.  One that says that it comes from a
    version of a template is held to that one's locks.
    """
    digest = _digest(document, place, keep_original, template)
    if idempotency_key:
        before = Job.objects.filter(owner=user, idempotency_key=idempotency_key).first()
        if before is not None:
            return _replay(before, digest)
    if not keep_original:
        document = mended(document)
    if wrong := wrong_with(user, document, origin, template):
        raise Refused(wrong)
    if document.parsed.array is not None:
        raise Refused((_is_many(document, document.parsed.array),))
    made = ready(user, document, place, origin)
    parsed = made.document.parsed
    refuse_beyond_public(made.quota, parsed.spec)
    request = Request(idempotency_key, digest, origin, made.uses, template)
    try:
        job = store(user, made.document, made.quota, request)
    except IntegrityError:
        if not idempotency_key:
            raise
        return _replay(Job.objects.get(owner=user, idempotency_key=idempotency_key), digest)
    fault("accept.after_commit")
    return Submitted(job, parsed.notes, waits=bool(parsed.spec.after))


_GUESSES: Final = frozenset({"unknown_key", "template_unresolved"})
"""Notes whose fix is what was probably meant: a person makes it, submitting does not."""


def mended(document: Document) -> Document:
    """The job file with the offered fixes applied; what a key may have meant is asked.  Raises Refused."""
    parsed = document.parsed
    mends = [note for note in parsed.notes if note.fix is not None and note.code not in _GUESSES]
    fixes = [note.fix for note in mends if note.fix is not None]
    if not fixes:
        return document
    again = document.apply_fixes(fixes)
    return again.with_parsed(replace(again.parsed, notes=(*mends, *again.parsed.notes)))


def wrong_with(
    user: User, document: Document, origin: Job | None = None, template: str = ""
) -> tuple[Problem, ...]:
    """What keeps a job file that was understood from being this person's: its secrets, its locks."""
    missing = (*ownsecrets.problems(user, document, origin), *afters.problems(user, document))
    if not template:
        return missing
    chosen = templates.find(user, template)
    if chosen is None:
        return (Problem("no_such_template", ""), *missing)
    return (*templates.problems(chosen, document), *missing)


def ready(user: User, document: Document, place: Place, origin: Job | None = None) -> Ready:
    """What would be stored of a text that was read: with its secrets, its place and its assets found.

    Raises Refused.
    """
    if wrong := ownsecrets.problems(user, document, origin):
        raise Refused(wrong)
    if wrong := holding.problems(user, document):
        raise Refused(wrong)
    parsed = document.parsed
    parsed = replace(parsed, secrets={**ownsecrets.inherited(user, parsed, origin), **parsed.secrets})
    quota = find_quota(user, place, parsed.spec)
    if unixnames.needed(quota.cluster) and not user.unix_name:
        raise Refused((Problem("no_unix_name", "", params={"cluster": quota.cluster.name}),))
    parsed = sizes.sized(parsed, quota)
    document = document.with_parsed(parsed)
    made_of = resolving.resolve(user, document, quota.workspace)
    if made_of.problems:
        raise Refused(made_of.problems)
    meant = replace(parsed, spec=made_of.spec)
    if never := feasibility.problems(user, quota, meant):
        raise Refused(feasibility.locate(never, document))
    noted = feasibility.select_notes(quota, (*parsed.notes, *made_of.notes))
    ruled = rules.notes(made_of.spec, ground_of(quota), document.dialect)
    unfilled = sweep_words.notes(made_of.spec)
    parsed = replace(meant, notes=(*noted, *feasibility.notes(quota, made_of.spec), *ruled, *unfilled))
    return Ready(document.with_parsed(parsed), quota, made_of.uses)


def _is_many(document: Document, array: Array) -> Problem:
    """Why a file for many jobs is not taken for one."""
    line, column = document.locate(array.pointer) or (None, None)
    params = {"count": len(array.indexes), "at_once": array.most_at_once}
    return Problem("array_is_sweep", array.pointer, line, column, params)


@transaction.atomic
def store(
    user: User,
    document: Document,
    quota: Quota,
    request: Request = Request(),
) -> Job:
    """Write a job that was understood, its first attempt and its request, and ring the doorbell."""
    parsed, dialect = document.parsed, document.dialect
    spec = parsed.spec
    parts = parts_of(spec)
    job = Job.objects.create(
        name=spec.name,
        owner=user,
        workspace=quota.workspace,
        cluster=quota.cluster,
        quota=quota,
        dialect=dialect,
        priority=spec.priority or 1,
        tasks_total=spec.replicas,
        gpus=sum(role.replicas * role.resources.gpus for role in spec.roles),
        gpu_type=next((kind for part in parts for kind in part.each.gpus if kind), ""),
        origin=request.origin,
        idempotency_key=request.idempotency_key,
        request_digest=request.digest,
    )
    resolving.write_down(job, request.made_of)
    JobFile.objects.create(
        job=job,
        text=parsed.text,
        spec_json=spec.model_dump_json(),
        extras=dict(parsed.extras),
        notes=[{"code": n.code, "pointer": n.pointer, "params": dict(n.params)} for n in parsed.notes],
    )
    holding.use(user, job, parsed.spec)
    if chosen := request.template and templates.find(user, request.template):
        templates.note_use(job, chosen)
    for name, value in parsed.secrets.items():
        secret = JobSecret(job=job, name=name)
        secret.put(value)
        secret.save()
    attempt = transitions.new_attempt(job, 1)
    waits = afters.write_down(user, job, spec)
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
    queue.kick_on_commit("drain", job.cluster_id)
    fault("accept.before_commit")
    return job


def _digest(document: Document, place: Place, keep_original: bool, template: str) -> str:
    parts = [
        document.text,
        document.given or "",
        place.workspace,
        place.cluster,
        place.quota,
        str(keep_original),
    ]
    parts += [template] if template else []
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _replay(job: Job, digest: str) -> Submitted:
    if job.request_digest != digest:
        raise Conflict
    return Submitted(job, (), replayed=True)
