"""Amounts of resources: one value type for requests, reservations, quotas and nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Amounts:
    """CPU in milli-cores, memory in MiB, GPUs by type (type "" is a GPU of any type)."""

    cpu_milli: int = 0
    memory_mib: int = 0
    gpus: Mapping[str, int] = field(default_factory=dict)

    @property
    def gpu_count(self) -> int:
        """GPUs of all types."""
        return sum(self.gpus.values())

    def __add__(self, other: Amounts) -> Amounts:
        gpus = dict(self.gpus)
        for kind, count in other.gpus.items():
            gpus[kind] = gpus.get(kind, 0) + count
        return Amounts(self.cpu_milli + other.cpu_milli, self.memory_mib + other.memory_mib, gpus)

    def __sub__(self, other: Amounts) -> Amounts:
        """Return the difference, which may be negative."""
        gpus = dict(self.gpus)
        for kind, count in other.gpus.items():
            gpus[kind] = gpus.get(kind, 0) - count
        return Amounts(self.cpu_milli - other.cpu_milli, self.memory_mib - other.memory_mib, gpus)

    def times(self, count: int) -> Amounts:
        """`count` times these amounts."""
        return Amounts(
            self.cpu_milli * count,
            self.memory_mib * count,
            {kind: each * count for kind, each in self.gpus.items()},
        )

    def to_json(self) -> dict[str, Any]:
        """As stored in a JSON column."""
        return {
            "cpu_milli": self.cpu_milli,
            "memory_mib": self.memory_mib,
            "gpus": {kind: count for kind, count in self.gpus.items() if count},
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """The inverse of `to_json`; absent keys are nothing."""
        return cls(value.get("cpu_milli", 0), value.get("memory_mib", 0), dict(value.get("gpus", {})))


@dataclass(frozen=True, slots=True)
class Part:
    """`count` equal replicas: on the nodes `only` alone, where any are named, and on none of `never`.

    Of an elastic part `least` of them are enough to start; None where all of them are needed.
    """

    count: int
    each: Amounts
    only: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    least: int | None = None

    @property
    def spare(self) -> int:
        """How many of the replicas are not needed to start."""
        return 0 if self.least is None else max(0, self.count - self.least)

    def may_use(self, node: str) -> bool:
        """Whether a replica may be on a node."""
        return node not in self.never and (not self.only or node in self.only)

    @property
    def is_choosy(self) -> bool:
        """Whether not every node will do."""
        return bool(self.only or self.never)

    def to_json(self) -> list[Any]:
        """As stored in a JSON column: short, as long as any node will do for all of them."""
        terms = {"only": list(self.only), "never": list(self.never), "least": self.least}
        stored = {key: value for key, value in terms.items() if value}
        return [self.count, self.each.to_json(), *([stored] if stored else [])]

    @classmethod
    def from_json(cls, value: Sequence[Any]) -> Self:
        """The inverse of `to_json`."""
        count, each, *rest = value
        terms = rest[0] if rest else {}
        only, never = tuple(terms.get("only", ())), tuple(terms.get("never", ()))
        return cls(count, Amounts.from_json(each), only, never, terms.get("least"))


def total(parts: Iterable[Amounts]) -> Amounts:
    """The sum of `parts`."""
    result = Amounts()
    for part in parts:
        result = result + part
    return result
