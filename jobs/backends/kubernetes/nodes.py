"""The nodes of a cluster, what is free on them, and whether a job fits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from jobs.backends.base import Gpu, Inventory, NodeSeen, NotSubmitted, QueuedJob
from jobs.backends.kubernetes.config import KubernetesConfig
from jobs.backends.kubernetes.handles import KEY_LABEL, AttemptRef
from jobs.backends.remote.attempts import is_key
from jobs.dialects import amounts
from jobs.dialects.kubeflow.resources import quantity
from jobs.spec import JobSpec, RoleSpec
from jobs.states import Params, Reason, ReasonCode

Object = Mapping[str, Any]

_OVER: Final = frozenset({"Succeeded", "Failed"})
_SERVICES: Final = frozenset({"DaemonSet", "Node"})
"""Owners of pods that belong to their node and are no jobs."""


@dataclass(slots=True)
class Requested:
    """The resources that pods request: on a node, or of one pod."""

    cpu_milli: int = 0
    memory_mib: int = 0
    gpus: int = 0

    def add(self, other: Requested) -> None:
        """Add what another requests."""
        self.cpu_milli += other.cpu_milli
        self.memory_mib += other.memory_mib
        self.gpus += other.gpus


def read_inventory(nodes: Iterable[Object], pods: Sequence[Object], config: KubernetesConfig) -> Inventory:
    """Return the inventory of a cluster with these nodes and pods."""
    used: dict[str, Requested] = defaultdict(Requested)
    live = [pod for pod in pods if (pod.get("status") or {}).get("phase") not in _OVER]
    for pod in live:
        if node := pod["spec"].get("nodeName"):
            used[node].add(requested_by(pod, config))
    seen = sorted((_node(each, used, config) for each in nodes), key=lambda each: each.name)
    jobs = tuple(_jobs(live, config))
    return Inventory(tuple(seen), jobs, facilities=config.facilities())


def requested_by(pod: Object, config: KubernetesConfig) -> Requested:
    """Return what a pod requests: the sum of its containers, or the most of an init container."""
    total = Requested()
    for container in pod["spec"].get("containers") or ():
        total.add(_requests(container, config))
    for container in pod["spec"].get("initContainers") or ():
        most = _requests(container, config)
        total.cpu_milli = max(total.cpu_milli, most.cpu_milli)
        total.memory_mib = max(total.memory_mib, most.memory_mib)
        total.gpus = max(total.gpus, most.gpus)
    overhead = pod["spec"].get("overhead") or {}
    total.add(_amounts(overhead, config))
    return total


def _requests(container: Object, config: KubernetesConfig) -> Requested:
    return _amounts((container.get("resources") or {}).get("requests") or {}, config)


def _amounts(values: Mapping[str, Any], config: KubernetesConfig) -> Requested:
    return Requested(
        _whole(values.get("cpu"), 1000, 1),
        _whole(values.get("memory"), 1, 2**20),
        _whole(values.get(config.gpu_resource), 1, 1),
    )


def _whole(value: Any, times: int, over: int) -> int:
    """Return a quantity of Kubernetes in whole units, rounded up; 0 for none."""
    exact = quantity(str(value)) if value is not None else None
    return amounts.whole(exact * times / over) if exact else 0


def _node(node: Object, used: Mapping[str, Requested], config: KubernetesConfig) -> NodeSeen:
    about, status = node["metadata"], node.get("status") or {}
    name, labels = about["name"], about.get("labels") or {}
    values = status.get("allocatable") or {}
    has, taken = _floor(values, config), used.get(name, Requested())
    kind = config.gpu_type_of(labels.get(config.gpu_label, ""))
    why = "; ".join(_troubles(node, config))
    return NodeSeen(
        name=name,
        cpu_milli=has.cpu_milli,
        memory_mib=has.memory_mib,
        gpus=tuple(Gpu(index, kind) for index in range(has.gpus)),
        free_cpu_milli=max(0, has.cpu_milli - taken.cpu_milli),
        free_memory_mib=max(0, has.memory_mib - taken.memory_mib),
        free_gpus=tuple(range(min(taken.gpus, has.gpus), has.gpus)),
        schedulable=not why,
        why=why,
    )


def _floor(values: Mapping[str, Any], config: KubernetesConfig) -> Requested:
    """Return what a node has, rounded down."""
    found = []
    for name, times, over in (("cpu", 1000, 1), ("memory", 1, 2**20), (config.gpu_resource, 1, 1)):
        exact = quantity(str(values[name])) if name in values else None
        found.append(int(exact * times / over) if exact else 0)
    return Requested(*found)


def _troubles(node: Object, config: KubernetesConfig) -> Iterator[str]:
    """Yield why jobs can't be placed on a node, in the words of Kubernetes."""
    spec, status = node.get("spec") or {}, node.get("status") or {}
    labels = node["metadata"].get("labels") or {}
    ready: Object = next((each for each in status.get("conditions") or () if each.get("type") == "Ready"), {})
    if ready.get("status") != "True":
        yield f"NotReady: {ready.get('message') or ready.get('reason') or 'no status'}"
    if spec.get("unschedulable"):
        yield "SchedulingDisabled"
    tolerated = {*config.tolerations, config.gpu_resource, "node.kubernetes.io/unschedulable"}
    for taint in spec.get("taints") or ():
        is_hard = taint.get("effect") in ("NoSchedule", "NoExecute")
        if is_hard and taint.get("key") not in tolerated and ready.get("status") == "True":
            yield f"{taint.get('key')}={taint.get('value', '')}:{taint.get('effect')}"
    if missing := [key for key, value in config.node_labels.items() if labels.get(key) != value]:
        yield f"no label {', '.join(missing)}"


def _jobs(pods: Iterable[Object], config: KubernetesConfig) -> Iterator[QueuedJob]:
    """Yield the jobs whose pods wait or run, whoever submitted them."""
    groups: dict[tuple[str, str], list[Object]] = defaultdict(list)
    for pod in pods:
        owner: Object = next(iter(pod["metadata"].get("ownerReferences") or ()), {})
        if owner.get("kind") not in _SERVICES:
            groups[pod["metadata"]["namespace"], owner.get("name") or pod["metadata"]["name"]].append(pod)
    for (namespace, name), members in sorted(groups.items()):
        first = members[0]["metadata"]
        key = (first.get("labels") or {}).get(KEY_LABEL, "")
        total, gpus = Requested(), 0
        for pod in members:
            total.add(requested_by(pod, config))
        gpus = total.gpus
        nodes = sorted({pod["spec"]["nodeName"] for pod in members if pod["spec"].get("nodeName")})
        yield QueuedJob(
            number=f"{namespace}/{name}",
            name=name,
            user=namespace,
            running=any((pod.get("status") or {}).get("phase") == "Running" for pod in members),
            handle=AttemptRef(namespace, key).handle if is_key(key) else None,
            cpu_milli=total.cpu_milli,
            memory_mib=total.memory_mib,
            gpus={"": gpus} if gpus else {},
            nodes=tuple(nodes),
        )


# --- room ------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Room:
    """Free resources of a node while a job is placed."""

    node: NodeSeen
    left: Requested = field(default_factory=Requested)

    def take(self, role: RoleSpec) -> bool:
        """Take a replica's share; return whether it was there."""
        has, left = role.resources, self.left
        fits = (
            has.cpu_milli <= left.cpu_milli
            and has.memory_mib <= left.memory_mib
            and has.gpus <= left.gpus
            and (not has.gpus or has.gpu_type in ("", *(gpu.type for gpu in self.node.gpus)))
        )
        if fits:
            left.cpu_milli -= has.cpu_milli
            left.memory_mib -= has.memory_mib
            left.gpus -= has.gpus
        return fits


def check_room(spec: JobSpec, inventory: Inventory) -> None:
    """Raise NotSubmitted where the job does not fit beside what runs now."""
    usable = [node for node in inventory.nodes if node.schedulable]
    if (short := _find_shortage(spec, usable)) is not None:
        resource, wanted = short
        free = sum(_amount(_free_amounts(node), resource) for node in usable)
        asked = sum(_requested_amount(role, resource) * role.replicas for role in spec.roles)
        params: Params = {"resource": resource, "wanted": asked if asked > free else wanted, "free": free}
        raise NotSubmitted(Reason(ReasonCode.WAITING_CAPACITY, params))


def _find_shortage(spec: JobSpec, nodes: Sequence[NodeSeen]) -> tuple[str, int] | None:
    """Place the largest replicas first; return the resource that lacks for one, and its amount."""
    rooms = [_Room(node, _free_amounts(node)) for node in nodes]
    roles = sorted(spec.roles, key=lambda role: (-role.resources.gpus, -role.resources.cpu_milli))
    for role in roles:
        chosen, excluded = role.nodes.only, role.nodes.never
        allowed = [
            room
            for room in rooms
            if room.node.name not in excluded and (not chosen or room.node.name in chosen)
        ]
        for _replica in range(role.replicas):
            if not any(room.take(role) for room in allowed):
                return _find_lacking(role, allowed)
    return None


def _find_lacking(role: RoleSpec, rooms: Sequence[_Room]) -> tuple[str, int]:
    for resource in ("gpu", "cpu_milli", "memory_mib"):
        wanted = _requested_amount(role, resource)
        if wanted > max((_amount(room.left, resource) for room in rooms), default=0):
            return resource, wanted
    return "cpu_milli", role.resources.cpu_milli


def _free_amounts(node: NodeSeen) -> Requested:
    return Requested(node.free_cpu_milli, node.free_memory_mib, len(node.free_gpus))


def _amount(left: Requested, resource: str) -> int:
    return left.gpus if resource == "gpu" else int(getattr(left, resource))


def _requested_amount(role: RoleSpec, resource: str) -> int:
    return role.resources.gpus if resource == "gpu" else int(getattr(role.resources, resource))
