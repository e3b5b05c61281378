"""Limits of job policies that hold for a person in a quota: each with whose it is, and who may change it.

Of the policies of one quota the most specific counts: a person's, then that of their role, then that for
everybody.  Those of the quotas above hold too, and the strictest limit wins.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from quotas.access import role_in
from quotas.models import JobPolicy, Membership, Quota, Request, Role, User

NUMBERS: Final = ("highest_priority", "time_limit_minutes", "job_gpus", "waiting_jobs", "running_jobs")
"""Limits of which the lowest holds."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class JobLimit:
    """A limit, and the policy that it comes from.

    `value` is a number; of types of GPUs it is their names.
    """

    policy: JobPolicy
    value: int | tuple[str, ...]

    @property
    def source(self) -> Mapping[str, str]:
        """Return the quota, for whom the limit holds, and the workspace whose admins may change it.

        For everybody neither a `user` nor a `role` is there; without a `workspace` console admins change it.
        """
        found = {"quota": self.policy.quota.name}
        if self.policy.user is not None:
            found["user"] = self.policy.user.get_username()
        elif self.policy.role:
            found["role"] = self.policy.role
        if self.policy.by_workspace:
            found["workspace"] = self.policy.quota.workspace.name
        return found


@dataclass(frozen=True, slots=True)
class JobLimits:
    """The limits of a person in a quota by field; what has none is absent.

    `default_s` is the time limit in seconds of jobs that name none, and None where there is none.
    """

    quota: Quota
    user: User
    limits: Mapping[str, JobLimit] = field(default_factory=dict)
    default_s: int | None = None

    def number(self, name: str) -> int | None:
        """Return a limit that is a number; None where there is none."""
        found = self.limits.get(name)
        return found.value if found is not None and isinstance(found.value, int) else None

    def gpu_types(self) -> tuple[str, ...]:
        """Return the types of GPUs that are allowed; none is all of them."""
        found = self.limits.get("gpu_types")
        return found.value if found is not None and isinstance(found.value, tuple) else ()

    def count_waiting(self) -> int:
        """Return how many jobs of the person wait in the quota of the limit, and in those below it."""
        found = self.limits["waiting_jobs"].policy.quota
        rows = list(Quota.objects.filter(cluster=found.cluster_id))
        inside = {row.pk for row in rows if found.pk in {each.pk for each in lineage(row, rows)}}
        waiting = Request.objects.filter(owner=self.user, state=Request.State.WAITING, quota__in=inside)
        return waiting.count()


def limits_for(user: User, quota: Quota) -> JobLimits:
    """Return the limits that hold for the person in the quota; one query where no policy is set."""
    policies = _load_policies([quota.cluster_id])
    if not policies:
        return JobLimits(quota, user)
    above = list(lineage(quota, Quota.objects.filter(cluster=quota.cluster_id)))
    return _limits(
        quota, user, list(_find_applying(above, policies, user.pk, role_in(user, quota.workspace_id)))
    )


def load_running_limits(
    quotas: Sequence[Quota], owner_ids: Collection[int]
) -> Mapping[int, Mapping[int, int]]:
    """Return how many jobs of a person may run in each quota, by quota and person, where a policy says it.

    A quota's own limit for one person holds where no policy of the console's admins names another.
    """
    policies = _load_policies({quota.cluster_id for quota in quotas})
    policies = [policy for policy in policies if policy.running_jobs is not None]
    if not policies or not owner_ids:
        return {}
    roles = _load_roles(quotas, owner_ids) if any(policy.role for policy in policies) else {}
    found: dict[int, dict[int, int]] = {}
    for quota in quotas:
        above = list(lineage(quota, quotas))
        for owner_id in owner_ids:
            role = roles.get((quota.workspace_id, owner_id))
            applying = list(_find_applying(above, policies, owner_id, role))
            if applying:
                found.setdefault(quota.pk, {})[owner_id] = _running_limit(quota, applying)
    return found


def _running_limit(quota: Quota, applying: Sequence[Sequence[JobPolicy]]) -> int:
    limits = [_most_specific(each, "running_jobs") for each in applying]
    values = [each.running_jobs for each in limits if each is not None and each.running_jobs is not None]
    is_replaced = any(each.quota_id == quota.pk and not each.by_workspace for each in limits if each)
    if quota.person_jobs is not None and not is_replaced:
        values.append(quota.person_jobs)
    return min(values)


def _limits(quota: Quota, user: User, applying: Sequence[Sequence[JobPolicy]]) -> JobLimits:
    limits: dict[str, JobLimit] = {}
    for name in NUMBERS:
        found = [each for policies in applying if (each := _most_specific(policies, name)) is not None]
        if found:
            strictest = min(found, key=lambda policy: int(getattr(policy, name)))
            limits[name] = JobLimit(strictest, int(getattr(strictest, name)))
    typed = [each for policies in applying if (each := _most_specific(policies, "gpu_types")) is not None]
    for policy in typed:
        before = limits.get("gpu_types")
        if before is None:
            limits["gpu_types"] = JobLimit(policy, policy.type_names)
        elif isinstance(before.value, tuple):
            both = tuple(name for name in before.value if name in policy.type_names)
            limits["gpu_types"] = JobLimit(policy, both) if both != before.value else before
    return JobLimits(quota, user, limits, _default_s(applying, limits))


def _default_s(applying: Sequence[Sequence[JobPolicy]], limits: Mapping[str, JobLimit]) -> int | None:
    """Return the default of the nearest quota; the longest time where none has a default."""
    found = (_most_specific(policies, "default_minutes") for policies in applying)
    default = next((each.default_minutes for each in found if each is not None), None)
    longest = limits.get("time_limit_minutes")
    values = [value for value in (default, longest and longest.value) if isinstance(value, int)]
    return 60 * min(values) if values else None


def _find_applying(
    above: Iterable[Quota], policies: Sequence[JobPolicy], user_id: int, role: Role | None
) -> Iterator[Sequence[JobPolicy]]:
    """Yield the policies that are for the person, the nearest quota's first, the most specific first."""
    for quota in above:
        for by_workspace in (True, False):
            mine = [
                policy
                for policy in policies
                if policy.quota_id == quota.pk
                and policy.by_workspace is by_workspace
                and (policy.user_id == user_id or (policy.user_id is None and policy.role in ("", role)))
            ]
            if mine:
                yield sorted(mine, key=lambda policy: (policy.user_id is None, not policy.role))


def _most_specific(policies: Iterable[JobPolicy], name: str) -> JobPolicy | None:
    return next((policy for policy in policies if getattr(policy, name) not in (None, "")), None)


def _load_policies(cluster_ids: Collection[int]) -> list[JobPolicy]:
    rows = JobPolicy.objects.filter(quota__cluster__in=cluster_ids)
    # Not joined: most clusters have none, and each submission asks.
    return list(rows.prefetch_related("quota__workspace", "user"))


def _load_roles(quotas: Iterable[Quota], owner_ids: Collection[int]) -> dict[tuple[int, int], Role]:
    workspaces = {quota.workspace_id for quota in quotas}
    rows = Membership.objects.filter(workspace__in=workspaces, user__in=owner_ids)
    roles = {
        (workspace, user): Role(role)
        for workspace, user, role in rows.values_list("workspace_id", "user_id", "role")
    }
    admins = User.objects.filter(pk__in=owner_ids, is_superuser=True).values_list("pk", flat=True)
    return roles | {(workspace, user): Role.ADMIN for user in admins for workspace in workspaces}


def lineage(quota: Quota, quotas: Iterable[Quota]) -> Iterator[Quota]:
    """Yield a quota and everything above it, the nearest first."""
    rows = {row.pk: row for row in quotas}
    seen: set[int] = set()
    here: Quota | None = quota
    while here is not None and here.pk not in seen:
        seen.add(here.pk)
        yield here
        here = rows.get(here.parent_id) if here.parent_id is not None else None
