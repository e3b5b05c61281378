"""Groups of a directory, a provider or an admin become memberships.

The last report of a source about somebody is stored (`learn`), and rights are worked out from that, from
the mappings and from local groups (`apply`), so that a change of those works at once and for everybody, also
for those who are away.  A membership made by hand is never touched; of several groups the highest role
counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from django.db import transaction
from django.db.models import Q

from quotas.models import GroupMapping, LocalGroupRole, Membership, PersonGroup, Role, User

RANKS: Final = {role: rank for rank, role in enumerate(Role)}
"""From the least to the most, as `Role` lists them."""

_LONGEST: Final = 500


@transaction.atomic
def learn(user: User, source: str, names: Iterable[str]) -> None:
    """`source` says that `user` is in exactly these groups; rights follow at once."""
    wanted = {name.strip()[:_LONGEST] for name in names if name.strip()}
    mine = PersonGroup.objects.filter(user=user, source=source)
    known = set(mine.values_list("group", flat=True))
    if known != wanted:
        mine.filter(group__in=known - wanted).delete()
        PersonGroup.objects.bulk_create(
            [PersonGroup(user=user, source=source, group=name) for name in wanted - known],
            ignore_conflicts=True,
        )
    apply([user])


def apply(users: Iterable[User]) -> None:
    """Let everybody's rights by groups be what the mappings say."""
    mappings = _mappings()
    for user in users:
        rows = PersonGroup.objects.filter(user=user).values_list("source", "group")
        given = [row for source, group in rows for row in mappings.get((source, group.casefold()), ())]
        local = LocalGroupRole.objects.filter(group__people=user)
        _set_memberships(user, _highest([*given, *local]))
        _set_superuser(user, any(row.superuser for row in given))


def apply_to_all() -> None:
    """After a mapping or a local group changed: everybody who is in a group, or had rights by one."""
    apply(
        User.objects.filter(
            Q(person_groups__isnull=False)
            | Q(local_groups__isnull=False)
            | Q(memberships__by_groups=True)
            | Q(admin_by_groups=True)
        ).distinct()
    )


def behind(membership: Membership) -> list[str]:
    """The groups by which somebody has this membership, as a person reads them."""
    if not membership.by_groups:
        return []
    mappings = _mappings()
    rows = PersonGroup.objects.filter(user=membership.user_id).values_list("source", "group")
    local = LocalGroupRole.objects.filter(group__people=membership.user_id, workspace=membership.workspace_id)
    return sorted(
        [
            *local.values_list("group__name", flat=True),
            *(
                f"{source}: {group}"
                for source, group in rows
                if any(
                    row.workspace_id == membership.workspace_id
                    for row in mappings.get((source, group.casefold()), ())
                )
            ),
        ]
    )


def _mappings() -> Mapping[tuple[str, str], list[GroupMapping]]:
    """By source and group; directories do not tell upper from lower case."""
    found: dict[tuple[str, str], list[GroupMapping]] = defaultdict(list)
    for row in GroupMapping.objects.all():
        found[row.source, row.group.strip().casefold()].append(row)
    return found


def _highest(given: Iterable[GroupMapping | LocalGroupRole]) -> dict[int, Role]:
    best: dict[int, Role] = {}
    for row in given:
        if row.workspace_id is not None:
            role = Role(row.role)
            best[row.workspace_id] = max(best.get(row.workspace_id, role), role, key=RANKS.__getitem__)
    return best


def _set_memberships(user: User, wanted: Mapping[int, Role]) -> None:
    rows = {row.workspace_id: row for row in Membership.objects.filter(user=user)}
    for workspace_id, row in rows.items():
        if not row.by_groups:
            continue
        role = wanted.get(workspace_id)
        if role is None:
            row.delete()
        elif role != row.role:
            row.role = role
            row.save(update_fields=["role"])
    for workspace_id in wanted.keys() - rows.keys():
        Membership.objects.get_or_create(
            user=user,
            workspace_id=workspace_id,
            defaults={"role": wanted[workspace_id], "by_groups": True},
        )


def _set_superuser(user: User, wanted: bool) -> None:
    """Only what groups gave do they take back."""
    if wanted and not user.is_superuser:
        user.is_superuser = user.is_staff = user.admin_by_groups = True
    elif not wanted and user.admin_by_groups:
        user.is_superuser = user.is_staff = user.admin_by_groups = False
    else:
        return
    user.save(update_fields=["is_superuser", "is_staff", "admin_by_groups"])
