"""Virtual clusters: the console's quotas, by their short names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.db.models import Count, Q, QuerySet

from jobs import submission
from jobs.api.vendors.openpai import errors
from jobs.api.vendors.operations import Call, JsonObject, Location, Operation, Parameter, Support
from jobs.models import Job
from jobs.states import TERMINAL, State
from jobs.submission import JobTarget
from quotas.access import workspaces_of
from quotas.admission.quota_usage import Used
from quotas.admission.snapshot import load_quota_usage
from quotas.models import Node, Quota, User

DEFAULT: Final = "default"
MOST: Final = 1000
"""Quotas of an answer."""


def visible_quotas(user: User) -> list[Quota]:
    """Return the quotas of the person's workspaces that take jobs, with workspace and cluster."""
    rows = Quota.objects.filter(workspace__in=workspaces_of(user), accepts_jobs=True)
    return list(rows.select_related("workspace", "cluster").order_by("workspace__name", "pk")[:MOST])


def name_quotas(quotas: Iterable[Quota]) -> dict[str, Quota]:
    """Return quotas by name: the short name, or WORKSPACE/CLUSTER/QUOTA where several share it."""
    rows = list(quotas)
    counts = Counter(quota.slug for quota in rows)
    return {
        quota.slug if counts[quota.slug] == 1 else submission.target_address(quota): quota for quota in rows
    }


def find_target(user: User, name: str) -> JobTarget:
    """Return where a job for a virtual cluster goes.  Raises VendorError where there is none for the person.

    Without a name, and for `default` where no quota is called so, it is chosen.
    """
    if not name:
        return submission.ANYWHERE
    target = submission.parse_target(name)
    wanted = target if target != submission.ANYWHERE else JobTarget(quota=name)
    quota = _narrow(submission.quotas_open_to(user), wanted).first()
    if quota is not None:
        return JobTarget(quota.workspace.slug, quota.cluster.slug, quota.slug)
    if _narrow(Quota.objects.filter(workspace__in=workspaces_of(user)), wanted).exists():
        raise errors.forbidden_in(user, name)
    if name == DEFAULT:
        return submission.ANYWHERE
    raise errors.no_virtual_cluster(name)


def _narrow(quotas: QuerySet[Quota], target: JobTarget) -> QuerySet[Quota]:
    rows = quotas.filter(slug=target.quota)
    if target.workspace:
        rows = rows.filter(workspace__slug=target.workspace, cluster__slug=target.cluster)
    return rows


def list_virtual_clusters(call: Call) -> JsonObject:
    """List the virtual clusters of the caller's workspaces, by name."""
    named = name_quotas(visible_quotas(call.person))
    return _describe(call.person, named)


def get_virtual_cluster(call: Call) -> JsonObject:
    """Return one virtual cluster."""
    name = call.values["virtualCluster"]
    target = submission.parse_target(name)
    wanted = target if target != submission.ANYWHERE else JobTarget(quota=name)
    rows = Quota.objects.filter(workspace__in=workspaces_of(call.person), accepts_jobs=True)
    quota = _narrow(rows.select_related("workspace", "cluster"), wanted).order_by("workspace__name").first()
    if quota is None:
        raise errors.no_virtual_cluster(name)
    found: JsonObject = _describe(call.person, {name: quota})[name]
    return found


def _describe(user: User, named: Mapping[str, Quota]) -> dict[str, Any]:
    """Return quotas as virtual clusters: a few queries for each cluster, one for all jobs."""
    clusters = {quota.cluster_id: quota.cluster for quota in named.values()}
    used: dict[int, Used] = {}
    for cluster in clusters.values():
        used |= load_quota_usage(cluster).by_quota()
    nodes = _sum_nodes(clusters)
    jobs = _count_jobs(user, named.values())
    return {
        name: _render(
            quota, used.get(quota.pk, Used()), nodes.get(quota.cluster_id, {}), jobs.get(quota.pk, {})
        )
        for name, quota in named.items()
    }


def _sum_nodes(clusters: Iterable[int]) -> dict[int, dict[str, int]]:
    """Return the memory, cores and GPUs of each cluster's nodes."""
    found: dict[int, dict[str, int]] = {}
    rows = Node.objects.filter(cluster__in=list(clusters))
    for cluster, memory, cpu_milli, gpus in rows.values_list("cluster_id", "memory_mib", "cpu_milli", "gpus"):
        total = found.setdefault(cluster, {"memory": 0, "vCores": 0, "GPUs": 0})
        total["memory"] += memory
        total["vCores"] += cpu_milli // 1000
        total["GPUs"] += sum(gpus.values())
    return found


def _count_jobs(user: User, quotas: Iterable[Quota]) -> dict[int, dict[str, int]]:
    """Return how many jobs that have not ended each quota has, and how many of them run."""
    rows = Job.objects.visible_to(user).filter(quota__in=[quota.pk for quota in quotas])
    rows = rows.exclude(state__in=[state.value for state in TERMINAL])
    counted = (
        rows.order_by()
        .values("quota_id")
        .annotate(all=Count("pk"), running=Count("pk", filter=Q(state=State.RUNNING.value)))
    )
    return {row["quota_id"]: {"all": row["all"], "running": row["running"]} for row in counted}


def _render(quota: Quota, used: Used, nodes: Mapping[str, int], jobs: Mapping[str, int]) -> dict[str, Any]:
    cluster = {
        "memory": nodes.get("memory", 0),
        "vCores": nodes.get("vCores", 0),
        "GPUs": nodes.get("GPUs", 0),
    }
    total = {
        "memory": cluster["memory"] if quota.memory_mib is None else quota.memory_mib,
        "vCores": cluster["vCores"] if quota.cpu_milli is None else quota.cpu_milli // 1000,
        "GPUs": cluster["GPUs"] if quota.gpus is None else quota.gpus,
    }
    in_use = {"memory": used.memory_mib, "vCores": used.cpu_milli / 1000, "GPUs": used.gpus}
    return {
        "capacity": _percent(total, cluster),
        "maxCapacity": 100 if quota.may_borrow else _percent(total, cluster),
        "usedCapacity": _percent(in_use, total),
        "numActiveJobs": jobs.get("running", 0),
        "numJobs": jobs.get("all", 0),
        "numPendingJobs": jobs.get("all", 0) - jobs.get("running", 0),
        "resourcesUsed": _with_aliases(in_use),
        "resourcesTotal": _with_aliases(total),
        "resourcesGuaranteed": _with_aliases(total),
        "dedicated": False,
        "nodeList": [],
        "status": "RUNNING" if quota.cluster.enabled and quota.cluster.frozen_at is None else "STOPPED",
    }


def _with_aliases(amounts: Mapping[str, float]) -> dict[str, float]:
    """Return amounts under the names of both versions."""
    return {**amounts, "cpu": amounts["vCores"], "gpu": amounts["GPUs"]}


def _percent(part: Mapping[str, float], whole: Mapping[str, float]) -> float:
    """Return the share of the GPUs in percent, or of the cores where there are no GPUs."""
    kind = "GPUs" if whole["GPUs"] else "vCores"
    return round(100 * part[kind] / whole[kind], 2) if whole[kind] else 0


def list_sku_types(call: Call) -> JsonObject:
    """Return the SKU types of a virtual cluster: the console has none."""
    get_virtual_cluster(call)
    return {}


_NAME: Final = (Parameter("virtualCluster", location=Location.PATH, required=True),)
_MANAGED: Final = "Quotas are managed in the console, or by its site file."
_MOUNTS: Final = ("rest-server/api/v1/virtual-clusters", "rest-server/api/v2/virtual-clusters")


def _operations(mount: str) -> list[Operation]:
    one = f"{mount}/<path:virtualCluster>"
    refused: dict[str, Any] = {
        "scope": "admin",
        "support": Support.REFUSED,
        "note": _MANAGED,
        "parameters": _NAME,
    }
    return [
        Operation("listVirtualClusters", "GET", mount, list_virtual_clusters),
        Operation("getVirtualClusterSkuTypes", "GET", f"{one}/sku-types", list_sku_types, parameters=_NAME),
        Operation("updateVirtualClusterStatus", "PUT", f"{one}/status", None, **refused),
        Operation("getVirtualCluster", "GET", one, get_virtual_cluster, parameters=_NAME),
        Operation("updateVirtualCluster", "PUT", one, None, **refused),
        Operation("deleteVirtualCluster", "DELETE", one, None, **refused),
    ]


OPERATIONS: Final[tuple[Operation, ...]] = tuple(row for mount in _MOUNTS for row in _operations(mount))
