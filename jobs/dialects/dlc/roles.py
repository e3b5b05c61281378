"""`JobSpecs` → the roles of a JobSpec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from jobs.dialects import amounts, placeholders
from jobs.dialects.base import Fix
from jobs.dialects.dlc import role_keys as keys
from jobs.dialects.dlc.instance_types import INSTANCE_TYPES
from jobs.dialects.dlc.job_types import JobType
from jobs.dialects.dlc.limits import PAGE
from jobs.dialects.fields import Text
from jobs.dialects.record import nearest_key
from jobs.dialects.request import Request
from jobs.spec import Bid, NodeChoice, Port, RegistryAuth, Resources, SecretRef

DEFAULT_LABEL: Final = "default"
"""The label of a service's DefaultPort; ExtraPorts are `port-<number>`."""


@dataclass(frozen=True, slots=True)
class Role:
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

    def amounts(self, *, rdma: bool) -> Resources:
        """The resources of each replica; called only when nothing was wrong with the file."""
        return Resources.model_validate({**self.resources, "rdma": rdma})


def read(role: Request, job_type: JobType | None, *, has_quota: bool) -> Role:
    """One role."""
    bid, nodes, ports = _bid(role), _nodes(role), _ports(role)
    return Role(
        pointer=role.pointer,
        type=_type(role, job_type),
        replicas=role.integer(keys.POD_COUNT),
        command=role.text(keys.USER_COMMAND),
        image=_image(role),
        resources=_resources(role, has_quota=has_quota),
        bid=bid,
        nodes=nodes,
        ports=ports,
        registry=_registry(role.group(keys.IMAGE_CONFIG)) if role.has(keys.IMAGE_CONFIG) else None,
        is_chief=role.flag(keys.IS_CHIEF),
        considered=role.flag(keys.CONSIDERED),
    )


def _type(role: Request, job_type: JobType | None) -> str:
    """The role's type; DLC's own answers spell it in lower case too."""
    written = role.text(keys.TYPE)
    if not written or job_type is None:
        return written
    known = job_type.role(written)
    where = role.at(keys.TYPE.key)
    if known is None:
        choices = ", ".join(job_type.roles)
        near = nearest_key(written, job_type.roles)
        role.findings.problem(
            "not_a_choice",
            where,
            PAGE,
            Fix(where, near) if near else None,
            key="Type",
            value=written,
            choices=choices,
        )
    elif known != written:
        role.findings.note("other_case", where, key="Type", value=written, meant=known)
    return known or written


def _image(role: Request) -> str:
    image = role.text(keys.IMAGE)
    if not image:
        role.findings.note("no_image", role.pointer, key=keys.IMAGE.key)
    return image


def _resources(role: Request, *, has_quota: bool) -> dict[str, int | str]:
    """The amounts: of ResourceConfig, if it says any, or what is known of the ready-made size.

    Of a size that is not known here, amounts that stand beside it are taken; a catalog may know more.
    """
    size, config = role.text(keys.ECS_SPEC), role.group(keys.RESOURCE_CONFIG)
    disk = role.group(keys.SYSTEM_DISK).integer(keys.DISK_SIZE) if role.has(keys.SYSTEM_DISK) else 0
    by_amounts = config.says_any() and (has_quota or not size)
    beside = config.says_any() and size not in INSTANCE_TYPES
    if config.says_any() and size:
        taken = keys.RESOURCE_CONFIG.key if by_amounts or beside else keys.ECS_SPEC.key
        role.findings.note("two_sizes", role.at(keys.ECS_SPEC.key), taken=taken)
    if by_amounts:
        return {**_amounts(config), "disk_mib": disk * 1024}
    if beside:
        return {**_amounts(config), "instance_type": size, "disk_mib": disk * 1024}
    if size:
        return {**_known(role, size), "disk_mib": disk * 1024}
    role.findings.note("no_amounts", role.pointer, source=PAGE)
    return {"disk_mib": disk * 1024}


def _amounts(config: Request) -> dict[str, int | str]:
    return {
        "cpu_milli": config.amount(keys.CPU),
        "memory_mib": config.amount(keys.MEMORY),
        "shm_mib": config.amount(keys.SHARED_MEMORY),
        "gpus": config.amount(keys.GPU),
        "gpu_type": config.text(keys.GPU_TYPE),
    }


def known_amounts(size: str) -> dict[str, int | str]:
    """What a ready-made size is known to hold, as fields of Resources."""
    holds = INSTANCE_TYPES.get(size)
    amounts_known: dict[str, int | str] = {"instance_type": size}
    if holds:
        amounts_known |= {"gpus": holds.gpus, "gpu_type": holds.gpu_type}
        for name, amount in (("cpu_milli", holds.cpu_milli), ("memory_mib", holds.memory_mib)):
            if amount is not None:
                amounts_known[name] = amount
    return amounts_known


def _known(role: Request, size: str) -> dict[str, int | str]:
    holds = INSTANCE_TYPES.get(size)
    unknown = [
        name
        for name, there in (
            ("CPU", holds and holds.cpu_milli),
            ("Memory", holds and holds.memory_mib),
            ("GPU", holds),
        )
        if not there
    ]
    if unknown:
        role.findings.note(
            "amounts_unknown", role.at(keys.ECS_SPEC.key), value=size, unknown=", ".join(unknown)
        )
    return known_amounts(size)


def _registry(config: Request) -> RegistryAuth | None:
    """The login for the image; its password has become a placeholder."""
    password = placeholders.reference(config.text(keys.PASSWORD))
    registry, username = config.text(keys.DOCKER_REGISTRY), config.text(keys.USERNAME)
    if not (password or registry or username):
        return None
    secret = SecretRef(name=password) if password else None
    return RegistryAuth(registry=registry, username=username, password=secret)


def _bid(role: Request) -> Bid | None:
    """The bid for preemptible machines, by discount or by price."""
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
        return Bid(discount_percent=_rounded(spot, keys.SPOT_DISCOUNT.key, discount, 100))
    if price is not None:
        return Bid(price_micro=_rounded(spot, keys.SPOT_PRICE.key, price, 1_000_000))
    return Bid()


def _rounded(spot: Request, key: str, value: Decimal, parts: int) -> int:
    """`value` in whole parts, downwards: a bid is the highest that one would pay."""
    exact = value * parts
    if exact != int(exact):
        taken = amounts.decimal(Decimal(int(exact)) / parts)
        spot.findings.note("rounded_down", spot.at(key), key=key, value=float(value), taken=taken)
    return int(exact)


def _nodes(role: Request) -> NodeChoice:
    """Nodes by name, when the switch says that the names count."""
    if not role.has(keys.ASSIGN_NODE_SPEC):
        return NodeChoice()
    assign = role.group(keys.ASSIGN_NODE_SPEC)
    only, never = _names(assign, keys.NODE_NAMES), _names(assign, keys.ANTI_AFFINITY_NODE_NAMES)
    if not assign.flag(keys.ENABLE_ASSIGN_NODE):
        if only or never:
            role.findings.note("switched_off", assign.pointer, key=keys.ENABLE_ASSIGN_NODE.key)
        return NodeChoice()
    return NodeChoice(only=only, never=never)


def _names(assign: Request, rule: Text) -> tuple[str, ...]:
    return tuple(name.strip() for name in assign.text(rule).split(",") if name.strip())


def _ports(role: Request) -> tuple[Port, ...]:
    """The ports of the role's service."""
    if not role.has(keys.SERVICE_SPEC):
        return ()
    service = role.group(keys.SERVICE_SPEC)
    ports = {}
    default = service.optional_integer(keys.DEFAULT_PORT)
    if default is not None:
        ports[DEFAULT_LABEL] = default
    for index, number in enumerate(_numbers(service)):
        if not 0 < number <= 65_535:
            where = f"{service.at(keys.EXTRA_PORTS.key)}/{index}"
            role.findings.problem("not_a_port", where, PAGE, value=number)
        else:
            ports[f"port-{number}"] = number
    return tuple(Port(label=label, begin_at=number) for label, number in ports.items())


def _numbers(service: Request) -> tuple[int, ...]:
    """ExtraPorts: a list of numbers, or of numbers in quotes."""
    value = service.value.get(keys.EXTRA_PORTS.key, [])
    items = value if isinstance(value, list) else [value]
    numbers = []
    for index, item in enumerate(items):
        text = str(item).strip()
        if isinstance(item, bool) or not (text.isascii() and text.isdigit()):
            where = f"{service.at(keys.EXTRA_PORTS.key)}/{index}"
            service.findings.problem("not_a_port", where, PAGE, value=str(item)[:60])
            numbers.append(1)
        else:
            numbers.append(int(text[:6]))
    return tuple(numbers)
