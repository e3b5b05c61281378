"""Writing what there is as site.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from console.site_yaml import announcements, assets, log_sinks, people, policies, storage, templates
from console.site_yaml.shape import IdleShape
from jobs.dialects.yaml_text import emitter
from quotas import egress
from quotas.egress import EgressKind
from quotas.models import (
    Cluster,
    GpuType,
    Membership,
    Node,
    NodeState,
    Quota,
    Spec,
    SpotPrice,
    Workspace,
)

MICRO = 1_000_000
CLUSTER_COLUMNS: Final = (
    *("name", "region", "admission", "enabled", "shows_addresses", "cordons_faulty", "cordon_percent"),
)
"""Keys of a cluster that are columns of the same name."""


def export() -> str:
    """Everything that site.yaml can say, as it is now."""
    document: dict[str, Any] = {
        "version": 1,
        "gpu_types": {row.name: list(row.aliases) for row in GpuType.objects.all()},
        "clusters": {cluster.slug: _cluster(cluster) for cluster in Cluster.objects.order_by("slug")},
        "specs": [spec(row) for row in Spec.objects.select_related("cluster", "workspace")],
        "people": people.export_people(),
        "groups": people.export_groups(),
        "group_mappings": people.export_group_mappings(),
        "workspaces": {row.slug: _workspace(row) for row in Workspace.objects.order_by("slug")},
        "assets": assets.export(),
        "storage": storage.export(),
        "templates": templates.export(),
        "banners": announcements.export_banners(),
        "maintenance": announcements.export_maintenance(),
    }
    return emitter.write({key: value for key, value in document.items() if value})


def _cluster(cluster: Cluster) -> dict[str, Any]:
    decided = Node.objects.filter(cluster=cluster).exclude(state=NodeState.DOWN)
    nodes = {
        node.name: _lean({"state": str(node.state), "why": node.state_why}, {"why": ""})
        for node in decided.exclude(state=NodeState.SCHEDULABLE, state_why="")
    }
    prices = [
        spot(row) for row in SpotPrice.objects.filter(cluster=cluster).order_by("gpu_type", "from_hour")
    ]
    own = {name: getattr(cluster, name) for name in CLUSTER_COLUMNS}
    values = {**own, "admission": str(cluster.admission), "nodes": nodes, "spot_prices": prices}
    return _lean(values, {"region": "", "nodes": {}, "spot_prices": []})


def spot(row: SpotPrice) -> dict[str, Any]:
    """A price of preemptible resources, as the file has it."""
    values = {
        "gpu_type": row.gpu_type,
        "market": number(row.market_micro, MICRO),
        "price": number(row.price_micro, MICRO),
        "from_hour": row.from_hour,
        "until_hour": row.until_hour,
    }
    return _lean(values, {"gpu_type": "", "from_hour": None, "until_hour": None})


def spec(row: Spec) -> dict[str, Any]:
    """A ready-made size, as the file has it."""
    values = {
        "name": row.name,
        "description": row.description,
        "cluster": row.cluster.slug if row.cluster else None,
        "workspace": row.workspace.slug if row.workspace else None,
        "cores": number(row.cpu_milli, 1000),
        "memory_gib": number(row.memory_mib, 1024),
        "gpus": dict(row.gpus),
        "price": number(row.price_micro, MICRO),
        "offered": row.offered,
    }
    return _lean(values, {"description": "", "cluster": None, "workspace": None, "gpus": {}, "offered": True})


def _workspace(workspace: Workspace) -> dict[str, Any]:
    own = Membership.objects.filter(workspace=workspace, by_groups=False)
    accounts = people.export_service_accounts(workspace)
    members = own.exclude(user__username__in=accounts).select_related("user").order_by("user__username")
    rows = list(
        Quota.objects.filter(workspace=workspace)
        .select_related("cluster", "parent__workspace")
        .prefetch_related("idle_exempt_people", "policies__user")
        .order_by("slug")
    )
    ours = {row.pk for row in rows}
    quotas: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row.parent_id not in ours:
            above = {"part_of": name_in_tree(row.parent)} if row.parent else {}
            quotas.setdefault(row.cluster.slug, {})[row.slug] = {**above, **_quota_tree(row, rows)}
    values = {
        "name": workspace.name,
        "vendor_id": workspace.vendor_id,
        "description": workspace.description,
        "egress": _egress(workspace),
        "members": {row.user.get_username(): str(row.role) for row in members},
        "service_accounts": accounts,
        "quotas": quotas,
        "log_sinks": log_sinks.export(workspace),
    }
    usual = {"vendor_id": "", "description": "", "egress": str(EgressKind.INTERNET)}
    return _lean(values, {**usual, "members": {}, "service_accounts": {}, "quotas": {}, "log_sinks": {}})


def _egress(workspace: Workspace) -> str | list[str]:
    kind = egress.kind_of(workspace.egress)
    return list(workspace.egress) if kind is EgressKind.LISTED else str(kind)


def name_in_tree(row: Quota) -> str:
    """Return the name by which `part_of` refers to a quota."""
    return f"{row.workspace.slug}/{row.slug}"


def _quota_tree(row: Quota, family: list[Quota]) -> dict[str, Any]:
    """A quota with its job policies and, of `family`, those that are part of it, as the file has them."""
    below = {each.slug: _quota_tree(each, family) for each in family if each.parent_id == row.pk}
    inside = {"policies": policies.export(row), "quotas": below}
    return {**quota(row), **_lean(inside, {"policies": [], "quotas": {}})}


def quota(row: Quota) -> dict[str, Any]:
    """A quota without what is in it, as the file has it."""
    person = {
        "gpus": row.person_gpus,
        "cores": number(row.person_cpu_milli, 1000),
        "memory_gib": number(row.person_memory_mib, 1024),
        "jobs": row.person_jobs,
    }
    values = {
        "name": row.name,
        "source": str(row.source),
        "kind": str(row.kind),
        "accepts_jobs": row.accepts_jobs,
        "gpus": row.gpus,
        "gpus_by_type": dict(row.gpus_by_type),
        "cores": number(row.cpu_milli, 1000),
        "memory_gib": number(row.memory_mib, 1024),
        "jobs": row.most_jobs,
        "gpu_hours": row.gpu_hours,
        "period": str(row.period),
        "person": {key: value for key, value in person.items() if value is not None},
        "may_borrow": row.may_borrow,
        "fair_share_weight": row.fair_share_weight,
        "least_running_minutes": row.least_running_minutes,
        "most_pending": row.most_pending,
        "idle": {
            "warn_minutes": row.idle_warn_minutes,
            "release_minutes": row.idle_release_minutes,
            "percent": row.idle_percent,
            "extensions": row.idle_extensions,
            "exempt": row.idle_exempt,
            "exempt_people": sorted(person.get_username() for person in row.idle_exempt_people.all()),
            "exempt_roles": row.idle_exempt_roles,
            "exempt_labels": row.idle_exempt_labels,
        },
    }
    usual: dict[str, Any] = {
        "source": "quota",
        "kind": "general",
        "accepts_jobs": True,
        "gpus_by_type": {},
        "period": "month",
        "person": {},
        "may_borrow": True,
        "fair_share_weight": 1,
        "most_pending": 100,
        "idle": IdleShape().model_dump(),
        **dict.fromkeys(("gpus", "cores", "memory_gib", "jobs", "gpu_hours", "least_running_minutes")),
    }
    return _lean(values, usual)


def number(value: int | None, unit: int) -> float | int | None:
    """`value` in a larger unit; a whole one where it is whole."""
    if value is None:
        return None
    return value // unit if value % unit == 0 else value / unit


def _lean(values: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that differ from the defaults."""
    return {key: value for key, value in values.items() if key not in usual or value != usual[key]}
