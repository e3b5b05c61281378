"""What an admin does to the whole house when something is wrong.  Each act is written down, once.

Everybody who calls one of these has to be an admin of the console (`quotas.access.administers`); each says
from where and why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.sessions.models import Session
from django.db import models, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from jobs import notifications, submission
from jobs.access import entries
from jobs.lifecycle import transitions
from jobs.live import queue
from jobs.models import Attempt, EndpointVisit, Event, Job, SshKey
from jobs.states import FINAL, State
from quotas.access import administers
from quotas.accounts import invitations, sessions, tokens
from quotas.audit import acts
from quotas.audit.acts import Actor
from quotas.ledger import reports
from quotas.models import AccessToken, Act, Cluster, Grant, Invitation, Maintenance, Node, ReadOnly, User


def write_down(
    actor: Actor,
    kind: Act.Kind,
    about: str,
    *,
    to: models.Model | None = None,
    name: str = "",
    changes: acts.Changes | None = None,
    **params: Any,
) -> None:
    """Keep what is done.  Raises Forbidden for whoever is no admin of the console."""
    if not administers(actor.user):
        raise submission.Forbidden
    acts.write_down(actor, kind, about, to=to, name=name, changes=changes, **params)


# --- admission ------------------------------------------------------------------------------------------


@transaction.atomic
def freeze(actor: Actor, cluster: Cluster) -> bool:
    """Start nothing more on the cluster; whether it was not frozen before.  What runs goes on."""
    changes = {"frozen": (_is_frozen(cluster), True)}
    write_down(actor, Act.Kind.FREEZE, cluster.name, to=cluster, changes=changes, cluster=cluster.slug)
    frozen = Cluster.objects.filter(pk=cluster.pk, frozen_at=None)
    changed = bool(frozen.update(frozen_at=Now(), frozen_why=actor.why[:500]))
    queue.kick_on_commit("drain", cluster.pk)
    return changed


@transaction.atomic
def unfreeze(actor: Actor, cluster: Cluster) -> bool:
    """The inverse of `freeze`."""
    changes = {"frozen": (_is_frozen(cluster), False)}
    write_down(actor, Act.Kind.UNFREEZE, cluster.name, to=cluster, changes=changes, cluster=cluster.slug)
    frozen = Cluster.objects.filter(pk=cluster.pk, frozen_at__isnull=False)
    changed = bool(frozen.update(frozen_at=None, frozen_why=""))
    queue.kick_on_commit("drain", cluster.pk)
    return changed


def _is_frozen(cluster: Cluster) -> bool:
    return Cluster.objects.filter(pk=cluster.pk, frozen_at__isnull=False).exists()


# --- the console itself ---------------------------------------------------------------------------------


@transaction.atomic
def make_read_only(actor: Actor) -> None:
    """Refuse every change by anybody but the console's admins; running jobs and workers go on."""
    changes = {"read_only": (ReadOnly.objects.exists(), True)}
    write_down(actor, Act.Kind.READ_ONLY, "", changes=changes)
    ReadOnly.objects.update_or_create(one=True, defaults={"why": actor.why[:500], "by": actor.user})


@transaction.atomic
def make_writable(actor: Actor) -> None:
    """The inverse of `make_read_only`."""
    changes = {"read_only": (ReadOnly.objects.exists(), False)}
    write_down(actor, Act.Kind.READ_WRITE, "", changes=changes)
    ReadOnly.objects.all().delete()


# --- one person -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Presence:
    """Everything of one person that can be ended.

    `service_tokens` are those of service accounts that they made, each of which they may have kept a copy of.
    """

    jobs: int
    sessions: int
    tokens: int
    service_tokens: int
    invitations: int
    ssh_keys: int
    entries: int
    visits: int


def presence_of(person: User) -> Presence:
    """How much there is of each."""
    return Presence(
        jobs=_jobs_of(person).count(),
        sessions=len(_sessions_of(person)),
        tokens=_tokens(user=person).count(),
        service_tokens=_tokens(user__service_account__made_by=person).count(),
        invitations=_invitations_of(person).count(),
        ssh_keys=SshKey.objects.filter(user=person).count(),
        entries=entries.open_entries().filter(user=person).count(),
        visits=EndpointVisit.objects.filter(user=person).count(),
    )


def end_everything(actor: Actor, person: User, *, disable: bool) -> Presence:
    """End all that the person has here and, with `disable`, let them in no more; what was ended.

    Ways in go first, so that nothing new begins meanwhile.  Repeating it ends what is left.
    """
    found = presence_of(person)
    ended = {name: getattr(found, name) for name in found.__dataclass_fields__}
    with transaction.atomic():
        write_down(
            actor,
            Act.Kind.END_PERSON,
            person.get_username(),
            to=person,
            changes={"is_active": (person.is_active, False)} if disable else None,
            disabled=disable,
            ended=[f"{name}: {count}" for name, count in ended.items()],
        )
        if disable:
            User.objects.filter(pk=person.pk).update(is_active=False)
        sessions.end_all(person, why=actor.why)
        Session.objects.filter(pk__in=_sessions_of(person)).delete()
        Grant.objects.filter(user=person).delete()
        for token in (*_tokens(user=person), *_tokens(user__service_account__made_by=person)):
            tokens.revoke(token.user, token.pk)
        for invitation in _invitations_of(person):
            invitations.revoke(invitation.workspace, invitation.pk)
        EndpointVisit.objects.filter(user=person).delete()
        entries.ask_end(entries.open_entries().filter(user=person), actor.user)
        SshKey.objects.filter(user=person).delete()
    for job in _jobs_of(person).iterator():
        submission.stop(actor.user, job, why=actor.why)
    return found


def _jobs_of(person: User) -> QuerySet[Job]:
    return _unended(Job.objects.filter(owner=person))


def _unended(jobs: QuerySet[Job]) -> QuerySet[Job]:
    ended = [state.value for state in (*FINAL, State.LOST)]
    return jobs.filter(deleted_at=None).exclude(state__in=ended)


def _tokens(**whose: User) -> QuerySet[AccessToken]:
    rows = AccessToken.objects.filter(revoked_at=None, expires_at__gt=Now(), **whose)
    return rows.select_related("user")


def _invitations_of(person: User) -> QuerySet[Invitation]:
    return invitations.waiting().filter(invited_by=person)


def _sessions_of(person: User) -> list[str]:
    """Their sign-ins, listed or not: whose a session is stands only inside, so each that lasts is read."""
    rows = Session.objects.filter(expire_date__gt=timezone.now()).iterator()
    wanted = str(person.pk)
    return [row.pk for row in rows if row.get_decoded().get("_auth_user_id") == wanted]


# --- one node -------------------------------------------------------------------------------------------


def jobs_on(node: Node) -> list[Job]:
    """The jobs that hold something on the node, with their owners."""
    uses = reports.nodes_of([node.cluster])
    holders = {each.holder for use in uses if use.node.pk == node.pk for each in use.holdings}
    ids = Attempt.objects.filter(key__in=holders).values_list("job_id", flat=True)
    return list(Job.objects.filter(pk__in=list(ids)).select_related("owner").order_by("pk"))


@transaction.atomic
def tell_owners(actor: Actor, node: Node, text: str) -> Sequence[Job]:
    """Let those who have a job on the node know; the jobs it was about."""
    jobs = jobs_on(node)
    owners = {job.owner for job in jobs}
    params: dict[str, Any] = {"text": text, "owners": len(owners), "jobs": len(jobs)}
    write_down(actor, Act.Kind.TELL_OWNERS, f"{node.cluster.slug}/{node.name}", to=node, **params)
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
    """Tell whoever has a job that runs or waits where the maintenance will be; how many there are.

    Call it in the transaction that makes or changes the window.  One that is over concerns nobody.
    """
    if window.until_at <= timezone.now():
        return 0
    jobs = _unended(Job.objects.all())
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
    """Say how a lost job ended.  Raises NotLost."""
    changes = {"state": (job.state, state.value)}
    params = {"job": job.public_id, "state": state.value}
    write_down(actor, Act.Kind.SETTLE, str(job), to=job, name=job.public_id, changes=changes, **params)
    submission.settle(actor.user, job, state, actor.why)
