"""Usage of replicas and the kernel's log, for backends that can read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jobs.backends.base import Handle
from jobs.backends.metrics_source import MetricsSource


@dataclass(frozen=True, slots=True)
class Transferred:
    """Bytes that a replica has read and written so far: on disks, and by a network of its own.

    None for what can't be told, as for the network of a replica that has that of its node.
    """

    disk_read: int | None = None
    disk_written: int | None = None
    received: int | None = None
    sent: int | None = None


@dataclass(frozen=True, slots=True)
class Use:
    """Usage of one replica.

    `cpu_s` are the CPU seconds of all its processes so far; None for it and for memory where they can't be
    told.  `gpu_percents` are how busy each of its GPUs is,
    at the most within the last minute; None where that can't be told, which never means that it is idle.
    """

    role: str
    index: int
    cpu_s: float | None
    memory_mib: int | None
    gpu_percents: tuple[int, ...] | None = None
    transferred: Transferred = Transferred()


@runtime_checkable
class Measuring(Protocol):
    """A backend that measures."""

    def measure(self, handles: Sequence[Handle]) -> Mapping[Handle, Sequence[Use]]:
        """Return the present usage of the running replicas of each attempt.

        Attempts that can't be measured are absent; raises Unreachable without an answer.
        """


@runtime_checkable
class MeasuredElsewhere(Protocol):
    """A backend whose jobs a Prometheus of the site measures, where there is one."""

    @property
    def metrics_source(self) -> MetricsSource | None:
        """Return where to ask."""

    def engine_number(self, handle: Handle) -> str:
        """Return the engine's own number for an attempt, by which series name it."""


@dataclass(frozen=True, slots=True)
class AccountedUse:
    """Usage of a role's replicas over their whole run, as the engine's accounting has it.

    `cpu_s` are CPU seconds, the mean of its replicas; `memory_mib` is the most that one of them had.  Each is
    None where it is not recorded.
    """

    role: str
    cpu_s: float | None
    memory_mib: int | None


@runtime_checkable
class Accounted(Protocol):
    """A backend whose engine records what jobs have used."""

    def read_usage(self, handles: Sequence[Handle]) -> Mapping[Handle, Sequence[AccountedUse]]:
        """Return the usage of ended attempts, as far as it is recorded.  Raises Unreachable."""


@dataclass(frozen=True, slots=True)
class KernelLog:
    """Lines of the GPU driver in the log of a node's kernel, and the bus address of each GPU by its index."""

    lines: tuple[str, ...]
    buses: Mapping[int, str]


@runtime_checkable
class KernelLogging(Protocol):
    """A backend that reads the log of its nodes' kernels."""

    def read_kernel_log(self, node: str) -> KernelLog:
        """Return what the GPU driver has written since the node started; nothing where that can't be read."""
