"""Dependencies between jobs: those that a job file names, their rows, and jobs that can start no more."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from django.db import transaction
from django.db.models.lookups import Exact

from jobs.dialects.base import Problem
from jobs.dialects.document import Document
from jobs.dialects.positions import FieldPositions
from jobs.faults import fault
from jobs.lifecycle import dependencies, transitions
from jobs.messages import state_label
from jobs.messages.dependencies import dependency_message
from jobs.models import Attempt, Dependency, Event, Job, JobFile, SweepRun
from jobs.models.jobs import is_unfinished
from jobs.spec import AfterNever, JobSpec
from jobs.states import FINAL, Reason, ReasonCode, State
from quotas import ledger
from quotas.models import User
from quotas.models.expressions import Unindexed

_ID: Final = re.compile(r"(?:dlc|job-)?(?P<id>[a-z0-9]{12})")
_NAME: Final = re.compile(r"(?P<user>[^~]+)~(?P<name>.+)")


def find_named(user: User, text: str) -> Job | None:
    """Return the job that `text` names, if the person may see it; of several of one name the newest."""
    jobs = Job.objects.visible_to(user)
    match = _ID.fullmatch(text)
    if match:
        return jobs.filter(public_id=match["id"]).first()
    own = _NAME.fullmatch(text)
    if own is None or own["user"] != user.get_username():
        return None
    return jobs.filter(owner=user, name=own["name"]).order_by("-pk").first()


def problems(user: User, document: Document) -> tuple[Problem, ...]:
    """Return a problem for each dependency that can't be met, with its position."""
    spec = document.parsed.spec
    return tuple(_problems(user, spec, document.places)) if spec.after else ()


def _problems(user: User, spec: JobSpec, places: FieldPositions) -> Iterable[Problem]:
    for index, after in enumerate(spec.after):
        where = f"/after/{index}/job"
        found = find_named(user, after.job)
        if found is None:
            code = "no_job_to_wait_for"
        elif _outcome(found, after.when) == Dependency.State.NEVER:
            code = f"never_{after.when}"
        else:
            continue
        line, column = places.of_field(where) or (None, None)
        state = str(state_label(found.state)) if found else ""
        params = {"name": after.job[:60], "state": state}
        yield Problem(code, pointer=where, line=line, column=column, params=params)


def _outcome(other: Job | None, when: str) -> Dependency.State:
    if other is None:
        return Dependency.State.NEVER
    return dependencies.outcome(when, State(other.state), other.reason_code)


def store_dependencies(user: User, job: Job, spec: JobSpec) -> bool:
    """Store the dependencies of a job that is being accepted; return whether it has to wait.

    The other jobs can't end in between: their rows are locked until this is committed.
    """
    found = {each.job: find_named(user, each.job) for each in spec.after}
    ids = sorted({other.pk for other in found.values() if other is not None})
    others = {pk: transitions.lock_job(pk) for pk in ids}
    waits = False
    for each in spec.after:
        named_one = found[each.job]
        other = others.get(named_one.pk) if named_one else None
        state = _outcome(other, each.when)
        Dependency.objects.create(job=job, other=other, named=each.job, when=each.when, state=state)
        waits |= state != Dependency.State.MET
    return waits


# --- settling --------------------------------------------------------------------------------------------


def settle(cluster_id: int) -> int:
    """End, or hold, the cluster's jobs whose dependencies can't be met; return how many those were.

    Dependencies that should have been decided when another job ended, and were not, are decided first.
    """
    waiting = Dependency.objects.filter(
        is_unfinished("job__"), job__cluster_id=cluster_id, job__state=State.QUEUED.value
    )
    _decide_late(waiting.filter(state=Dependency.State.OPEN).select_related("other"))
    undone = waiting.exclude(state=Dependency.State.MET).values_list("job_id", flat=True)
    flagged = ledger.waiting_for_dependencies(cluster_id)
    keys = Attempt.objects.filter(key__in=flagged).values_list("job_id", flat=True)
    turns = SweepRun.objects.filter(Exact(Unindexed("job__cluster_id"), cluster_id), waits=True)
    for sweep_id in set(turns.values_list("sweep_id", flat=True)):
        with transaction.atomic():
            dependencies.queue_next(sweep_id)
            fault("turns.before_commit")
    dependencies.queue_ready(set(keys) - set(undone))
    hopeless = waiting.filter(state=Dependency.State.NEVER).values_list("job_id", flat=True)
    return sum(_end(pk) for pk in sorted(set(hopeless)))


def _decide_late(rows: Iterable[Dependency]) -> None:
    for row in rows:
        if row.other is None:
            row.state = Dependency.State.MET if row.when == Dependency.When.ENDED else Dependency.State.NEVER
            row.save(update_fields=["state"])
        elif State(row.other.state) in FINAL:
            with transaction.atomic():
                dependencies.decide(transitions.lock_job(row.other.pk))


def _end(job_id: int) -> bool:
    """Stop a job that can start no more, or hold it where its file says so."""
    with transaction.atomic():
        job = transitions.lock_job(job_id)
        row = Dependency.objects.filter(job=job, state=Dependency.State.NEVER).first()
        if row is None or State(job.state) is not State.QUEUED:
            return False
        attempt = Attempt.objects.get(job=job, number=job.attempt_number)
        if JobFile.objects.get(job=job).spec.after_never is AfterNever.HOLD:
            Dependency.objects.filter(job=job).update(state=Dependency.State.MET)
            ledger.hold(attempt.key)
            ledger.release_dependent(attempt.key)
            transitions.record(job, Event.Kind.HELD, params={"named": row.named, "when": row.when})
            transitions.explain(job, Reason(ReasonCode.HELD))
            return True
        reason = Reason(ReasonCode.AFTER_NEVER, dependencies.sentence_params(job, row))
        transitions.end(job, attempt, State.STOPPED, reason)
        fault("dependencies.before_commit")
    return True


# --- showing ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DependencyLink:
    """A job before or after another one; `job` is None where the person may not see it."""

    when: str
    state: str
    job: Job | None

    @property
    def words(self) -> str:
        """Return the condition and its state in words."""
        return dependency_message(self.when, self.state)


def list_dependencies(user: User, job: Job) -> Sequence[DependencyLink]:
    """Return the jobs that the job starts after."""
    rows = list(Dependency.objects.filter(job=job))
    seen = Job.objects.visible_to(user).in_bulk([row.other_id for row in rows if row.other_id])
    return [DependencyLink(row.when, row.state, seen.get(row.other_id or 0)) for row in rows]


def list_dependents(user: User, job: Job, most: int = 50) -> Sequence[DependencyLink]:
    """Return the jobs that start after the job."""
    rows = list(Dependency.objects.filter(other=job)[:most])
    seen = Job.objects.visible_to(user).in_bulk([row.job_id for row in rows])
    return [DependencyLink(row.when, row.state, seen[row.job_id]) for row in rows if row.job_id in seen]
