"""Ready-made sizes by name: their amounts in the console's own list of specs, or else the vendor's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Final, Self

from django.db.models import Q, QuerySet

from jobs.dialects.base import Note, Parsed
from jobs.spec import JobSpec, Resources
from quotas.access import workspaces_of
from quotas.amounts import Amounts
from quotas.models import Quota, Spec, User

UNKNOWN = "amounts_unknown"
"""A dialect's note about an unknown size."""

GIB: Final = 1024
MOST_SUGGESTIONS: Final = 3


@dataclass(frozen=True, slots=True)
class InstanceSize:
    """A ready-made size; `spec` is its key in the console's list, 0 for one of the vendor's."""

    name: str
    amounts: Amounts
    spec: int = field(default=0, compare=False)

    @classmethod
    def of(cls, spec: Spec) -> Self:
        """Return a spec of the console's list as a size."""
        return cls(spec.name, Amounts(spec.cpu_milli, spec.memory_mib, dict(spec.gpus)), spec.pk)


def _instance(name: str, cores: int, memory_gib: int, **gpus: int) -> InstanceSize:
    return InstanceSize(name, Amounts(1000 * cores, GIB * memory_gib, gpus))


INSTANCES: Final[Mapping[str, InstanceSize]] = {
    each.name: each
    for each in (
        _instance("ecs.s6-c1m2.small", 1, 2),
        _instance("ecs.c6.large", 2, 4),
        _instance("ecs.g6.large", 2, 8),
        _instance("ecs.r6.large", 2, 16),
        _instance("ecs.c6.xlarge", 4, 8),
        _instance("ecs.g6.xlarge", 4, 16),
        _instance("ecs.c6.2xlarge", 8, 16),
        _instance("ecs.g6.2xlarge", 8, 32),
        _instance("ecs.g7.large", 2, 8),
        _instance("ecs.g7.xlarge", 4, 16),
        _instance("ecs.g7.2xlarge", 8, 32),
        _instance("ecs.gn6i-c4g1.xlarge", 4, 15, T4=1),
        _instance("ecs.gn6v-c8g1.2xlarge", 8, 32, V100=1),
        _instance("ecs.gn6e-c12g1.3xlarge", 12, 92, V100=1),
    )
}
"""Instance types of Alibaba Cloud with the amounts of its instance family pages.

They are used where the console's own list has no spec for the job's target: an admin's list replaces them.
"""


def fill_sizes(parsed: Parsed, quota: Quota) -> Parsed:
    """The same with the amounts of the sizes that its roles name, where they are known."""
    names = {role.resources.instance_type for role in parsed.spec.roles} - {""}
    found = _sizes_by_name(names, quota) if names else {}
    if not found:
        return parsed
    notes = tuple(note for note in parsed.notes if not _is_of(note, found))
    return replace(parsed, spec=_fill_roles(parsed.spec, found), notes=notes)


def find_specs(quota: Quota) -> QuerySet[Spec]:
    """The specs that the console has for jobs of the quota."""
    in_cluster = Q(cluster=None) | Q(cluster=quota.cluster_id)
    in_workspace = Q(workspace=None) | Q(workspace=quota.workspace_id)
    return Spec.objects.filter(in_cluster, in_workspace)


def suggest(name: str, quota: Quota) -> list[str]:
    """Return the offered sizes whose names are nearest to an unknown one, or else the cheapest ones.

    Where the console has no specs for the quota, the vendor's are offered.
    """
    specs = find_specs(quota)
    offered = list(specs.filter(offered=True).order_by("price_micro", "name").values_list("name", flat=True))
    if not offered and not specs.exists():
        offered = list(INSTANCES)
    names = list(dict.fromkeys(offered))
    return get_close_matches(name, names, MOST_SUGGESTIONS) or names[:MOST_SUGGESTIONS]


def list_offered(user: User) -> list[InstanceSize]:
    """Return the sizes that the person's jobs may name, one of each name."""
    in_workspace = Q(workspace=None) | Q(workspace__in=workspaces_of(user))
    rows = Spec.objects.filter(in_workspace)
    found = _by_name(row for row in rows.order_by("pk") if row.offered)
    if found or rows.exists():
        return list(found.values())
    return list(INSTANCES.values())


def _sizes_by_name(names: Iterable[str], quota: Quota) -> dict[str, InstanceSize]:
    """The sizes of these names; the vendor's only where the console has no spec at all for the quota."""
    specs = find_specs(quota)
    found = _by_name(specs.filter(name__in=list(names)).order_by("pk"))
    known = {name: INSTANCES[name] for name in names if name in INSTANCES}
    return known if known and not found and not specs.exists() else found


def _by_name(rows: Iterable[Spec]) -> dict[str, InstanceSize]:
    """The specs by name; one of the cluster or of the workspace goes before one of all."""
    general_first = sorted(rows, key=lambda row: (row.workspace_id is not None, row.cluster_id is not None))
    return {row.name: InstanceSize.of(row) for row in general_first}


def _fill_roles(spec: JobSpec, known: Mapping[str, InstanceSize]) -> JobSpec:
    roles = []
    for role in spec.roles:
        size = known.get(role.resources.instance_type)
        resources = _fill_resources(role.resources, size.amounts) if size else role.resources
        roles.append(role.model_copy(update={"resources": resources}))
    return spec.model_copy(update={"roles": tuple(roles)})


def _fill_resources(resources: Resources, size: Amounts) -> Resources:
    kind, count = next(iter(size.gpus.items()), ("", 0))
    held = {"cpu_milli": size.cpu_milli, "memory_mib": size.memory_mib, "gpus": count, "gpu_type": kind}
    return resources.model_copy(update=held)


def _is_of(note: Note, known: Mapping[str, InstanceSize]) -> bool:
    return note.code == UNKNOWN and note.params.get("value") in known
