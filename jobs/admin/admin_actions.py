"""Admin actions on clusters, the console, persons, nodes and lost jobs, each recorded once.

The actor has to be an admin of the console (`quotas.access.administers`), with an address and a reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.contrib.sessions.models import Session
from django.db import models, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from jobs import notifications, submission
from jobs.access import sessions as entries
from jobs.lifecycle import transitions
from jobs.live import triggers
from jobs.models import Attempt, EndpointVisit, Event, Job, SshKey
from jobs.states import FINAL, State
from quotas.access import administers
from quotas.accounts import access_keys, invitations, sessions, tokens
from quotas.audit import action_record
from quotas.audit.action_record import Actor
from quotas.ledger import reports
from quotas.models import (
    AccessKey,
    AccessToken,
    AdminAction,
    Cluster,
    Grant,
    Invitation,
    Maintenance,
    Node,
    ReadOnly,
    User,
)


def record_action(
    actor: Actor,
    kind: AdminAction.Kind,
    about: str,
    *,
    to: models.Model | None = None,
    name: str = "",
    changes: action_record.Changes | None = None,
    **params: Any,
) -> None:
    """Record an admin action.  Raises Forbidden if the actor is no admin of the console."""
    if not administers(actor.user):
        raise submission.Forbidden
    action_record.write_down(actor, kind, about, to=to, name=name, changes=changes, **params)


# --- admission ------------------------------------------------------------------------------------------


def freeze(actor: Actor, cluster: Cluster) -> bool:
    """Start no more jobs on the cluster; return False if it was frozen before.  Running jobs go on."""
    return _set_frozen(
        actor, cluster, AdminAction.Kind.FREEZE, {"frozen_at": Now(), "frozen_why": actor.why[:500]}
    )


def unfreeze(actor: Actor, cluster: Cluster) -> bool:
    """Start jobs on the cluster again; return False if it was not frozen."""
    return _set_frozen(actor, cluster, AdminAction.Kind.UNFREEZE, {"frozen_at": None, "frozen_why": ""})


@transaction.atomic
def _set_frozen(actor: Actor, cluster: Cluster, kind: AdminAction.Kind, values: dict[str, Any]) -> bool:
    rows, freezes = Cluster.objects.filter(pk=cluster.pk), kind is AdminAction.Kind.FREEZE
    changes = {"frozen": (rows.filter(frozen_at__isnull=False).exists(), freezes)}
    record_action(actor, kind, cluster.name, to=cluster, changes=changes, cluster=cluster.slug)
    changed = bool(rows.filter(frozen_at__isnull=freezes).update(**values))
    triggers.trigger_on_commit("drain", cluster.pk)
    return changed


# --- the console itself ---------------------------------------------------------------------------------


@transaction.atomic
def make_read_only(actor: Actor) -> None:
    """Allow changes by admins only; running jobs and workers go on."""
    changes = {"read_only": (ReadOnly.objects.exists(), True)}
    record_action(actor, AdminAction.Kind.READ_ONLY, "", changes=changes)
    ReadOnly.objects.update_or_create(one=True, defaults={"why": actor.why[:500], "by": actor.user})


@transaction.atomic
def make_writable(actor: Actor) -> None:
    """Allow changes by everybody again."""
    changes = {"read_only": (ReadOnly.objects.exists(), False)}
    record_action(actor, AdminAction.Kind.READ_WRITE, "", changes=changes)
    ReadOnly.objects.all().delete()


# --- one person -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Presence:
    """Numbers of everything of one person that can be ended.

    `service_tokens` and `service_keys` are those of service accounts that they made: they may have copies.
    """

    jobs: int
    sessions: int
    tokens: int
    service_tokens: int
    access_keys: int
    service_keys: int
    invitations: int
    ssh_keys: int
    entries: int
    visits: int


def count_presence(person: User) -> Presence:
    """Return the numbers of what could be ended."""
    return Presence(
        jobs=_jobs_of(person).count(),
        sessions=len(_sessions_of(person)),
        tokens=_tokens(user=person).count(),
        service_tokens=_tokens(user__service_account__made_by=person).count(),
        access_keys=_access_keys(user=person).count(),
        service_keys=_access_keys(user__service_account__made_by=person).count(),
        invitations=_invitations_of(person).count(),
        ssh_keys=SshKey.objects.filter(user=person).count(),
        entries=entries.open_entries().filter(user=person).count(),
        visits=EndpointVisit.objects.filter(user=person).count(),
    )


def end_everything(actor: Actor, person: User, *, disable: bool) -> Presence:
    """End everything of a person and, with `disable`, their access; return what was ended.

    Access ends first, so that nothing new begins meanwhile.  Repeating it ends what is left.
    """
    found = count_presence(person)
    with transaction.atomic():
        record_action(
            actor,
            AdminAction.Kind.END_PERSON,
            person.get_username(),
            to=person,
            changes={"is_active": (person.is_active, False)} if disable else None,
            disabled=disable,
            ended=[f"{name}: {count}" for name, count in asdict(found).items()],
        )
        if disable:
            User.objects.filter(pk=person.pk).update(is_active=False)
        sessions.end_all(person, why=actor.why)
        Session.objects.filter(pk__in=_sessions_of(person)).delete()
        Grant.objects.filter(user=person).delete()
        for token in (*_tokens(user=person), *_tokens(user__service_account__made_by=person)):
            tokens.revoke(token.user, token.pk)
        for key in (*_access_keys(user=person), *_access_keys(user__service_account__made_by=person)):
            access_keys.revoke(key.user, key.pk)
        for invitation in _invitations_of(person):
            invitations.revoke(invitation.workspace, invitation.pk)
        EndpointVisit.objects.filter(user=person).delete()
        entries.ask_end(entries.open_entries().filter(user=person), actor.user)
        SshKey.objects.filter(user=person).delete()
    for job in _jobs_of(person).iterator():
        submission.stop(actor.user, job, why=actor.why)
    return found


def _jobs_of(person: User) -> QuerySet[Job]:
    return _not_ended(Job.objects.filter(owner=person))


def _not_ended(jobs: QuerySet[Job]) -> QuerySet[Job]:
    ended = [state.value for state in (*FINAL, State.LOST)]
    return jobs.filter(deleted_at=None).exclude(state__in=ended)


def _tokens(**whose: User) -> QuerySet[AccessToken]:
    rows = AccessToken.objects.filter(revoked_at=None, expires_at__gt=Now(), **whose)
    return rows.select_related("user")


def _access_keys(**whose: User) -> QuerySet[AccessKey]:
    in_time = Q(expires_at=None) | Q(expires_at__gt=Now())
    return AccessKey.objects.filter(in_time, revoked_at=None, **whose).select_related("user")


def _invitations_of(person: User) -> QuerySet[Invitation]:
    return invitations.open_invitations().filter(invited_by=person)


def _sessions_of(person: User) -> list[str]:
    """Return the person's sessions, listed or not: only their contents tell whose they are."""
    rows = Session.objects.filter(expire_date__gt=timezone.now()).iterator()
    wanted = str(person.pk)
    return [row.pk for row in rows if row.get_decoded().get("_auth_user_id") == wanted]


# --- one node -------------------------------------------------------------------------------------------


def find_jobs_on(node: Node) -> list[Job]:
    """The jobs that hold something on the node, with their owners."""
    uses = reports.nodes_of([node.cluster])
    holders = {each.holder for use in uses if use.node.pk == node.pk for each in use.holdings}
    ids = Attempt.objects.filter(key__in=holders).values_list("job_id", flat=True)
    return list(Job.objects.filter(pk__in=list(ids)).select_related("owner").order_by("pk"))


@transaction.atomic
def notify_owners(actor: Actor, node: Node, text: str) -> Sequence[Job]:
    """Notify the owners of jobs on the node; return these jobs."""
    jobs = find_jobs_on(node)
    owners = {job.owner for job in jobs}
    params: dict[str, Any] = {"text": text, "owners": len(owners), "jobs": len(jobs)}
    record_action(actor, AdminAction.Kind.TELL_OWNERS, f"{node.cluster.slug}/{node.name}", to=node, **params)
    for job in jobs:
        params = {"node": node.name, "why": text}
        transitions.record(job, Event.Kind.TOLD, params=params, actor=actor.user)
        transitions.tell(job)
    by = actor.user.get_username()
    notifications.tell(
        owners, notifications.Kind.MESSAGE, {"by": by, "node": node.name, "text": f"{node.name}: {text}"}
    )
    return jobs


# --- maintenance ----------------------------------------------------------------------------------------


def announce(window: Maintenance) -> int:
    """Notify the owners of jobs that run or wait where the maintenance will be; return their number.

    Call it in the transaction that makes or changes the window.  One that is over concerns nobody.
    """
    if window.until_at <= timezone.now():
        return 0
    jobs = _not_ended(Job.objects.all())
    if window.cluster is not None:
        jobs = jobs.filter(cluster=window.cluster)
    people = list(User.objects.filter(pk__in=jobs.values("owner")))
    params = {"until": window.from_at.isoformat(), "text": window.text}
    if window.cluster is not None:
        params["cluster"] = window.cluster.name
    notifications.tell(people, notifications.Kind.MAINTENANCE, params)
    return len(people)


# --- one job --------------------------------------------------------------------------------------------


@transaction.atomic
def settle(actor: Actor, job: Job, state: State) -> None:
    """Set how a lost job ended.  Raises NotLost."""
    changes = {"state": (job.state, state.value)}
    params = {"job": job.public_id, "state": state.value}
    record_action(
        actor, AdminAction.Kind.SETTLE, str(job), to=job, name=job.public_id, changes=changes, **params
    )
    submission.settle(actor.user, job, state, actor.why)
