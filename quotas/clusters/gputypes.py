"""GPU types under one name, whatever name a job file or an engine has for them."""

from __future__ import annotations

from collections.abc import Mapping

from quotas.amounts import Amounts
from quotas.models import GpuType


def names() -> dict[str, str]:
    """Return every name and alias, in small letters, and the type that is meant."""
    found: dict[str, str] = {}
    for name, aliases in GpuType.objects.values_list("name", "aliases"):
        for each in (*aliases, name):
            found[str(each).casefold()] = name
    return found


def canonical(kind: str, known: Mapping[str, str]) -> str:
    """Return the type's own name; a name that is not listed is its own."""
    return known.get(kind.casefold(), kind)


def canonicalize(amounts: Amounts, known: Mapping[str, str]) -> Amounts:
    """Return the same amounts under the types' own names."""
    gpus: dict[str, int] = {}
    for kind, count in amounts.gpus.items():
        name = canonical(kind, known)
        gpus[name] = gpus.get(name, 0) + count
    return Amounts(amounts.cpu_milli, amounts.memory_mib, gpus)
