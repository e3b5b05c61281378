"""`resources` of a JobSpec: names with quantities ↔ amounts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from jobs.dialects.aihc import keys
from jobs.dialects.fields import Amount
from jobs.dialects.objects import as_object
from jobs.dialects.request import Request
from jobs.dialects.text_renderer import JsonObject
from jobs.spec import Resources

RDMA_SHARED_MIB: Final = 10 * 1024
"""The shared memory that RDMA brings along (AIHC page)."""

RDMA_DEVICE: Final = "rdma/hca"
ANY_GPU: Final = "nvidia.com/gpu"
_VENDOR: Final = "baidu.com/"
_GPU: Final = re.compile(r"(?:baidu\.com/(?P<type>[A-Za-z0-9_.\-]+)|nvidia\.com/gpu)")
_PART_OF_A_CARD: Final = ("_memory", "_core", "_percent", "_memory_percent")
_AMOUNTS: Final = {"cpu": keys.CPU, "memory": keys.MEMORY, "sharedmemory": keys.SHARED_MEMORY}


@dataclass(slots=True)
class NamedAmounts:
    """The amounts of one JobSpec's `resources`; None for those that it does not name."""

    cpu_milli: int | None = None
    memory_mib: int | None = None
    shm_mib: int | None = None
    gpus: int | None = None
    gpu_type: str = ""
    rdma: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether none is named."""
        return (self.cpu_milli, self.memory_mib, self.shm_mib, self.gpus) == (None, None, None, None)

    def build(self) -> Resources:
        """Return the amounts, with AIHC's shared memory for RDMA and our defaults for the rest."""
        shared = implied_shared(self.rdma, self.memory_mib) if self.shm_mib is None else self.shm_mib
        return Resources(
            cpu_milli=self.cpu_milli or keys.DEFAULTS.cpu_milli,
            memory_mib=self.memory_mib or keys.DEFAULTS.memory_mib,
            shm_mib=shared,
            gpus=self.gpus or 0,
            gpu_type=self.gpu_type,
            rdma=self.rdma,
        )


def implied_shared(rdma: bool, memory_mib: int | None) -> int:
    """Return the shared memory of a replica that requests none: 10 GB with RDMA, at most its memory."""
    if rdma and memory_mib:
        return min(RDMA_SHARED_MIB, memory_mib)
    return keys.DEFAULTS.shm_mib


def read(role: Request) -> NamedAmounts:
    """Return the amounts; names that mean nothing here are kept for AIHC."""
    found = NamedAmounts(rdma=role.flag(keys.ENABLE_RDMA))
    for item in role.requests(keys.RESOURCES):
        _add(item, item.text(keys.RESOURCE_NAME), found)
    if found.is_empty:
        role.findings.note("no_amounts", role.pointer, source=keys.PAGE)
    elif found.rdma and found.shm_mib is None and found.memory_mib:
        shared = implied_shared(found.rdma, found.memory_mib)
        role.findings.note("rdma_shared_memory", role.at(keys.ENABLE_RDMA.key), mib=shared, source=keys.PAGE)
    return found


def _add(item: Request, name: str, found: NamedAmounts) -> None:
    """Add one resource to `found`; of two with one name the first counts."""
    rule = _AMOUNTS.get(name.lower())
    gpu = _GPU.fullmatch(name)
    if rule is not None:
        field = rule.path.rpartition(".")[2]
        amount = _amount(item, rule)
        if getattr(found, field) is None:
            setattr(found, field, amount)
    elif name == RDMA_DEVICE:
        found.rdma = found.rdma or bool(_amount(item, keys.GPUS))
    elif gpu and not name.endswith(_PART_OF_A_CARD) and found.gpus is None:
        found.gpus, found.gpu_type = _amount(item, keys.GPUS), gpu["type"] or ""
        if not found.gpu_type and found.gpus:
            item.findings.note("gpu_unnamed", item.at(keys.RESOURCE_NAME.key), value=name)
    elif name:
        item.findings.note("unknown_resource", item.pointer, value=name)


def _amount(item: Request, rule: Amount) -> int | None:
    if not item.has(rule):
        item.findings.problem("required", item.at(rule.key), keys.PAGE, key=rule.key)
    return item.optional_amount(rule)


def is_said(element: object) -> bool:
    """Tell whether a JobSpec holds the resource, though it might not be written under its name.

    RDMA's device is expressed by enableRDMA, and the shared memory that it brings by leaving it out.
    """
    name = str(as_object(element).get(keys.RESOURCE_NAME.key, ""))
    return name == RDMA_DEVICE or name.lower() in _AMOUNTS


def write(has: Resources) -> list[JsonObject]:
    """Return the amounts as AIHC names them; memory in GB."""
    return [
        {keys.RESOURCE_NAME.key: name, keys.QUANTITY.key: quantity} for name, quantity in _quantities(has)
    ]


def _quantities(has: Resources) -> Iterator[tuple[str, float]]:
    if has.gpus or has.gpu_type:
        yield f"{_VENDOR}{has.gpu_type}" if has.gpu_type else ANY_GPU, has.gpus
    yield "cpu", _number(has.cpu_milli, 1000)
    yield "memory", _number(has.memory_mib, 1024)
    if has.shm_mib != implied_shared(has.rdma, has.memory_mib):
        yield "sharedMemory", _number(has.shm_mib, 1024)


def _number(amount: int, of: int) -> float:
    return amount // of if amount % of == 0 else float(Decimal(amount) / of)
