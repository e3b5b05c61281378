"""Where a job goes: its workspace, cluster and quota, named by the person, by the file, or chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.db.models import QuerySet

from jobs.dialects.base import Problem, Refused
from jobs.spec import JobSpec
from jobs.submission.asking import parts_of
from quotas.access import may_submit_in, workspaces_of
from quotas.admission import snapshot
from quotas.admission.ceilings import NONE, over
from quotas.amounts import total
from quotas.models import Quota, Source, User


@dataclass(frozen=True, slots=True)
class Place:
    """Where a job goes; empty fields are chosen for the person."""

    workspace: str = ""
    cluster: str = ""
    quota: str = ""


ANYWHERE: Final = Place()
"""Everything is chosen."""


def address_of(quota: Quota) -> str:
    """A quota as one text, which `place_at` reads."""
    return f"{quota.workspace.slug}/{quota.cluster.slug}/{quota.slug}"


def place_at(address: str) -> Place:
    """Where an address leads; everything is chosen for who gives none."""
    parts = address.split("/")
    return Place(*parts) if len(parts) == 3 else ANYWHERE


def quotas_open_to(user: User) -> QuerySet[Quota]:
    """Where `user` may send jobs, with workspace and cluster; the first is chosen for who names none."""
    rows = Quota.objects.filter(workspace__in=may_submit_in(user), cluster__enabled=True, accepts_jobs=True)
    return rows.select_related("workspace", "cluster").order_by("workspace__name", "cluster_id", "id")


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
                if kind == "workspace" and workspaces_of(user).filter(slug=slug).exists():
                    raise Refused((Problem("may_not_submit", "", params={"name": slug}),))
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
