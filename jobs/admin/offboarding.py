"""Offboarding: everything of a person who leaves ends, or is handed to somebody, in one act.

The account is disabled and stays, as the record of what the person did.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from django.db import transaction
from django.db.models import Q, QuerySet

from jobs.admin import admin_actions
from jobs.admin.admin_actions import Presence, record_action
from jobs.models import Attempt, Draft, Job, Sweep, Template
from jobs.states import FINAL, State
from quotas import audit, ledger
from quotas.access import may_submit
from quotas.accounts import groups
from quotas.audit.action_record import Actor
from quotas.models import Action, AdminAction, LocalGroup, Membership, PersonGroup, Role, User, unixnames

_ENDED = [state.value for state in (*FINAL, State.LOST)]


@dataclass(frozen=True, slots=True)
class Handover:
    """Numbers of what one person hands to another, and of what can't be handed over.

    `live_jobs` wait or run; `stopped_jobs` are live ones that end, as the other may not submit there, or as
    their cluster runs jobs as their owner's UNIX user.
    """

    live_jobs: int = 0
    ended_jobs: int = 0
    stopped_jobs: int = 0
    templates: int = 0
    drafts: int = 0


@dataclass(frozen=True, slots=True)
class Leaving:
    """The effects of offboarding: `ends` counts what ends, `handed` what is handed over."""

    ends: Presence
    handed: Handover
    memberships: list[str] = field(default_factory=list)
    left_without_admin: list[str] = field(default_factory=list)
    """Workspaces of which the person is the last admin."""


def preview(person: User, heir: User | None) -> Leaving:
    """Count what offboarding would end and hand over; nothing changes."""
    live, ended = _jobs_to_hand_over(person, heir)
    ends = admin_actions.count_presence(person)
    rows = Membership.objects.filter(user=person).select_related("workspace")
    handed = Handover()
    if heir is not None:
        handed = Handover(
            live_jobs=len(live),
            ended_jobs=ended.count(),
            stopped_jobs=ends.jobs - len(live),
            templates=Template.objects.filter(owner=person).count(),
            drafts=Draft.objects.filter(owner=person).count(),
        )
    return Leaving(
        ends,
        handed,
        sorted(row.workspace.title for row in rows),
        sorted(row.workspace.title for row in rows if _is_last_admin(row)),
    )


@transaction.atomic
def offboard(actor: Actor, person: User, heir: User | None) -> Leaving:
    """Hand over to `heir` if one is named, end everything else, disable the account; return what was done.

    Raises Forbidden if the actor is no admin of the console.
    """
    found = preview(person, heir)
    record_action(
        actor,
        AdminAction.Kind.OFFBOARD,
        person.get_username(),
        to=person,
        heir=heir.get_username() if heir else "",
        handed=[f"{name}: {count}" for name, count in asdict(found.handed).items()],
        workspaces=found.memberships,
    )
    if heir is not None:
        _hand_over(actor, person, heir)
    admin_actions.end_everything(actor, person, disable=True)
    PersonGroup.objects.filter(user=person).delete()
    for group in LocalGroup.objects.filter(people=person):
        group.people.remove(person)
    for membership in Membership.objects.filter(user=person, by_groups=False):
        membership.delete()
    groups.apply([person])
    return found


def _jobs_to_hand_over(person: User, heir: User | None) -> tuple[list[Job], QuerySet[Job]]:
    """Return the live jobs, and the ended ones, that `heir` can take."""
    rows = Job.objects.filter(owner=person, deleted_at=None)
    if heir is None:
        return [], rows.none()
    spaces = set(rows.order_by().values_list("workspace_id", flat=True).distinct())
    theirs = [pk for pk in spaces if may_submit(heir, pk)]
    rows = rows.filter(workspace__in=theirs)
    live = rows.exclude(state__in=_ENDED).select_related("cluster", "quota").order_by("pk")
    return (
        [job for job in live if not unixnames.needs_unix_name(job.cluster)],
        rows.filter(state__in=_ENDED),
    )


def _hand_over(actor: Actor, person: User, heir: User) -> None:
    live, ended = _jobs_to_hand_over(person, heir)
    for job in live:
        audit.log(
            Action.UPDATE,
            job,
            name=job.public_id,
            changes={"owner": (person.get_username(), heir.get_username())},
            actor=actor.user,
        )
    keys = Attempt.objects.filter(job__in=live).values_list("key", flat=True)
    ledger.give(list(keys), heir)
    taken = Q(pk__in=[job.pk for job in live]) | Q(pk__in=ended.values("pk"))
    # A key of idempotency is its owner's: no request of the new owner's repeats this one.
    Job.objects.filter(taken).update(owner=heir, idempotency_key=None)
    spaces = set(Membership.objects.filter(user=heir).values_list("workspace_id", flat=True))
    Sweep.objects.filter(owner=person, workspace__in=spaces).update(owner=heir, idempotency_key=None)
    for template in Template.objects.filter(owner=person):
        template.owner = heir
        template.save(update_fields=["owner", "updated_at"])
    Draft.objects.filter(owner=person).update(owner=heir)


def _is_last_admin(membership: Membership) -> bool:
    if membership.role != Role.ADMIN:
        return False
    others = Membership.objects.filter(
        workspace=membership.workspace_id, role=Role.ADMIN, user__is_active=True
    )
    return not others.exclude(pk=membership.pk).exists()
