"""A container's limits and requests ↔ what a replica is given."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from decimal import Decimal, InvalidOperation
from typing import Final

from jobs.dialects import amounts
from jobs.dialects.base import Fix
from jobs.dialects.fields import Amount, Quantity
from jobs.dialects.findings import Findings
from jobs.dialects.kubeflow import keys
from jobs.dialects.objects import without_empty
from jobs.dialects.record import short
from jobs.dialects.spans import escape
from jobs.dialects.text_renderer import JsonObject
from jobs.spec import Resources

_QUANTITY: Final = re.compile(
    r"(?P<number>[+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40}))"
    r"(?P<unit>[KMGTPE]i|[numkMGTPE]|[eE][+-]?\d{1,3})?",
    re.ASCII,
)
_OF_TWO: Final = {"K": 10, "M": 20, "G": 30, "T": 40, "P": 50, "E": 60}
_SMALL: Final = {"n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3")}
_GPU: Final = re.compile(r"(?:nvidia|amd|intel|gpu\.intel|metax-tech|huawei)\.com/(?:gpu|i915|Ascend\w*)")
_OTHER_GPU: Final = re.compile(r"[\w.\-]+/gpu", re.ASCII)
_SIZES: Final = {rule.key: rule for rule in (keys.CPU, keys.MEMORY, keys.DISK)}


def quantity(text: str) -> Decimal | None:
    """Return a quantity as the Kubernetes API reads it; M and G are powers of 1024 here, as everywhere."""
    match = _QUANTITY.fullmatch(text.strip())
    if not match:
        return None
    try:
        number, unit = Decimal(match["number"]), match["unit"] or ""
        if unit in _SMALL:
            return number * _SMALL[unit]
        if unit[:1] in ("e", "E") and len(unit) > 1:
            return number.scaleb(int(unit[1:]))
        return number * 2 ** _OF_TWO[unit[0].upper()] if unit else number
    except (InvalidOperation, ValueError):
        return None


def is_gpu(name: str) -> bool:
    """Tell whether a resource is a GPU."""
    return bool(_GPU.fullmatch(name) or _OTHER_GPU.fullmatch(name))


def size(has: Resources) -> list[int]:
    """Return the amounts that tell whether requests beside limits still fit them."""
    return [has.cpu_milli, has.memory_mib, has.disk_mib, has.gpus, int(has.rdma)]


def is_neutral(name: str) -> bool:
    """Tell whether a resource fills a field of `Resources`."""
    return bool(_field(name))


def read(
    limits: Mapping[str, object], requests: Mapping[str, object], pointer: str, findings: Findings
) -> tuple[Resources, tuple[str, ...]]:
    """Return what is requested, and the fields that are named; limits count before requests."""
    amounts_of: dict[str, int] = {}
    for where, values in (("requests", requests), ("limits", limits)):
        for name, value in values.items():
            at = f"{pointer}/{where}/{escape(name)}"
            taken = _read_amount(name, value, at, findings)
            if taken is None:
                continue
            field = _field(name)
            if not field:
                findings.note("unknown_resource", at, value=name)
                continue
            other = amounts_of.get(field)
            if where == "limits" and other is not None and other != taken:
                findings.note("limit_taken", at, key=name)
            amounts_of[field] = taken
    rdma = bool(amounts_of.pop("rdma", 0))
    defaults = keys.DEFAULTS.model_dump()
    found = {field: value for field, value in amounts_of.items() if value or field in ("gpus", "disk_mib")}
    return Resources(**{**defaults, **found, "rdma": rdma}), tuple(amounts_of)


def _field(name: str) -> str:
    """Return the field of `Resources` that a resource fills; "" for none."""
    rule = _SIZES.get(name)
    if rule is not None:
        return rule.path.rpartition(".")[2]
    if name.startswith("rdma/"):
        return "rdma"
    return "gpus" if is_gpu(name) else ""


def _read_amount(name: str, value: object, at: str, findings: Findings) -> int | None:
    """Return the amount in whole units of a `Resources`, rounded up; None for one that is wrong."""
    text = str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value
    exact = quantity(text) if isinstance(text, str) else None
    rule: Amount = _SIZES.get(name, keys.GPUS)
    if exact is None or exact < 0:
        meant = amounts.parse_prose(value, rule.quantity) if isinstance(value, str) else None
        fix = None if meant is None else Fix(at, amounts.to_text(meant, rule.quantity))
        findings.problem("not_an_amount", at, keys.KUBERNETES, fix, key=name, value=short(str(value)))
        return None
    if rule.quantity is Quantity.CPU:
        exact *= 1000
    elif rule.quantity is Quantity.MEMORY:
        exact /= 2**20
    taken = amounts.whole(exact)
    if taken > rule.most.value:
        findings.problem(
            "too_great", at, rule.most.source, key=name, value=short(str(value)), most=rule.most.value
        )
        return None
    if taken != exact:
        unit = rule.quantity.value
        findings.note("rounded_up", at, key=name, value=short(str(value)), taken=taken, unit=unit)
    return taken


def write(has: Resources, silent: Collection[object], gpu: str, rdma: str) -> JsonObject:
    """Return the limits that say `has`; `silent` are fields that were not named."""
    unsaid = [name for name in map(str, silent) if getattr(has, name) == getattr(keys.DEFAULTS, name)]
    return without_empty(
        {
            keys.CPU.key: "" if "cpu_milli" in unsaid else _cores(has.cpu_milli),
            keys.MEMORY.key: "" if "memory_mib" in unsaid else amounts.memory(has.memory_mib),
            keys.DISK.key: amounts.memory(has.disk_mib) if has.disk_mib else "",
            gpu or keys.GPU: has.gpus,
            rdma or keys.RDMA: int(has.rdma),
        }
    )


def _cores(milli: int) -> str:
    """`4`, or `500m`."""
    return str(milli // 1000) if milli % 1000 == 0 else f"{milli}m"
