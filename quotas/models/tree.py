"""The tree of quotas: nobody promises more than they hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

if TYPE_CHECKING:
    from quotas.models.limits import Quota

DIVIDED: Final = ("gpus", "cpu_milli", "memory_mib", "most_jobs", "gpu_hours")
"""The limits that the quotas below share."""


def check(quota: Quota, tree: Iterable[Quota] | None = None) -> None:
    """Raises ValidationError where `quota`, as it is now, does not fit into its cluster's tree.

    `tree` has all quotas of the cluster as they are to be; without it, they are as they are stored.
    """
    _check_types(quota)
    rows = type(quota).objects.filter(cluster_id=quota.cluster_id) if tree is None else tree
    family = {row.pk: row for row in rows if row.pk != quota.pk}
    _check_parent(quota, family)
    below: dict[int | None, list[Quota]] = {}
    for row in (*family.values(), quota):
        below.setdefault(row.parent_id, []).append(row)
    problems: dict[str, str] = {}
    for holder in (quota, *_above(quota, family)):
        for field, kind, limit in _list_limits(holder):
            promised = sum(
                _sum_guaranteed(child, field, kind, below) for child in below.get(holder.pk, []) if holder.pk
            )
            if promised > limit:
                problems.setdefault(field, _problem(quota, holder, kind, promised, limit))
    if problems:
        raise ValidationError(problems)


def _check_types(quota: Quota) -> None:
    types = quota.gpus_by_type
    fine = isinstance(types, dict) and all(
        isinstance(count, int) and not isinstance(count, bool) and count >= 0 for count in types.values()
    )
    if not fine:
        raise ValidationError({"gpus_by_type": _('Must be a count for each GPU type, e.g. {"A100": 8}.')})


def _check_parent(quota: Quota, family: Mapping[int, Quota]) -> None:
    if quota.parent_id is None:
        return
    if quota.parent_id == quota.pk or any(row.pk == quota.pk for row in _above(quota, family)):
        raise ValidationError({"parent": _("A quota can't be its own parent.")})
    if quota.parent_id not in family:
        raise ValidationError({"parent": _("The parent quota must be on the same cluster.")})


def _above(quota: Quota, family: Mapping[int, Quota]) -> Iterable[Quota]:
    """Everything that the quota is part of, the nearest first."""
    seen: set[int] = set()
    parent_id = quota.parent_id
    while parent_id is not None and parent_id not in seen:
        if parent_id == quota.pk:
            yield quota
            return
        seen.add(parent_id)
        if parent_id not in family:
            return
        yield family[parent_id]
        parent_id = family[parent_id].parent_id


def _list_limits(quota: Quota) -> Iterable[tuple[str, str, int]]:
    """(field, GPU type, limit) for whatever has one."""
    for field in DIVIDED:
        limit = getattr(quota, field)
        if limit is not None:
            yield field, "", limit
    for kind, limit in quota.gpus_by_type.items():
        yield "gpus_by_type", kind, limit


def _sum_guaranteed(quota: Quota, field: str, kind: str, below: Mapping[int | None, list[Quota]]) -> int:
    """Return what a quota guarantees of a resource: its limit, or the sum of those below it."""
    own = quota.gpus_by_type.get(kind) if kind else getattr(quota, field)
    if own is not None:
        return int(own)
    return sum(_sum_guaranteed(child, field, kind, below) for child in below.get(quota.pk, []) if quota.pk)


def _problem(quota: Quota, holder: Quota, kind: str, promised: int, limit: int) -> str:
    values = {"name": holder.name, "promised": promised, "limit": limit, "type": kind}
    if holder is quota:
        text = _("Child quotas have %(promised)s in total; a limit of %(limit)s is too low.")
    else:
        text = _(
            "Limit of %(name)s exceeded: %(limit)s available, but its child quotas would have "
            "%(promised)s in total."
        )
    return (f"{kind}: " if kind else "") + text % values
