"""Idle policies of quotas, inherited down the tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from quotas.models import Membership, Quota

PERCENT: Final = 5
"""Below that use is idle where no policy says otherwise."""


@dataclass(frozen=True, slots=True)
class Policy:
    """`release` None only warns.  `extensions` is how often a person may say that they still need it."""

    warn: timedelta
    release: timedelta | None = None
    percent: int = PERCENT
    extensions: int = 0
    people: frozenset[int] = frozenset()
    roles: frozenset[str] = frozenset()
    labels: Mapping[str, str] = field(default_factory=dict)

    def spares(self, *, owner_id: int, role: str, labels: Mapping[str, str]) -> bool:
        """Whether it is not for this holder."""
        labelled = any(name in labels and value in {"", labels[name]} for name, value in self.labels.items())
        return owner_id in self.people or role in self.roles or labelled


def policies_of(cluster_id: int) -> dict[int, Policy]:
    """The policy that holds in each quota of the cluster: its own, or else the nearest one above."""
    quotas = {quota.pk: quota for quota in Quota.objects.filter(cluster_id=cluster_id)}
    people: dict[int, set[int]] = {}
    links = Quota.idle_exempt_people.through.objects.filter(quota__in=list(quotas))
    for quota_id, user_id in links.values_list("quota_id", "user_id"):
        people.setdefault(quota_id, set()).add(user_id)
    found = {}
    for quota in quotas.values():
        decider = _nearest(quota, quotas)
        if decider is not None and decider.idle_warn_minutes is not None:
            found[quota.pk] = _policy(decider, frozenset(people.get(decider.pk, ())))
    return found


def _nearest(quota: Quota, quotas: Mapping[int, Quota]) -> Quota | None:
    """Return the quota whose policy holds; None where there is none, or where it is exempt."""
    seen: set[int] = set()
    at: Quota | None = quota
    while at is not None and at.pk not in seen:
        if at.idle_exempt:
            return None
        if at.idle_warn_minutes is not None:
            return at
        seen.add(at.pk)
        at = quotas.get(at.parent_id) if at.parent_id is not None else None
    return None


def _policy(quota: Quota, people: frozenset[int]) -> Policy:
    assert quota.idle_warn_minutes is not None
    release = quota.idle_release_minutes
    return Policy(
        warn=timedelta(minutes=quota.idle_warn_minutes),
        release=None if release is None else timedelta(minutes=release),
        percent=quota.idle_percent,
        extensions=quota.idle_extensions,
        people=people,
        roles=frozenset(quota.idle_exempt_roles),
        labels=dict(quota.idle_exempt_labels),
    )


def roles_of(pairs: set[tuple[int, int]]) -> dict[tuple[int, int], str]:
    """The role of each (person, workspace)."""
    rows = Membership.objects.filter(user__in={user for user, _workspace in pairs})
    return {
        (user, workspace): role
        for user, workspace, role in rows.values_list("user_id", "workspace_id", "role")
        if (user, workspace) in pairs
    }
