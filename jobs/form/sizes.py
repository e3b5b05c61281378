"""Ready-made sizes by name: their amounts in the console's own list of specs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from django.db.models import Q, QuerySet

from jobs.dialects.base import Note, Parsed
from jobs.spec import JobSpec, Resources
from quotas.models import Quota, Spec

UNKNOWN = "amounts_unknown"
"""A dialect's note about an unknown size."""


def fill_sizes(parsed: Parsed, quota: Quota) -> Parsed:
    """The same with the amounts of the sizes that its roles name, where the console has such a spec."""
    names = {role.resources.instance_type for role in parsed.spec.roles} - {""}
    found = _specs_by_name(names, quota) if names else {}
    if not found:
        return parsed
    notes = tuple(note for note in parsed.notes if not _is_of(note, found))
    return replace(parsed, spec=_fill_roles(parsed.spec, found), notes=notes)


def find_specs(quota: Quota) -> QuerySet[Spec]:
    """The specs that the console has for jobs of the quota."""
    in_cluster = Q(cluster=None) | Q(cluster=quota.cluster_id)
    in_workspace = Q(workspace=None) | Q(workspace=quota.workspace_id)
    return Spec.objects.filter(in_cluster, in_workspace)


def _specs_by_name(names: Iterable[str], quota: Quota) -> dict[str, Spec]:
    """The specs of these names; one of the cluster or of the workspace goes before one of all."""
    rows = list(find_specs(quota).filter(name__in=list(names)).order_by("pk"))
    rows.sort(key=lambda row: (row.workspace_id is not None, row.cluster_id is not None))
    return {row.name: row for row in rows}


def _fill_roles(spec: JobSpec, known: dict[str, Spec]) -> JobSpec:
    roles = []
    for role in spec.roles:
        size = known.get(role.resources.instance_type)
        resources = _fill_resources(role.resources, size) if size else role.resources
        roles.append(role.model_copy(update={"resources": resources}))
    return spec.model_copy(update={"roles": tuple(roles)})


def _fill_resources(resources: Resources, size: Spec) -> Resources:
    kind, count = next(iter(size.gpus.items()), ("", 0))
    held = {"cpu_milli": size.cpu_milli, "memory_mib": size.memory_mib, "gpus": count, "gpu_type": kind}
    return resources.model_copy(update=held)


def _is_of(note: Note, known: dict[str, Spec]) -> bool:
    return note.code == UNKNOWN and note.params.get("value") in known
