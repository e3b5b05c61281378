"""`JobSpecs` ↔ the roles of a JobSpec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from jobs.dialects import amounts
from jobs.dialects.base import Fix
from jobs.dialects.dlc import role_keys as keys
from jobs.dialects.dlc.completion import Participant
from jobs.dialects.dlc.job_types import JobType
from jobs.dialects.dlc.limits import PAGE
from jobs.dialects.fields import Records, Text
from jobs.dialects.objects import (
    read_fields,
    read_image,
    read_login,
    without_empty,
    write_fields,
    write_login,
)
from jobs.dialects.record import nearest_key
from jobs.dialects.request import Request
from jobs.dialects.text_renderer import JsonObject
from jobs.dialects.variables import as_text, is_usable
from jobs.spec import Bid, NodeChoice, PodContainer, Port, RegistryAuth, Resources, RoleSpec

INSTANCE_TYPES: Final[Mapping[str, Mapping[str, int | str]]] = {
    "ecs.gn6e-c12g1.3xlarge": {"gpus": 1, "gpu_type": "V100", "cpu_milli": 12_000}
}
"""Ready-made sizes (EcsSpec), with those of their amounts that the vendor's pages name.

The one here is that of the CreateJob page's sample: one NVIDIA V100 card; 12 cores by its name.  The full
list, with prices, is the target's own; an admin's catalog may know it.
"""

_AMOUNTS: Final = (keys.CPU, keys.MEMORY, keys.SHARED_MEMORY, keys.GPU, keys.GPU_TYPE)
_LOGIN: Final = (keys.DOCKER_REGISTRY, keys.USERNAME)
_PORTS: Final = 65_536

DEFAULT_LABEL: Final = "default"
"""The label of a service's DefaultPort; ExtraPorts are `port-<number>`."""


@dataclass(frozen=True, slots=True)
class DlcRole:
    """One element of `JobSpecs`; `type` in the job type's own spelling."""

    pointer: str
    type: str
    replicas: int
    command: str
    image: str
    resources: Mapping[str, int | str]
    bid: Bid | None
    nodes: NodeChoice
    ports: tuple[Port, ...]
    registry: RegistryAuth | None
    is_chief: bool
    considered: bool
    least: int | None
    init_containers: tuple[PodContainer, ...]
    sidecars: tuple[PodContainer, ...]
    shared_paths: tuple[str, ...]

    def amounts(self, *, rdma: bool) -> Resources:
        """Return the resources of each replica; called only when nothing was wrong with the file."""
        return Resources.model_validate({**self.resources, "rdma": rdma})


def read(role: Request, job_type: JobType | None, *, has_quota: bool) -> DlcRole:
    """Read one role."""
    bid, nodes, ports = _read_bid(role), _read_nodes(role), _read_ports(role)
    scaling, pod = role.group(keys.AUTO_SCALING_SPEC), role.group(keys.EXTRA_POD_SPEC)
    return DlcRole(
        pointer=role.pointer,
        type=_read_type(role, job_type),
        replicas=role.integer(keys.POD_COUNT),
        command=role.text(keys.USER_COMMAND),
        image=read_image(role, keys.IMAGE, role.pointer),
        resources=_read_resources(role, has_quota=has_quota),
        bid=bid,
        nodes=nodes,
        ports=ports,
        registry=_read_registry(role),
        is_chief=role.flag(keys.IS_CHIEF),
        considered=role.flag(keys.CONSIDERED),
        least=scaling.optional_integer(keys.MIN_REPLICAS),
        init_containers=tuple(_read_containers(pod, keys.INIT_CONTAINERS)),
        sidecars=tuple(_read_containers(pod, keys.SIDECARS)),
        shared_paths=pod.texts(keys.SHARED_PATHS),
    )


def _read_type(role: Request, job_type: JobType | None) -> str:
    """Return the role's type; DLC's own answers spell it in lower case too."""
    written = role.text(keys.TYPE)
    if not written or job_type is None:
        return written
    known = job_type.role(written)
    where = role.at(keys.TYPE.key)
    if known is None:
        near = nearest_key(written, job_type.roles)
        fix, choices = Fix(where, near) if near else None, ", ".join(job_type.roles)
        role.findings.problem("not_a_choice", where, PAGE, fix, key="Type", value=written, choices=choices)
    elif known != written:
        role.findings.note("other_case", where, key="Type", value=written, meant=known)
    return known or written


def _read_resources(role: Request, *, has_quota: bool) -> dict[str, int | str]:
    """Return the amounts of ResourceConfig, if it says any, or those known of the ready-made size.

    Of a size that is not known here, amounts that stand beside it are taken; a catalog may know more.
    """
    size, config = role.text(keys.ECS_SPEC), role.group(keys.RESOURCE_CONFIG)
    has_disk, has_amounts = role.has(keys.SYSTEM_DISK), config.says_any()
    disk = read_fields(role.group(keys.SYSTEM_DISK), (keys.DISK_SIZE,)) if has_disk else {}
    by_amounts = has_amounts and (has_quota or not size)
    beside = has_amounts and size not in INSTANCE_TYPES
    if has_amounts and size:
        taken = keys.RESOURCE_CONFIG.key if by_amounts or beside else keys.ECS_SPEC.key
        role.findings.note("two_sizes", role.at(keys.ECS_SPEC.key), taken=taken)
    if by_amounts:
        return {**read_fields(config, _AMOUNTS), **disk}
    if beside:
        return {**read_fields(config, _AMOUNTS), "instance_type": size, **disk}
    if not size:
        role.findings.note("no_amounts", role.pointer, source=PAGE)
        return disk
    known = known_amounts(size)
    fields = (("CPU", "cpu_milli"), ("Memory", "memory_mib"), ("GPU", "gpus"))
    unknown = ", ".join(name for name, field in fields if field not in known)
    if unknown:
        role.findings.note("amounts_unknown", role.at(keys.ECS_SPEC.key), value=size, unknown=unknown)
    return {**known, **disk}


def known_amounts(size: str) -> dict[str, int | str]:
    """Return what a ready-made size is known to hold, as fields of Resources."""
    return {"instance_type": size, **INSTANCE_TYPES.get(size, {})}


def _read_registry(role: Request) -> RegistryAuth | None:
    if not role.has(keys.IMAGE_CONFIG):
        return None
    return read_login(role.group(keys.IMAGE_CONFIG), keys.PASSWORD, _LOGIN)


def _read_bid(role: Request) -> Bid | None:
    """Return the bid for preemptible machines, by discount or by price."""
    if not (role.has(keys.SPOT_SPEC) or role.has(keys.USE_SPOT)):
        return None
    spot = role.group(keys.SPOT_SPEC)
    at_any_price = role.flag(keys.USE_SPOT)
    strategy = spot.choice(keys.SPOT_STRATEGY)
    discount, price = spot.fraction(keys.SPOT_DISCOUNT), spot.fraction(keys.SPOT_PRICE)
    if strategy != "SpotWithPriceLimit":
        if discount is not None or price is not None:
            role.findings.note("limit_without_strategy", spot.pointer, key=keys.SPOT_STRATEGY.key)
        return Bid() if at_any_price else None
    if discount is not None and price is not None:
        where = spot.at(keys.SPOT_PRICE.key)
        role.findings.problem("exclusive", where, PAGE, key=keys.SPOT_PRICE.key, other=keys.SPOT_DISCOUNT.key)
        return None
    if discount is not None:
        return Bid(discount_percent=_round_down(spot, keys.SPOT_DISCOUNT.key, discount, 100))
    if price is not None:
        return Bid(price_micro=_round_down(spot, keys.SPOT_PRICE.key, price, 1_000_000))
    return Bid()


def _round_down(spot: Request, key: str, value: Decimal, parts: int) -> int:
    """Return `value` in whole parts, rounded down: a bid is the highest price that one would pay."""
    exact = value * parts
    if exact != int(exact):
        taken = amounts.decimal(Decimal(int(exact)) / parts)
        spot.findings.note("rounded_down", spot.at(key), key=key, value=float(value), taken=taken)
    return int(exact)


def _read_nodes(role: Request) -> NodeChoice:
    """Return the nodes by name, when the switch says that the names count."""
    if not role.has(keys.ASSIGN_NODE_SPEC):
        return NodeChoice()
    assign = role.group(keys.ASSIGN_NODE_SPEC)
    only, never = _read_names(assign, keys.NODE_NAMES), _read_names(assign, keys.ANTI_AFFINITY_NODE_NAMES)
    if not assign.flag(keys.ENABLE_ASSIGN_NODE):
        if only or never:
            role.findings.note("switched_off", assign.pointer, key=keys.ENABLE_ASSIGN_NODE.key)
        return NodeChoice()
    return NodeChoice(only=only, never=never)


def _read_names(assign: Request, rule: Text) -> tuple[str, ...]:
    return tuple(name.strip() for name in assign.text(rule).split(",") if name.strip())


def _read_ports(role: Request) -> tuple[Port, ...]:
    """Return the ports of the role's service."""
    if not role.has(keys.SERVICE_SPEC):
        return ()
    service = role.group(keys.SERVICE_SPEC)
    ports = {}
    default = service.optional_integer(keys.DEFAULT_PORT)
    if default is not None:
        ports[DEFAULT_LABEL] = default
    where = service.at(keys.EXTRA_PORTS.key)
    value = service.value.get(keys.EXTRA_PORTS.key, [])
    for index, item in enumerate(value if isinstance(value, list) else [value]):
        text = str(item).strip()
        is_number = not isinstance(item, bool) and text.isascii() and text.isdigit()
        number = int(text[:6]) if is_number else 0
        if 0 < number < _PORTS:
            ports[f"port-{number}"] = number
        else:
            shown = number if is_number else str(item)[:60]
            role.findings.problem("not_a_port", f"{where}/{index}", PAGE, value=shown)
    return tuple(Port(label=label, begin_at=number) for label, number in ports.items())


def _read_containers(pod: Request, rule: Records) -> Iterator[PodContainer]:
    """Yield the containers of a list; an empty one is none."""
    simple, variables = keys.split_container_keys(rule)
    for container in pod.requests(rule):
        if container.raw:
            env = _read_variables(container, variables)
            yield PodContainer(**read_fields(container, simple), env=env)


def _read_variables(container: Request, rule: Records) -> dict[str, str]:
    """Return the variables of a container, in which placeholders stand for secrets."""
    found: dict[str, str] = {}
    for item in container.requests(rule):
        name = as_text(item.value.get("Name"))
        if is_usable(name):
            found[name] = as_text(item.value.get("Value"))
        elif item.value:
            item.findings.note("env_name_unusable", item.pointer, name=name)
    return found


# --- writing ---------------------------------------------------------------------------------------------


def write(
    role: RoleSpec, part: Participant, registry: RegistryAuth | None, command: str, least: int | None
) -> JsonObject:
    """Return one element of `JobSpecs`.

    `command` is what all roles run that say nothing else; `least` the minimum of an elastic one.
    """
    image = {
        keys.IMAGE.key: role.image,
        keys.IMAGE_CONFIG.key: write_login(registry, keys.PASSWORD, _LOGIN),
    }
    return {
        keys.TYPE.key: part.type,
        **without_empty(image),
        keys.POD_COUNT.key: role.replicas,
        **_write_size(role.resources),
        **without_empty(
            {
                keys.SYSTEM_DISK.key: write_fields((keys.DISK_SIZE,), role.resources),
                **_write_bid(role.bid),
                keys.ASSIGN_NODE_SPEC.key: _write_nodes(role.nodes),
                keys.SERVICE_SPEC.key: _write_ports(role),
                keys.AUTO_SCALING_SPEC.key: {} if least is None else {keys.MIN_REPLICAS.key: least},
                keys.CONSIDERED.key: part.considered,
                keys.IS_CHIEF.key: part.is_chief,
                keys.USER_COMMAND.key: role.command if role.command != command else "",
                keys.EXTRA_POD_SPEC.key: _write_pod(role),
            }
        ),
    }


def _write_pod(role: RoleSpec) -> JsonObject:
    return without_empty(
        {
            keys.INIT_CONTAINERS.key: _write_containers(keys.INIT_CONTAINERS, role.init_containers),
            keys.SIDECARS.key: _write_containers(keys.SIDECARS, role.sidecars),
            **write_fields((keys.SHARED_PATHS,), role),
        }
    )


def _write_containers(rule: Records, containers: Sequence[PodContainer]) -> list[JsonObject]:
    simple, variables = keys.split_container_keys(rule)
    return [
        {
            "Name": each.name,
            **write_fields(simple, each),
            **without_empty(
                {variables.key: [{"Name": key, "Value": said} for key, said in each.env.items()]}
            ),
        }
        for each in containers
    ]


def _write_size(has: Resources) -> JsonObject:
    """Return the ready-made size, the amounts, or both: a size alone says all that is known of it."""
    size = has.instance_type
    least = Resources(instance_type=size, disk_mib=has.disk_mib, rdma=has.rdma, shm_mib=has.shm_mib)
    if size and (size in INSTANCE_TYPES or has == least):
        return {keys.ECS_SPEC.key: size}
    shared = has.shm_mib != keys.DEFAULTS.shm_mib
    config = {
        keys.CPU.key: amounts.cores(has.cpu_milli),
        keys.GPU.key: str(has.gpus) if has.gpus else "",
        keys.GPU_TYPE.key: has.gpu_type,
        keys.MEMORY.key: amounts.memory(has.memory_mib),
        keys.SHARED_MEMORY.key: amounts.memory(has.shm_mib) if shared else "",
    }
    return without_empty({keys.ECS_SPEC.key: size, keys.RESOURCE_CONFIG.key: without_empty(config)})


def _write_bid(bid: Bid | None) -> JsonObject:
    if bid is None:
        return {}
    if bid.discount_percent is not None:
        limit: JsonObject = {keys.SPOT_DISCOUNT.key: float(Decimal(bid.discount_percent) / 100)}
    elif bid.price_micro is not None:
        limit = {keys.SPOT_PRICE.key: float(Decimal(bid.price_micro) / 1_000_000)}
    else:
        return {keys.USE_SPOT.key: True}
    return {keys.SPOT_SPEC.key: {keys.SPOT_STRATEGY.key: "SpotWithPriceLimit", **limit}}


def _write_nodes(nodes: NodeChoice) -> JsonObject:
    if not (nodes.only or nodes.never):
        return {}
    return {
        keys.ENABLE_ASSIGN_NODE.key: True,
        **without_empty(
            {
                keys.NODE_NAMES.key: ",".join(nodes.only),
                keys.ANTI_AFFINITY_NODE_NAMES.key: ",".join(nodes.never),
            }
        ),
    }


def _write_ports(role: RoleSpec) -> JsonObject:
    """Return the ports with numbers; those that are to be chosen can't be asked for here."""
    default = [port.begin_at for port in role.ports if port.label == DEFAULT_LABEL and port.begin_at]
    extra = [
        number
        for port in role.ports
        if port.begin_at
        for number in range(port.begin_at, min(port.begin_at + port.count, _PORTS))
        if port.label != DEFAULT_LABEL or number != port.begin_at
    ]
    return without_empty({keys.DEFAULT_PORT.key: next(iter(default), 0), keys.EXTRA_PORTS.key: extra})
