"""Capacity of a Ray cluster: its nodes and GPU types, what is free of them, and who has the rest."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from jobs.backends.base import Gpu, Handle, NodeSeen, NotSubmitted, QueuedJob
from jobs.backends.ray.client import Bundle, RayClient, RayJob, RayNode
from jobs.backends.ray.config import RayConfig
from jobs.backends.remote.attempts import is_key
from jobs.spec import NodeChoice, ResourceRequest
from jobs.states import Params, Reason, ReasonCode

TYPE_LABEL: Final = "ray.io/accelerator-type"
ID_LABEL: Final = "ray.io/node-id"
TYPE_RESOURCE: Final = "accelerator_type:"
TYPE_SHARE: Final = 0.001
"""A node has one unit of such a resource, whatever the number of its GPUs."""

MIB: Final = 1 << 20
_SUBMISSION: Final = "SUBMISSION"
_SHARE_OF_GROUP: Final = re.compile(r"(?P<name>.+)Group[0-9A-Fa-f]{36}")
"""The name of a group's share of a node's resource; those of single bundles have a number more."""

Requirements = tuple[Mapping[str, float], Mapping[str, str]]
"""The resources and the node's labels that a replica's bundle requires."""


@dataclass(slots=True)
class NodeCapacity:
    """A node, with what is free of it in Ray's words; `gpu_type` is "" where Ray does not tell."""

    node: RayNode
    gpu_type: str
    type_resource: str
    free: dict[str, float] = field(default_factory=dict)

    def holds(self, requirements: Requirements) -> bool:
        """Return whether a bundle fits now."""
        resources, labels = requirements
        fits = all(self.free.get(name, 0) >= amount - 1e-6 for name, amount in resources.items())
        return fits and all(_selects(value, self.node.labels.get(name)) for name, value in labels.items())

    def take(self, requirements: Requirements) -> None:
        """Count a bundle as used."""
        for name, amount in requirements[0].items():
            self.free[name] = self.free.get(name, 0) - amount


def read_nodes(client: RayClient, config: RayConfig) -> tuple[list[NodeCapacity], list[Bundle]]:
    """Return the nodes that live, and the bundles on them.  Raises Unreachable.

    Bundles are known at once, other tasks and actors after some seconds.
    """
    bundles, usage = list(client.list_bundles()), client.read_usage()
    found = []
    for node in sorted(client.list_nodes(), key=lambda node: node.name):
        if not node.is_alive:
            continue
        held: dict[str, float] = {}
        for bundle in bundles:
            if bundle.node_id == node.node_id:
                for name, amount in bundle.resources.items():
                    held[name] = held.get(name, 0) + amount
        others = _used_by_others(usage.get(node.node_id, {}))
        free = {
            name: max(0.0, whole - held.get(name, 0) - others.get(_camel(name), 0))
            for name, whole in node.resources.items()
        }
        found.append(NodeCapacity(node, *_type_of(node, config), free))
    return found, bundles


def _used_by_others(usage: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return what is used of a node outside of placement groups, by the names of the cluster's status.

    There a group's share of a node is a resource of its own, whose amount counts as used of the node.
    """
    used = {name: amounts[0] for name, amounts in usage.items()}
    for name, amounts in usage.items():
        if (match := _SHARE_OF_GROUP.fullmatch(name)) is not None:
            used[match["name"]] = used.get(match["name"], 0) - amounts[1]
    return {name: max(0.0, amount) for name, amount in used.items()}


def require(ask: ResourceRequest, choice: NodeChoice, nodes: Sequence[NodeCapacity]) -> Requirements:
    """Return what a replica's bundle requires.  Raises NotSubmitted where no node has such GPUs."""
    resources: dict[str, float] = {"CPU": ask.cpu_milli / 1000, "memory": ask.memory_mib * MIB}
    labels = dict(choice.labels)
    ids = {each.node.name: each.node.node_id for each in nodes}
    if choice.only:
        allowed = [ids[name] for name in choice.only if name in ids and name not in choice.never]
        labels[ID_LABEL] = f"in({','.join(allowed)})"
    elif never := [ids[name] for name in choice.never if name in ids]:
        labels[ID_LABEL] = f"!in({','.join(never)})"
    if not ask.gpus:
        return resources, labels
    resources["GPU"] = ask.gpus
    if not ask.gpu_type:
        return resources, labels
    wanted = ask.gpu_type.casefold()
    alike = [node for node in nodes if node.gpu_type and wanted in node.gpu_type.casefold()]
    if not alike:
        raise NotSubmitted(Reason(ReasonCode.NO_SUCH_GPU, {"gpu_type": ask.gpu_type}))
    best = max(alike, key=lambda node: node.free.get("GPU", 0))
    if not best.type_resource:
        return resources, {**labels, TYPE_LABEL: best.gpu_type}
    share = TYPE_SHARE if best.type_resource.startswith(TYPE_RESOURCE) else ask.gpus
    return {**resources, best.type_resource: share}, labels


def _selects(selector: str, value: str | None) -> bool:
    """Return whether a node with that label is selected, in Ray's words: `a`, `in(a,b)` or `!in(a,b)`."""
    words, _, rest = selector.partition("in(")
    if words not in ("", "!") or not rest.endswith(")"):
        return value == selector
    return (value in rest.removesuffix(")").split(",")) is (words == "")


def place_replicas(
    needed: Sequence[tuple[ResourceRequest, Requirements]], nodes: Sequence[NodeCapacity]
) -> None:
    """Count all replicas as used, the largest first.  Raises NotSubmitted where they don't fit at once."""
    each = [(ask, wanted) for ask, wanted in needed for _ in range(ask.replicas)]
    for ask, wanted in sorted(each, key=lambda pair: (-pair[0].gpus, -pair[0].cpu_milli)):
        node = next((node for node in nodes if node.holds(wanted)), None)
        if node is None:
            raise _lack(ask, nodes)
        node.take(wanted)


def _lack(ask: ResourceRequest, nodes: Sequence[NodeCapacity]) -> NotSubmitted:
    """Return the exception that names what is missing on the emptiest node."""
    free_gpus = max((int(node.free.get("GPU", 0)) for node in nodes), default=0)
    free_cpu = max((math.floor(node.free.get("CPU", 0) * 1000) for node in nodes), default=0)
    free_mib = max((int(node.free.get("memory", 0) // MIB) for node in nodes), default=0)
    resource, wanted, free = "memory_mib", ask.memory_mib, free_mib
    if ask.gpus > free_gpus:
        resource, wanted, free = "gpu", ask.gpus, free_gpus
    elif ask.cpu_milli > free_cpu:
        resource, wanted, free = "cpu_milli", ask.cpu_milli, free_cpu
    params: Params = {"resource": resource, "wanted": wanted, "free": max(0, free)}
    return NotSubmitted(Reason(ReasonCode.WAITING_CAPACITY, params))


def describe_node(capacity: NodeCapacity) -> NodeSeen:
    """Return a node as the console shows it."""
    whole, free = capacity.node.resources, capacity.free
    count, left = int(whole.get("GPU", 0)), int(free.get("GPU", 0) + 1e-6)
    return NodeSeen(
        name=capacity.node.name,
        cpu_milli=round(whole.get("CPU", 0) * 1000),
        memory_mib=int(whole.get("memory", 0) // MIB),
        gpus=tuple(Gpu(index, capacity.gpu_type) for index in range(count)),
        free_cpu_milli=round(free.get("CPU", 0) * 1000),
        free_memory_mib=int(free.get("memory", 0) // MIB),
        free_gpus=tuple(range(count - left, count)),
    )


def list_queue(
    jobs: Sequence[RayJob], bundles: Sequence[Bundle], names: Mapping[str, str]
) -> Iterator[QueuedJob]:
    """Yield the jobs that wait or run, whoever submitted them; `names` are those of nodes by their ids.

    Ray tells no user.
    """
    for job in jobs:
        if not job.is_active:
            continue
        is_ours = job.kind == _SUBMISSION and is_key(job.submission_id)
        held = [
            each
            for each in bundles
            if each.job_id == job.job_id or (is_ours and each.group == job.submission_id)
        ]
        yield QueuedJob(
            number=job.submission_id or job.job_id,
            name=job.submission_id or job.entrypoint[:100] or job.job_id,
            user="",
            running=job.status == "RUNNING",
            handle=Handle(job.submission_id) if is_ours else None,
            cpu_milli=round(sum(each.resources.get("CPU", 0) for each in held) * 1000),
            memory_mib=int(sum(each.resources.get("memory", 0) for each in held) // MIB),
            nodes=tuple(sorted({names[each.node_id] for each in held if each.node_id in names})),
            started_at=job.started_at,
        )


def _type_of(node: RayNode, config: RayConfig) -> tuple[str, str]:
    """Return the type of a node's GPUs, and the resource that requests it ("" for its label)."""
    if not node.resources.get("GPU"):
        return "", ""
    for name in config.gpu_resources:
        if node.resources.get(name):
            return name, name
    if found := node.labels.get(TYPE_LABEL):
        return found, ""
    for name in node.resources:
        if name.startswith(TYPE_RESOURCE):
            return name.removeprefix(TYPE_RESOURCE), name
    return "", ""


def _camel(name: str) -> str:
    """Return a resource's name as the dashboard spells it in the cluster's status."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
