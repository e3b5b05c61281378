"""Resource pools and queues: a pool is a cluster, a queue a quota of the person's workspaces on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Count
from django.http import Http404

from jobs import submission
from jobs.api.vendors.operations import Call, JsonObject
from jobs.models import Job
from jobs.states import LIVE, State
from quotas.amounts import Amounts, total
from quotas.ledger import reports
from quotas.ledger.reports import NodeUse, QuotaUse
from quotas.models import Cluster, Quota, User

COMMON: Final = "common"
"""The type of a pool of one's own machines: each of the console's clusters."""

BEGINNING: Final = "1970-01-01T00:00:00Z"
"""The console does not record when a cluster or a quota was made, and clients read a time."""

_ROOT: Final = "root"
_GPU: Final = "nvidia.com/gpu"
_CONFIGURATION: Final = {
    "exposedPublic": False,
    "forbidDelete": True,
    "deschedulerEnabled": False,
    "unifiedSchedulerEnabled": True,
    "datasetPermissionEnabled": True,
    "volumePermissionEnabled": True,
    "imageNoAuthPullEnabled": False,
    "publicNetInferenceServiceEnable": False,
}
"""What is so in every cluster."""


@dataclass(frozen=True, slots=True)
class Pool:
    """A cluster with its nodes and what is held on them."""

    cluster: Cluster
    nodes: Sequence[NodeUse]

    @property
    def phase(self) -> str:
        """Return `running`, or `unknown` while the cluster does not answer."""
        return "unknown" if self.cluster.trouble else "running"

    @property
    def has(self) -> Amounts:
        """Return what all nodes have."""
        return total(node.has for node in self.nodes)

    @property
    def held(self) -> Amounts:
        """Return what is held on all nodes."""
        return total(node.held for node in self.nodes)


# --- pools -------------------------------------------------------------------------------------------------


def list_pools(user: User) -> list[Pool]:
    """Return the pools that the person may use; three queries."""
    return _load(reports.clusters_of(user))


def find_pool(user: User, slug: str) -> Pool:
    """Return one of the person's pools.  Raises Http404."""
    found = [cluster for cluster in reports.clusters_of(user) if cluster.slug == slug]
    if not found:
        raise Http404
    return _load(found)[0]


def _load(clusters: Sequence[Cluster]) -> list[Pool]:
    nodes: dict[int, list[NodeUse]] = {}
    for use in reports.nodes_of(clusters):
        nodes.setdefault(use.node.cluster_id, []).append(use)
    return [Pool(cluster, nodes.get(cluster.pk, [])) for cluster in clusters]


def describe_pools(call: Call) -> JsonObject:
    """Return the person's pools, as version 2 does."""
    values = call.values
    pools = list_pools(call.person) if values["resourcePoolType"] == COMMON else []
    chosen = _select_pools(pools, values)
    number, size = values["pageNumber"], values["pageSize"]
    return {
        **{name: values[name] for name in ("keywordType", "keyword", "orderBy", "order")},
        "pageNumber": number,
        "pageSize": size,
        "totalCount": len(chosen),
        "resourcePools": [_render_pool(pool) for pool in _page(chosen, number, size)],
    }


def describe_pools_v1(call: Call) -> JsonObject:
    """Return the person's pools, as version 1 does."""
    values = call.values
    chosen = _select_pools(list_pools(call.person), values)
    return {
        "resourcePools": [
            _render_pool_v1(pool) for pool in _page(chosen, values["pageNo"], values["pageSize"])
        ],
        "total": len(chosen),
        **{name: values[name] for name in ("orderBy", "order", "pageNo", "pageSize")},
    }


def describe_pool(call: Call) -> JsonObject:
    """Return one pool, as version 2 does: flat."""
    return _render_pool(find_pool(call.person, call.values["resourcePoolId"]))


def describe_pool_v1(call: Call) -> JsonObject:
    """Return one pool, as version 1 does."""
    return {"resourcePool": _render_pool_v1(find_pool(call.person, call.values["poolId"]))}


def describe_configuration(call: Call) -> JsonObject:
    """Return what is the same in every pool."""
    pool = find_pool(call.person, call.values["resourcePoolId"])
    return {"resourcePoolId": pool.cluster.slug, "configuration": dict(_CONFIGURATION)}


def describe_overview(call: Call) -> JsonObject:
    """Return the sums over the person's pools."""
    pools = list_pools(call.person)
    nodes = [node for pool in pools for node in pool.nodes]
    each = [
        {
            "resourcePoolId": pool.cluster.slug,
            "type": COMMON,
            "name": pool.cluster.name,
            **_statistics(pool.nodes),
        }
        for pool in pools
    ]
    sums = {"type": COMMON, **_statistics(nodes), "resourcePoolStatistics": each}
    return {"resourcePoolsStatisticWithType": [sums]}


def _select_pools(pools: Iterable[Pool], values: Mapping[str, Any]) -> list[Pool]:
    def name(pool: Pool, kind: str) -> str:
        return pool.cluster.slug if kind in {"resourcePoolId", "id"} else pool.cluster.name

    keyword = (values["keyword"] or "").lower()
    found = [pool for pool in pools if keyword in name(pool, values["keywordType"]).lower()]
    is_descending = (values["order"] or "").lower() == "desc"
    return sorted(
        found, key=lambda pool: (name(pool, values["orderBy"]), pool.cluster.pk), reverse=is_descending
    )


def _page(rows: Sequence[Any], number: int, size: int) -> Sequence[Any]:
    return rows[(number - 1) * size : number * size]


def _render_pool(pool: Pool) -> JsonObject:
    return {
        "resourcePoolId": pool.cluster.slug,
        "type": COMMON,
        "name": pool.cluster.name,
        "region": pool.cluster.region,
        "description": "",
        "configuration": dict(_CONFIGURATION),
        "createdAt": BEGINNING,
        "updatedAt": BEGINNING,
        "phase": pool.phase,
        "nodeNum": len(pool.nodes),
        "associatedResources": [],
        "pluginNames": [],
        "bindingStorages": [],
        "bindingMonitor": [],
    }


def _render_pool_v1(pool: Pool) -> JsonObject:
    has, held = pool.has, pool.held
    is_full = [node.has.gpu_count and node.held.gpu_count >= node.has.gpu_count for node in pool.nodes]
    return {
        "metadata": {
            "id": pool.cluster.slug,
            "name": pool.cluster.name,
            "createdAt": BEGINNING,
            "updatedAt": BEGINNING,
        },
        "spec": {
            "k8sVersion": "",
            "associatedCpromIds": [],
            "associatedPfsId": "",
            "createdBy": "",
            "description": "",
            "forbidDelete": True,
            "region": pool.cluster.region,
        },
        "status": {
            "phase": pool.phase,
            "nodeCount": {"total": len(pool.nodes), "used": sum(map(bool, is_full))},
            "gpuCount": {"total": has.gpu_count, "used": held.gpu_count},
            "gpuDetail": [
                {"gpuDescriptor": kind or _GPU, "total": count, "used": held.gpus.get(kind, 0)}
                for kind, count in sorted(has.gpus.items())
            ],
        },
    }


def _statistics(nodes: Sequence[NodeUse]) -> JsonObject:
    has, held = total(node.has for node in nodes), total(node.held for node in nodes)
    by_type = [
        {"acceleratorType": kind, **_statistic("Accelerator", count, held.gpus.get(kind, 0))}
        for kind, count in sorted(has.gpus.items())
    ]
    accelerators = _statistic("Accelerator", has.gpu_count, held.gpu_count)
    return {
        "nodesStatistic": {"totalCount": len(nodes)},
        "acceleratorsStatistic": {**accelerators, "acceleratorStatistics": by_type},
        "resourcesStatistic": [
            _statistic("CPU", has.cpu_milli, held.cpu_milli),
            _statistic("Memory", has.memory_mib * 2**20, held.memory_mib * 2**20),
        ],
    }


def _statistic(kind: str, capacity: int, allocated: int) -> JsonObject:
    return {
        "resourceType": kind,
        "capacity": capacity,
        "allocated": allocated,
        "idle": max(0, capacity - allocated),
        "allocationRate": allocated / capacity if capacity else 0,
        "utilizationRate": 0,
    }


# --- queues ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Queue:
    """A quota, what is held in it, its id, and the number of its jobs in each state."""

    use: QuotaUse
    queue_id: str
    jobs: Mapping[str, int]

    @property
    def quota(self) -> Quota:
        """Return the quota."""
        return self.use.quota

    @property
    def running(self) -> int:
        """Return how many jobs run or are about to."""
        return sum(self.jobs.get(state.value, 0) for state in LIVE)

    @property
    def pending(self) -> int:
        """Return how many jobs wait."""
        return self.jobs.get(State.QUEUED.value, 0)


def list_queues(user: User, clusters: Sequence[Cluster]) -> list[Queue]:
    """Return the person's queues on clusters; five queries.

    The id of a queue is the quota's short name, or its whole address where two on one cluster are called so.
    """
    uses = reports.quotas_on(user, clusters)
    slugs = Counter((use.quota.cluster_id, use.quota.slug) for use in uses)
    rows = Job.objects.filter(quota__in=[use.quota.pk for use in uses], deleted_at=None)
    rows = rows.filter(state__in=[State.QUEUED.value, *(state.value for state in LIVE)])
    counts: dict[int, dict[str, int]] = {}
    for quota_id, state, count in (
        rows.values_list("quota_id", "state").annotate(number=Count("pk")).order_by()
    ):
        counts.setdefault(quota_id, {})[state] = count
    return [
        Queue(
            use,
            use.quota.slug
            if slugs[use.quota.cluster_id, use.quota.slug] == 1
            else submission.target_address(use.quota),
            counts.get(use.quota.pk, {}),
        )
        for use in uses
    ]


def describe_queues(call: Call) -> JsonObject:
    """Return the queues of a pool, as version 2 does."""
    values = call.values
    found = _select_queues(call, values["resourcePoolId"])
    number, size = values["pageNumber"], values["pageSize"]
    return {
        "keywordType": values["keywordType"],
        "keyword": values["keyword"],
        "pageNumber": number,
        "pageSize": size,
        "totalCount": len(found),
        "queues": [_render_queue(queue) for queue in _page(found, number, size)],
    }


def describe_queues_v1(call: Call) -> JsonObject:
    """Return the queues of a pool, as version 1 does."""
    values = call.values
    found = _select_queues(call, values["poolId"])
    return {
        "queues": [_render_queue_v1(queue) for queue in _page(found, values["pageNo"], values["pageSize"])],
        "total": len(found),
        **{name: values[name] for name in ("orderBy", "order", "pageNo", "pageSize")},
    }


def describe_queue(call: Call) -> JsonObject:
    """Return one queue, as version 2 does: flat; of equal names that of the first pool."""
    queues = list_queues(call.person, reports.clusters_of(call.person))
    return _render_queue(_find_queue(queues, call.values["queueId"]))


def describe_queue_v1(call: Call) -> JsonObject:
    """Return one queue of a pool, as version 1 does."""
    pool = find_pool(call.person, call.values["poolId"])
    queues = list_queues(call.person, [pool.cluster])
    return {"queue": _render_queue_v1(_find_queue(queues, call.values["queue"]))}


def _find_queue(queues: Iterable[Queue], name: str) -> Queue:
    for queue in queues:
        if name in {queue.queue_id, queue.quota.slug, submission.target_address(queue.quota)}:
            return queue
    raise Http404


def _select_queues(call: Call, pool_id: str) -> list[Queue]:
    pool = find_pool(call.person, pool_id)
    keyword = (call.values["keyword"] or "").lower()
    queues = list_queues(call.person, [pool.cluster])
    return [
        queue for queue in queues if keyword in queue.queue_id.lower() or keyword in queue.quota.name.lower()
    ]


def _limits(quota: Quota) -> Amounts:
    """Return a quota's limits; nothing where there is none."""
    typed = {kind: count for kind, count in quota.gpus_by_type.items() if count}
    rest = (quota.gpus or 0) - sum(typed.values())
    gpus = {**typed, **({"": rest} if rest > 0 else {})}
    return Amounts(quota.cpu_milli or 0, quota.memory_mib or 0, gpus)


def _parent(quota: Quota) -> str:
    return quota.parent.slug if quota.parent else _ROOT


def _render_queue(queue: Queue) -> JsonObject:
    quota = queue.quota
    limits = _render_amounts(_limits(quota))
    return {
        "queueId": queue.queue_id,
        "queueName": quota.slug,
        "description": quota.name,
        "queueType": "Elastic" if quota.may_borrow else "Regular",
        "resourcePoolId": quota.cluster.slug,
        "createdAt": BEGINNING,
        "updatedAt": BEGINNING,
        "parentQueue": _parent(quota),
        "children": [],
        "opened": quota.accepts_jobs and quota.cluster.enabled,
        "reclaimable": quota.may_borrow,
        "preemptable": False,
        "disableOversell": not quota.may_borrow,
        "capability": limits,
        "deserved": limits,
        "guarantee": limits,
        "allocated": _render_amounts(queue.use.held),
        "runningJobs": queue.running,
        "inqueueJobs": 0,
        "pendingJobs": queue.pending,
        "bindingNodes": [],
    }


def _render_amounts(amounts: Amounts) -> JsonObject:
    return {
        "milliCPUcores": str(amounts.cpu_milli),
        "memoryGi": f"{amounts.memory_mib / 1024:g}",
        "acceleratorCardList": [
            {"acceleratorType": kind or _GPU, "acceleratorCount": str(count)}
            for kind, count in sorted(amounts.gpus.items())
        ],
    }


def _render_queue_v1(queue: Queue) -> JsonObject:
    quota = queue.quota
    limits = _render_list(_limits(quota))
    return {
        "name": queue.queue_id,
        "description": quota.name,
        "createdTime": BEGINNING,
        "parentQueue": _parent(quota),
        "queueType": "Elastic" if quota.may_borrow else "Regular",
        "state": "Open" if quota.accepts_jobs and quota.cluster.enabled else "Closed",
        "opened": quota.accepts_jobs and quota.cluster.enabled,
        "reclaimable": quota.may_borrow,
        "disableOversell": not quota.may_borrow,
        "capability": limits,
        "deserved": limits,
        "guarantee": limits,
        "allocated": _render_list(queue.use.held),
        "running": queue.running,
        "inqueue": 0,
        "pending": queue.pending,
    }


def _render_list(amounts: Amounts) -> dict[str, str]:
    """Return amounts as Kubernetes' resource list; GPUs of all types are one, as clients add them up."""
    return {
        "cpu": f"{amounts.cpu_milli / 1000:g}",
        "memory": f"{amounts.memory_mib}Mi",
        _GPU: str(amounts.gpu_count),
    }
