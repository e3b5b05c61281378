"""What people do: submit, stop, run again, share, delete.

Each verb checks the right, writes its rows in one transaction and rings the doorbell once it has
committed.  No verb talks to a backend.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now
from django.utils.dateparse import parse_datetime
from django.utils.timezone import is_naive, make_aware
from django.utils.translation import gettext as _

from jobs import afters, dialects, ownsecrets, queue, templates, transitions
from jobs.asked import Ask, asked
from jobs.assets import resolving
from jobs.dialects.base import Array, Note, Parsed, Problem, Refused
from jobs.faults import fault
from jobs.forming import rules, sizes
from jobs.forming.ground import ground_of
from jobs.models import Attempt, Event, Idleness, Job, JobFile, JobSecret, Visibility
from jobs.ran import as_it_ran
from jobs.spec import Bid, Idle, JobSpec
from jobs.states import END_REASON, LIVE, SETTLED, EndKind, Reason, ReasonCode, State
from jobs.uploads import holding
from quotas import audit, gputypes, ledger, snapshot, unixnames
from quotas.access import Verb, administers, can, may_submit, may_submit_in
from quotas.admission import Shape, Waiting
from quotas.admission.ceilings import NONE, over
from quotas.amounts import Amounts, total
from quotas.models import Action, Quota, Source, User

STOP_TRIES: Final = 5
"""A stop that meets a worker's change of the same job looks again, at most this often."""


class Forbidden(Exception):
    """The person may not do this."""


class Conflict(Exception):
    """The idempotency key was used for something else."""


class NotWaiting(Exception):
    """Only what waits can be held, and only what is held released."""


class NoRoomThere(Exception):
    """The job can't be moved to that quota; `str` says why."""


class NotLost(Exception):
    """Only a job that was lost can be settled by hand."""


class NotIdle(Exception):
    """Only what its owner was warned of can be said to be needed, and only so often."""


class StillRunning(Exception):
    """Only what has ended can be deleted."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a job goes; empty fields are chosen for the person."""

    workspace: str = ""
    cluster: str = ""
    quota: str = ""


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


def mended(text: str, parsed: Parsed, dialect: str) -> tuple[str, Parsed]:
    """The text with every offered fix applied, and what it says then."""
    fixes = [note.fix for note in parsed.notes if note.fix is not None]
    if not fixes:
        return text, parsed
    text = dialects.get(dialect).apply_fixes(text, fixes)
    again = dialects.get(dialect).parse(text)
    told = tuple(note for note in parsed.notes if note.fix is not None)
    return text, _with_notes(again, told + again.notes)


def _with_notes(parsed: Parsed, notes: tuple[Note, ...]) -> Parsed:
    return replace(parsed, notes=notes)


def submit(
    user: User,
    text: str,
    *,
    dialect: str | None = None,
    place: Place = Place(),
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
    digest = _digest(text, dialect, place, keep_original, template)
    if idempotency_key:
        before = Job.objects.filter(owner=user, idempotency_key=idempotency_key).first()
        if before is not None:
            return _replay(before, digest)
    name, parsed = dialects.parse(text, dialect)
    if not keep_original:
        text, parsed = mended(text, parsed, name)
    if wrong := wrong_with(user, text, name, parsed, origin, template):
        raise Refused(wrong)
    if parsed.array is not None:
        raise Refused((_is_many(text, name, parsed.array),))
    made = ready(user, text, name, parsed, place, origin)
    parsed, quota = made.parsed, made.quota
    refuse_beyond_public(quota, parsed.spec)
    request = Request(idempotency_key, digest, origin, made.uses, template)
    try:
        job = store(user, name, parsed, quota, request)
    except IntegrityError:
        if not idempotency_key:
            raise
        return _replay(Job.objects.get(owner=user, idempotency_key=idempotency_key), digest)
    fault("accept.after_commit")
    return Submitted(job, parsed.notes, waits=bool(parsed.spec.after))


@dataclass(frozen=True, slots=True)
class Ready:
    """A job as it would be stored, in which quota, and the assets that it is made of."""

    parsed: Parsed
    quota: Quota
    uses: Sequence[resolving.Use]


def ready(
    user: User, text: str, dialect: str, parsed: Parsed, place: Place, origin: Job | None = None
) -> Ready:
    """What would be stored of a text that was read: with its secrets, its place and its assets found.

    Raises Refused.
    """
    if wrong := ownsecrets.problems(user, text, dialect, parsed, origin):
        raise Refused(wrong)
    if wrong := holding.problems(user, text, dialect, parsed):
        raise Refused(wrong)
    parsed = replace(parsed, secrets={**ownsecrets.inherited(user, parsed, origin), **parsed.secrets})
    quota = find_quota(user, place, parsed.spec)
    if unixnames.needed(quota.cluster) and not user.unix_name:
        raise Refused((Problem("no_unix_name", "", params={"cluster": quota.cluster.name}),))
    parsed = sizes.sized(parsed, quota)
    made_of = resolving.resolve(user, text, dialect, parsed, quota.workspace)
    if made_of.problems:
        raise Refused(made_of.problems)
    told = (*parsed.notes, *made_of.notes, *rules.notes(made_of.spec, ground_of(quota), dialect))
    parsed = replace(parsed, spec=made_of.spec, notes=told)
    return Ready(parsed, quota, made_of.uses)


def wrong_with(
    user: User, text: str, dialect: str, parsed: Parsed, origin: Job | None = None, template: str = ""
) -> tuple[Problem, ...]:
    """What keeps a job file that was understood from being this person's: its secrets, its locks."""
    missing = ownsecrets.problems(user, text, dialect, parsed, origin)
    missing = (*missing, *afters.problems(user, text, dialect, parsed))
    if not template:
        return missing
    chosen = templates.find(user, template)
    if chosen is None:
        return (Problem("no_such_template", ""), *missing)
    return (*templates.problems(chosen, text, dialect, parsed), *missing)


def _is_many(text: str, dialect: str, array: Array) -> Problem:
    """Why a file for many jobs is not taken for one."""
    line, column = dialects.get(dialect).locate(text, array.pointer) or (None, None)
    params = {"count": len(array.indexes), "at_once": array.most_at_once}
    return Problem("array_is_sweep", array.pointer, line, column, params)


def _digest(text: str, dialect: str | None, place: Place, keep_original: bool, template: str) -> str:
    parts = [text, dialect or "", place.workspace, place.cluster, place.quota, str(keep_original)]
    parts += [template] if template else []
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _replay(job: Job, digest: str) -> Submitted:
    if job.request_digest != digest:
        raise Conflict
    return Submitted(job, (), replayed=True)


def find_quota(user: User, place: Place, spec: JobSpec) -> Quota:
    """The quota a job of `user` goes to.

    A name given in `place` must exist; the file's own quota (OpenPAI's virtual cluster) is used where
    the workspace has one of that name, and else the first quota the person may use.
    Raises Refused when a named place does not exist or nothing is open to the person at all.
    """
    quotas = quotas_open_to(user)
    wanted: list[tuple[str, str, str]] = [
        ("workspace", "workspace__slug", place.workspace),
        ("cluster", "cluster__slug", place.cluster),
        ("quota", "slug", place.quota),
    ]
    for kind, column, slug in wanted:
        if slug:
            quotas = quotas.filter(**{column: slug})
            if not quotas.exists():
                raise Refused((Problem("no_such_place", "", params={"kind": kind, "name": slug}),))
    found = list(quotas[:50])
    if not found:
        raise Refused((Problem("no_place", "", params={}),))
    named = [quota for quota in found if spec.quota and quota.slug == spec.quota]
    return (named or found)[0]


def refuse_beyond_public(quota: Quota, spec: JobSpec) -> None:
    """A job above what one person may hold of public resources is refused; more jobs than that wait.

    Raises Refused.
    """
    if quota.source != Source.PUBLIC:
        return
    wanted = total(part.each.times(part.count) for part in parts_of(spec))
    found = over(snapshot.person_limits_of(quota), NONE, wanted, wanted.gpu_count)
    if found is not None:
        kind, asked, _used, limit = found
        params: dict[str, str | int | float | None] = {
            "quota": quota.name,
            "kind": kind,
            "wanted": asked,
            "limit": limit,
        }
        raise Refused((Problem("over_public_ceiling", "", params=params),))


def quotas_open_to(user: User) -> QuerySet[Quota]:
    """Where `user` may send jobs, with workspace and cluster; the first is chosen for who names none."""
    rows = Quota.objects.filter(workspace__in=may_submit_in(user), cluster__enabled=True, accepts_jobs=True)
    return rows.select_related("workspace", "cluster").order_by("workspace__name", "cluster_id", "id")


@transaction.atomic
def store(
    user: User,
    dialect: str,
    parsed: Parsed,
    quota: Quota,
    request: Request = Request(),
) -> Job:
    """Write a job that was understood, its first attempt and its request, and ring the doorbell."""
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


def parts_of(spec: JobSpec, known: Mapping[str, str] | None = None) -> list[ledger.Part]:
    """What the job asks of the ledger: `asked` of it, with GPUs under the names that quotas use, which are
    looked up unless they are `known`.
    """
    known = gputypes.names() if known is None else known
    return [
        ledger.Part(ask.replicas, gputypes.renamed(amounts_of(ask), known), role.nodes.only, role.nodes.never)
        for ask, role in zip(asked(spec), spec.roles, strict=True)
    ]


def amounts_of(ask: Ask) -> Amounts:
    """What one replica asks for, as the ledger counts it."""
    return Amounts(ask.cpu_milli, ask.memory_mib, ask.by_type)


def terms_of(spec: JobSpec) -> ledger.Terms:
    """On which terms the job waits."""
    return ledger.Terms(
        idle="" if spec.idle in {None, Idle.FORBID} else str(spec.idle),
        bids=[_bid(role.bid) for role in spec.roles],
        held=spec.hold,
        others=bool(spec.after),
        not_before=_moment(spec.not_before),
    )


def _moment(text: str) -> datetime | None:
    """An RFC 3339 time; one without a zone is in the console's own."""
    moment = parse_datetime(text) if text else None
    return make_aware(moment) if moment is not None and is_naive(moment) else moment


def _bid(bid: Bid | None) -> dict[str, int]:
    """A role's bid as the ledger keeps it; none at all is up to the market price."""
    if bid is not None and bid.discount_percent is not None:
        return {"percent": bid.discount_percent}
    return {"micro": bid.price_micro} if bid is not None and bid.price_micro is not None else {}


def stop(user: User, job: Job, *, why: str = "") -> None:
    """Ask for the job's end.  A job that was never sent has ended at once; an ended one stays ended.

    Raises Forbidden.
    """
    _require(user, Verb.CONTROL, job)
    kind = EndKind.USER_STOP if job.owner_id == user.pk else EndKind.ADMIN_STOP
    for _again in range(STOP_TRIES):
        try:
            with transaction.atomic():
                _stop(user, job, kind, why)
        except transitions.Overtaken:
            continue
        return
    raise transitions.Overtaken(job.public_id)


def _stop(user: User, job: Job, kind: EndKind, why: str) -> None:
    transitions.locked(job.pk)
    job.refresh_from_db()
    attempt = Attempt.objects.get(job=job, number=job.attempt_number)
    if State(job.state) is State.QUEUED:
        transitions.want_end(job, attempt, kind, by=user, why=why)
        job.refresh_from_db()
        reason = Reason(END_REASON[kind], {"by": user.get_username()})
        transitions.end(job, attempt, State.STOPPED, reason, actor=user)
    elif State(job.state) in LIVE:
        transitions.want_end(job, attempt, kind, by=user, why=why)


def hold(user: User, job: Job) -> None:
    """Keep a waiting job from starting until it is released.  Raises Forbidden, NotWaiting."""
    _hold(user, job, ledger.hold, Event.Kind.HELD)


def release(user: User, job: Job) -> None:
    """Let a held job start when its turn comes; it kept its age.  Raises Forbidden, NotWaiting."""
    _hold(user, job, ledger.release, Event.Kind.RELEASED)


def _hold(user: User, job: Job, change: Callable[[str], bool], kind: Event.Kind) -> None:
    _require(user, Verb.CONTROL, job)
    with transaction.atomic():
        transitions.locked(job.pk)
        job.refresh_from_db()
        if State(job.state) is not State.QUEUED or not change(
            transitions.key_of(job.public_id, job.attempt_number)
        ):
            raise NotWaiting
        code = ReasonCode.HELD if kind is Event.Kind.HELD else ReasonCode.NEW
        transitions.explain(job, Reason(code))
        held = kind is Event.Kind.HELD
        transitions.record(job, kind, actor=user, changes={"held": (not held, held)})
        transitions.tell(job)
        queue.kick_on_commit("drain", job.cluster_id)


def prioritise(user: User, job: Job, priority: int, *, why: str = "") -> bool:
    """Let a waiting job wait with another priority; whether that changed anything.  For the console's admins.

    Raises Forbidden, NotWaiting.
    """
    _require_admin(user)
    with transaction.atomic():
        now = _waiting(job)
        if not ledger.prioritise(transitions.key_of(now.public_id, now.attempt_number), priority):
            return False
        Job.objects.filter(pk=now.pk).update(priority=priority)
        params = {"before": now.priority, "after": priority, "why": why}
        transitions.record(now, Event.Kind.PRIORITISED, params=params, actor=user)
        transitions.tell(now)
        queue.kick_on_commit("drain", now.cluster_id)
    return True


def move(user: User, job: Job, quota: Quota, *, why: str = "") -> bool:
    """Let a waiting job wait in another quota of its workspace and cluster; whether that changed anything.

    Its owner needs the right to send jobs there, and the quota has to be able to hold it.  For the console's
    admins.  Raises Forbidden, NotWaiting, NoRoomThere.
    """
    _require_admin(user)
    with transaction.atomic():
        now = _waiting(job)
        _check_move(now, quota)
        if not ledger.move(transitions.key_of(now.public_id, now.attempt_number), quota):
            return False
        before = now.quota.name
        Job.objects.filter(pk=now.pk).update(quota=quota)
        params = {"before": before, "after": quota.name, "why": why}
        transitions.record(now, Event.Kind.MOVED, params=params, actor=user)
        transitions.explain(now, Reason(ReasonCode.NEW))
        transitions.tell(now)
        queue.kick_on_commit("drain", now.cluster_id)
    return True


def _check_move(job: Job, quota: Quota) -> None:
    if (quota.workspace_id, quota.cluster_id) != (job.workspace_id, job.cluster_id):
        raise NoRoomThere(_("That quota is of another workspace or cluster."))
    if not quota.accepts_jobs or not may_submit(job.owner, quota.workspace_id):
        raise NoRoomThere(_("Its owner may not send jobs there."))
    shape = Shape(tuple(parts_of(JobFile.objects.get(job=job).spec)))
    request = Waiting("", quota.pk, shape, owner_id=job.owner_id)
    if snapshot.books_of(quota.cluster).never(request) is not None:
        raise NoRoomThere(_("It asks for more than that quota ever allows."))


def _waiting(job: Job) -> Job:
    """The job as it is now, locked.  Raises NotWaiting."""
    now = transitions.locked(job.pk)
    if State(now.state) is not State.QUEUED:
        raise NotWaiting
    return now


def settle(user: User, job: Job, state: State, why: str) -> None:
    """Say how a lost job ended; what it held is free again.  For the console's admins, who made sure of it.

    Raises Forbidden, NotLost.
    """
    _require_admin(user)
    with transaction.atomic():
        now = transitions.locked(job.pk)
        if State(now.state) is not State.LOST:
            raise NotLost
        attempt = Attempt.objects.get(job=now, number=now.attempt_number)
        reason = Reason(SETTLED[state], {"by": user.get_username(), "because": why})
        transitions.end(now, attempt, state, reason, actor=user)


def _require_admin(user: User) -> None:
    if not administers(user):
        raise Forbidden


def keep(user: User, job: Job) -> None:
    """Say that an idle job is still needed: its time begins anew.  Raises Forbidden, NotIdle."""
    _require(user, Verb.CONTROL, job)
    with transaction.atomic():
        transitions.locked(job.pk)
        job.refresh_from_db()
        mine = Idleness.objects.filter(
            attempt__job=job,
            attempt__number=job.attempt_number,
            attempt__end_kind="",
            warned_at__isnull=False,
            kept__lt=F("extensions"),
        )
        if not job.is_idle or not mine.update(
            counts_from=Now(), warned_at=None, ends_at=None, kept=F("kept") + 1
        ):
            raise NotIdle
        transitions.record(job, Event.Kind.STILL_NEEDED, actor=user)
        transitions.tell(job)


def address_of(quota: Quota) -> str:
    """A quota as one text, which `place_at` reads."""
    return f"{quota.workspace.slug}/{quota.cluster.slug}/{quota.slug}"


def place_at(address: str) -> Place:
    """Where an address leads; everything is chosen for who gives none."""
    parts = address.split("/")
    return Place(*parts) if len(parts) == 3 else Place()


def instead(user: User, job: Job, spec: JobSpec, place: Place | None = None) -> Submitted:
    """A waiting job again as `spec`, in `place` or where it was, and the job itself stopped.

    Raises Forbidden, NotWaiting, Refused.
    """
    _require(user, Verb.CONTROL, job)
    dialect, file = dialects.get(job.dialect), JobFile.objects.get(job=job)
    text = dialect.render(spec, file.extras, base=text_for(user, job)).text
    with transaction.atomic():
        if State(transitions.locked(job.pk).state) is not State.QUEUED:
            raise NotWaiting
        _stop(user, job, EndKind.USER_STOP, "")
        return submit(
            user,
            text,
            dialect=job.dialect,
            place=place or Place(job.workspace.slug, job.cluster.slug, job.quota.slug),
            keep_original=True,
            origin=job,
            template=template_of(user, job),
        )


def template_of(user: User, job: Job | None) -> str:
    """What the job came from, where the person may start from it too; "" else."""
    chosen = templates.of_job(user, job)
    return chosen.ref if chosen else ""


def retry(user: User, job: Job, *, idempotency_key: str | None = None) -> Submitted:
    """Run the job again as it was: a new job, linked to this one, with the commit of a branch that it ran.

    The owner's secrets go along; another person's copy is refused while it needs secrets (Refused).
    Raises Forbidden.
    """
    _require(user, Verb.READ, job)
    text = text_for(user, job, ran=True)
    place = Place(job.workspace.slug, job.cluster.slug, job.quota.slug)
    return submit(
        user,
        text,
        dialect=job.dialect,
        place=place,
        idempotency_key=idempotency_key,
        keep_original=True,
        origin=job,
        template=template_of(user, job),
    )


def text_for(user: User, job: Job, *, ran: bool = False) -> str:
    """The job file as `user` may take it along: with secret values for the owner only when submitting.

    Placeholders stay where the person is not the owner, and `parse` then says which are missing.  With `ran`
    it names the commit that was fetched, if it names none and its template leaves that open.
    """
    text = JobFile.objects.get(job=job).text
    if ran:
        text = _as_it_ran(user, job, text)
    if job.owner_id != user.pk:
        return text
    values = {secret.name: secret.reveal() for secret in JobSecret.objects.filter(job=job)}
    return dialects.get(job.dialect).with_secrets(text, values) if values else text


def _as_it_ran(user: User, job: Job, text: str) -> str:
    named = as_it_ran(job, text)
    chosen = templates.of_job(user, job)
    if named == text or chosen is None:
        return named
    parsed = dialects.get(job.dialect).parse(named)
    return text if templates.problems(chosen, named, job.dialect, parsed) else named


def share(user: User, job: Job, visibility: Visibility) -> None:
    """Open the job to its workspace, or close it.  Raises Forbidden."""
    _require(user, Verb.CONTROL, job)
    with transaction.atomic():
        Job.objects.filter(pk=job.pk).update(visibility=visibility)
        transitions.record(
            job,
            Event.Kind.SHARED,
            params={"visibility": visibility},
            actor=user,
            changes={"visibility": (job.visibility, visibility)},
        )
        transitions.tell(job)


def delete(user: User, job: Job) -> None:
    """Take an ended job off every page; the worker removes its files.  Raises Forbidden, StillRunning."""
    _require(user, Verb.CONTROL, job)
    with transaction.atomic():
        gone = Job.objects.filter(
            pk=job.pk, deleted_at=None, state__in=["SUCCEEDED", "FAILED", "STOPPED", "LOST"]
        ).update(deleted_at=Now())
        if not gone:
            raise StillRunning
        for attempt in Attempt.objects.filter(job=job):
            ledger.close(attempt.key)
        audit.log(Action.DELETE, job, details={"state": job.state}, actor=user, name=job.public_id)
        transitions.tell(job)


def _require(user: User, verb: Verb, job: Job) -> None:
    if not can(user, verb, job):
        raise Forbidden
