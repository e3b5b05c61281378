"""Entries into jobs: who may have one, which there are, and when one is over.  Everything here blocks.

The right is decided from the database each time it is asked, by the same `can` as on every page.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from jobs.models import Entry, Event, Job, SshKey, Task
from jobs.states import TERMINAL, State, TaskState
from quotas import audit
from quotas.access import Verb, can, is_active
from quotas.accounts.sessions import person_of
from quotas.audit import origin
from quotas.audit.origin import Origin
from quotas.models import Action, User
from quotas.models import Way as Came

STALE_SECONDS: Final = 180
"""An entry that its process has not renewed for so long has ended with that process."""

SOCKET: Final = Path("run", "shell.sock")
"""Where below the console's home `jobs.access.shells` serves terminals to the web server."""

FOLDERS_SOCKET: Final = Path("run", "folders.sock")
"""Where it serves what lies in jobs' folders."""

_LOGIN: Final = re.compile(r"(?P<job>[a-z0-9]{6,16})(?:\.(?P<role>[a-z0-9-]*)-(?P<index>[0-9]{1,6}))?")
_NOT_SAFE: Final = re.compile(r"[^a-z0-9]")


class Shut(Exception):
    """There is no way in; `code` is one of `jobs.messages.ssh`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def safe_role(role: str) -> str:
    """A role's name in host and user names (DESIGN section 10)."""
    return _NOT_SAFE.sub("-", role.lower())


def login_name(job: Job, task: Task) -> str:
    """By which name a replica is asked for: `<job>.<role>-<index>`."""
    return f"{job.public_id}.{safe_role(task.role)}-{task.index}"


def current_tasks(job: Job) -> QuerySet[Task]:
    """The replicas of the current run."""
    return Task.objects.filter(attempt__job=job, attempt__number=job.attempt_number, run=job.run_number)


def find(name: str) -> Task | None:
    """The replica that is asked for by `name`; a job's id alone is its first one.

    Of roles that are called the same there, the first.
    """
    asked = _LOGIN.fullmatch(name.lower())
    job = Job.objects.filter(public_id=asked["job"], deleted_at=None).first() if asked else None
    if asked is None or job is None:
        return None
    tasks = current_tasks(job).select_related("attempt__job__owner", "attempt__job__cluster")
    if asked["role"] is None:
        return tasks.filter(ordinal=0).first()
    those = tasks.filter(index=int(asked["index"])).order_by("ordinal")
    return next((task for task in those if safe_role(task.role) == asked["role"]), None)


def runs(task: Task) -> bool:
    """Whether the replica is one that runs now."""
    job = task.attempt.job
    current = (task.attempt.number, task.run) == (job.attempt_number, job.run_number)
    return current and State(job.state) not in TERMINAL and task.state == TaskState.RUNNING


def may_enter(user: User, task: Task) -> bool:
    """Whether the person may enter the replica, running or not."""
    job = task.attempt.job
    return job.deleted_at is None and is_active(user) and can(user, Verb.ENTER, job)


def open_entries() -> QuerySet[Entry]:
    """Those that have not ended, as far as is known."""
    return Entry.objects.filter(ended_at=None, seen_at__gt=Now() - timedelta(seconds=STALE_SECONDS))


@dataclass(frozen=True, slots=True)
class Way:
    """By which way somebody comes; what of it does not apply is empty."""

    kind: Entry.Kind
    address: str = ""
    ssh_key: SshKey | None = None
    session_key: str = ""


def begin(user: User, task: Task, way: Way) -> Entry:
    """Let `user` in.  Raises Shut."""
    if not may_enter(user, task):
        raise Shut("nowhere")
    if not runs(task):
        raise Shut("not_running")
    if open_entries().filter(user=user).count() >= settings.CONSOLE_ENTRIES_PER_PERSON:
        raise Shut("full_person")
    if open_entries().count() >= settings.CONSOLE_ENTRIES:
        raise Shut("full")
    came = Origin(Came.SSH if way.kind == Entry.Kind.SSH else Came.PAGE, address=way.address, user=user)
    with origin.of(came), transaction.atomic():
        entry = Entry.objects.create(
            user=user,
            task=task,
            kind=way.kind,
            address=way.address,
            ssh_key=way.ssh_key,
            session_key=way.session_key,
        )
        _tell(entry, Event.Kind.ENTERED, user, address=way.address)
        job = task.attempt.job
        details = {"role": task.role, "index": task.index, "way": way.kind}
        audit.log(Action.ENTER, job, details=details, name=job.public_id)
    return entry


def look(pks: Collection[int]) -> Mapping[int, Entry.Why | None]:
    """Whether each of the entries may go on (None), or why not; renews them.  A few queries, however many."""
    rows = (
        Entry.objects.filter(pk__in=pks)
        .select_related("user", "ssh_key", "task__attempt__job")
        .order_by("pk")
    )
    found: dict[int, Entry.Why | None] = dict.fromkeys(pks, Entry.Why.LOST)
    found.update({row.pk: _why(row) for row in rows})
    Entry.objects.filter(pk__in=pks, ended_at=None).update(seen_at=Now())
    return found


def asked(pks: Collection[int]) -> Mapping[int, Entry.Why | None]:
    """Those of the entries that somebody wants ended; one query."""
    wanted = Entry.objects.filter(pk__in=pks, end_asked_at__isnull=False)
    return dict.fromkeys(wanted.values_list("pk", flat=True), Entry.Why.ASKED)


def _why(entry: Entry) -> Entry.Why | None:
    if entry.ended_at is not None:
        return Entry.Why.LOST
    if entry.end_asked_at is not None:
        return Entry.Why.ASKED
    if not may_enter(entry.user, entry.task) or not _known(entry):
        return Entry.Why.RIGHT_LOST
    return None if runs(entry.task) else Entry.Why.JOB_ENDED


def _known(entry: Entry) -> bool:
    """Whether what the person came by is still worth something."""
    if entry.kind == Entry.Kind.SSH:
        return entry.ssh_key is not None
    person = person_of(entry.session_key)
    return person is not None and person.pk == entry.user_id


def end(pk: int, why: Entry.Why) -> None:
    """Write down that an entry is over, once."""
    with transaction.atomic():
        if Entry.objects.filter(pk=pk, ended_at=None).update(ended_at=Now(), why=why):
            entry = Entry.objects.select_related("task__attempt", "end_asked_by").get(pk=pk)
            _tell(entry, Event.Kind.LEFT, entry.end_asked_by or entry.user, why=why)


def end_lost(*, everybody: bool) -> None:
    """End the entries that nobody holds: those that were not renewed, or `everybody`'s."""
    stale = Q(seen_at__lt=Now() - timedelta(seconds=STALE_SECONDS))
    rows = Entry.objects.filter(Q() if everybody else stale, ended_at=None)
    for pk in rows.values_list("pk", flat=True):
        end(pk, Entry.Why.LOST)


def ask_end(entries: QuerySet[Entry], user: User) -> int:
    """Ask for the end of `entries`; how many had not ended.  It comes within the interval of the rechecks."""
    return entries.filter(ended_at=None, end_asked_at=None).update(end_asked_at=Now(), end_asked_by=user)


def may_end(user: User, entry: Entry) -> bool:
    """Whether the person may end it: their own, and in jobs that they may enter everybody's."""
    return entry.user_id == user.pk or may_enter(user, entry.task)


def _tell(entry: Entry, kind: Event.Kind, actor: User, **more: object) -> None:
    task = entry.task
    Event.objects.create(
        job_id=task.attempt.job_id,
        attempt=task.attempt.number,
        kind=kind,
        actor=actor,
        params={"role": task.role, "index": task.index, "way": entry.kind, **more},
    )
