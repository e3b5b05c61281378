"""Sessions in jobs: rights, beginning, list and end.  Everything here blocks.

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

from jobs.models import AccessSession, Event, Job, Replica, SshKey, TerminalTicket
from jobs.states import TERMINAL, ReplicaState, State
from quotas import audit
from quotas.access import Verb, can, is_active
from quotas.accounts import access_keys, tokens
from quotas.accounts.sessions import person_of
from quotas.audit import origin
from quotas.audit.origin import Origin
from quotas.models import AccessKey, AccessToken, Action, User
from quotas.models import Way as Came

STALE_SECONDS: Final = 180
"""Seconds without renewal after which a session counts as ended with its process."""

SOCKET: Final = Path("run", "shell.sock")
"""The socket below the console's home that serves terminals to the web server."""

FOLDERS_SOCKET: Final = Path("run", "folders.sock")
"""The socket that serves the folders of jobs."""

_LOGIN: Final = re.compile(r"(?P<job>[a-z0-9]{6,16})(?:\.(?P<role>[a-z0-9-]*)-(?P<index>[0-9]{1,6}))?")
_NOT_SAFE: Final = re.compile(r"[^a-z0-9]")


class EntryRefused(Exception):
    """Access to the replica is refused; `code` is one of `jobs.messages.ssh`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def safe_role(role: str) -> str:
    """Return a role's name as it stands in host and user names."""
    return _NOT_SAFE.sub("-", role.lower())


def login_name(job: Job, replica: Replica) -> str:
    """Return the user name that leads to a replica: `<job>.<role>-<index>`."""
    return f"{job.public_id}.{safe_role(replica.role)}-{replica.index}"


def current_replicas(job: Job) -> QuerySet[Replica]:
    """The replicas of the current run."""
    return Replica.objects.filter(attempt__job=job, attempt__number=job.attempt_number, run=job.run_number)


def find(name: str) -> Replica | None:
    """Return the replica that a user name leads to; a job's id alone is its first one.

    Of roles that are called the same there, the first.
    """
    match = _LOGIN.fullmatch(name.lower())
    job = Job.objects.filter(public_id=match["job"], deleted_at=None).first() if match else None
    if match is None or job is None:
        return None
    replicas = current_replicas(job).select_related("attempt__job__owner", "attempt__job__cluster")
    if match["role"] is None:
        return replicas.filter(ordinal=0).first()
    those = replicas.filter(index=int(match["index"])).order_by("ordinal")
    return next((replica for replica in those if safe_role(replica.role) == match["role"]), None)


def is_running(replica: Replica) -> bool:
    """Tell whether the replica belongs to the current run and runs now."""
    job = replica.attempt.job
    current = (replica.attempt.number, replica.run) == (job.attempt_number, job.run_number)
    return current and State(job.state) not in TERMINAL and replica.state == ReplicaState.RUNNING


def may_enter(user: User, replica: Replica) -> bool:
    """Tell whether the person may enter the replica, running or not."""
    job = replica.attempt.job
    return job.deleted_at is None and is_active(user) and can(user, Verb.ENTER, job)


def open_entries() -> QuerySet[AccessSession]:
    """Return the sessions that have not ended, as far as is known."""
    return AccessSession.objects.filter(ended_at=None, seen_at__gt=Now() - timedelta(seconds=STALE_SECONDS))


@dataclass(frozen=True, slots=True)
class EntryOrigin:
    """The origin of a session; fields that do not apply are empty."""

    kind: AccessSession.Kind
    address: str = ""
    ssh_key: SshKey | None = None
    session_key: str = ""
    access_key: AccessKey | None = None
    access_token: AccessToken | None = None

    @property
    def channel(self) -> Came:
        """The channel that the audit log names."""
        if self.kind == AccessSession.Kind.SSH:
            return Came.SSH
        return Came.API if self.access_key or self.access_token else Came.PAGE


def begin(user: User, replica: Replica, way: EntryOrigin) -> AccessSession:
    """Begin a session of `user`.  Raises Shut."""
    if not may_enter(user, replica):
        raise EntryRefused("nowhere")
    if not is_running(replica):
        raise EntryRefused("not_running")
    if open_entries().filter(user=user).count() >= settings.CONSOLE_ENTRIES_PER_PERSON:
        raise EntryRefused("full_person")
    if open_entries().count() >= settings.CONSOLE_ENTRIES:
        raise EntryRefused("full")
    came = Origin(way.channel, address=way.address, user=user)
    with origin.of(came), transaction.atomic():
        entry = AccessSession.objects.create(
            user=user,
            replica=replica,
            kind=way.kind,
            address=way.address,
            ssh_key=way.ssh_key,
            session_key=way.session_key,
            access_key=way.access_key,
            access_token=way.access_token,
        )
        _record_event(entry, Event.Kind.ENTERED, user, address=way.address)
        job = replica.attempt.job
        details = {"role": replica.role, "index": replica.index, "way": way.kind}
        audit.log(Action.ENTER, job, details=details, name=job.public_id)
    return entry


def check_rights(pks: Collection[int]) -> Mapping[int, AccessSession.Why | None]:
    """Return for each session None, or the reason to end it; renew all in a few queries."""
    rows = (
        AccessSession.objects.filter(pk__in=pks)
        .select_related("user", "ssh_key", "replica__attempt__job")
        .order_by("pk")
    )
    found: dict[int, AccessSession.Why | None] = dict.fromkeys(pks, AccessSession.Why.LOST)
    found.update({row.pk: _end_reason(row) for row in rows})
    AccessSession.objects.filter(pk__in=pks, ended_at=None).update(seen_at=Now())
    return found


def find_end_requests(pks: Collection[int]) -> Mapping[int, AccessSession.Why | None]:
    """Return the sessions whose end was requested; one query."""
    wanted = AccessSession.objects.filter(pk__in=pks, end_asked_at__isnull=False)
    return dict.fromkeys(wanted.values_list("pk", flat=True), AccessSession.Why.ASKED)


def _end_reason(entry: AccessSession) -> AccessSession.Why | None:
    if entry.ended_at is not None:
        return AccessSession.Why.LOST
    if entry.end_asked_at is not None:
        return AccessSession.Why.ASKED
    if not may_enter(entry.user, entry.replica) or not _has_credential(entry):
        return AccessSession.Why.RIGHT_LOST
    return None if is_running(entry.replica) else AccessSession.Why.JOB_ENDED


def _has_credential(entry: AccessSession) -> bool:
    """Tell whether the key, sign-in or token of the session is still valid."""
    if entry.kind == AccessSession.Kind.SSH:
        return entry.ssh_key is not None
    person = holder_of(entry)
    return person is not None and person.pk == entry.user_id


def holder_of(entry: AccessSession | TerminalTicket) -> User | None:
    """Return the person behind a terminal or ticket: by key, token or sign-in; None once that is over."""
    if entry.access_key_id is not None:
        return access_keys.holder(entry.access_key_id)
    if entry.access_token_id is not None:
        return tokens.holder(entry.access_token_id)
    return person_of(entry.session_key) if isinstance(entry, AccessSession) and entry.session_key else None


def end(pk: int, why: AccessSession.Why) -> None:
    """Record the end of a session, once."""
    with transaction.atomic():
        if AccessSession.objects.filter(pk=pk, ended_at=None).update(ended_at=Now(), why=why):
            entry = AccessSession.objects.select_related("replica__attempt", "end_asked_by").get(pk=pk)
            _record_event(entry, Event.Kind.LEFT, entry.end_asked_by or entry.user, why=why)


def end_lost(*, everybody: bool) -> None:
    """End the sessions whose process has ended: those that were not renewed, or with `everybody` all."""
    stale = Q(seen_at__lt=Now() - timedelta(seconds=STALE_SECONDS))
    rows = AccessSession.objects.filter(Q() if everybody else stale, ended_at=None)
    for pk in rows.values_list("pk", flat=True):
        end(pk, AccessSession.Why.LOST)


def ask_end(entries: QuerySet[AccessSession], user: User) -> int:
    """Request the end of sessions; return how many had not ended.  They end at the next check."""
    return entries.filter(ended_at=None, end_asked_at=None).update(end_asked_at=Now(), end_asked_by=user)


def may_end(user: User, entry: AccessSession) -> bool:
    """Tell whether the person may end it: their own, and everybody's in jobs that they may enter."""
    return entry.user_id == user.pk or may_enter(user, entry.replica)


def _record_event(entry: AccessSession, kind: Event.Kind, actor: User, **more: object) -> None:
    replica = entry.replica
    Event.objects.create(
        job_id=replica.attempt.job_id,
        attempt=replica.attempt.number,
        kind=kind,
        actor=actor,
        params={"role": replica.role, "index": replica.index, "way": entry.kind, **more},
    )
