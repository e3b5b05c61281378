"""Usage of replicas, for backends that can measure it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jobs.backends.base import Handle


@dataclass(frozen=True, slots=True)
class Use:
    """Usage of one replica.

    `cpu_s` are the CPU seconds of all its processes so far.  `gpu_percents` are how busy each of its GPUs is,
    at the most within the last minute; None where that can't be told, which never means that it is idle.
    """

    role: str
    index: int
    cpu_s: float
    memory_mib: int
    gpu_percents: tuple[int, ...] | None = None


@runtime_checkable
class Measuring(Protocol):
    """A backend that measures."""

    def measure(self, handles: Sequence[Handle]) -> Mapping[Handle, Sequence[Use]]:
        """Return the present usage of the running replicas of each attempt.

        Attempts that can't be measured are absent; raises Unreachable without an answer.
        """
