"""Target of a job: its workspace, cluster and quota, named by the person or the file, or chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Final

from django.db.models import Case, Q, QuerySet, When

from jobs.dialects.base import Params, Problem, Refused
from jobs.spec import JobSpec
from jobs.submission.resource_requests import parts_of
from quotas.access import match_workspace, may_submit_in, workspaces_of
from quotas.admission import snapshot
from quotas.admission.quota_usage import NONE, over
from quotas.amounts import total
from quotas.models import Quota, Source, User


@dataclass(frozen=True, slots=True)
class JobTarget:
    """Workspace, cluster and quota of a job, by their short names; empty fields are chosen."""

    workspace: str = ""
    cluster: str = ""
    quota: str = ""


ANYWHERE: Final = JobTarget()
"""Everything is chosen."""

DEFAULT_FIRST: Final = ("workspace__name", "cluster_id", "id")
"""The order of quotas in which the first one is a person's default."""

_NAMED: Final[Mapping[str, Callable[[str], Q]]] = {
    "workspace": lambda name: match_workspace(name, "workspace__"),
    "cluster": lambda name: Q(cluster__slug=name),
    "quota": lambda name: Q(slug=name),
}
"""Conditions for the quotas of what a target names."""


def target_address(quota: Quota) -> str:
    """Return a quota as one text, WORKSPACE/CLUSTER/QUOTA, which `place_at` reads."""
    return f"{quota.workspace.slug}/{quota.cluster.slug}/{quota.slug}"


def parse_target(address: str) -> JobTarget:
    """Return the target with that address; an empty or wrong one leaves everything to be chosen."""
    parts = address.split("/")
    return JobTarget(*parts) if len(parts) == 3 else ANYWHERE


def quotas_open_to(user: User) -> QuerySet[Quota]:
    """Return the quotas to which `user` may submit, with workspace and cluster; the first is the default."""
    rows = Quota.objects.filter(workspace__in=may_submit_in(user), cluster__enabled=True, accepts_jobs=True)
    return rows.select_related("workspace", "cluster").order_by(*DEFAULT_FIRST)


def find_quota(user: User, place: JobTarget, spec: JobSpec) -> Quota:
    """Return the quota that a job of `user` goes to.

    A name given in `place` must exist; the file's own quota (OpenPAI's virtual cluster) is used where
    the workspace has one of that name, and else the first quota the person may use.
    Raises Refused when a named place does not exist or nothing is open to the person at all.
    """
    quotas = quotas_open_to(user)
    for kind, slug in asdict(place).items():
        if slug:
            quotas = quotas.filter(_NAMED[kind](slug))
            if not quotas.exists():
                if kind == "workspace" and workspaces_of(user).filter(match_workspace(slug)).exists():
                    raise Refused((Problem("may_not_submit", "", params={"name": slug}),))
                raise Refused((Problem("no_such_place", "", params={"kind": kind, "name": slug}),))
    if spec.quota:
        quotas = quotas.order_by(Case(When(slug=spec.quota, then=0), default=1), *DEFAULT_FIRST)
    found = quotas[:1]
    if not found:
        raise Refused((Problem("no_place", "", params={}),))
    return found[0]


def find_excess_of_public(quota: Quota, spec: JobSpec) -> tuple[Problem, ...]:
    """Return the problem of a job above what one person may hold of public resources; more jobs wait."""
    if quota.source != Source.PUBLIC:
        return ()
    wanted = total(part.each.times(part.count) for part in parts_of(spec))
    found = over(snapshot.person_limits_of(quota), NONE, wanted, wanted.gpu_count)
    if found is None:
        return ()
    kind, asked, _used, limit = found
    params: Params = {"quota": quota.name, "kind": kind, "wanted": asked, "limit": limit}
    return (Problem("over_public_ceiling", "", params=params),)
