"""A role of a JobSpec → one element of `JobSpecs`."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Final

from jobs.dialects import amounts, placeholders
from jobs.dialects.dlc import role_keys as keys
from jobs.dialects.dlc.completion import Part
from jobs.dialects.dlc.instance_types import INSTANCE_TYPES
from jobs.dialects.dlc.roles import DEFAULT_LABEL
from jobs.dialects.rendering import JsonObject
from jobs.spec import Bid, NodeChoice, RegistryAuth, Resources, TaskRole

_PORTS: Final = 65_536


def document(role: TaskRole, part: Part, registry: RegistryAuth | None, command: str) -> JsonObject:
    """The element; `command` is what all roles run that say nothing else."""
    return {
        keys.TYPE.key: part.type,
        **_if(keys.IMAGE.key, role.image),
        **_if(keys.IMAGE_CONFIG.key, _registry(registry)),
        keys.POD_COUNT.key: role.replicas,
        **_size(role.resources),
        **_if(keys.SYSTEM_DISK.key, _disk(role.resources)),
        **_bid(role.bid),
        **_if(keys.ASSIGN_NODE_SPEC.key, _nodes(role.nodes)),
        **_if(keys.SERVICE_SPEC.key, _ports(role)),
        **_if(keys.CONSIDERED.key, part.considered),
        **_if(keys.IS_CHIEF.key, part.is_chief),
        **_if(keys.USER_COMMAND.key, role.command if role.command != command else ""),
    }


def _if(key: str, value: object) -> JsonObject:
    """The member, if there is something to say."""
    return {key: value} if value else {}


def _registry(auth: RegistryAuth | None) -> JsonObject:
    if auth is None:
        return {}
    password = placeholders.placeholder(auth.password.name) if auth.password else ""
    return {
        **_if(keys.DOCKER_REGISTRY.key, auth.registry),
        **_if(keys.USERNAME.key, auth.username),
        **_if(keys.PASSWORD.key, password),
    }


def _size(has: Resources) -> JsonObject:
    if has.instance_type and (has.instance_type in INSTANCE_TYPES or not _says_amounts(has)):
        return {keys.ECS_SPEC.key: has.instance_type}
    shared = has.shm_mib != keys.DEFAULTS.shm_mib
    return {
        **_if(keys.ECS_SPEC.key, has.instance_type),
        keys.RESOURCE_CONFIG.key: {
            keys.CPU.key: amounts.cores(has.cpu_milli),
            **({keys.GPU.key: str(has.gpus)} if has.gpus else {}),
            **_if(keys.GPU_TYPE.key, has.gpu_type),
            keys.MEMORY.key: amounts.memory(has.memory_mib),
            **({keys.SHARED_MEMORY.key: amounts.memory(has.shm_mib)} if shared else {}),
        },
    }


def _says_amounts(has: Resources) -> bool:
    """Whether it asks for more than the least, beside the size that it names."""
    least = Resources(
        instance_type=has.instance_type, disk_mib=has.disk_mib, rdma=has.rdma, shm_mib=has.shm_mib
    )
    return has != least


def _disk(has: Resources) -> JsonObject:
    return _if(keys.DISK_SIZE.key, math.ceil(has.disk_mib / 1024))


def _bid(bid: Bid | None) -> JsonObject:
    if bid is None:
        return {}
    if bid.discount_percent is not None:
        limit: JsonObject = {keys.SPOT_DISCOUNT.key: float(Decimal(bid.discount_percent) / 100)}
    elif bid.price_micro is not None:
        limit = {keys.SPOT_PRICE.key: float(Decimal(bid.price_micro) / 1_000_000)}
    else:
        return {keys.USE_SPOT.key: True}
    return {keys.SPOT_SPEC.key: {keys.SPOT_STRATEGY.key: "SpotWithPriceLimit", **limit}}


def _nodes(nodes: NodeChoice) -> JsonObject:
    if not (nodes.only or nodes.never):
        return {}
    return {
        keys.ENABLE_ASSIGN_NODE.key: True,
        **_if(keys.NODE_NAMES.key, ",".join(nodes.only)),
        **_if(keys.ANTI_AFFINITY_NODE_NAMES.key, ",".join(nodes.never)),
    }


def _ports(role: TaskRole) -> JsonObject:
    """Ports with numbers; those that are to be chosen can't be asked for here."""
    default = [port.begin_at for port in role.ports if port.label == DEFAULT_LABEL and port.begin_at]
    extra = [
        number
        for port in role.ports
        if port.begin_at
        for number in range(port.begin_at, min(port.begin_at + port.count, _PORTS))
        if port.label != DEFAULT_LABEL or number != port.begin_at
    ]
    return {**_if(keys.DEFAULT_PORT.key, default[0] if default else 0), **_if(keys.EXTRA_PORTS.key, extra)}
