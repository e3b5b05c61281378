"""Instance types that a job may name as its EcsSpec: ListEcsSpecs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from jobs import submission
from jobs.api.vendors.alibaba import page_slice
from jobs.api.vendors.operations import Call, JsonObject, Operation, Parameter, Support
from jobs.api.vendors.pai_dlc.pages import ORDER, PAGE_NUMBER, PAGE_SIZE
from jobs.form import sizes
from jobs.form.sizes import GIB, InstanceSize
from quotas.models import Node, User

CPU: Final = "CPU"
GPU: Final = "GPU"
ECS: Final = "ECS"
LINGJUN: Final = "Lingjun"

_SORT_KEYS: Final[Mapping[str, Callable[[InstanceSize], Any]]] = {
    "CPU": lambda size: size.amounts.cpu_milli,
    "GPU": lambda size: size.amounts.gpu_count,
    "Memory": lambda size: size.amounts.memory_mib,
    "GmtCreateTime": lambda size: size.spec,
}


def list_specs(call: Call) -> JsonObject:
    """Answer the sizes that the caller's jobs may name, the smaller one first where they sort alike."""
    found = [size for size in sizes.list_offered(call.person) if _is_wanted(size, call.values)]
    found.sort(key=lambda size: (size.amounts.memory_mib, size.amounts.cpu_milli, size.name))
    found.sort(key=_SORT_KEYS[call.values["SortBy"]], reverse=call.values["Order"] == "desc")
    nodes = _list_nodes(call.person)
    specs = [_render(size, is_available=_fits(size, nodes)) for size in found[page_slice(call)]]
    return {"EcsSpecs": specs, "TotalCount": len(found)}


def _is_wanted(size: InstanceSize, values: Mapping[str, Any]) -> bool:
    names = {each.strip() for each in values["InstanceTypes"].split(",")} - {""}
    return (
        values["AcceleratorType"] in {"", _accelerator(size)}
        and values["ResourceType"] in {"", ECS}
        and (not names or size.name in names)
    )


def _accelerator(size: InstanceSize) -> str:
    return GPU if size.amounts.gpu_count else CPU


def _list_nodes(user: User) -> list[Node]:
    """Return the nodes of the clusters to which the person may send jobs."""
    clusters = submission.quotas_open_to(user).order_by().values("cluster")
    return list(Node.objects.filter(cluster__in=clusters).only("cpu_milli", "memory_mib", "gpus"))


def _fits(size: InstanceSize, nodes: Iterable[Node]) -> bool:
    """Tell whether some node is large enough; without known nodes nothing speaks against it."""
    wanted = size.amounts
    known = list(nodes)
    return not known or any(
        node.cpu_milli >= wanted.cpu_milli
        and node.memory_mib >= wanted.memory_mib
        and all(node.gpus.get(kind, 0) >= count for kind, count in wanted.gpus.items())
        for node in known
    )


def _render(size: InstanceSize, *, is_available: bool) -> JsonObject:
    """Return a size as the vendor's EcsSpec, with memory in GiB."""
    return {
        "InstanceType": size.name,
        "AcceleratorType": _accelerator(size),
        "Cpu": max(1, size.amounts.cpu_milli // 1000),
        "Memory": max(1, size.amounts.memory_mib // GIB),
        "Gpu": size.amounts.gpu_count,
        "GpuType": next(iter(size.amounts.gpus), ""),
        "IsAvailable": is_available,
        "ResourceType": ECS,
        "PaymentTypes": [],
        "SupportedGPUDrivers": [],
    }


OPERATIONS: Final = (
    Operation(
        "ListEcsSpecs",
        "GET",
        "api/v1/ecsspecs",
        list_specs,
        parameters=(
            Parameter("AcceleratorType", choices=(CPU, GPU), default=""),
            Parameter("InstanceTypes", default="", since="1.4.17"),
            Parameter("ResourceType", choices=(ECS, LINGJUN), default="", since="1.4.17"),
            Parameter("SortBy", choices=tuple(_SORT_KEYS), default="GmtCreateTime"),
            ORDER,
            PAGE_NUMBER,
            PAGE_SIZE,
        ),
        support=Support.PARTIAL,
        note=(
            "The specs of the console's price list, or common instance types while it has none. "
            "Memory is in GiB. GPU memory, GPU drivers, payment types and spot prices are not answered."
        ),
    ),
)
